"""Chips counted: quantiles, yield with its interval, and the two engines paired chip by chip.

Yield is a binomial fraction of independent chips: Clopper and Pearson, Biometrika 26 (1934) 404. With replicates
(Latin hypercube, scrambled Sobol) chips of one replicate are not independent, replicates are: Student's t over their
yields; A. B. Owen, SIAM J. Numer. Anal. 34 (1997) 1884. With fewer than FEW replicates, or fewer than two working and
two failing chips in each on average, t covers too little (half, with two replicates of 50 chips at 99 %). There Clopper
and Pearson's interval is used, too, which stratification does not make too narrow. A chip whose simulation failed is no
working chip, and the yield without such chips is given beside it; nor is one with a cell that does not reset.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cosim.engines.table import BEHAVIORAL
from cosim.results.intervals import CONFIDENCE, IntervalEnds, interval, mean_interval, quantile_t
from cosim.results.metrics import AGREEMENTS, CHIP_METRICS, RMSE
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.chips import (
    LEAST_PAIRED,
    ChipNoise,
    ChipRecord,
    Figures,
    Pair,
    SpecYield,
    Statistic,
    Unreset,
    Yield,
)
from cosim.verbs.montecarlo.spec import Spec, meets_specs, passes_specs

FEW = 10
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
CHECKPOINTS = (50, 100, 200, 500, 1000, 2000, 5000, 10_000)


def count_noise(records: Sequence[ChipRecord], seed: int, specs: Sequence[Spec]) -> ChipNoise:
    """Count how noise changes the figures of chips that ran with and without it."""
    pairs = [(noisy, quiet) for one in records if (noisy := one.behavioral) and (quiet := one.quiet)]
    changes = {
        metric: mean_interval(np.array([noisy[metric] - quiet[metric] for noisy, quiet in pairs]))
        for metric in ("accuracy", "task_agreement", "state_agreement")
    }
    answered = [(noisy.decisions, quiet.decisions) for noisy, quiet in pairs if noisy.decisions]
    shares = np.array([np.mean(np.array(noisy) != np.array(quiet)) for noisy, quiet in answered])
    passed = sum(passes_specs(quiet, specs) for _, quiet in pairs)
    return ChipNoise(seed, len(pairs), passed, mean_interval(shares) if len(shares) else None, **changes)


def count_yield(passes: Sequence[bool], plan: VariationPlan, confidence: float = CONFIDENCE) -> Yield:
    """Compute a Monte Carlo run's yield and its interval from whether each chip passes, in order of their number."""
    passed, chips = sum(passes), len(passes)
    size = plan.chips // plan.replicates
    enough = plan.replicates >= FEW and min(passed, chips - passed) >= 2 * plan.replicates
    value, low, high = interval(passed, chips, confidence)
    method = "Clopper-Pearson"
    if plan.sampling != "random" and enough and chips == plan.chips:
        means = np.array([np.mean(passes[k : k + size]) for k in range(0, chips, size)])
        half = quantile_t(means, confidence) * means.std(ddof=1) / np.sqrt(len(means))
        low, high = float(max(means.mean() - half, 0.0)), float(min(means.mean() + half, 1.0))
        method = "Student's t over replicates"
    return Yield(value, IntervalEnds(low, high), confidence, passed, chips, method)


def count_spec_yield(
    found: Sequence[Figures | None], plan: VariationPlan, specs: Sequence[Spec], confidence: float = CONFIDENCE
) -> SpecYield:
    """Compute a Monte Carlo run's yield by its specs from the figures of all chips, None for one whose simulation
    failed, with an interval of this confidence; and the yield without such chips."""
    counted, without = (
        count_yield([passes_specs(figures, specs) for figures in chips], plan, confidence) if chips else None
        for chips in (found, [figures for figures in found if figures is not None])
    )
    assert counted is not None
    return SpecYield(tuple(spec.text for spec in specs), **vars(counted), without_failed=without)


def pair_engines(records: Sequence[ChipRecord], engine: str) -> dict[str, Pair] | None:
    """Compare each figure of a Monte Carlo run's chips by the behavioral model and by the engine, metric -> pair; None
    for a run of one engine, or of fewer than three chips that were simulated."""
    good = [record for record in records if record.status == "ok"]
    if engine == BEHAVIORAL or len(good) < 3:
        return None
    return {
        metric: pair(*(np.array([one.by(name)[metric] for one in good]) for name in (BEHAVIORAL, engine)))
        for metric in CHIP_METRICS
    }


def count_unreset(good: Sequence[Figures], specs: Sequence[Spec]) -> Unreset:
    """Count the simulated chips that have a cell which does not reset."""
    found = [figures for figures in good if figures.unreset]
    counts = Counter(cell for figures in found for cell in figures.unreset)
    return Unreset(len(found), sum(meets_specs(figures, specs) for figures in found), dict(counts.most_common()))


def describe_metrics(good: Sequence[Figures]) -> dict[str, Statistic]:
    """Return metric -> its statistic over chips that were simulated; none without such."""
    metrics = (*CHIP_METRICS, RMSE) if good and good[0].rmse is not None else CHIP_METRICS
    return {
        metric: describe([found[metric] for found in good], share=metric in AGREEMENTS) for metric in metrics if good
    }


def describe(values: Sequence[float], *, share: bool = False) -> Statistic:
    """Compute mean, deviation and quantiles of a figure over the chips of a Monte Carlo run, and the mean's interval.

    The interval of a share ends at 0 and at 1.
    """
    x = np.asarray(values, dtype=np.float64)
    mean, sd = float(x.mean()), float(x.std(ddof=1)) if len(x) > 1 else 0.0
    half = quantile_t(x) * sd / len(x) ** 0.5 if len(x) > 1 else None
    quantiles = {f"{100 * q:g}": float(np.quantile(x, q)) for q in QUANTILES}
    low, high = (0.0, 1.0) if share else (-np.inf, np.inf)
    bounds = None if half is None else IntervalEnds(max(low, mean - half), min(high, mean + half))
    return Statistic(mean, bounds, sd, quantiles)


def pair(behavioral: NDArray[np.float64], simulated: NDArray[np.float64]) -> Pair:
    """Compare one figure of the same chips of a Monte Carlo run by both engines.

    Returns the bias (behavioral - simulated) and the correlation, with intervals.
    """
    difference = behavioral - simulated
    half = quantile_t(difference) * difference.std(ddof=1) / len(difference) ** 0.5
    bias, correlation, bounds = difference.mean(), None, None
    if np.ptp(behavioral) > 0 and np.ptp(simulated) > 0 and len(difference) >= LEAST_PAIRED:
        found = stats.pearsonr(behavioral, simulated).confidence_interval(CONFIDENCE)
        correlation = float(np.corrcoef(behavioral, simulated)[0, 1])
        bounds = IntervalEnds(float(found.low), float(found.high))
    return Pair(
        chips=len(difference),
        bias=float(bias),
        bias_interval=IntervalEnds(float(bias - half), float(bias + half)),
        difference_sd=float(difference.std(ddof=1)),
        correlation=correlation,
        correlation_interval=bounds,
    )


def checkpoints(chips: int) -> list[int]:
    """Return the numbers of chips after which a run may look whether it knows enough; the last is `chips`."""
    return [*(count for count in CHECKPOINTS if count < chips), chips]


def is_precise(passes: Sequence[bool], plan: VariationPlan, width: float) -> bool:
    """Tell for `cosim montecarlo` whether the yield's interval is at most `width` wide.

    Its confidence is shared out over looks (Bonferroni). Looking again and again would otherwise stop at a lucky moment
    too often.
    """
    low, high = count_yield(passes, plan, stop_confidence(plan)).interval
    return high - low <= width


def stop_confidence(plan: VariationPlan) -> float:
    """Return the confidence of one look at a Monte Carlo run's yield, so that all looks of a run together have
    CONFIDENCE."""
    return 1 - (1 - CONFIDENCE) / len(checkpoints(plan.chips))
