"""Ratio gate: a current that saturates, I = I_b a / (a + I_b), the logistic function of ln a - ln I_b.

        vdd          vdd                    vdd      vdd
         |            |                      |        |
    line o--|copy    half o--|half    tau o--+diode   |      line  gate line p of a signal; one unit device copies a
         |            |               I v    |        |      half  gate line p of a constant I_b, see `tau_line`
       a +----+     b +----+               |m_a     |m_b     bias  gate line n of the same I_b
         |    |       |    |           a o--|    b o--|      tau   gate line p of I
        |d_a--+      |d_b--+                +----+---+
         +-----+------+                          |
             |low                       bias o--|tail
             0                                   0

Gates of d_a and m_a, and of d_b and m_b, are one node each, so n U_T ln(a / I_b) stands between the two diodes and
between the two sides of the pair, wherever their sources are: I_a / I_b = a / I_b of them, and both sum to the tail.
The diode `low` under d_a and d_b lifts both, so that the tail has V_DS to work with. a and I_b come through copies of
one kind, so what a copy loses against its diode cancels; what is left is the tail's, and that of `diode` into what it
drives.
Source: B. Gilbert, Electronics Letters 11 (1975) 14 (translinear loops), and IEEE J. Solid-State Circuits 19 (1984) 956
(normaliser of n inputs, of which this is the half with two).
"""

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import Subcircuit
from cosim.technology.types import Technology

RATIO_GATE = "ratio_gate"


def ratio_gate(technology: Technology) -> Subcircuit:
    """Build the ratio gate cell, whose current saturates: I = I_b a / (a + I_b). Ports line half bias tau vdd."""
    n, unit = technology.sizing.cell_n, technology.sizing.mirror_p
    diode, pair = TransistorDesign("inner", "n", n), TransistorDesign("pair", "n", n)
    return Subcircuit(
        RATIO_GATE,
        ("line", "half", "bias", "tau", "vdd"),
        (
            *transistor("copy", TransistorDesign("copy", "p", unit), "a", "line"),
            *transistor("half", TransistorDesign("copy", "p", unit), "b", "half"),
            *transistor("da", diode, "a", "a", "r"),
            *transistor("db", diode, "b", "b", "r"),
            *transistor("low", TransistorDesign("inner", "n", n, match="low"), "r", "r"),
            *transistor("a", pair, "tau", "a", "t"),
            *transistor("b", pair, "vdd", "b", "t"),
            *transistor("tail", TransistorDesign("level", "n", n), "t", "bias"),
            *transistor("diode", TransistorDesign("inner", "p", unit), "tau", "tau"),
        ),
        "tau carries I_b a / (a + I_b), a a unit of line",
    )
