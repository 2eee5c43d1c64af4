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
from cosim.circuit.elements import Capacitor, Circuit, Mos, block_of
from cosim.network.arrays import hash_network
from cosim.network.ir.graph import Sized
from cosim.network.types import Network
from cosim.technology.calibration import Calibration
from cosim.technology.types import Technology

Found = TypeVar("Found")


@dataclass(frozen=True)
class Condition:
    """The condition in which a compiled design runs.

    technology: at its corner, temperature and supply. bias_scale, input_scale: bias currents and input currents
    over those that they were compiled for. pins: factors of single bias pins, as trimming sets them; absent is 1.
    """

    technology: Technology
    bias_scale: float = 1.0
    input_scale: float = 1.0
    pins: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, eq=False)
class Design:
    """A design: a compiled network with everything that made it. technology: the one that it was compiled for."""

    network: Network
    technology: Technology
    calibration: Calibration
    graph: Sized
    assembly: Assembly

    @property
    def i_unit(self) -> float:
        """Return the design's unit current, ampere per software 1.0."""
        return self.graph.i_unit

    @property
    def nominal(self) -> Condition:
        """Return the condition that the design was compiled for."""
        return Condition(self.technology)

    @cached_property
    def flat(self) -> Circuit:
        """Return the compiled design's circuit without subcircuits."""
        return self.assembly.circuit.flat()

    def bias_pins(self, condition: Condition) -> dict[str, float]:
        """Return the compiled design's bias pins, pin -> current into it in ampere, before scaling by `bias_scale`."""
        return {pin: condition.pins.get(pin, 1.0) * current for pin, current in self.assembly.bias_pins.items()}


def once_per_design(make: Callable[[Design], Found]) -> Callable[[Design], Found]:
    """Make a function of a compiled design run once for each; its result lives as long as the design.

    Nobody may change the result.
    """
    kept: WeakKeyDictionary[Design, Found] = WeakKeyDictionary()

    @wraps(make)
    def found(design: Design) -> Found:
        if design not in kept:
            kept[design] = make(design)
        return kept[design]

    return found


@once_per_design
def network_hash(design: Design) -> str:
    """Return `hash_network` of the network that a design was compiled from."""
    return hash_network(design.network)


@once_per_design
def block_areas(design: Design) -> Mapping[str, tuple[float, float]]:
    """Compute drawn gate area and capacitor area of each block of a compiled design, square metre.

    Wiring, wells and spacing are not counted.
    """
    blocks = design.assembly.blocks
    gates, capacitors = dict.fromkeys(blocks, 0.0), dict.fromkeys(blocks, 0.0)
    for element in design.flat.elements:
        match element:
            case Mos():
                gates[block_of(element.part)] += element.gate_area
            case Capacitor() if element.part is not None:  # of a wire it has none
                capacitors[block_of(element.part)] += element.value / design.technology.capacitor_density
            case _:
                pass
    return {block: (gates[block], capacitors[block]) for block in blocks}
