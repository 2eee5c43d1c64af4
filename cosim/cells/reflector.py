"""Binary reflector: a whole number m whose update makes S - m of it, the recurrent unit at epsilon = -1.

    cand --[sampler]-- hold --|comparator upper|-- up        S = +1: candidate above the upper threshold
                          +---|comparator lower|-- down      S = -1: candidate below the lower one

The bits are those of u = m + 2^(bits - 1). With every bit turned over u becomes ~u, which stands for -1 - m; so

    S = -1    every bit turns over
    S = +1    every bit turns over, and 2 is added:  bit 1 stays, and bit k > 1 stays where bits 1 ... k - 1 are off

    still     low at an update, `moves` its inverse
    carry 1   low where S = +1 and any bit from 1 on is on
    carry k   low where carry 1 is, and bits 1 ... k - 1 are off:  carry k --[qb]-- carry k + 1
    turn k    high where `moves` and carry k are; turn 0 where `moves` is, through as many gates

Comparators, latches, phases and levels are those of the counter (`counter.py`), and so are times and currents. An
update never leaves the range: in the two lowest states, where S - m would lie above it, all bits turn over as at
S = -1.
If mismatch has exchanged the two thresholds, `up` has precedence. `resetb` low puts the reflector onto `start`.

A toggle (`toggle.py`) is smaller and follows a unit whose updates all have one sign.
Source: arXiv 2605.11855 eq. 7 and 12 at epsilon = -1; gates as in `counter.py`; the circuit is of this project.
"""

from cosim.cells.counter import bit, carry, counter_ports, level, phases
from cosim.cells.quantiser import HELD, SAMPLER
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.cells.window import DECISION, Gates
from cosim.circuit.elements import Element, Instance, Subcircuit
from cosim.technology.types import Technology

REFLECTOR = "reflector"


def reflector(technology: Technology, units: int, bits: int, start: int) -> Subcircuit:
    """Build a reflector cell of two `bits` or more, which the reset puts onto u = `start`.

    It needs sampler, window and decision, and has the ports of a counter.
    """
    gates, inner = Gates(technology), TransistorDesign("inner", "n", technology.sizing.cell_n)
    elements: list[Element] = [
        Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
        Instance("upper", ("hold", "upper", "up", "up_b", "closed", "open", "kp", "vdd"), DECISION, match=HELD),
        Instance("lower", ("hold", "lower", "stays", "down", "closed", "open", "kp", "vdd"), DECISION, match=HELD),
        *transistor("supply", inner, "kp", "keep"),
        *transistor("diode", gates.load, "kp", "kp"),
        *phases(gates, bits),
        *gates.gate("still", ("up",), ("down", "up_b")),
        *gates.gate("moves", ("still",)),
        *gates.gate("not_least", tuple(f"qb{k}" for k in range(1, bits))),
        *gates.gate("carry1", ("up", "not_least")),
    ]
    for k in range(bits):
        elements += gates.gate(f"keep{k}", ("moves", f"carry{k}") if k else ("moves",))
        elements += gates.gate(f"turn{k}", (f"keep{k}",))
        elements += bit(gates, k, on=bool(start >> k & 1))
        if 0 < k < bits - 1:
            elements += carry(gates, "carry", k, "qb")
        elements += level(gates, technology, k)
    elements += transistor("output", TransistorDesign("output", "p", technology.sizing.mirror_p, units), "out", "out")
    title = f"reflector of {bits} bits, starts on {start}"
    return Subcircuit(f"{REFLECTOR}_{bits}_{start}", counter_ports(bits), tuple(elements), title)
