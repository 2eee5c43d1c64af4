"""Quantiser: a candidate becomes set, retain or reset, as a pulse.

    cand --[sample gate]-- hold --|comparator upper|-- up          up:   candidate above the upper threshold
                              +---|comparator lower|-- down        down: candidate above the lower threshold

    driver    I = I_base + I_delta [down or not pulse] + I_delta [up and pulse]
              not pulse: retain = I_base + I_delta;   pulse: reset = I_base, retain, or set = I_base + 2 I_delta

The comparators are the decision branch of the 9T cell, M1 against M2, without its memory; sample gate, hold capacitor
and decision gate are those of the clocked cell, and so is the clock: track while clk is high, decide while it is low.
Their decisions then stand still until the next one, and the pulse lies within.
A candidate that is much too large gives the same pulse as one that is just large enough, so a ladder takes one step.
"""

from cosim.cells.clocked import LATCH_NODE, decision_gate, sample_gate
from cosim.cells.schmitt import DECISION_NODE
from cosim.cells.transistor import TransistorDesign, pair_of, transistor
from cosim.circuit.elements import Instance, Subcircuit
from cosim.technology.types import Technology

QUANTISER, SAMPLER, COMPARATOR, DRIVER = "quantiser", "sampler", "comparator", "driver"
HELD = (("hold", "cand"),)  # the comparators' M1 are matched with the candidate diode behind the sample gate
PORTS = ("cand", "upper", "lower", "base", "delta", "in", "clk", "clkb", "pulse", "pulseb", "resetb", "vdd")


def quantiser() -> Subcircuit:
    """Build the quantiser cell: sampler, two comparators, and the driver of the ladder's line `in`.

    It needs the blocks of `quantiser_blocks`.
    """
    return Subcircuit(
        QUANTISER,
        PORTS,
        (
            Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
            Instance("upper", ("hold", "upper", "up", "clk", "clkb", "vdd"), COMPARATOR, match=HELD),
            Instance("lower", ("hold", "lower", "down", "clk", "clkb", "vdd"), COMPARATOR, match=HELD),
            Instance("driver", ("up", "down", "base", "delta", "in", "pulse", "pulseb", "vdd"), DRIVER),
        ),
        "three-level quantiser: set, retain or reset on gate line n `in`",
    )


def quantiser_blocks(technology: Technology, m: int = 1) -> tuple[Subcircuit, ...]:
    """Build the subcircuits that a quantiser cell instantiates: sampler, comparator (`m` devices each), driver."""
    return sampler(technology), comparator(technology, m), driver(technology)


def sampler(technology: Technology) -> Subcircuit:
    """Build the sampler cell: the sample gate and hold capacitor of the clocked cell.

    Ports cand hold clk clkb resetb vdd.
    """
    return Subcircuit(
        SAMPLER,
        ("cand", "hold", "clk", "clkb", "resetb", "vdd"),
        sample_gate(technology),
        "sample gate: hold follows cand while clk is high",
    )


def comparator(technology: Technology, m: int = 1) -> Subcircuit:
    """Build the comparator cell: M1 against M2, each of `m` devices in parallel, and a decision gate.

    Its latch is high where the held candidate exceeds the current of the line `thresh`.
    """
    n, p = technology.sizing.cell_n, technology.sizing.cell_p
    return Subcircuit(
        COMPARATOR,
        ("hold", "thresh", LATCH_NODE, "clk", "clkb", "vdd"),
        (
            *transistor("1", TransistorDesign("compare", "p", p, m), DECISION_NODE, "hold"),
            *transistor("2", TransistorDesign("threshold", "n", n, m), DECISION_NODE, "thresh"),
            *decision_gate(technology),
        ),
        "comparator: latch takes the decision while clk is low and keeps it while clk is high",
    )


def driver(technology: Technology) -> Subcircuit:
    """Build the driver cell of a quantiser, which puts one of three currents (set, retain, reset) on a gate line n.

    Ports up down base delta in pulse pulseb vdd.
    """
    n, p = pair_of("inner", technology.sizing.cell_n, technology.sizing.cell_p)
    steer = TransistorDesign("switch", "n", technology.sizing.latch_switch)
    return Subcircuit(
        DRIVER,
        ("up", "down", "base", "delta", "in", "pulse", "pulseb", "vdd"),
        (
            *transistor("base", n, "p", "base"),
            *transistor("down", steer, "p", "down", "d"),
            *transistor("rest", steer, "p", "pulseb", "d"),
            *transistor("delta_d", n, "d", "delta"),
            *transistor("pulse", steer, "p", "pulse", "m"),
            *transistor("up", steer, "m", "up", "u"),
            *transistor("delta_u", n, "u", "delta"),
            *transistor("diode_p", p, "p", "p"),
            *transistor("copy", p, "in", "p"),
            *transistor("diode_n", n, "in", "in"),
        ),
        "driver: reset, retain or set current while pulse is high, retain otherwise",
    )
