"""Tau-cell: first-order low pass for currents whose time constant is a current, for signals and for constants.

            vdd           vdd              vdd          vdd
             |             |                |            |
             |           i_tau            i_tau          |       wells: M2 and M3 stand in their own, at s and b
             |             v                v            |
      b o--|M1      b o----+        s o-----+    vc o--|M4       (C n U_T) dI/dt = I_tau (I_in - I)
             |             |                |            |
      d o----+      d o--|M3       d o--|M2              v I
             v I_in        |                |
                           0                0                    s is vc, where C hangs between vc and vdd

M1 carries I_in, whatever the gate of M3 must be for that (M3 follows with I_tau), M4 carries I. Around the loop vdd, b,
d, vc, vdd the gate-source voltages give I_in I_tau = I_2 I, and onto vc flows I_tau - I_2. The gate of M4 is the
capacitor itself, so I does not jump where I_tau does, and it settles to I_in at every I_tau: a DPI, whose gain is
I_g / I_tau, cannot be gated so. That holds with the wells alone: with M2 and M3 in the well of the others it reads
I_2 = I_tau (I_in / I)^n. The well on vc has a junction to the substrate that transistor models do not have.

Gated, a switch stands between s and vc. Outside of the pulse nothing flows on vc but leakage, I decays as
exp(-t / tau_max), tau_max = C n U_T / I_leak, and b, d and s settle to the new input: a pulse begins on what has
settled. What s carries is shared with vc as it begins: I comes nearer to I_in by the ratio of the capacitances of s and
C, in the logarithm: 0.13 % at 5 pF in generic180, also where I_tau is 0.

Free running, a step of I_in moves b, which M3 charges, and M2 passes on its share: of a step up, C_b / C arrives at
once (4 % at 3 pF in generic180, 18 % at 0.3 pF), so a free running cell wants more than 3 pF.
Source: A. van Schaik and C. Jin, Proc. IEEE ISCAS 2003, vol. 1, 569 (tau-cell); the equation is theirs, the four
transistors are the log-domain loop of D. R. Frey, IEE Proc. G 140 (1993) 406, in which I_tau may be a signal.
"""

from typing import Literal

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import GROUND, Capacitor, Element, Mos, Subcircuit
from cosim.technology.types import Technology

TAU_CELL, TAU_CELL_GATED = "tau_cell", "tau_cell_gated"
Place = Literal["first", "next"]
_OF_LINE: dict[Place | None, str] = {None: TAU_CELL_GATED, "first": "tau_cell_first", "next": "tau_cell_next"}
TAU_LINE, REST_LINE = "tau_line", "rest_line"
REST_STRENGTH = 8  # what the reset leaves is wrong by a share of I_tau over this
STATE_NODE = "vc"
OUTPUT_DEVICE = "4"  # M4, which carries the state


def tau_cell(technology: Technology, units: int, capacitance: float) -> Subcircuit:
    """Build the free running tau-cell, a low pass for currents. Ports line tau out vdd.

    line: gate line p of I_in, whose diode has `units` unit devices; tau: gate line p on which one unit device gives
    I_tau, see `tau_line`; out: sinks I.
    """
    unit = technology.sizing.mirror_p
    return Subcircuit(
        TAU_CELL,
        ("line", "tau", "out", "vdd"),
        (
            *transistor("in", TransistorDesign("inner", "p", unit, units), "i", "line"),
            *_loop(technology, STATE_NODE),
            *_output(technology, capacitance),
        ),
        "tau-cell: out sinks a low-passed copy of the current of line",
    )


def tau_cell_gated(
    technology: Technology, units: int, capacitance: float, trim: float = 1.0, *, place: Place | None = None
) -> Subcircuit:
    """Build the gated tau-cell with the diode of its state. Ports line tau out pulseb resetb, with `place` rest, vdd.

    place: None for a cell by itself, else its place in a dispersive delay line: `next` reads the `out` of the cell
    before; cells of a line rest on a floor current. line: gate line p of the input's diode; tau: gate line p of a
    signal, on which one unit device gives I_tau; out: gate line p of the state, `units` unit devices; pulseb: low in
    the pulse; resetb: low sets I to 0, or to the current of the gate line p `rest`. trim: nominal over drawn length of
    the output's n diode, which takes out the gain of the mirrors.
    """
    switch, unit = TransistorDesign("switch", "p", technology.sizing.sample_switch), technology.sizing.mirror_p
    cell = technology.sizing.cell_p
    copy = TransistorDesign("inner", "p", unit, units) if place == "next" else TransistorDesign("inner", "p", cell)
    floor = transistor("floor", TransistorDesign("inner", "p", cell), "i", "rest") if place == "first" else ()
    return Subcircuit(
        _OF_LINE[place],
        ("line", "tau", "out", "pulseb", "resetb", *(["rest"] if place else []), "vdd"),
        (
            *transistor("in", copy, "i", "line"),
            *floor,
            *_loop(technology, "s"),
            *transistor("pulse", switch, STATE_NODE, "pulseb", "s"),
            *transistor("reset", switch, STATE_NODE, "resetb", "rest" if place else "vdd"),
            *_output(technology, capacitance, trim),
            *transistor("diode", TransistorDesign("output", "p", unit, units), "out", "out"),
        ),
        "gated tau-cell: out carries a copy of the current of line, low-passed in the pulse by the current of tau",
    )


def tau_line(technology: Technology, *, rest: bool = False) -> Subcircuit:
    """Build the cell that makes the gate line `tau` of a constant current I_tau from a bias line, for all tau-cells.

    Ports: bias, tau, vdd. rest: whether its diode is REST_STRENGTH times as strong as M4 of a tau-cell; during the
    reset the cells of delay lines are tied to such a line.
    """
    n, p, unit = technology.sizing.cell_n, technology.sizing.cell_p, technology.sizing.mirror_p
    diode = TransistorDesign("inner", "p", p, REST_STRENGTH) if rest else TransistorDesign("inner", "p", unit)
    return Subcircuit(
        REST_LINE if rest else TAU_LINE,
        ("bias", "tau", "vdd"),
        (
            *transistor("sink", TransistorDesign("inner", "n", n), "tau", "bias"),
            *transistor("diode", diode, "tau", "tau"),
        ),
        "gate line p of the current on which tau-cells rest" if rest else "gate line p of a constant I_tau",
    )


def tau_capacitance(technology: Technology, tau: float, i_tau: float) -> float:
    """Return the capacitance of a tau-cell, farad, for `tau` in second: tau I_tau / (n U_T).

    A tau of 10 ms costs 0.3 pF per pA of I_tau.
    """
    return tau * i_tau / (technology.pfet.slope_factor * technology.thermal_voltage)


def gate_charge(i_gate: float, units: int, time: float) -> float:
    """Return C n U_T of a gated tau-cell, A s: with this charge a gate current i_gate, A, makes r = 1 in `time`, s.

    i_gate flows on the cell's pin `tau`, from a diode of `units` unit devices.
    """
    return i_gate / units * time


def _loop(technology: Technology, follower: str) -> tuple[Element, ...]:
    """Return a tau-cell's copy of I_in, and M1, M3, M2 with their I_tau; follower: net at the source of M2."""
    n, p, unit = technology.sizing.cell_n, technology.sizing.cell_p, technology.sizing.mirror_p
    return (
        *transistor("idiode", TransistorDesign("inner", "n", n), "i", "i"),
        *transistor("sink", TransistorDesign("inner", "n", n), "d", "i"),
        *transistor("1", TransistorDesign("inner", "p", p), "d", "b"),
        Mos("3", GROUND, "d", "b", "b", "p", unit.w, unit.l, role="pair", match="d"),
        *transistor("tau3", TransistorDesign("inner", "p", unit), "b", "tau"),
        Mos("2", GROUND, "d", follower, follower, "p", unit.w, unit.l, role="pair", match="d"),
        *transistor("tau2", TransistorDesign("inner", "p", unit), follower, "tau"),
    )


def _output(technology: Technology, capacitance: float, trim: float = 1.0) -> tuple[Element, ...]:
    """Return a tau-cell's capacitor, M4, and the mirror that sinks the current of M4."""
    n, p = technology.sizing.cell_n, technology.sizing.cell_p
    return (
        Capacitor("c", STATE_NODE, "vdd", capacitance),
        *transistor(OUTPUT_DEVICE, TransistorDesign("inner", "p", p, match="b"), "o", STATE_NODE),
        *transistor("odiode", TransistorDesign("inner", "n", n, length=technology.snap(n.l / trim)), "o", "o"),
        *transistor("osink", TransistorDesign("level", "n", n), "out", "o"),
    )
