"""9T Schmitt-trigger cell: one bistable current-mode memory, the recurrent unit at epsilon = 0.

       vdd    vdd         vdd         vdd            cand    gate line of the candidate diode (pMOS)
        |      |           |           |             thresh  gate line of the I_thresh diode (nMOS)
     M1 |   M9 |        M7 |diode   M4 |diode        width   gate line of the I_width diode (nMOS)
  cand o|   fb|           |fb         |--o out       gain    gate line of the I_gain diode (nMOS)
        +--+---+--- v0 --o|M6       v0 o|M3          out     gate line p of the state current
           |               |           |
        M2 |o thresh    M8 |o width M5 |o gain
           0               0           0

    v0 rises when I_in + I_width s > I_thresh,   s = 1 while v0 is high:
    s becomes 1 at I_in >= I_thresh = i_rise, 0 at I_in <= I_thresh - I_width = i_fall, and is kept between.
    I_out = s I_gain.   Idle power V_DD (I_thresh + I_width + I_gain) with its bias diodes.

Unipolar, no clock, no capacitor. M3 and M6 only steer, so they are small: the decision node stays fast.
Near the lower threshold v0 glides down, because its output resistance is finite, while M3 and M6 still conduct; the
state ends where they turn off, at STATE_LEVEL, not at V_DD / 2.
After a set M1 leaves saturation: probe the candidate at its diode, never at M1.
Not to be confused with a voltage Schmitt trigger: thresholds here are currents.
Source: A. Fyon et al., arXiv 2605.07936 (topology); arXiv 2605.11855, Appendix E.
"""

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import Mos, Subcircuit
from cosim.technology.types import Technology

SCHMITT = "schmitt_9t"
PORTS = ("cand", "thresh", "width", "gain", "out", "vdd")
DECISION_NODE = "v0"
STATE_LEVEL = 0.3  # of V_DD: below it M3 and M6 are off. v0 may stand far below V_DD / 2 and the state is still 1


def schmitt(technology: Technology, units: int) -> Subcircuit:
    """Build the 9T Schmitt-trigger cell.

    Its output diode M4 has `units` unit devices, so that `out` can be a signal's gate line p.
    """
    return Subcircuit(
        SCHMITT,
        PORTS,
        schmitt_devices(technology, units, "cand", DECISION_NODE),
        "9T Schmitt trigger: i_rise = I_thresh, i_fall = I_thresh - I_width, I_out = s I_gain",
    )


def schmitt_devices(
    technology: Technology, units: int, candidate: str, steering: str, match: str = "cand"
) -> tuple[Mos, ...]:
    """Return the nine transistors of the 9T cell.

    candidate: net at the gate of M1; steering: net at the gates of M3 and M6, v0 itself in the plain cell; match: line
    of the candidate, with whose diode M1 is matched even where a switch separates them.
    """
    n, p = technology.sizing.cell_n, technology.sizing.cell_p
    switch, unit = TransistorDesign("switch", "n", technology.sizing.latch_switch), technology.sizing.mirror_p
    v0 = DECISION_NODE
    return (
        *transistor("1", TransistorDesign("compare", "p", p, match=match), v0, candidate),
        *transistor("9", TransistorDesign("loop out", "p", p), v0, "fb"),
        *transistor("2", TransistorDesign("threshold", "n", n), v0, "thresh"),
        *transistor("3", switch, "out", steering, "a"),
        *transistor("5", TransistorDesign("level", "n", n), "a", "gain"),
        *transistor("4", TransistorDesign("output", "p", unit, units), "out", "out"),
        *transistor("6", switch, "fb", steering, "b"),
        *transistor("8", TransistorDesign("width", "n", n), "b", "width"),
        *transistor("7", TransistorDesign("loop in", "p", p), "fb", "fb"),
    )
