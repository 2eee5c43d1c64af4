"""Binary counter: a whole number of `bits` bits that steps up, down or not, the recurrent unit at epsilon = 1.

    cand --[sampler]-- hold --|comparator upper|-- up        up:   candidate above the upper threshold
                          +---|comparator lower|-- stays     down: candidate below the lower one

    bit k     carry up ----[q]---- carry up of bit k + 1     a carry is low where the bit turns over
              carry down --[qb]--- carry down of bit k + 1
              next = q xor (carry up low or carry down low)
              next --[open]-- master --[closed]-- slave -- q        q: I_gain 2^k into `out`

    before a pulse   `closed` is high: slaves show their masters, and the decisions go through to the carries
    as it begins     `closed` falls, `open` rises: slaves and decisions stand still, masters take over what is next
    a while later    `open` falls, `closed` rises: slaves show the new state; a capacitor on `pulsed` says when

`closed` falls before `open` rises, because each is the output of a gate, which falls at once and rises late; and while
`open` is high `closed` cannot rise. So the gates that make a new state never see it. A decision that is still on its
way when the pulse comes is caught by a latch, which has until `open` falls to decide for one or the other: so a step is
whole or is none. At either end the counter stays: no step up leads on from all ones, and no step down from all zeros.
If mismatch has exchanged the two thresholds, `up` has precedence.

Gates and decisions are those of `window.py`. A net rises in C V / I_keep: the latch of a decision and two such times
must be over while `open` is high, and the carries within the rest of a frame.

A ladder needs a Schmitt trigger and a DPI for each step, a counter one more bit for twice the steps. The counter's
thresholds and the currents of its bits depend on how its transistors match. `resetb` low puts it onto `start`.
Source: N. H. E. Weste and D. M. Harris, CMOS VLSI Design, 4th ed., 2011, ch. 9 (gates with loads, Manchester carries)
and ch. 10 (two-phase latches); the circuit is of this project.
"""

from collections.abc import Iterator

from cosim.cells.quantiser import HELD, SAMPLER
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.cells.window import DECISION, Gates
from cosim.circuit.elements import GROUND, Capacitor, Element, Instance, Mos, Subcircuit
from cosim.technology.types import Technology

COUNTER = "counter"
MOST_BITS = 8
DELAY = 67e-15  # F; on the net that says for how long masters are open
BITS_A_LINE = 4  # bits whose currents are multiples of one gain line; the next line carries 16 times as much
_FRONT = ("cand", "upper", "lower", "keep")
_BACK = ("out", "clk", "clkb", "pulse", "pulseb", "resetb", "reset", "vdd")


def counter_ports(bits: int) -> tuple[str, ...]:
    """Return the port names of a counter cell of `bits` bits."""
    return (*_FRONT, *(f"gain{line}" for line in range(gain_lines(bits))), *_BACK)


def gain_lines(bits: int) -> int:
    """Return how many gain lines the bits of a counter cell need."""
    return -(-bits // BITS_A_LINE)


def counter(technology: Technology, units: int, bits: int, start: int) -> Subcircuit:
    """Build a counter cell of `bits` bits, which the reset puts onto `start`. Needs sampler, window and decision."""
    gates, inner = Gates(technology), TransistorDesign("inner", "n", technology.sizing.cell_n)
    elements: list[Element] = [
        Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
        Instance("upper", ("hold", "upper", "up", "up_b", "closed", "open", "kp", "vdd"), DECISION, match=HELD),
        Instance("lower", ("hold", "lower", "stays", "down", "closed", "open", "kp", "vdd"), DECISION, match=HELD),
        *transistor("supply", inner, "kp", "keep"),
        *transistor("diode", gates.load, "kp", "kp"),
        *phases(gates, bits),
        *gates.gate("not_full", tuple(f"q{k}" for k in range(bits))),
        *gates.gate("not_empty", tuple(f"qb{k}" for k in range(bits))),
        *gates.gate("cu0", ("up", "not_full")),
        *gates.gate("cd0", ("down", "up_b", "not_empty")),
    ]
    for k in range(bits):
        elements += gates.gate(f"turn{k}", (f"cu{k}", f"cd{k}"))
        elements += gates.gate(f"keep{k}", (f"turn{k}",))
        elements += bit(gates, k, on=bool(start >> k & 1))
        if k + 1 < bits:
            elements += carry(gates, "cu", k, "q")
            elements += carry(gates, "cd", k, "qb")
        elements += level(gates, technology, k)
    elements += transistor("output", TransistorDesign("output", "p", technology.sizing.mirror_p, units), "out", "out")
    title = f"counter of {bits} bits, starts on {start}"
    return Subcircuit(f"{COUNTER}_{bits}_{start}", counter_ports(bits), tuple(elements), title)


def phases(gates: Gates, bits: int) -> Iterator[Element]:
    """Yield the elements that make a counter's nets `closed` and `open`; a capacitor times the phase `open`."""
    yield from gates.gate("pulsed", ("pulseb",))
    yield Capacitor("pulsed", "pulsed", GROUND, DELAY)
    yield from gates.gate("early", ("pulsed",))
    yield from gates.gate("late", ("early",))
    yield from gates.gate("open", ("pulseb",), ("late",), m=bits)
    yield from gates.gate("closed", ("pulse", "early"), ("open",), m=bits)


def carry(gates: Gates, name: str, k: int, state: str) -> Iterator[Mos]:
    """Yield the transistors that carry a low net `name` of bit k to bit k + 1 where the bit's net `state` is high."""
    yield from gates.switch(f"{name}{k + 1}", f"{name}{k}", f"{state}{k}")
    yield from gates.gate(f"{name}{k + 1}")


def bit(gates: Gates, k: int, *, on: bool) -> Iterator[Mos]:
    """Yield the transistors of bit k of a state: next value, master, slave, and the reset to on or off.

    The bit turns over where its net `turn` is high; `keep` is the inverse of `turn`.
    """
    yield from gates.gate(f"next{k}", (f"q{k}", f"turn{k}"), (f"qb{k}", f"keep{k}"))
    yield from gates.latch(f"next{k}", f"mb{k}", f"m{k}", "open", "closed")
    yield from gates.gate(f"shown{k}", (f"in_mb{k}",))  # not from the latch itself: what a slave held would turn it
    yield from gates.latch(f"shown{k}", f"q{k}", f"qb{k}", "closed", "open")
    yield from transistor(f"reset{k}", gates.n, f"mb{k}" if on else f"in_mb{k}", "reset")


def level(gates: Gates, technology: Technology, k: int) -> Iterator[Mos]:
    """Yield the transistors by which bit k, while it is on, draws I_gain 2^k from `out`."""
    source = TransistorDesign("level", "n", technology.sizing.cell_n, 2 ** (k % BITS_A_LINE))
    yield from transistor(f"steer{k}", gates.n, "out", f"q{k}", f"y{k}")
    yield from transistor(f"level{k}", source, f"y{k}", f"gain{k // BITS_A_LINE}")
