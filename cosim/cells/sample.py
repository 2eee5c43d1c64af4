"""Sample switch: the cell looks at its candidate only while the inputs stand still.

    cand o--[transmission gate, on while clk is high]--+--o hold        clkb is the complement of clk
                                                       |
                                     vdd --[pMOS, on while resetb is low]

The gate of M1 of the 9T cell (net hold) keeps the candidate while the inputs move, so the different delays of positive
and negative weights cannot set or reset a clockless latch. No static power, three transistors a cell. While resetb is
low the candidate is 0 and every cell starts in state 0: a bistable circuit must never start from luck.
"""

from cosim.circuit.elements import GROUND, Mos, Subcircuit
from cosim.technology.types import Technology

SAMPLE_SWITCH = "sample_switch"
LINE_SWITCH = "line_switch"
PORTS = ("cand", "hold", "clk", "clkb", "resetb", "vdd")


def sample_switch(technology: Technology) -> Subcircuit:
    """A transmission gate and a reset transistor for a pMOS gate line (the candidate)."""
    w, l = technology.sizing.sample_switch.w, technology.sizing.sample_switch.l  # noqa: E741
    return Subcircuit(
        SAMPLE_SWITCH,
        PORTS,
        (
            Mos("n", "hold", "clk", "cand", GROUND, "n", w, l),
            Mos("p", "hold", "clkb", "cand", "vdd", "p", w, l),
            Mos("reset", "hold", "resetb", "vdd", "vdd", "p", w, l),
        ),
        "sample switch: hold = cand while clk is high; hold = vdd while resetb is low",
    )


def line_switch(technology: Technology) -> Subcircuit:
    """A transmission gate alone, for a threshold or width line that moves with the input. Ports line hold clk clkb vdd."""
    w, l = technology.sizing.sample_switch.w, technology.sizing.sample_switch.l  # noqa: E741
    return Subcircuit(
        LINE_SWITCH,
        ("line", "hold", "clk", "clkb", "vdd"),
        (
            Mos("n", "hold", "clk", "line", GROUND, "n", w, l),
            Mos("p", "hold", "clkb", "line", "vdd", "p", w, l),
        ),
        "line switch: hold = line while clk is high",
    )
