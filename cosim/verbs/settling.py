"""The shortest frame in which a circuit's gate lines settle, from their capacitance and the smallest current on them.

A line's diode takes the current I = I_0 exp(V / (n U_T)), and the source behind it delivers I_s. On the line's
capacitance C, with Q = C n U_T,

    C dV/dt = I_s - I        so        dI/dt = I (I_s - I) / Q

The slowest move is from 1 to 0, after which only the pedestal I_p is left. From I_1 to I_p + d that takes

    t = (Q / I_p) ln( (1 - I_p / I_1) (I_p + d) / d )

In weak inversion a gate has the oxide's capacitance in series with the depletion layer's: C = W L C_ox (1 - 1 / n)
(C. C. Enz, F. Krummenacher, E. A. Vittoz, Analog Integr. Circuits Signal Process. 8 (1995) 83). The first of S stages
tracks its candidates for LAST_CLOSE / S of a frame. This is necessary, not sufficient: copies of copies and cells come
on top.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

from cosim.cells.builder import NETWORK, net
from cosim.circuit.elements import Mos
from cosim.circuit.waveforms import LAST_CLOSE
from cosim.compiler.design import Condition, Design
from cosim.network.ir.nodes import InputCurrent, Memory
from cosim.technology.devices import oxide_thickness
from cosim.technology.types import POLARITIES

RESIDUE = 0.01  # of the unit current: what may be left on a line when it is read
OXIDE = 3.45e-11  # F/m; permittivity of silicon dioxide


@dataclass(frozen=True)
class Settling:
    """The slowest line of a circuit: its signal, its capacitance in F, and the shortest frame that it allows in s."""

    signal: str
    capacitance: float
    t_step: float


def slowest_line(design: Design, condition: Condition | None = None) -> Settling:
    """Find the line of a feature or a unit that limits the frame, at the temperature of the condition. A time ramp
    never falls, so its line counts for none."""
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
    return Settling(signal, lines[signal], seconds * len(design.assembly.clocks) / LAST_CLOSE)


def gate_loads(design: Design, condition: Condition | None = None) -> dict[str, float]:
    """Return net -> capacitance of the gates on it in weak inversion, F."""
    technology, found = (condition or design.nominal).technology, defaultdict(float)
    densities = {
        polarity: OXIDE / oxide_thickness(technology, polarity) * (1 - 1 / technology.device(polarity).slope_factor)
        for polarity in POLARITIES
    }
    for device in design.flat.elements:
        if isinstance(device, Mos):
            found[device.gate] += densities[device.polarity] * device.gate_area
    return found
