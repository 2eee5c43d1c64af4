"""The shift cell: a Schmitt trigger that takes over a bit, so that rows behind it read it a frame later.

    u = s of what it reads;  set where u >= RISE level, reset where u <= FALL level

It regenerates: what it passes on has its own level, whatever arrived, so no error adds up along a chain. No layer
becomes a shift cell: the compiler puts them where a source is late (cosim.compiler.lower).
"""

from dataclasses import dataclass, replace
from typing import cast

from cosim.network.ir.nodes import InputCurrent, Memory
from cosim.network.late import FALL, RISE
from cosim.network.layers import RecurrentLayer
from cosim.network.types import INPUT
from cosim.units.kind import UnitKind
from cosim.units.placement import LayerPlacement
from cosim.units.schmitt import SCHMITT, Schmitt, SchmittBias, SchmittFactors


@dataclass(frozen=True)
class Shift(Schmitt):
    """The shift cell, a kind of recurrent unit.

    frames: by how many its state is behind unit `index` of `layer` once it has decided.
    """

    frames: int = 0

    @property
    def behind(self) -> int:
        return self.frames


def shift_cell(name: str, source: InputCurrent | Memory, stage: int, frames: int) -> Shift:
    """Return a shift cell, a kind of recurrent unit, behind a source of two values."""
    if isinstance(source, Memory):
        layer, level, zero, step = source.layer, source.level, source.zero, source.step
    else:
        layer, level, zero, step = INPUT, 1.0, 0.0, 1.0
    rise, fall = RISE * level, FALL * level
    on = isinstance(source, Memory) and source.start > 0
    return Shift(name, layer, source.index, stage, level, zero, step, rise, fall, on=on, frames=frames)


def _never(layer: RecurrentLayer) -> bool:
    return False


def _lower(layer: RecurrentLayer, placement: LayerPlacement) -> None:
    raise NotImplementedError(f"{layer.name}: no layer becomes a shift cell")


SHIFT = cast(
    UnitKind[Shift, SchmittBias, SchmittFactors],
    replace(SCHMITT, node_type=Shift, layer_types=(), accepts=_never, lower_layer=_lower),
)
