"""The kinds of unit that there are. One more is one file and one entry here; see docs/develop/add-a-unit.md."""

from collections.abc import Callable

from cosim.base.errors import MappingError
from cosim.network.ir.nodes import Memory
from cosim.network.layers import RecurrentLayer
from cosim.technology.calibration import Calibration, Own
from cosim.technology.types import Technology
from cosim.units.counter import COUNTER
from cosim.units.gamma import GAMMA
from cosim.units.kind import AnyUnit
from cosim.units.ladder import LADDER
from cosim.units.mingru import MINGRU
from cosim.units.register import REGISTER
from cosim.units.schmitt import SCHMITT
from cosim.units.shift import SHIFT
from cosim.units.toggle import TOGGLE

# a shift cell is a Schmitt trigger, too
UNITS: tuple[AnyUnit, ...] = (SHIFT, SCHMITT, LADDER, COUNTER, TOGGLE, REGISTER, MINGRU, GAMMA)


def recurrent_kinds() -> tuple[type[RecurrentLayer], ...]:
    """Return the kinds of recurrent layer that some kind of unit takes, each once."""
    return tuple(dict.fromkeys(layer for unit in UNITS for layer in unit.layer_types))


def fit_measurements() -> dict[str, Callable[[Technology, Calibration, str], Own]]:
    """Return the measurement of its own circuit that each kind of recurrent unit has, if any, by its node's name."""
    return {unit.node_type.__name__: unit.measure_fit for unit in UNITS if unit.measure_fit is not None}


def unit_of(node: Memory) -> AnyUnit:
    """Return the kind of recurrent unit of a graph's node."""
    return next(unit for unit in UNITS if isinstance(node, unit.node_type))


def unit_of_layer(layer: RecurrentLayer, origin: str) -> AnyUnit:
    """Return the kind of recurrent unit that a layer becomes. Raises MappingError where there is none."""
    found = next((unit for unit in UNITS if unit.accepts(layer)), None)
    if found is None:
        raise MappingError(f"{origin}: {layer.name}: no unit of this cosim takes a {type(layer).__name__}")
    return found
