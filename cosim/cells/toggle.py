"""Toggle: a memory that changes its state at every update, the recurrent unit at epsilon = -1.

    cand --[sample gate]-- hold --|comparator|-- up                z = [candidate above the threshold]

    drive = I_delta + I_delta z - 2 I_delta z Q + I_base           z = 0: retain;  z = 1: set where Q = 0, else reset
    clocked 9T cell on `drive`, with clk = pulseb, clkb = pulse:   Q changes at the pulse

A master and a slave. The comparator is the master: it decides in its stage's decision phase, and its z then stands
still. The 9T cell is the slave: it tracks `drive` until the pulse, freezes it, and only then changes Q; that drive then
turns around no longer matters. So one update is one change of state, however long the pulse.

h_t = S alpha - h_{t-1} with S = +1 alternates between -alpha and 2 alpha, so h = -alpha + 3 alpha Q. With updates of
both signs h has more than two values, and the unit becomes a reflector (`reflector.py`).
Source: arXiv 2605.11855 eq. 7 at epsilon = -1; the circuit is of this project.
"""

from dataclasses import replace

from cosim.cells.clocked import CLOCKED, LATCH_NODE
from cosim.cells.quantiser import COMPARATOR, HELD, SAMPLER
from cosim.cells.rectifier import CANDIDATE
from cosim.cells.transistor import TransistorDesign, pair_of, transistor
from cosim.circuit.elements import Instance, Subcircuit
from cosim.technology.types import Technology

TOGGLE = "toggle"
PORTS = (
    "cand", "upper", "base", "delta", "thresh", "width", "gain", "out",
    "clk", "clkb", "pulse", "pulseb", "resetb", "vdd",
)  # fmt: skip


def toggle(technology: Technology) -> Subcircuit:
    """Build the toggle cell: a comparator, and a clocked 9T cell with feedback from its state.

    It needs sampler, comparator, candidate diode and the clocked cell.
    """
    n, p = pair_of("inner", technology.sizing.cell_n, technology.sizing.cell_p)
    steer = TransistorDesign("switch", "n", technology.sizing.latch_switch)
    slave = ("drive", "thresh", "width", "gain", "out", "pulseb", "pulse", "resetb", "vdd", "q")
    return Subcircuit(
        TOGGLE,
        PORTS,
        (
            Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
            Instance("master", ("hold", "upper", "up", "clk", "clkb", "vdd"), COMPARATOR, match=HELD),
            Instance("drive", ("drive", "vdd"), CANDIDATE),
            *transistor("base", n, "drive", "base"),
            *transistor("delta", n, "drive", "delta"),
            *transistor("up", steer, "drive", "up", "a"),
            *transistor("delta_up", n, "a", "delta"),
            *transistor("diode", p, "zq", "zq"),
            *transistor("zq_up", steer, "zq", "up", "b"),
            *transistor("zq_q", steer, "b", "q", "c"),
            *transistor("delta_zq", replace(n, m=2), "c", "delta"),
            *transistor("push", p, "drive", "zq"),
            Instance("slave", slave, f"{CLOCKED}_{LATCH_NODE}"),
        ),
        "toggle: the state changes at every pulse at which the candidate was above its threshold",
    )
