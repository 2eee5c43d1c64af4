"""Tau-cell: first-order low pass for currents whose time constant is a current, for signals and for constants.

            vdd         vdd            vdd        vdd
             |           |              |          |
           i_tau         |            i_tau        |             wells: M2 and M3 stand in their own, at vc and b
             v           |              v          |
        b +--+--o|M1     |        vc +--+--||--vdd |             (C n U_T) dI/dt = I_tau (I_in - I)
          |      |       |           |  C          |
    d o--|M3   --+ d     |    g2 o--|M2     vc o--|M4 --> out
          |                          |
          0                          0                           I_in is drawn from d; I is what M4 gives

M1 carries I_in, whatever the gate of M3 must be for that (M3 follows with I_tau), M4 carries I. Around the loop vdd, b,
d, vc, vdd the gate-source voltages give I_in I_tau = I_2 I, and on vc flows I_2 - I_tau. The gate of M4 is the
capacitor itself, so I does not jump where I_tau does, and it settles to I_in at every I_tau: a DPI, whose gain is
I_g / I_tau, cannot be gated so. That holds with the wells alone: with M2 and M3 in the well of the others it reads
I_2 = I_tau (I_in / I)^n.

Free running, g2 is d. Gated, g2 is d within the pulse and vdd outside, where i_tau goes to b instead of vc: nothing
flows on vc then but leakage, I decays as exp(-t / tau_max), tau_max = C n U_T / I_leak. M5, a copy of M2 with both
ends on vc, takes the place of M2 on d outside of the pulse, so the charge of the gates on vc is the same in both.
The well on vc has a junction to the substrate that transistor models do not have.

A step of I_in moves b, which M3 charges, and M2 passes on its share: of a step up, C_b / C arrives at once (4 % at 3 pF
in generic180, 18 % at 0.3 pF), so a free running cell wants more than 3 pF. Gated, b settles while g2 is vdd.
Source: A. van Schaik and C. Jin, Proc. IEEE ISCAS 2003, vol. 1, 569 (tau-cell); the equation is theirs, the four
transistors are the log-domain loop of D. R. Frey, IEE Proc. G 140 (1993) 406, in which I_tau may be a signal.
"""

from cosim.cells.transistor import Device, transistor
from cosim.circuit.elements import GROUND, Capacitor, Element, Mos, Subcircuit
from cosim.technology.types import Technology

TAU_CELL, TAU_CELL_GATED = "tau_cell", "tau_cell_gated"
TAU_LINE = "tau_line"
STATE_NODE = "vc"
OUTPUT_DEVICE = "4"  # M4, which carries the state


def tau_cell(technology: Technology, units: int, capacitance: float) -> Subcircuit:
    """The free running cell. Ports line tau out vdd.

    line: gate line p of `units` unit devices, of I_in; tau: gate line p of one unit device that gives I_tau, see
    `tau_line`; out: sinks I.
    """
    unit = technology.sizing.mirror_p
    return Subcircuit(
        TAU_CELL,
        ("line", "tau", "out", "vdd"),
        (
            *transistor("in", Device("inner", "p", unit, units), "i", "line"),
            *_loop(technology, "d"),
            *transistor("tau2", Device("inner", "p", unit), STATE_NODE, "tau"),
            *_output(technology, capacitance),
        ),
        "tau-cell: out sinks a low-passed copy of the current of line",
    )


def tau_cell_gated(technology: Technology, capacitance: float, name: str = TAU_CELL_GATED) -> Subcircuit:
    """The gated cell. Ports line tau out pulse pulseb resetb vdd.

    line: gate line p of a candidate diode; tau: gate line p of a signal, of which one unit device is I_tau; out: sinks
    I. resetb low: I = 0.
    """
    p, unit = technology.sizing.cell_p, technology.sizing.mirror_p
    return Subcircuit(
        name,
        ("line", "tau", "out", "pulse", "pulseb", "resetb", "vdd"),
        (
            *transistor("in", Device("inner", "p", p), "i", "line"),
            *_loop(technology, "g2"),
            *transistor("tau2", Device("inner", "p", unit), "x", "tau"),
            *_switch(technology, "s1", STATE_NODE, "pulseb", "x"),
            *_switch(technology, "s2", "b", "pulse", "x"),
            Mos("5", STATE_NODE, "g5", STATE_NODE, STATE_NODE, "p", p.w, p.l, role="switch"),
            *_switch(technology, "s3", "g2", "pulseb", "d"),
            *_switch(technology, "s4", "g2", "pulse"),
            *_switch(technology, "s5", "g5", "pulse", "d"),
            *_switch(technology, "s6", "g5", "pulseb"),
            *_switch(technology, "reset", STATE_NODE, "resetb"),
            *_output(technology, capacitance),
        ),
        "gated tau-cell: out sinks a copy of the current of line, low-passed in the pulse by the current of tau",
    )


def tau_line(technology: Technology) -> Subcircuit:
    """The gate line p of a constant I_tau, from a bias line of it: one for all cells. Ports bias tau vdd."""
    n, unit = technology.sizing.cell_n, technology.sizing.mirror_p
    return Subcircuit(
        TAU_LINE,
        ("bias", "tau", "vdd"),
        (
            *transistor("sink", Device("inner", "n", n), "tau", "bias"),
            *transistor("diode", Device("inner", "p", unit), "tau", "tau"),
        ),
        "gate line p of a constant I_tau",
    )


def tau_capacitance(technology: Technology, tau: float, i_tau: float) -> float:
    """C in farad for the time constant `tau` in second: tau I_tau / (n U_T). 10 ms costs 0.3 pF per pA of I_tau."""
    return tau * i_tau / (technology.pfet.slope_factor * technology.thermal_voltage)


def _loop(technology: Technology, gate: str) -> tuple[Element, ...]:
    """The copy of I_in, M1, M3 with its I_tau, and M2."""
    n, p = technology.sizing.cell_n, technology.sizing.cell_p
    return (
        *transistor("diode", Device("inner", "n", n), "i", "i"),
        *transistor("sink", Device("inner", "n", n), "d", "i"),
        *transistor("1", Device("inner", "p", p), "d", "b"),
        Mos("3", GROUND, "d", "b", "b", "p", p.w, p.l, role="pair", match="d"),
        *transistor("tau3", Device("inner", "p", technology.sizing.mirror_p), "b", "tau"),
        Mos("2", GROUND, gate, STATE_NODE, STATE_NODE, "p", p.w, p.l, role="pair", match="d"),
    )


def _output(technology: Technology, capacitance: float) -> tuple[Element, ...]:
    """C, M4, and the copy that sinks its current."""
    n, p = technology.sizing.cell_n, technology.sizing.cell_p
    return (
        Capacitor("c", STATE_NODE, "vdd", capacitance),
        *transistor(OUTPUT_DEVICE, Device("inner", "p", p, match="b"), "o", STATE_NODE),
        *transistor("odiode", Device("inner", "n", n), "o", "o"),
        *transistor("osink", Device("level", "n", n), "out", "o"),
    )


def _switch(technology: Technology, name: str, drain: str, gate: str, source: str = "") -> tuple[Mos, ...]:
    return transistor(name, Device("switch", "p", technology.sizing.sample_switch), drain, gate, source)
