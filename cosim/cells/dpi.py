"""Differential pair integrator (DPI): a first-order low pass for currents, in five transistors and a capacitor.

    line o--|in  vdd                           line   gate line p of the input current
            |                                  vg     gate line of an nMOS diode that carries I_g
            vs (own n well)                    tau    gate line of an nMOS diode that carries I_tau
        +---+---+                              outk   each sinks I_out
     vg o|1    2|--+-- vc --||-- 0
         |      |  |    |     C                       tau (1 + I_g / I_out) dI_out/dt + I_out = I_g I_in / I_tau - I_g
         0      +--+    |tau                          tau = C U_T / (kappa I_tau)
                        0       outk o--|vc

For I_out well above I_g it settles as exp(-t / tau). From below I_g it first has a dead time: its rise is slower than
its fall, which ends in the straight slope of vc, I_tau / C. Keep I_g under 2 % of the largest I_out.
M1 and M2 stand in a well of their own at vs. With their bulk at V_DD the pair's gates rise over a body effect, and the
gain at 0.5 nA is 0.78 instead of 0.96; what is left is the output conductance, taken out by I_g (`DpiFit`).
Source: C. Bartolozzi and G. Indiveri, Neural Computation 19 (2007) 2581; arXiv 2605.11855, Fig. 4 (current input).
"""

import math

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import GROUND, Capacitor, Mos, Subcircuit
from cosim.technology.types import Technology

DPI = "dpi"
INTEGRATION_NODE = "vc"


def dpi(technology: Technology, units: int, outputs: int, capacitance: float) -> Subcircuit:
    """Build a DPI cell (low pass) behind a gate line p of `units` unit devices, with 1 or 2 outputs.

    Ports line vg tau out0 [out1] vdd.
    """
    n, p, unit = technology.sizing.cell_n, technology.sizing.cell_p, technology.sizing.mirror_p
    outs = tuple(f"out{k}" for k in range(outputs))
    return Subcircuit(
        f"{DPI}_{outputs}",
        ("line", "vg", "tau", *outs, "vdd"),
        (
            *transistor("in", TransistorDesign("inner", "p", unit, units), "vs", "line"),
            Mos("1", GROUND, "vg", "vs", "vs", "p", p.w, p.l, role="pair", match="vs"),
            Mos("2", INTEGRATION_NODE, INTEGRATION_NODE, "vs", "vs", "p", p.w, p.l, role="pair", match="vs"),
            *transistor("tau", TransistorDesign("inner", "n", n), INTEGRATION_NODE, "tau"),
            Capacitor("c", INTEGRATION_NODE, GROUND, capacitance),
            *(mos for out in outs for mos in transistor(out, TransistorDesign("inner", "n", n), out, INTEGRATION_NODE)),
        ),
        "differential pair integrator: each out sinks a low-passed copy of the current of line",
    )


def dpi_capacitance(technology: Technology, tau: float, i_tau: float) -> float:
    """Return the capacitance of a DPI cell, farad, for `tau` in second: tau kappa I_tau / U_T.

    A tau of 10 ms costs 0.3 pF per pA of I_tau.
    """
    return tau * i_tau / (technology.nfet.slope_factor * technology.thermal_voltage)


def dpi_rise_time(i_from: float, i_to: float, i_final: float, i_g: float) -> float:
    """Return the time over tau in which a DPI's output rises from i_from to i_to on its way up to i_final, all ampere.

    It is the exact solution of the DPI equation: t / tau = (1 + I_g / I_f) ln((I_f - I_a) / (I_f - I_b)) + (I_g /
    I_f) ln(I_b / I_a), with I_a = i_from, I_b = i_to and I_f = i_final; infinite for i_to >= i_final.
    """
    if i_to >= i_final:
        return math.inf
    gap = math.log((i_final - i_from) / (i_final - i_to))
    return gap + (i_g / i_final) * (gap + math.log(i_to / i_from))


def dpi_fall_time(i_from: float, i_to: float) -> float:
    """Return the time over tau in which the output of the DPI cell falls from i_from to i_to without input, ampere.

    Without input tau (1 + I_g / I) dI/dt = -(I + I_g), that is, dI/dt = -I / tau, at every I.
    """
    return math.log(i_from / i_to) if i_to > 0 else math.inf
