"""Steering AND: a current that flows where all of its bits are on, and exactly none where one is off.

    node o---+        a current source (gate line `gain` of a bias pin, the cell's device) below a switch for each bit
             |        a bit is a voltage: a symbol comparator's output
     bit 1 --|        I = I_gain (q and x): pulls from the node, like a weight
             |
     bit 2 --|        Products on one node add up: a current-mode AND-OR plane. One whose bit is off draws nothing.
             |
      gain --|        Its source sees the node less what two switches need, millivolts at nanoamperes: the current is
             0        that of M5 below M3 in the 9T cell, whose calibration sets the pin.

Symbol comparator: a signal of one bit as a voltage. M1 copies its current onto the node of M2, which carries half of
one: the node stands at a rail.

              vdd
      line p --|M1       out is high where the signal is on
               +--o out
      thresh --|M2
               0

The latch of a 9T cell is such a voltage, too, but it floats while the cell tracks: what swings below a switch, a volt
at each change of a product, would pump it to 0.4 V above the supply, where the decision gate lets it go.
"""

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import Subcircuit
from cosim.technology.types import Technology

STEERING_AND, SYMBOL_COMPARATOR = "steering_and", "symbol_comparator"


def steering_and(technology: Technology, bits: int) -> Subcircuit:
    """Build the steering AND cell, whose current flows where all its bits are on.

    Ports node gain, then one for each bit; the first bit's switch is next to the node.
    """
    switch = TransistorDesign("switch", "n", technology.sizing.latch_switch)
    gates = tuple(f"bit{k}" for k in range(bits))
    below = [*(f"s{k}" for k in range(bits))]
    switches = [
        mos
        for k, (gate, drain, source) in enumerate(zip(gates, ["node", *below], below, strict=False))
        for mos in transistor(f"bit{k}", switch, drain, gate, source)
    ]
    return Subcircuit(
        f"{STEERING_AND}_{bits}",
        ("node", "gain", *gates),
        (*switches, *transistor("source", TransistorDesign("level", "n", technology.sizing.cell_n), below[-1], "gain")),
        f"steering AND: pulls I_gain from node where all {bits} bits are high",
    )


def symbol_comparator(technology: Technology, units: int) -> Subcircuit:
    """Build the symbol comparator cell, which turns a signal of one bit into a voltage.

    Ports line thresh out vdd; line: gate line p of the signal, whose diode has `units` unit devices.
    """
    n, p = technology.sizing.cell_n, technology.sizing.mirror_p
    return Subcircuit(
        f"{SYMBOL_COMPARATOR}_{units}",
        ("line", "thresh", "out", "vdd"),
        (
            *transistor("1", TransistorDesign("compare", "p", p, units), "out", "line"),
            *transistor("2", TransistorDesign("threshold", "n", n), "out", "thresh"),
        ),
        "symbol comparator: out is high where the signal's current is above that of thresh",
    )
