"""A compiled design, and the condition in which an engine runs it.

A chip is only the random draws of its transistors' deviations, `cosim.variation.draws.Chip`. Functions take design,
condition and chip: condition None is the nominal one, chip None a circuit whose transistors do not deviate.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from cosim.base.seal import checksum
from cosim.base.text import json_object
from cosim.cells.assembly import Assembly
from cosim.circuit.elements import Capacitor, Circuit, Mos, block_of
from cosim.circuit.waveforms import LAST_CLOSE
from cosim.compiler.edited import Edit
from cosim.compiler.overrides import current_factors
from cosim.compiler.settings import CompilerSettings
from cosim.network.ir.graph import SizedGraph
from cosim.network.ir.nodes import InputCurrent, Memory
from cosim.network.types import Network, hash_network
from cosim.technology.calibration import Calibration
from cosim.technology.foundry import oxide_thickness
from cosim.technology.types import POLARITIES, Technology
from cosim.units.builder import NETWORK, net

Found = TypeVar("Found")


@dataclass(frozen=True)
class Condition:
    """The condition in which a compiled design runs.

    technology: at its corner, temperature and supply; bias_scale, input_scale: all bias currents, all input currents
    over those that the design was compiled for; pins: bias pin -> factor of its current, as trimming sets it, absent
    for 1.
    """

    technology: Technology
    bias_scale: float = 1.0
    input_scale: float = 1.0
    pins: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, eq=False)
class Design:
    """A design: a compiled network with everything that it was made from.

    technology: the one that it was compiled for; graph: sized; assembly: its circuit; settings: those of the compiler;
    compiled: its circuit without the settings' overrides or edited netlist, None if there are none; edits: what the
    edited netlist changes.
    """

    network: Network
    technology: Technology
    calibration: Calibration
    graph: SizedGraph
    assembly: Assembly
    settings: CompilerSettings
    compiled: Assembly | None = None
    edits: tuple[Edit, ...] = ()

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

    @cached_property
    def current_factors(self) -> Mapping[str, float]:
        """Return transistor -> ln of the factor by which a designer changed its current; empty without changes."""
        return {} if self.compiled is None else current_factors(self.compiled, self.assembly)

    def bias_pins(self, condition: Condition) -> dict[str, float]:
        """Return bias pin -> current into it, ampere, in this condition, but not yet multiplied by `bias_scale`."""
        return {pin: condition.pins.get(pin, 1.0) * current for pin, current in self.assembly.bias_pins.items()}


def once_per_design(make: Callable[[Design], Found]) -> Callable[[Design], Found]:
    """Return `make`, a function of a compiled design, with a cache: it runs once for each design.

    A result lives as long as its design, and must not be changed.
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
    """Return the hash (`hash_network`) of the network that a design was compiled from."""
    return hash_network(design.network)


@once_per_design
def changes_hash(design: Design) -> str:
    """Return the checksum of the overrides or the edited netlist of a design; "" if there is neither."""
    overrides, edited = design.settings.overrides, design.settings.netlist
    if edited is not None:
        return checksum(edited.text.encode())
    return checksum(json.dumps(json_object(overrides)).encode()) if overrides else ""


@once_per_design
def block_areas(design: Design) -> Mapping[str, tuple[float, float]]:
    """Compute block -> (drawn gate area, capacitor area) of a compiled design, square metre.

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


RESIDUE = 0.01  # of the unit current: what may be left on a line when it is read
OXIDE = 3.45e-11  # F/m; permittivity of silicon dioxide


def slowest_line(design: Design, condition: Condition | None = None) -> tuple[str, float, float]:
    """Find the gate line of a design that settles last, which limits how short its frames can be.

    Returns the input or unit whose line it is, the line's capacitance in F, and the shortest frame that it allows in s,
    at the temperature of the condition. A time ramp never falls, so its line is left out.

    A line's diode takes the current I = I_0 exp(V / (n U_T)), and the source behind it delivers I_s. On the line's
    capacitance C, with Q = C n U_T,

        C dV/dt = I_s - I        so        dI/dt = I (I_s - I) / Q

    The slowest move is from 1 to 0, after which only the pedestal I_p is left. From I_1 to I_p + d that takes

        t = (Q / I_p) ln( (1 - I_p / I_1) (I_p + d) / d )

    The first of S stages tracks its candidates for LAST_CLOSE / S of a frame. The bound is necessary, not sufficient:
    copies of copies and cells take further time.
    """
    loads, features = gate_loads(design, condition), design.network.encoding.features
    lines = {
        node.name: max(loads[f"{place}{net(node.name)}_{line}"] for place in ("", f"x{NETWORK}.") for line in "np")
        for node in design.graph.of(InputCurrent, Memory)
        if not (isinstance(node, InputCurrent) and node.index >= features)
    }
    signal = max(lines, key=lambda name: lines[name])
    pedestal, residue = design.graph.i_pedestal, RESIDUE * design.i_unit
    left = 1 - pedestal / (design.i_unit + pedestal)
    technology = (condition or design.nominal).technology
    swing = max(technology.nfet.slope_factor, technology.pfet.slope_factor) * technology.thermal_voltage
    seconds = lines[signal] * swing / pedestal * math.log(left * (pedestal + residue) / residue)
    return signal, lines[signal], seconds * len(design.assembly.clocks) / LAST_CLOSE


def gate_loads(design: Design, condition: Condition | None = None) -> dict[str, float]:
    """Return net -> capacitance of the gates that a design has on that net, F, in weak inversion.

    There the oxide's capacitance is in series with the depletion layer's: C = W L C_ox (1 - 1 / n) (C. C. Enz, F.
    Krummenacher, E. A. Vittoz, Analog Integr. Circuits Signal Process. 8 (1995) 83).
    """
    technology, found = (condition or design.nominal).technology, defaultdict[str, float](float)
    densities = {
        polarity: OXIDE / oxide_thickness(technology, polarity) * (1 - 1 / technology.device(polarity).slope_factor)
        for polarity in POLARITIES
    }
    for device in design.flat.elements:
        if isinstance(device, Mos):
            found[device.gate] += densities[device.polarity] * device.gate_area
    return found
