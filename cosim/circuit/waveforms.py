"""Frames: when a circuit's inputs move, its cells decide and its outputs are read, and the waveforms that make it so.

One frame of t_step seconds, for a stage s of recurrent layers:

    0       edge                         close[s]            close[s] + DECIDE          1
    |-inputs-|                              |                       |                   |
    |  move  |  track: the candidate settles|  decide: states change|  track again      |
                                                   the last stage is read at SAMPLE_AT

Stages decide one after the other: stage s + 1 settles on what stage s has decided. The reset before frame 0 takes half
a frame: inputs are at the pedestal and every candidate is clamped to 0, so every cell starts in state 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.bounds import T_STEP

Waveform = tuple[tuple[float, float], ...] | float
SAMPLE_AT = 0.95
LAST_CLOSE = 0.7
DECIDE = 0.27
APART = 0.01  # of a frame, between the edges of clk and those of dec
RESET_FRAMES = 0.5
AFTER = 0.06  # of a frame, from its end to the sample of its outputs: no state has changed, and the inputs have moved
SAMPLED = 0.24  # of a frame, all samples of a sequence together
SHARP = 10e-9  # s, an edge of logic: a simulator that steps over what follows in it may lose a bit of a flip-flop
DECIDED = 0.6  # frames from the end of the last one until the class is read


@dataclass(frozen=True)
class Timing:
    """The timing of frames in a circuit's waveforms.

    t_step: length of a frame, s; edge, clock_edge: duration of edges of inputs and clocks, t_max_step: longest solver
    step, reset: duration of the reset, all in frames.
    """

    t_step: float = 10e-3
    edge: float = 0.01
    clock_edge: float = 0.01
    t_max_step: float = 0.02  # largest solver step over t_step
    reset: float = RESET_FRAMES

    def __post_init__(self) -> None:
        """Raise InputError for a frame too short for circuits of nanoamperes, or too long to wait for."""
        T_STEP.check("t_step", self.t_step, "choose another `t_step`")

    def closes(self, stages: int) -> tuple[float, ...]:
        """Return when each stage freezes its candidates and decides, as fractions of a frame."""
        return tuple(LAST_CLOSE * (stage + 1) / stages for stage in range(stages))

    @property
    def start(self) -> float:
        """Return the time at which the circuit's frame 0 begins, in second."""
        return self.reset * self.t_step

    @property
    def reset_end(self) -> float:
        """Return the time at which the circuit's clocks first open and the reset is over, in second."""
        return self.start - 2 * self.clock_edge * self.t_step

    def moments(self, frames: int, *fractions: float) -> list[float]:
        """Return the times at these fractions of each frame, frame after frame, in second."""
        starts = (self.start + k * self.t_step for k in range(frames))
        return [start + fraction * self.t_step for start in starts for fraction in fractions]

    def sample_times(self, frames: int) -> NDArray[np.float64]:
        """Return the times at which the states and outputs of each frame are read, (frames,), in second."""
        return np.asarray(self.start + (np.arange(frames) + SAMPLE_AT) * self.t_step, dtype=np.float64)


def staircase(currents: NDArray[np.float64], pedestal: float, timing: Timing) -> Waveform:
    """Return an input's waveform, A: the pedestal during the reset, then one level a frame, each after an edge.

    currents: (frames,), A, without the pedestal. A waveform that is constant is returned as a number.
    """
    points, previous = [(0.0, pedestal)], pedestal
    for k, level in enumerate((currents + pedestal).tolist()):
        if level != previous:
            begin = timing.start + k * timing.t_step
            points += [(begin, previous), (begin + timing.edge * timing.t_step, level)]
            previous = level
    return tuple(points) if len(points) > 1 else pedestal


def reset_waveform(supply: float, timing: Timing) -> Waveform:
    """Return the waveform of resetb, points (s, V): low first, and high from shortly before the end of the reset."""
    begin = 0.7 * timing.start
    return ((0.0, 0.0), (begin, 0.0), (begin + timing.clock_edge * timing.t_step, supply))


def clock_waveforms(supply: float, close: float, frames: int, timing: Timing) -> tuple[Waveform, Waveform]:
    """Return the waveforms of a stage's clk and clkb, points (s, V).

    clk is low in the reset, then high except for DECIDE of each frame after `close`, a fraction of the frame; clkb is
    its complement.
    """
    return square(supply, 0.0, [timing.reset_end, *timing.moments(frames, close, close + DECIDE)], timing)


def sampled_time(stages: int, timing: Timing) -> float:
    """Return how long the signal `sample`, which averages outputs, is high in all frames together, s.

    The time fits between the change of the inputs and the moment at which the first of `stages` stages closes.
    """
    return min(SAMPLED, LAST_CLOSE / stages - AFTER - 0.05) * timing.t_step


def sample_waveforms(supply: float, sampled: float, chosen: Sequence[int], timing: Timing) -> tuple[Waveform, Waveform]:
    """Return the waveforms of sample and its complement sampleb, points (s, V).

    sample is high for a while after each of the frames `chosen`, `sampled` seconds in all.
    """
    each = sampled / len(chosen)
    begins = [timing.start + (k + 1 + AFTER) * timing.t_step for k in chosen]
    edges = replace(timing, clock_edge=min(timing.clock_edge, each / (4 * timing.t_step)))
    return square(supply, 0.0, [moment for begin in begins for moment in (begin, begin + each)], edges)


def begin_waveform(supply: float, timing: Timing) -> Waveform:
    """Return the waveform of a bench's source begin, V, as points: high in the first half of the reset."""
    end = 0.4 * timing.start
    return ((0.0, supply), (end, supply), (end + timing.clock_edge * timing.t_step, 0.0))


def ck_waveform(supply: float, ticks: int, high: float, end: float, timing: Timing) -> Waveform:
    """Return the waveform of the clock ck for a clock generator, points (s, V), until `end`, s.

    ticks: clock periods in a frame; high: share of a period in which ck is high. Tick 0 begins frame 0.
    """
    tick = timing.t_step / ticks
    edge = min(SHARP, high / 4 * tick)
    points, first = [(0.0, 0.0)], timing.start - int(timing.start / tick) * tick
    for begin in np.arange(max(first, edge), end, tick).tolist():
        points += [(begin, 0.0), (begin + edge, supply), (begin + high * tick, supply)]
        points.append((begin + high * tick + edge, 0.0))
    return tuple(points)


def run_waveform(supply: float, ticks: int, steps: int, timing: Timing) -> Waveform:
    """Return the waveform of run, which starts a clock generator, points (s, V).

    run rises half a tick before the first of the reset's `steps`, the last of which is tick 0 of frame 0. ticks: in a
    frame.
    """
    tick = timing.t_step / ticks
    begin = timing.start - (steps - 0.5) * tick
    return ((0.0, 0.0), (begin, 0.0), (begin + SHARP, supply))


def take_waveform(supply: float, first: int, timing: Timing) -> Waveform:
    """Return the waveform of take, which lets a clock generator sample outputs, points (s, V).

    take is high from the end of frame `first` on, the first frame that counts.
    """
    begin = timing.start + (first + 1) * timing.t_step
    return ((0.0, 0.0), (begin, 0.0), (begin + timing.edge * timing.t_step, supply))


def decision_waveforms(supply: float, close: float, frames: int, timing: Timing) -> tuple[Waveform, Waveform]:
    """Return the waveforms of a stage's dec and its complement decb, points (s, V).

    dec is high in the reset, then while clk is low, apart from the edges of clk. close: fraction of a frame at which
    clk falls.
    """
    gap = timing.clock_edge + APART
    decisions = timing.moments(frames, close + gap, close + DECIDE - gap)
    return square(supply, 1.0, [timing.reset_end - gap * timing.t_step, *decisions], timing)


def square(supply: float, value: float, moments: list[float], timing: Timing) -> tuple[Waveform, Waveform]:
    """Return the waveforms of a logic signal and its complement, points (s, V).

    The signal has the logic value `value`, 0 or 1, until the first of `moments`, s, and changes at each.
    """
    edge, points = timing.clock_edge * timing.t_step, [(0.0, value)]
    for moment in moments:
        points += [(moment, value), (moment + edge, 1.0 - value)]
        value = 1.0 - value
    high = tuple((time, supply * level) for time, level in points)
    low = tuple((time, supply * (1.0 - level)) for time, level in points)
    return high, low
