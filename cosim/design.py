"""A design as it was compiled, and the condition in which an engine runs it; a chip is draws alone.

A chip's draws are `cosim.variation.draws.Chip`. Functions take design, condition and chip: no condition is the nominal
one, no chip is a circuit whose transistors do not deviate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from cosim.cells.assembly import Assembly
from cosim.circuit.elements import Circuit
from cosim.ir.graph import Sized
from cosim.network.types import Network
from cosim.technology.calibration import Calibration
from cosim.technology.types import Technology

Found = TypeVar("Found")


@dataclass(frozen=True)
class Condition:
    """The condition in which a circuit runs.

    technology: at its corner, temperature and supply. bias_scale, input_scale: bias currents and input currents
    over those that they were compiled for. pins: factors of single bias pins, as trimming sets them; absent is 1.
    """

    technology: Technology
    bias_scale: float = 1.0
    input_scale: float = 1.0
    pins: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, eq=False)
class Design:
    """A compiled network with everything that made it; technology: the one that it was compiled for."""

    network: Network
    technology: Technology
    calibration: Calibration
    graph: Sized
    assembly: Assembly

    @property
    def i_unit(self) -> float:
        """Ampere per software 1.0."""
        return self.graph.i_unit

    @property
    def nominal(self) -> Condition:
        """The condition that the design was compiled for."""
        return Condition(self.technology)

    @cached_property
    def flat(self) -> Circuit:
        """Return the circuit without subcircuits."""
        return self.assembly.circuit.flat()

    def bias_pins(self, condition: Condition) -> dict[str, float]:
        """Return pin -> current into it in ampere, before it is scaled by `bias_scale`."""
        return {pin: condition.pins.get(pin, 1.0) * current for pin, current in self.assembly.bias_pins.items()}


def once_per_design(make: Callable[[Design], Found]) -> Callable[[Design], Found]:
    """Make a function run once for each design, whose result lives as long as the design; nobody may change it."""
    kept: WeakKeyDictionary[Design, Found] = WeakKeyDictionary()

    @wraps(make)
    def found(design: Design) -> Found:
        if design not in kept:
            kept[design] = make(design)
        return kept[design]

    return found
