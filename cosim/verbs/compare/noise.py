"""Effects of noise: states, decisions and accuracy with and without noise, and the distance of decisions in sigma.

In the behavioral model each sample runs several times, with other random numbers. Shares are means over the runs of a
sample. Their intervals are Student's t over samples, because samples are independent and the states of one sample are
not; Clopper and Pearson's if the share is 0 in all samples, or 1 in all. In a circuit simulator each sample runs once
with noise and once without.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.quantities import format_quantity
from cosim.compiler.design import Design
from cosim.engines.behavioral.evaluate import BehavioralTrace, cell_of, threshold_lines
from cosim.engines.behavioral.model import run_behavioral, run_noisy
from cosim.engines.chip import deviations_of
from cosim.engines.engine import Inference, Outcome, Run, decided_by
from cosim.network.ir.nodes import ThresholdUnit
from cosim.network.ir.states import States, differ, tolerances
from cosim.network.reference import later, padded, pool_readout, valid_steps
from cosim.results.intervals import Interval, mean_interval, share_interval
from cosim.results.page import Blocks, Table
from cosim.tasks.target import Answers
from cosim.tasks.testset import TestSet
from cosim.units.table import unit_of
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.montecarlo.chips import ChipNoise

Array = NDArray[np.float64]
Values = NDArray[np.float64] | NDArray[np.bool_]
DRAWS = 10
SIGMAS = (1, 2, 3)
_QUANTILES = (5, 50, 95)
_SAID = (
    "Behavioral model: one seeded number a decision, with the noise that the devices of its row have at their currents "
    "then. Inputs, bias pins and the readout are without. Shares are means over runs, their intervals Student's t over "
    "samples."
)


@dataclass(frozen=True)
class TransistorNoise:
    """Effect of noise in a circuit simulator, on samples that ran both with and without noise.

    states, answers: shares that noise changes; accuracy: with noise; quiet: accuracy without noise; change: accuracy
    with noise minus accuracy without; failed: samples of which a run failed.
    """

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
    """Compare states and answers with and without noise in a circuit simulator; None where no sample ran both ways.

    outcomes: (without noise, with noise), each with one outcome for every sample.
    """
    pairs = {
        k: (one, other)
        for k, (one, other) in enumerate(zip(*outcomes, strict=True))
        if isinstance(one, Inference) and isinstance(other, Inference)
    }
    if not pairs:
        return None
    ran, allowed = test_set.select(np.array([*pairs])), tolerances(design.graph)
    states = np.array([differ(other.states, one.states, allowed).mean() for one, other in pairs.values()])
    before, after = (_answers(design, ran, found, run) for found in zip(*pairs.values(), strict=True))
    right, was = (ran.same(one, ran.y).astype(np.float64) for one in (after, before))
    return TransistorNoise(
        samples=len(pairs),
        failed=len(test_set.lengths) - len(pairs),
        states=share_interval(states),
        answers=share_interval(~ran.same(after, before)),
        accuracy=share_interval(right),
        quiet=float(was.mean()),
        change=mean_interval(right - was),
    )


def _answers(design: Design, test_set: TestSet, found: Sequence[Inference], run: Run) -> Answers:
    readout = np.stack([padded(one.readout, test_set.x.shape[1]) for one in found])
    unit = design.i_unit * run.standing(design).bias_scale
    pooled = pool_readout(readout / unit, test_set.lengths, design.network.readout.pooling)
    return decided_by(found, test_set.answers(pooled))


@dataclass(frozen=True)
class NoiseSummary:
    """Effect of noise on a circuit's states and answers by the behavioral model. Shares are fractions of 1.

    draws: runs with noise of each sample; decisions: number of decisions against a threshold, in one such run. sigma_a:
    percentage -> quantile over decisions of the standard deviation of the candidate's noise, A; within: number k ->
    share of decisions at most k sigma from the nearest threshold that counts; turned: share of decisions that noise is
    expected to turn. states, answers: shares that noise changes; accuracy: with noise; quiet: accuracy without noise;
    change: accuracy with noise minus accuracy without; transistors: the same effects in a circuit simulator, None where
    it did not run with noise.
    """

    seed: int
    draws: int
    samples: int
    decisions: int
    sigma_a: dict[str, float]
    within: dict[str, Interval]
    turned: Interval
    states: Interval
    answers: Interval
    accuracy: Interval
    quiet: float
    change: Interval
    transistors: TransistorNoise | None = None


def study_noise(
    design: Design, test_set: TestSet, noise: NoiseSimulation, run: Run, draws: int = DRAWS
) -> NoiseSummary:
    """Study the effect of noise by the behavioral model: run all samples once without noise and `draws` times with it.

    Raises InputError for a unit whose noise is not modelled.
    """
    from scipy.special import ndtr  # half of a worker's time to load, and most workers have no use for it

    lengths = test_set.lengths
    valid = valid_steps(lengths, test_set.x.shape[1])
    cells = tuple(design.assembly.decisions)

    def seen(trace: BehavioralTrace) -> tuple[States, Answers]:
        pooled = pool_readout(trace.readout / design.i_unit, lengths, design.network.readout.pooling)
        return np.stack([trace.states[cell] for cell in cells], axis=2), test_set.answers(pooled)

    quiet_states, quiet = seen(run_behavioral(design, test_set.x, run.condition, run.chip))
    states, answers, right = list[Array](), list[Array](), list[Array]()
    distances, sigmas = np.empty(0), np.empty(0)
    for draw in range(draws):
        numbers = replace(noise, draw=draw, samples=test_set.indices, timing=run.timing)
        trace = run_noisy(design, test_set.x, numbers, run.condition, run.chip)
        found, answered = seen(trace)
        changed = differ(found, quiet_states, tolerances(design.graph)) & valid[:, :, None]
        states.append(changed.sum(axis=(1, 2)).astype(np.float64) / (lengths * len(cells)))
        answers.append((~test_set.same(answered, quiet)).astype(np.float64))
        right.append(test_set.same(answered, test_set.y).astype(np.float64))
        if draw == 0:
            distances, sigmas = decision_sigmas(design, trace, run)
    before = test_set.same(quiet, test_set.y).astype(np.float64)
    counted = valid[:, :, None] & np.isfinite(distances)
    return NoiseSummary(
        seed=noise.seed,
        draws=draws,
        samples=len(lengths),
        decisions=int(counted.sum()),
        sigma_a={str(q): float(np.percentile(sigmas[counted], q)) for q in _QUANTILES},
        within={str(most): _share_of(distances <= most, counted) for most in SIGMAS},
        turned=_share_of(ndtr(-np.where(counted, distances, 0.0)), counted),
        states=share_interval(np.mean(states, axis=0)),
        answers=share_interval(np.mean(answers, axis=0)),
        accuracy=share_interval(np.mean(right, axis=0)),
        quiet=float(before.mean()),
        change=mean_interval(np.mean(right, axis=0) - before),
    )


def decision_sigmas(design: Design, trace: BehavioralTrace, run: Run) -> tuple[Array, Array]:
    """Return each decision's distance from its nearest threshold, in sigma of its noise, and sigma in ampere.

    Both are (n, time, cells); the distance is inf for a cell without thresholds. trace: of a run with noise. The state
    before the decision tells which thresholds count.
    """
    fixed, graph = deviations_of(design, run.standing(design), run.chip), design.graph
    distances = list[Array]()
    for name in design.assembly.decisions:
        node, candidate = graph.nodes[name], trace.candidates[name]
        if not isinstance(node, ThresholdUnit):
            distances.append(np.full(candidate.shape, np.inf))
            continue
        cell = cell_of(graph, node, design.calibration, fixed.cells.get(name))
        thresholds = unit_of(node).switching_thresholds(cell, threshold_lines(graph, node, trace, design.calibration))
        off, on = (_nearest(candidate, few) for few in (thresholds.while_off, thresholds.while_on))
        distances.append(np.where(later(trace.states[name], 1, node.start) > 0, on, off) / trace.sigmas[name])
    sigmas = [trace.sigmas[name] for name in design.assembly.decisions]
    return np.stack(distances, axis=2), np.stack(sigmas, axis=2)


def _nearest(candidate: Array, thresholds: Sequence[Array]) -> Array:
    """Compute the distance of a candidate to the nearest of some thresholds, ampere; inf without thresholds."""
    found = np.full(candidate.shape, np.inf)
    for threshold in thresholds:
        found = np.minimum(found, np.abs(candidate - threshold))
    return found


def _share_of(values: Values, counted: NDArray[np.bool_]) -> Interval:
    """Compute the mean over samples, with interval, of each sample's mean over the `values` that are `counted`.

    Both are (n, ...); samples without a counted value are left out.
    """
    axes = tuple(range(1, counted.ndim))
    there = counted.sum(axis=axes)
    return share_interval((values * counted).sum(axis=axes)[there > 0] / there[there > 0])


def chip_noise_rows(found: ChipNoise | None) -> list[tuple[str, str]]:
    """Return rows (name, value) for a page on how noise changes the figures of chips; none without noise."""
    if found is None:
        return []
    changes = {
        "accuracy": found.accuracy,
        "task agreement": found.task_agreement,
        "state agreement": found.state_agreement,
    }
    rows = [(f"{name}, points", _points(change)) for name, change in changes.items()]
    if found.decisions is not None:
        rows.insert(0, ("decisions that it changes", _share(found.decisions, 2)))
    return [*rows, ("meet the spec without it", f"{found.passed} of {found.chips} chips"), ("seed", str(found.seed))]


def noise_section(found: NoiseSummary | None) -> Blocks:
    """Return the table and the note of a page on how noise changes a circuit's figures; nothing without noise."""
    if found is None:
        return ()
    low, middle, high = (format_quantity(found.sigma_a[q], "A") for q in ("5", "50", "95"))
    rows = [
        ("noise of a candidate, median and 5 to 95 %", f"{middle} ({low} to {high})"),
        *_effects(found, "states that it changes", "accuracy with noise"),
        *(
            (f"comparisons within {number} sigma of their threshold", _share(share, 2))
            for number, share in found.within.items()
        ),
        ("comparisons that noise is expected to turn", _share(found.turned, 3)),
        ("comparisons, runs, seed", f"{found.decisions}, {found.draws}, {found.seed}"),
    ]
    if (ran := found.transistors) is not None:
        rows += _effects(ran, "states that noise of the transistors changes", "accuracy with it")
        rows.append(("samples; those that did not run", f"{ran.samples}; {ran.failed}"))
    return Table(("noise", "value"), tuple(rows), (1,)), _SAID


def _effects(found: NoiseSummary | TransistorNoise, states: str, accuracy: str) -> list[tuple[str, str]]:
    return [
        (states, _share(found.states, 3)),
        ("decisions that it changes", _share(found.answers, 2)),
        (accuracy, f"{_share(found.accuracy, 2)}; without {100 * found.quiet:.2f} %"),
        ("change of accuracy, points", _points(found.change)),
    ]


def _points(found: Interval) -> str:
    return _hundredfold(found, "+.2f")


def _share(found: Interval, digits: int) -> str:
    return _hundredfold(found, f".{digits}f", " %")


def _hundredfold(found: Interval, form: str, unit: str = "") -> str:
    """Format a mean times 100, with `unit` behind it, and its interval if it has one. form: format of a number."""
    mean = f"{100 * found.mean:{form}}{unit}"
    if found.low is None or found.high is None:
        return mean
    return f"{mean} [{100 * found.low:{form}}, {100 * found.high:{form}}]"
