"""The table of all kinds of recurrent unit. A new kind is one file and one entry here: docs/develop/add-a-unit.md."""

from collections.abc import Callable
from typing import cast

from cosim.base.errors import MappingError
from cosim.network.ir.nodes import Memory
from cosim.network.layers import RecurrentLayer
from cosim.technology.calibration import Calibration, Own
from cosim.technology.types import Technology
from cosim.units.counter import Counter
from cosim.units.gamma import Gamma
from cosim.units.kind import AnyUnit, UnitKind
from cosim.units.ladder import Ladder
from cosim.units.mingru import MinGru
from cosim.units.reflector import Reflector
from cosim.units.register import Register
from cosim.units.schmitt import Schmitt
from cosim.units.toggle import Toggle

UNITS: tuple[type[AnyUnit], ...] = (Schmitt, Ladder, Counter, Toggle, Reflector, Register, MinGru, Gamma)


def recurrent_kinds() -> tuple[type[RecurrentLayer], ...]:
    """Return the types of recurrent layer that some kind of unit can build, each once."""
    return tuple(dict.fromkeys(layer for unit in UNITS for layer in unit.layer_types))


def fit_measurements() -> dict[str, Callable[[Technology, Calibration, str], Own]]:
    """Return, for each kind of unit that needs one, the function that measures the kind's own circuit.

    Keys are class names of the nodes; a function takes technology, calibration and simulator.
    """
    return {unit.__name__: unit.measure_fit for unit in UNITS if unit.measure_fit is not None}


def unit_of(node: Memory) -> AnyUnit:
    """Return a memory node of the graph as the recurrent unit that it is, for the type checker."""
    assert isinstance(node, UnitKind)
    return cast(AnyUnit, node)


def unit_of_layer(layer: RecurrentLayer, origin: str) -> type[AnyUnit]:
    """Return the kind of recurrent unit that a layer becomes. Raises MappingError if no kind accepts the layer."""
    found = next((unit for unit in UNITS if unit.accepts(layer)), None)
    if found is None:
        raise MappingError(f"{origin}: {layer.name}: no unit of this cosim takes a {type(layer).__name__}")
    return found
