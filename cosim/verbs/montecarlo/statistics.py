"""Statistics of chips: yield with its interval, quantiles, both engines paired, and which cells accuracy goes with.

Yield is a binomial fraction of independent chips: Clopper and Pearson, Biometrika 26 (1934) 404. With replicates
(Latin hypercube, scrambled Sobol) chips of one replicate are not independent, replicates are: Student's t over their
yields; A. B. Owen, SIAM J. Numer. Anal. 34 (1997) 1884. With fewer than FEW replicates, or fewer than two working and
two failing chips in each on average, t covers too little (half, with two replicates of 50 chips at 99 %). There Clopper
and Pearson's interval is used, too, which stratification does not make too narrow. A chip whose simulation failed is no
working chip, and the yield without such chips is given beside it; nor is one with a cell that does not reset.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

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
Array = NDArray[np.float64]
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
MOST_BINS = 60  # of a picture that is three inches wide
QUANTITIES = ("upper threshold", "lower threshold", "level")
GROUPS = 5
_LEAST = 4  # chips of a group
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


def pair(behavioral: Array, simulated: Array) -> Pair:
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


@dataclass(frozen=True)
class Quantiles:
    """A sorted sample against the standard normal distribution: theory (n,) in standard deviations, values (n,).

    mean, sd: of the sample; low, high (n,): between which, each by itself, 95 % of the samples of a normal distribution
    with this mean and this standard deviation have their value.
    """

    theory: Array
    values: Array
    mean: float
    sd: float
    low: Array
    high: Array

    @property
    def outside(self) -> float:
        """Return the share of a figure's values over chips beyond the band."""
        return float(((self.values < self.low) | (self.values > self.high)).mean())


def normal_quantiles(values: Array) -> Quantiles:
    """Compute the quantiles of a figure over chips (n,) beside those of a normal distribution, and the band for such a
    sample.

    The k-th of n sorted uniform numbers has the distribution beta(k, n + 1 - k): its median is the abscissa, its ends
    at 2.5 and 97.5 % are the band; B. C. Arnold, N. Balakrishnan, H. N. Nagaraja, A First Course in Order Statistics
    (1992), 2.2.
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    mean, sd = float(x.mean()), float(x.std(ddof=1)) if len(x) > 1 else 0.0
    rank = np.arange(1, len(x) + 1)
    tail = (1 - CONFIDENCE) / 2
    theory, low, high = (stats.norm.ppf(stats.beta.ppf(share, rank, rank[::-1])) for share in (0.5, tail, 1 - tail))
    return Quantiles(theory, x, mean, sd, mean + sd * low, mean + sd * high)


def bin_edges(values: Array, quantum: float = 0.0) -> Array:
    """Return the borders of the bins of a histogram over chips: numpy's `auto`, the narrower of Sturges' bins and
    Freedman and Diaconis'.

    quantum: the step of values that are whole numbers of steps, such as 1/360 of an accuracy; each bin then holds the
    same whole number of steps, one where there are few. At most MOST_BINS.
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
    """The set-points that cells have on drawn chips beside those that were asked.

    asked: (cells, 3), measured: (chips, cells, 3), the QUANTITIES of each cell, ampere; chips are in the order of
    the records.
    """

    cells: tuple[str, ...]
    asked: Array
    measured: Array

    def deviations(self) -> Array:
        """Compute measured minus asked, (chips, cells, 3), in standard deviations over chips; 0 where nothing is
        spread."""
        sd = self.measured.std(axis=0, ddof=1) if len(self.measured) > 1 else np.zeros_like(self.asked)
        known = sd > 1e-9 * np.abs(self.asked)
        return np.where(known, (self.measured - self.asked) / np.where(known, sd, 1.0), 0.0)


@dataclass(frozen=True)
class Weak:
    """One threshold or level: the share of the variance of accuracy that it explains, its deviations (chips,) in
    standard deviations, and of each fifth of the chips the ends of its deviation and its mean accuracy.

    p: of accuracy being the same in all fifths, times the number of all thresholds and levels that were tried.
    """

    cell: str
    quantity: str
    share: float
    p: float
    deviations: Array
    edges: Array
    means: Array


def rank_weak(spread: CellSpread, accuracy: Array) -> tuple[Weak, ...]:
    """Rank all thresholds and levels by how much of the accuracy (chips,) goes with each, the strongest first; none
    with fewer chips than GROUPS groups need, or where all chips are equally accurate."""
    if len(accuracy) < GROUPS * _LEAST or np.ptp(accuracy) == 0:
        return ()
    found = spread.deviations()
    places = [(k, place) for k, place in np.ndindex(found.shape[1:]) if np.ptp(found[:, k, place]) > 0]
    weak = [
        _weigh(spread.cells[k], QUANTITIES[place], found[:, k, place], accuracy, len(places)) for k, place in places
    ]
    return tuple(sorted(weak, key=lambda one: -one.share))


def _weigh(cell: str, quantity: str, deviations: Array, accuracy: Array, tried: int) -> Weak:
    """Weigh how accuracy (chips,) goes with one quantity's deviations (chips,), by the test of W. H. Kruskal, W. A.
    Wallis, J. Am. Stat. Assoc. 47 (1952) 583, with Bonferroni's correction for `tried` tests."""
    groups = np.array_split(np.argsort(deviations, kind="stable"), GROUPS)
    edges = np.array([deviations[group].min() for group in groups] + [deviations.max()])
    means = np.array([accuracy[group].mean() for group in groups])
    p = min(tried * float(stats.kruskal(*(accuracy[group] for group in groups)).pvalue), 1.0)
    return Weak(cell, quantity, explained_share(accuracy, groups), p, deviations, edges, means)


def explained_share(values: Array, groups: Sequence[NDArray[np.intp]]) -> float:
    """Compute epsilon squared, the share of the variance between groups without what chance gives them: T. L. Kelley,
    Proc. Natl. Acad. Sci. 21 (1935) 554. It is below 0 where groups differ less than by chance."""
    within = sum(float(((values[group] - values[group].mean()) ** 2).sum()) for group in groups)
    whole = float(((values - values.mean()) ** 2).sum())
    return 1 - (within / (len(values) - len(groups))) / (whole / (len(values) - 1))
