"""Clocked 9T cell: the Schmitt trigger decides on a frozen candidate, so no glitch can set or reset it.

    cand o--[sample gate]--+--||-- vdd     M1 sees `hold`
                           | hold          sample gate on while clk is high, decision gate on while clk is low
     vdd --[reset]---------+
                                  v0 --[decision gate]--+-- latch     M3, M6 see `latch`

    clk high, track:   hold follows the candidate, v0 compares it with the thresholds, the state stands still.
    clk low, decide:   hold is frozen, the loop through v0 and latch is closed: the plain 9T cell, static.
    resetb low with clk low: hold = vdd, the candidate is 0, the state becomes 0. A cell that begins on is pulled to
    ground instead, by an nMOS on `reset`: its candidate is then the largest there is. (A pMOS would leave hold a
    threshold above ground, which in some technologies is no candidate.)

Why both gates. Positive and negative weights have different delays, so a candidate over- and undershoots while inputs
move; and when cells flip, the nodes that they drive kick the shared gate lines through the drains of the weights. With
the sample gate alone, a cell that decides late sees the kicks of those that decided early. Here a state changes only
after every cell of its stage is frozen.

Rows of a stage may read cells of the same stage a frame late. Then a slow clock edge, in which both gates are half
open, would let some percent of the new state into a candidate that should see the old one. In such stages the decision
gate has a clock of its own (`apart`): dec rises after clk has fallen, and falls before clk rises.

Four gate transistors, one reset transistor, one capacitor, no static power. Not to be confused with the plain cell of
`schmitt.py`, which is what the papers show and what calibration measures.
"""

from cosim.cells.schmitt import DECISION_NODE, schmitt_devices
from cosim.cells.transistor import pair_of, transistor
from cosim.circuit.elements import Capacitor, Element, Mos, Subcircuit
from cosim.technology.types import Technology

CLOCKED = "schmitt_clocked"
PORTS = ("cand", "thresh", "width", "gain", "out", "clk", "clkb", "resetb", "vdd")
LATCH_NODE = "latch"
RESET_INVERTER = "reset_inverter"
DECISION_PORTS = ("dec", "decb")


def clocked_schmitt(
    technology: Technology, units: int, *, tap: bool = False, on: bool = False, apart: bool = False
) -> Subcircuit:
    """Build the clocked 9T cell; its output diode has `units` unit devices. With `tap` the latch node is one more port.

    on: whether the reset leaves the cell on; the port resetb is then `reset`, high during the reset. apart: whether the
    decision gate has a clock of its own; the ports dec and decb, in front of the reset's, are then added for it.
    """
    ports = tuple("reset" if on and port == "resetb" else port for port in PORTS)
    if apart:
        at = ports.index("clkb") + 1
        ports = (*ports[:at], *DECISION_PORTS, *ports[at:])
    variants = {"apart": apart, "on": on, LATCH_NODE: tap}
    return Subcircuit(
        "_".join([CLOCKED, *(name for name, there in variants.items() if there)]),
        (*ports, LATCH_NODE) if tap else ports,
        (
            *sample_gate(technology, on=on),
            *schmitt_devices(technology, units, "hold", LATCH_NODE),
            *decision_gate(technology, *(DECISION_PORTS if apart else ("clkb", "clk"))),
        ),
        f"clocked 9T cell: track while clk is high, decide while clk is low{'; reset to on' if on else ''}",
    )


def reset_inverter(technology: Technology) -> Subcircuit:
    """Build the inverter that makes `reset`, high during the reset, for all cells that the reset leaves on.

    Ports resetb reset vdd.
    """
    n, p = pair_of("switch", technology.sizing.sample_switch, technology.sizing.sample_switch)
    inverter = (*transistor("n", n, "reset", "resetb"), *transistor("p", p, "reset", "resetb"))
    return Subcircuit(RESET_INVERTER, ("resetb", "reset", "vdd"), inverter, "inverter: resetb -> reset")


def sample_gate(technology: Technology, *, on: bool = False) -> tuple[Element, ...]:
    """Return the devices of a clocked cell's sample gate, which connects cand to hold while clk is high.

    The hold capacitor and the device that resets it are among them. on: whether the reset leaves the cell on.
    """
    n, p = pair_of("switch", technology.sizing.sample_switch, technology.sizing.sample_switch)
    return (
        *transistor("sn", n, "hold", "clk", "cand"),
        *transistor("sp", p, "hold", "clkb", "cand"),
        *(transistor("reset", n, "hold", "reset") if on else transistor("reset", p, "hold", "resetb")),
        Capacitor("hold", "hold", "vdd", technology.hold_capacitance),
    )


def decision_gate(technology: Technology, high: str = "clkb", low: str = "clk") -> tuple[Mos, ...]:
    """Return the devices of a clocked cell's decision gate, which connects the decision node to the latch.

    It conducts while net `high` is high and net `low` is low.
    """
    n, p = pair_of("switch", technology.sizing.sample_switch, technology.sizing.sample_switch)
    return (
        *transistor("dn", n, LATCH_NODE, high, DECISION_NODE),
        *transistor("dp", p, LATCH_NODE, low, DECISION_NODE),
    )
