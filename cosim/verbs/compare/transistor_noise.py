"""Effects of transistor noise in a circuit simulator: samples with it against the same samples without."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.compiler.design import Design
from cosim.engines.engine import Inference, Outcome, Run
from cosim.network.ir.states import differ, tolerances
from cosim.network.reference import pool_readout
from cosim.results.intervals import Interval, mean_interval, share_interval
from cosim.tasks.target import Answers
from cosim.tasks.testset import TestSet

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TransistorNoise:
    """Effect of noise on samples that ran both ways. states, answers: shares that noise changes; accuracy: with it;
    quiet: without; change: accuracy with noise minus without; failed: samples that did not run both ways."""

    samples: int
    failed: int
    states: Interval
    answers: Interval
    accuracy: Interval
    quiet: float
    change: Interval


def compare_noisy(
    design: Design, test_set: TestSet, outcomes: tuple[Sequence[Outcome], Sequence[Outcome]], run: Run
) -> TransistorNoise | None:
    """Compare answers and states with transistor noise with those without it; None where no sample ran both ways.

    outcomes: of every sample without noise, and with it.
    """
    pairs = [
        (k, one, other)
        for k, (one, other) in enumerate(zip(*outcomes, strict=True))
        if isinstance(one, Inference) and isinstance(other, Inference)
    ]
    if not pairs:
        return None
    target, allowed, there = test_set.target, tolerances(design.graph), [k for k, *_ in pairs]
    states = np.array([differ(other.states, one.states, allowed).mean() for _, one, other in pairs])
    before, after = (_answers(design, test_set, {k: pair[way] for k, *pair in pairs}, run) for way in (0, 1))
    wanted = test_set.y[there]
    right, was = (target.same(one, wanted).astype(np.float64) for one in (after, before))
    return TransistorNoise(
        samples=len(pairs),
        failed=len(test_set.lengths) - len(pairs),
        states=share_interval(states),
        answers=share_interval(~target.same(after, before)),
        accuracy=share_interval(right),
        quiet=float(was.mean()),
        change=mean_interval(right - was),
    )


def _answers(design: Design, test_set: TestSet, found: dict[int, Inference], run: Run) -> Answers:
    there = list(found)
    readout = np.zeros((len(there), test_set.x.shape[1], len(design.assembly.outputs)))
    for row, one in enumerate(found.values()):
        readout[row, : len(one.readout)] = one.readout
    unit = design.i_unit * run.standing(design).bias_scale
    return test_set.target.answers(
        pool_readout(readout / unit, test_set.lengths[there], design.network.readout.pooling)
    )
