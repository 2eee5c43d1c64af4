"""Bias distribution: a reference current from a pin becomes an nMOS gate line.

    pin current I_b --> line o--+--[nMOS diode, cell device]-- 0        every gate on the line sinks I_b

The pin is where an on-chip bias generator or a converter would sit; cells with the same set-point share one line.
"""

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import Subcircuit
from cosim.technology.types import Technology

BIAS_DIODE = "bias_diode"
STRONG_DIODE = "strong_diode"
STRENGTH = 32
PEDESTAL_SINK = "pedestal_sink"
BETA_SINK = "beta_sink"


def bias_diode(technology: Technology, stretch: float = 1.0, name: str = BIAS_DIODE, m: int = 1) -> Subcircuit:
    """Build the cell of an nMOS bias diode, which makes a pin current a gate line. Port line.

    stretch: drawn over nominal length; m: devices in parallel, as many as the gates on the line have.
    """
    n = technology.sizing.cell_n
    return Subcircuit(
        name,
        ("line",),
        transistor("diode", TransistorDesign("bias", "n", n, m, technology.snap(n.l * stretch)), "line", "line"),
        "bias diode: current into line -> nMOS gate line",
    )


def strong_diode(technology: Technology) -> Subcircuit:
    """Build the cell of a strong bias diode: STRENGTH devices in parallel, for a line that must recover from a kick.

    A gate that jumps with the state kicks its bias line, which recovers with C n U_t / I: at 10 pA in 10 ms. A
    set-point may be too small for one device to recover in time, so the pin carries STRENGTH times the set-point.
    """
    n = technology.sizing.cell_n
    return Subcircuit(
        STRONG_DIODE,
        ("line",),
        transistor("diode", TransistorDesign("bias", "n", n, STRENGTH), "line", "line"),
        f"bias diode of {STRENGTH} devices: {STRENGTH} times the set-point into line -> nMOS gate line",
    )


def beta_sink(technology: Technology) -> Subcircuit:
    """Build the cell that pulls the current of a bias line out of another line.

    Ports out line; out: the line that is pulled from.
    """
    return _sink(technology, BETA_SINK, "beta, pulled out of the line of a lower threshold")


def pedestal_sink(technology: Technology) -> Subcircuit:
    """Build the cell that draws the pedestal current from a state's gate line p, in state 0 as well.

    Ports out line; line: bias line of the pedestal.
    """
    return _sink(technology, PEDESTAL_SINK, "pedestal: what a state of 0 still carries, so that its gate lines settle")


def _sink(technology: Technology, name: str, summary: str) -> Subcircuit:
    sink = TransistorDesign("sink", "n", technology.sizing.cell_n)
    return Subcircuit(name, ("out", "line"), transistor("sink", sink, "out", "line"), summary)
