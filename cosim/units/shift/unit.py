"""The shift cell as a kind of unit: no layer becomes one, the compiler puts them where a source is late."""

from dataclasses import replace
from typing import cast

from cosim.network.layers import RecurrentLayer
from cosim.units.kind import UnitKind
from cosim.units.placing import Placing
from cosim.units.schmitt.node import SchmittBias, SchmittFactors
from cosim.units.schmitt.unit import SCHMITT
from cosim.units.shift.node import Shift


def _never(layer: RecurrentLayer) -> bool:
    return False


def _lower(layer: RecurrentLayer, placing: Placing) -> None:
    raise NotImplementedError(f"{layer.name}: no layer becomes a shift cell")


SHIFT = cast(
    UnitKind[Shift, SchmittBias, SchmittFactors], replace(SCHMITT, node=Shift, layers=(), takes=_never, lower=_lower)
)
