"""Clock generator: from one clock, every phase of a frame, without overlap and without a spike.

    ck    N ticks a frame, from outside
    run   low holds the chip in its reset; the chip begins when run rises

    run --d|FF|--+--|FF|--+--|FF|--+--|FF|-- 4     the reset ends in steps, a tick each: begin and pulses fall,
                 1        2        3               resetb rises, dec falls, clk rises with tick 0

    +--o|FF|--|FF|-- ... --|FF|--+                 a toggle of N/2 steps: its last bit comes back inverted
    |    0      1         N/2-1  |                 bit j is high from tick j to tick j + N/2
    +----------------------------+

    from tick a to tick b = bit a and not bit b    (bit j for j >= N/2: the inverse of bit j - N/2)

One bit turns in a tick, and a phase depends on two bits, so no phase has a spike, as phases from a binary counter have.
clk is low in its phase. dec, which must not overlap it, takes the bits half a period early: it begins when ck falls in
the first tick of its stage, and ends when ck falls in the last but one. sample is high in its ticks while ck and `take`
are high. So the time for which ck is high is the time of sampling, and the clock tells a chip how many frames there
are.
Source: the twisted ring, J. F. Wakerly, Digital Design, 4th ed., 2006, ch. 8; phases as in `cosim.circuit.waveforms`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from cosim.cells.logic import FLIP_FLOP, INVERTER, NAND, flip_flop, inverter, inverter_name, nand
from cosim.circuit.bench import Bench, Current, Tran
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source, Subcircuit
from cosim.circuit.waveforms import SHARP
from cosim.technology.types import Technology

CLOCK = "clock"
CK, RUN, TAKE = "ck", "run", "take"
SAMPLE_NETS = ("sample", "sampleb", "begin")
RESET_STEPS = 4
DRIVER = 8  # devices of the inverter that drives all flip-flops


@dataclass(frozen=True)
class Phase:
    """A phase of the clock generator: net `high` is high, and net `low` low, from tick `begin` to tick `end`.

    step: both nets are in this state during the reset as well, until its step number `step`. early: whether the phase
    comes earlier by the half of a clock period in which ck is low.
    """

    high: str
    low: str
    begin: int
    end: int
    step: int
    early: bool = False


def clock(ticks: int, phases: Sequence[Phase], sample: tuple[int, int] | None) -> Subcircuit:
    """Build the clock generator cell, which makes every phase of a frame from one clock.

    ticks: clock periods in a frame; sample: (first tick, last tick) of output sampling, None for none. Needs inverters
    of 1 and DRIVER, flip_flop, nand of 2 and, with a sample, of 4. Ports ck run, with a sample take sample sampleb
    begin, then resetb, the nets of the phases, vdd.
    """
    half, made = ticks // 2, tuple(net for phase in phases for net in (phase.high, phase.low))
    sampled = (TAKE, *SAMPLE_NETS) if sample else ()
    elements: list[Element] = [
        Instance("ckb", (CK, "ckb", "vdd"), INVERTER),
        Instance("ckd", ("ckb", "ckd", "vdd"), inverter_name(DRIVER)),
        Instance("back", (f"r{half - 1}", "back", "vdd"), INVERTER),
    ]
    for k in range(RESET_STEPS):
        elements.append(_flip_flop(f"s{k + 1}", f"s{k}" if k else RUN, RUN))
    for j in range(half):
        elements.append(_flip_flop(f"r{j}", f"r{j - 1}" if j else "back", "s3"))
    for phase in phases:
        elements += [
            _nand(f"in_{phase.high}", _span(half, phase.begin, phase.end, early=phase.early), f"{phase.high}_in"),
            _nand(phase.high, (f"{phase.high}_in", f"s{phase.step}"), phase.high),
            Instance(phase.low, (phase.high, phase.low, "vdd"), INVERTER),
        ]
    if sample:
        elements += [
            _nand("sampleb", (*_span(half, *sample, early=True), "ckd", TAKE), "sampleb"),
            Instance("sample", ("sampleb", "sample", "vdd"), INVERTER),
            Instance("begin", ("s1", "begin", "vdd"), INVERTER),
        ]
    elements += [
        Instance("reset", ("s2", "reset", "vdd"), INVERTER),
        Instance("resetb", ("reset", "resetb", "vdd"), INVERTER),
    ]
    ports = CK, RUN, *sampled, "resetb", *made, "vdd"
    return Subcircuit(CLOCK, ports, tuple(elements), f"clock generator: {ticks} ticks a frame")


def ticks_of(stages: int) -> int:
    """Return the fewest clock ticks in a frame at which every phase of `stages` stages is a whole number of ticks.

    Stages close at multiples of 0.7 / stages of a frame.
    """
    return 20 * stages // gcd(14, stages)


def flip_flops(ticks: int) -> int:
    """Return the number of flip-flops in a clock generator cell with `ticks` clock ticks in a frame."""
    return ticks // 2 + RESET_STEPS


def clock_bench(technology: Technology, ticks: int, tick: float) -> Bench:
    """Return a bench that tests a clock generator cell without phases, from reset through a frame and a half.

    tick: clock period, s. Saves the supply's current.
    """
    end = 1.5 * ticks * tick
    edges = [k * tick + at for k in range(1, ticks * 3 // 2) for at in (0.0, SHARP, 0.5 * tick, 0.5 * tick + SHARP)]
    levels = [technology.supply * high for high in (0.0, 1.0, 1.0, 0.0)] * (len(edges) // 4)
    cell = clock(ticks, (), None)
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, technology.supply),
        Source("ck", "v", CK, GROUND, ((0.0, 0.0), *zip(edges, levels, strict=True))),
        Source("run", "v", RUN, GROUND, ((0.0, 0.0), (1.5 * tick, 0.0), (1.6 * tick, technology.supply))),
        Instance(CLOCK, cell.ports, CLOCK),
    )
    blocks = inverter(technology), inverter(technology, DRIVER), nand(technology, 2), flip_flop(technology), cell
    return Bench(Circuit("clock bench", blocks, elements), technology, Tran(tick, end), (Current("dd"),))


def _flip_flop(name: str, d: str, rb: str) -> Instance:
    return Instance(name, (d, "ckd", rb, name, f"{name}b", f"{name}e", f"{name}eb", "vdd"), FLIP_FLOP)


def _nand(name: str, gates: tuple[str, ...], out: str) -> Instance:
    return Instance(name, (*gates, out, "vdd"), f"{NAND}_{len(gates)}")


def _span(half: int, begin: int, end: int, *, early: bool) -> tuple[str, str]:
    """Return two nets of the clock generator that are both high exactly from tick `begin` to tick `end`."""
    stem = "e" if early else ""
    opened, closed = (divmod(tick % (2 * half), half) for tick in (begin, end))
    return f"r{opened[1]}{stem}{'b' * opened[0]}", f"r{closed[1]}{stem}{'b' * (1 - closed[0])}"
