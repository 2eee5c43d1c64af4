"""Spread over chips of a figure, beside a normal distribution; of each cell, and which cells accuracy goes with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.results.intervals import CONFIDENCE

Array = NDArray[np.float64]
MOST_BINS = 60  # of a picture that is three inches wide
QUANTITIES = ("upper threshold", "lower threshold", "level")
GROUPS = 5
_LEAST = 4  # chips of a group


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
    from scipy.stats import beta, norm

    x = np.sort(np.asarray(values, dtype=np.float64))
    mean, sd = float(x.mean()), float(x.std(ddof=1)) if len(x) > 1 else 0.0
    rank = np.arange(1, len(x) + 1)
    tail = (1 - CONFIDENCE) / 2
    theory, low, high = (norm.ppf(beta.ppf(share, rank, rank[::-1])) for share in (0.5, tail, 1 - tail))
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
    """asked (cells, 3), measured (chips, cells, 3): QUANTITIES of each cell, ampere; the chips as the records are."""

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
    from scipy.stats import kruskal

    groups = np.array_split(np.argsort(deviations, kind="stable"), GROUPS)
    edges = np.array([deviations[group].min() for group in groups] + [deviations.max()])
    means = np.array([accuracy[group].mean() for group in groups])
    p = min(tried * float(kruskal(*(accuracy[group] for group in groups)).pvalue), 1.0)
    return Weak(cell, quantity, explained_share(accuracy, groups), p, deviations, edges, means)


def explained_share(values: Array, groups: Sequence[NDArray[np.intp]]) -> float:
    """Compute epsilon squared, the share of the variance between groups without what chance gives them: T. L. Kelley,
    Proc. Natl. Acad. Sci. 21 (1935) 554. It is below 0 where groups differ less than by chance."""
    within = sum(float(((values[group] - values[group].mean()) ** 2).sum()) for group in groups)
    whole = float(((values - values.mean()) ** 2).sum())
    return 1 - (within / (len(values) - len(groups))) / (whole / (len(values) - 1))
