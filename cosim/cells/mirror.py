"""Current mirror with integer unit devices: the carrier of every signal and every weight.

              vdd        vdd                     vdd
               |          |                       |
       p o-+--|diode N   |copy N        weight < 0: |k units, gate p    -> pushes |w| I into the node
           |              |                       node
      I_x  v              +--o n       weight > 0: |k units, gate n    -> pulls  |w| I out of the node
                          |                       |
                         |diode N, trimmed        0
                          0

A signal is a current I_x >= 0 drawn from a pMOS diode of N unit devices (gate line p). One copy into an nMOS diode of N
units makes its second gate line n. A weight w = k/N is ONE transistor of |k| units on line n (w > 0) or p (w < 0).

    I_node = sum_{k>0} g_n (k/N) I_x - sum_{k<0} g_p (|k|/N) I_x

g_p is 1 because the source sees the drain voltage of a diode; the two mirrors of the n path see the whole supply and
would give 1 + (V_DD - 2 |V_GS|)(lambda_p + lambda_n). The n diode is drawn shorter by that gain, once per technology,
so that g_n equals g_p (`MirrorFit.trim` in cosim.technology.calibration). Length, because a layout step of 5 nm is
0.1 % of 5 um, and because the current of a narrow device is not linear in its width.

Not to be confused with width-scaled mirrors, whose ratio is not linear for narrow devices.
Source: E. Vittoz and J. Fellrath, IEEE J. Solid-State Circuits 12 (1977) 224; linear layer of arXiv 2605.15216.
"""

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import Mos, Subcircuit
from cosim.technology.types import Technology

INPUT_DIODE = "input_diode"
SIGNAL_RAILS = "signal_rails"


def input_diode(technology: Technology, units: int) -> Subcircuit:
    """Build the cell of the pMOS diode that turns an input current into gate line p. Ports p vdd."""
    return Subcircuit(
        f"{INPUT_DIODE}_{units}",
        ("p", "vdd"),
        p_diode("diode", "p", technology, units),
        f"input diode: current drawn from p -> gate line p, {units} units",
    )


def p_diode(name: str, line: str, technology: Technology, units: int) -> tuple[Mos, ...]:
    """Return the transistors of a diode-connected pMOS of `units` unit devices on the gate line `line`."""
    unit = technology.sizing.mirror_p
    return transistor(name, TransistorDesign("diode", "p", unit, units), line, line)


def signal_rails(technology: Technology, units: int, trim: float) -> Subcircuit:
    """Build the mirror cell from gate line p to gate line n of a signal.

    Ports p n vdd. `trim`: nominal length of the n diode over drawn.
    """
    n, p = technology.sizing.mirror_n, technology.sizing.mirror_p
    return Subcircuit(
        f"{SIGNAL_RAILS}_{units}",
        ("p", "n", "vdd"),
        (
            *transistor("copy", TransistorDesign("copy", "p", p, units), "n", "p"),
            *transistor("diode", TransistorDesign("diode", "n", n, units, technology.snap(n.l / trim)), "n", "n"),
        ),
        f"current mirror: gate line p -> gate line n, {units} units, n diode shortened by {trim:.4f}",
    )


def weight(name: str, line: str, node: str, count: int, technology: Technology) -> tuple[Mos, ...]:
    """Return the transistors of one weight of `count` unit devices, which is signed and not 0.

    A positive weight pulls its current from `node`, a negative one pushes it into `node`. line: gate line n of the
    source for a positive weight, p for a negative.
    """
    return transistor(name, weight_of(count, technology), node, line)


def weight_of(count: int, technology: Technology, origin: str = "") -> TransistorDesign:
    """Return role and size of the transistor for a weight of `count` unit devices, negative for a negative weight."""
    if count > 0:
        return TransistorDesign("weight", "n", technology.sizing.mirror_n, count, origin=origin)
    return TransistorDesign("weight", "p", technology.sizing.mirror_p, -count, origin=origin)
