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

`closed` falls before `open` rises, as each is the output of a gate as below, which falls at once and rises late; and
while `open` is high `closed` cannot rise: so no state is seen by what makes it. A decision that is still on its way
when the pulse comes is caught by a latch, which has until `open` falls to make one or the other of it: so a step is
whole or is none. At either end the counter stays: no step up leads on from all ones, and no step down from all zeros.
Where mismatch has crossed the two thresholds, up counts.

Every gate is a network of n switches against a load, a copy of I_keep: it draws that while its output is low, and
nothing more while it turns, however slowly. So the comparators may settle as slowly as they do, and gates scale with
the unit current as everything else. A net rises in C V / I_keep: the latch of a decision and two such times must be
over while `open` is high, and the carries within the rest of a frame.

Where a ladder has a Schmitt trigger and a DPI a step, a counter has one bit more for twice the steps; its thresholds
and the currents of its bits depend on how its transistors match. `resetb` low puts it onto `start`.
Source: N. H. E. Weste and D. M. Harris, CMOS VLSI Design, 4th ed., 2011, ch. 9 (gates with loads, Manchester carries)
and ch. 10 (two-phase latches); the circuit is of this project.
"""

from collections.abc import Iterator
from dataclasses import replace

from cosim.cells.quantiser import HELD, SAMPLER
from cosim.cells.register import WINDOW
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import GROUND, Capacitor, Element, Instance, Mos, Subcircuit
from cosim.technology.types import Technology

COUNTER, DECISION, COMPARED = "counter", "counter_decision", "compared"
DECISION_PORTS = ("hold", "thresh", "above", "below", "closed", "open", "kp", "vdd")
MOST_BITS = 8
DELAY = 67e-15  # F; on the net that says for how long masters are open
BITS_A_LINE = 4  # bits whose currents are multiples of one gain line; the next line carries 16 times as much
_FRONT = ("cand", "upper", "lower", "keep")
_BACK = ("out", "clk", "clkb", "pulse", "pulseb", "resetb", "reset", "vdd")


def counter_ports(bits: int) -> tuple[str, ...]:
    """Return the ports of a counter cell."""
    return (*_FRONT, *(f"gain{line}" for line in range(gain_lines(bits))), *_BACK)


def gain_lines(bits: int) -> int:
    """Return how many gain lines the bits of a counter cell need."""
    return -(-bits // BITS_A_LINE)


def counter(technology: Technology, units: int, bits: int, start: int) -> Subcircuit:
    """Build a counter cell of `bits` bits whose reset leaves it on `start`. It needs sampler, window and decision."""
    gates, inner = Gates(technology), TransistorDesign("inner", "n", technology.sizing.cell_n)
    elements: list[Element] = [
        Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
        Instance("upper", ("hold", "upper", "up", "up_b", "closed", "open", "kp", "vdd"), DECISION, match=HELD),
        Instance("lower", ("hold", "lower", "stays", "down", "closed", "open", "kp", "vdd"), DECISION, match=HELD),
        *transistor("supply", inner, "kp", "keep"),
        *transistor("diode", gates.load, "kp", "kp"),
        *_phases(gates, bits),
        *gates.gate("not_full", tuple(f"q{k}" for k in range(bits))),
        *gates.gate("not_empty", tuple(f"qb{k}" for k in range(bits))),
        *gates.gate("cu0", ("up", "not_full")),
        *gates.gate("cd0", ("down", "up_b", "not_empty")),
    ]
    for k in range(bits):
        elements += _bit(gates, k, on=bool(start >> k & 1))
        if k + 1 < bits:
            for carry, state in (("cu", "q"), ("cd", "qb")):
                elements += gates.switch(f"{carry}{k + 1}", f"{carry}{k}", f"{state}{k}")
                elements += gates.gate(f"{carry}{k + 1}")
        level = TransistorDesign("level", "n", technology.sizing.cell_n, 2 ** (k % BITS_A_LINE))
        elements += transistor(f"steer{k}", gates.n, "out", f"q{k}", f"y{k}")
        elements += transistor(f"level{k}", level, f"y{k}", f"gain{k // BITS_A_LINE}")
    elements += transistor("output", TransistorDesign("output", "p", technology.sizing.mirror_p, units), "out", "out")
    title = f"counter of {bits} bits, starts on {start}"
    return Subcircuit(f"{COUNTER}_{bits}_{start}", counter_ports(bits), tuple(elements), title)


def decision(technology: Technology) -> Subcircuit:
    """Build the cell of a counter's decision, a comparator and a latch.

    Its `above` is high where the held candidate exceeded the current of `thresh` when `closed` fell, `below` is not
    `above`; kp: gate line of the loads. It needs window.
    """
    gates = Gates(technology)
    return Subcircuit(
        DECISION,
        DECISION_PORTS,
        (
            Instance("compare", ("hold", "thresh", COMPARED, "vdd"), WINDOW),
            *gates.gate("lower", (COMPARED,)),  # its gain: what a closing switch does to a net is little of a candidate
            *gates.latch("lower", "above", "below", "closed", "open"),
        ),
        "decision of a counter: a comparator, and a latch that stands still in a step",
    )


def _phases(gates: "Gates", bits: int) -> Iterator[Element]:
    """Yield the elements that make a counter's two phases at the beginning of a pulse; a capacitor times the first."""
    yield from gates.gate("pulsed", ("pulseb",))
    yield Capacitor("pulsed", "pulsed", GROUND, DELAY)
    yield from gates.gate("early", ("pulsed",))
    yield from gates.gate("late", ("early",))
    yield from gates.gate("open", ("pulseb",), ("late",), m=bits)
    yield from gates.gate("closed", ("pulse", "early"), ("open",), m=bits)


def _bit(gates: "Gates", k: int, *, on: bool) -> Iterator[Mos]:
    """Yield the transistors of one bit of a counter: what is next, master and slave, and its reset to on or off."""
    yield from gates.gate(f"turn{k}", (f"cu{k}", f"cd{k}"))
    yield from gates.gate(f"keep{k}", (f"turn{k}",))
    yield from gates.gate(f"next{k}", (f"q{k}", f"turn{k}"), (f"qb{k}", f"keep{k}"))
    yield from gates.latch(f"next{k}", f"mb{k}", f"m{k}", "open", "closed")
    yield from gates.gate(f"shown{k}", (f"in_mb{k}",))  # not from the latch itself: what a slave held would turn it
    yield from gates.latch(f"shown{k}", f"q{k}", f"qb{k}", "closed", "open")
    yield from transistor(f"reset{k}", gates.n, f"mb{k}" if on else f"in_mb{k}", "reset")


class Gates:
    """The gates of a counter: n switches that pull a net down against a load."""

    def __init__(self, technology: Technology) -> None:
        self.n = TransistorDesign("switch", "n", technology.sizing.sample_switch)
        self.load = TransistorDesign("inner", "p", technology.sizing.latch_switch)

    def gate(self, out: str, *paths: tuple[str, ...], m: int = 1) -> Iterator[Mos]:
        """Yield the transistors of a gate: its load, and the nets of each path, which pull `out` low where all are
        high."""
        yield from transistor(f"load_{out}", replace(self.load, m=m), out, "kp")
        for i, path in enumerate(paths):
            nets = (out, *(f"{out}_{i}{k}" for k in range(1, len(path))), GROUND)
            for k, net in enumerate(path):
                yield from transistor(f"{out}_{net}", self.n, nets[k], net, nets[k + 1])

    def switch(self, a: str, b: str, gate: str) -> Iterator[Mos]:
        """Yield the transistor of a switch between two nets, on while `gate` is high."""
        yield from transistor(f"{a}_{b}", self.n, a, gate, b)

    def latch(self, data: str, inverse: str, out: str, opens: str, holds: str) -> Iterator[Mos]:
        """Yield the transistors of a latch: it follows `data` while `opens` is high, and keeps it while `holds` is."""
        inside = f"in_{inverse}"
        yield from self.switch(inside, data, opens)
        yield from self.gate(inverse, (inside,))
        yield from self.gate(out, (inverse,))
        yield from self.switch(out, inside, holds)
