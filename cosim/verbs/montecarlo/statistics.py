"""Statistics over chips: yield with its interval, quantiles, engines in pairs, and the cells that accuracy depends on.

Yield is a binomial fraction of independent chips: Clopper and Pearson, Biometrika 26 (1934) 404. In a run with
replicates (independent sets of Latin hypercube or scrambled Sobol chips), the chips of one replicate depend on each
other, but replicates do not: Student's t over the yields of the replicates; A. B. Owen, SIAM J. Numer. Anal. 34 (1997)
1884. With fewer than FEW replicates, or on average fewer than two working and two failing chips in each, Student's t
covers the true yield too rarely (half, with two replicates of 50 chips at 99 %). Clopper and Pearson's interval is then
used for replicates as well; stratification does not make it too narrow. A chip whose simulation failed, or with a cell
that does not reset, counts as not working. The yield without failed simulations is reported in addition.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    UnresetCount,
    Yield,
)
from cosim.verbs.montecarlo.spec import Spec, meets_specs, passes_specs

FEW = 10
Array = NDArray[np.float64]
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
MOST_BINS = 60  # of a picture that is three inches wide
QUANTITIES = ("upper threshold", "lower threshold", "level")
GROUPS = 5
_LEAST = 4  # chips of a group
CHECKPOINTS = (50, 100, 200, 500, 1000, 2000, 5000, 10_000)


def count_noise(records: Sequence[ChipRecord], seed: int, specs: Sequence[Spec]) -> ChipNoise:
    """Summarize how noise changes the figures of chips that the behavioral model ran with and without noise.
    seed: of the noise; specs: what a working chip must meet."""
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
    """Compute a run's yield and its interval from which chips work, in order of number; plan: how they were drawn."""
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
    """Compute a run's yield by its specs, with all chips and without those whose simulation failed.

    found: figures of each chip, in order of number, None for a failed simulation; confidence: of both intervals.
    """
    counted, without = (
        count_yield([passes_specs(figures, specs) for figures in chips], plan, confidence) if chips else None
        for chips in (found, [figures for figures in found if figures is not None])
    )
    assert counted is not None
    return SpecYield(tuple(spec.text for spec in specs), **vars(counted), without_failed=without)


def pair_engines(records: Sequence[ChipRecord], engine: str) -> dict[str, Pair] | None:
    """Compare each figure between the behavioral model and `engine` on the same chips: metric -> pair.

    Returns None for a run of the behavioral model alone, or with fewer than three simulated chips.
    """
    good = [record for record in records if record.status == "ok"]
    if engine == BEHAVIORAL or len(good) < 3:
        return None
    return {
        metric: pair(*(np.array([one.by(name)[metric] for one in good]) for name in (BEHAVIORAL, engine)))
        for metric in CHIP_METRICS
    }


def count_unreset(good: Sequence[Figures], specs: Sequence[Spec]) -> UnresetCount:
    """Count the simulated chips that have a cell which the reset does not turn off."""
    found = [figures for figures in good if figures.unreset]
    counts = Counter(cell for figures in found for cell in figures.unreset)
    return UnresetCount(len(found), sum(meets_specs(figures, specs) for figures in found), dict(counts.most_common()))


def describe_metrics(good: Sequence[Figures]) -> dict[str, Statistic]:
    """Return metric -> statistic over the simulated chips; empty if `good`, their figures, is empty."""
    metrics = (*CHIP_METRICS, RMSE) if good and good[0].rmse is not None else CHIP_METRICS
    return {
        metric: describe([found[metric] for found in good], share=metric in AGREEMENTS) for metric in metrics if good
    }


def describe(values: Sequence[float], *, share: bool = False) -> Statistic:
    """Compute the mean of a figure over chips with its 95 % interval, its standard deviation and its quantiles.

    share: the figure is a fraction, so the interval is cut at 0 and 1.
    """
    x = np.asarray(values, dtype=np.float64)
    mean, sd = moments(x)
    half = quantile_t(x) * sd / len(x) ** 0.5 if len(x) > 1 else None
    quantiles = {f"{100 * q:g}": float(np.quantile(x, q)) for q in QUANTILES}
    low, high = (0.0, 1.0) if share else (-np.inf, np.inf)
    bounds = None if half is None else IntervalEnds(max(low, mean - half), min(high, mean + half))
    return Statistic(mean, bounds, sd, quantiles)


def pair(behavioral: Array, simulated: Array) -> Pair:
    """Compare one figure of the same chips by the behavioral model and by a simulator, (chips,) each.

    Returns the bias (behavioral - simulated) and the correlation, with intervals.
    """
    difference = behavioral - simulated
    half = quantile_t(difference) * difference.std(ddof=1) / len(difference) ** 0.5
    bias, correlation, bounds = difference.mean(), None, None
    if np.ptp(behavioral) > 0 and np.ptp(simulated) > 0 and len(difference) >= LEAST_PAIRED:
        from scipy.stats import pearsonr  # a second to load

        found = pearsonr(behavioral, simulated).confidence_interval(CONFIDENCE)
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
    """Return the numbers of chips after which a run with --stop-width examines its yield; the last is `chips`."""
    return [*(count for count in CHECKPOINTS if count < chips), chips]


def is_precise(passes: Sequence[bool], plan: VariationPlan, width: float) -> bool:
    """Tell whether the yield's interval is at most `width` wide, so that a run with --stop-width may stop.

    The error probability is divided among all looks at the yield (Bonferroni). Otherwise a run that looks repeatedly
    would stop too often at a lucky moment.
    """
    low, high = count_yield(passes, plan, stop_confidence(plan)).interval
    return high - low <= width


def stop_confidence(plan: VariationPlan) -> float:
    """Return the confidence of one look at a run's yield with which all looks together have CONFIDENCE."""
    return 1 - (1 - CONFIDENCE) / len(checkpoints(plan.chips))


def normal_band(values: Array) -> tuple[Array, Array, Array]:
    """Compute a Q-Q plot of a figure over chips, values (n,), against a normal distribution, with a 95 % band.

    Returns standard normal quantiles, and the lower and the upper end of the band, (n,) each. The band holds, at each
    point by itself, the sorted values of 95 % of samples from a normal distribution with the mean and the standard
    deviation of the values. The k-th of n sorted uniform numbers has the distribution beta(k, n + 1 - k). The normal
    quantile of its median is the abscissa, those of its 2.5 and 97.5 % points are the band; B. C. Arnold, N.
    Balakrishnan, H. N. Nagaraja, A First Course in Order Statistics (1992), 2.2.
    """
    from scipy.stats import beta, norm

    mean, sd = moments(values)
    rank = np.arange(1, len(values) + 1)
    tail = (1 - CONFIDENCE) / 2
    theory, low, high = (norm.ppf(beta.ppf(share, rank, rank[::-1])) for share in (0.5, tail, 1 - tail))
    return theory, mean + sd * low, mean + sd * high


def moments(values: Array) -> tuple[float, float]:
    """Compute the mean of a figure over chips, values (n,), and its standard deviation, 0 for a single chip."""
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def bin_edges(values: Array, quantum: float = 0.0) -> Array:
    """Return the bin edges of a histogram over chips, at most MOST_BINS bins, by numpy's rule `auto`.

    quantum: step of a figure with discrete values, such as 1/360 of an accuracy; each bin then holds the same whole
    number of steps, a single step if there are at most MOST_BINS.
    """
    low, high = float(np.min(values)), float(np.max(values))
    if not quantum:
        if high == low:
            margin = 0.01 * abs(high) or 1.0
            return np.array([low - margin, high + margin])
        found = np.histogram_bin_edges(values, "auto").astype(np.float64)
        return found if len(found) <= MOST_BINS + 1 else np.linspace(low, high, MOST_BINS + 1)
    first, last = round(low / quantum), round(high / quantum)
    count = last - first + 1
    wanted = 1 if count <= MOST_BINS else min(len(np.histogram_bin_edges(values, "auto")) - 1, MOST_BINS)
    width = 1 if count <= MOST_BINS else -(-count // wanted)
    bins = -(-count // width)
    return quantum * (first - 0.5 + width * np.arange(bins + 1, dtype=np.float64))


@dataclass(frozen=True)
class CellSpread:
    """Thresholds and levels of cells on drawn chips, and the values that the compiler aimed at.

    asked: (cells, 3) aims, ampere; measured: (chips, cells, 3), ampere, chips in the order of their records; the last
    axis is QUANTITIES.
    """

    cells: tuple[str, ...]
    asked: Array
    measured: Array

    def deviations(self) -> Array:
        """Compute measured minus asked in standard deviations over chips, (chips, cells, 3); 0 where nothing varies."""
        sd = self.measured.std(axis=0, ddof=1) if len(self.measured) > 1 else np.zeros_like(self.asked)
        known = sd > 1e-9 * np.abs(self.asked)
        return np.where(known, (self.measured - self.asked) / np.where(known, sd, 1.0), 0.0)


@dataclass(frozen=True)
class Influence:
    """A threshold or level of a cell, and how the accuracy of chips depends on it.

    quantity: one of QUANTITIES; share: share of the variance of accuracy that it explains; p: p-value of the test that
    accuracy is the same in all fifths of the chips, times the number of tests; deviations: (chips,) from the aim, in
    standard deviations; edges: limits of the fifths of the chips, by deviation; means: mean accuracy of each fifth.
    """

    cell: str
    quantity: str
    share: float
    p: float
    deviations: Array
    edges: Array
    means: Array


def rank_weak(spread: CellSpread, accuracy: Array) -> tuple[Influence, ...]:
    """Rank all thresholds and levels by the share of accuracy's variance that each explains, the largest first.

    accuracy: (chips,). Returns nothing with fewer than 20 chips, or where all chips are equally accurate.
    """
    if len(accuracy) < GROUPS * _LEAST or np.ptp(accuracy) == 0:
        return ()
    found = spread.deviations()
    places = [(k, place) for k, place in np.ndindex(found.shape[1:]) if np.ptp(found[:, k, place]) > 0]
    weak = [
        _weigh(spread.cells[k], QUANTITIES[place], found[:, k, place], accuracy, len(places)) for k, place in places
    ]
    return tuple(sorted(weak, key=lambda one: -one.share))


def _weigh(cell: str, quantity: str, deviations: Array, accuracy: Array, tried: int) -> Influence:
    """Compute how accuracy (chips,) depends on the deviations (chips,) of one threshold or level.

    tried: number of tests, for Bonferroni's correction. W. H. Kruskal, W. A. Wallis, J. Am. Stat. Assoc. 47 (1952) 583.
    """
    from scipy.stats import kruskal

    groups = np.array_split(np.argsort(deviations, kind="stable"), GROUPS)
    edges = np.array([deviations[group].min() for group in groups] + [deviations.max()])
    means = np.array([accuracy[group].mean() for group in groups])
    p = min(tried * float(kruskal(*(accuracy[group] for group in groups)).pvalue), 1.0)
    return Influence(cell, quantity, explained_share(accuracy, groups), p, deviations, edges, means)


def explained_share(values: Array, groups: Sequence[NDArray[np.intp]]) -> float:
    """Compute epsilon squared, the share of the variance that lies between groups, less what chance gives.

    It is below 0 where groups differ less than by chance. T. L. Kelley, Proc. Natl. Acad. Sci. 21 (1935) 554.
    """
    within = sum(float(((values[group] - values[group].mean()) ** 2).sum()) for group in groups)
    whole = float(((values - values.mean()) ** 2).sum())
    return 1 - (within / (len(values) - len(groups))) / (whole / (len(values) - 1))
