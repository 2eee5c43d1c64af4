"""Clocked 9T cell: the Schmitt trigger decides on a frozen candidate, so no glitch can set or reset it.

    cand o--[sample gate]--+--||-- vdd     M1 sees `hold`
                           | hold          sample gate on while clk is high, decision gate on while clk is low
     vdd --[reset]---------+
                                  v0 --[decision gate]--+-- latch     M3, M6 see `latch`

    clk high, track:   hold follows the candidate, v0 compares it with the thresholds, the state stands still.
    clk low, decide:   hold is frozen, the loop through v0 and latch is closed: the plain 9T cell, static.
    resetb low with clk low: hold = vdd, the candidate is 0, the state becomes 0.

Why both gates. Positive and negative weights have different delays, so a candidate over- and undershoots while inputs
move; and when cells flip, the nodes that they drive kick the shared gate lines through the drains of the weights. With
the sample gate alone, a cell that decides late sees the kicks of those that decided early. Here a state changes only
after every cell of its stage is frozen. Four gate transistors, one reset transistor, one capacitor, no static power.
Not to be confused with the plain cell of `schmitt.py`, which is what the papers show and what calibration measures.
"""

from cosim.cells.schmitt import DECISION_NODE, schmitt_devices
from cosim.cells.transistor import Device, transistor
from cosim.circuit.elements import Capacitor, Element, Mos, Subcircuit
from cosim.technology.types import POLARITIES, Technology

CLOCKED = "schmitt_clocked"
PORTS = ("cand", "thresh", "width", "gain", "out", "clk", "clkb", "resetb", "vdd")
LATCH_NODE = "latch"
HOLD_CAPACITANCE = 0.4e-12  # F; keeps what the decision kicks back through M1 under 1 % of the candidate


def clocked_schmitt(technology: Technology, units: int, *, tap: bool = False) -> Subcircuit:
    """The clocked cell; its output diode has `units` unit devices. With `tap` the latch node is one more port."""
    return Subcircuit(
        f"{CLOCKED}_{LATCH_NODE}" if tap else CLOCKED,
        (*PORTS, LATCH_NODE) if tap else PORTS,
        (
            *sample_gate(technology),
            *schmitt_devices(technology, units, "hold", LATCH_NODE),
            *decision_gate(technology),
        ),
        "clocked 9T cell: track while clk is high, decide while clk is low",
    )


def sample_gate(technology: Technology) -> tuple[Element, ...]:
    """From cand to hold while clk is high, with the hold capacitor and its reset."""
    n, p = (Device("switch", polarity, technology.sizing.sample_switch) for polarity in POLARITIES)
    return (
        *transistor("sn", n, "hold", "clk", "cand"),
        *transistor("sp", p, "hold", "clkb", "cand"),
        *transistor("reset", p, "hold", "resetb"),
        Capacitor("hold", "hold", "vdd", HOLD_CAPACITANCE),
    )


def decision_gate(technology: Technology) -> tuple[Mos, ...]:
    """From the decision node to latch while clk is low."""
    n, p = (Device("switch", polarity, technology.sizing.sample_switch) for polarity in POLARITIES)
    return (
        *transistor("dn", n, LATCH_NODE, "clkb", DECISION_NODE),
        *transistor("dp", p, LATCH_NODE, "clk", DECISION_NODE),
    )
