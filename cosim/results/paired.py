"""Comparison of a figure in two runs A and B: the difference B - A with its 95 % interval and a test.

Results are paired if both runs measured the same things, such as samples or chips; else they are unpaired (apart).

    yes or no, paired    Tango's score interval; McNemar's exact test
    shares, paired       bias-corrected and accelerated bootstrap of the mean difference; test by flipping signs
    means, paired        Student's t of the differences; also for shares if fewer than ten pairs differ
    yes or no, apart     Newcombe's interval (method 10, from Wilson's intervals); Fisher's exact test
    means, apart         Welch's t

Sources: T. Tango, Stat. Med. 17 (1998) 891; Q. McNemar, Psychometrika 12 (1947) 153; B. Efron, J. Am. Stat. Assoc. 82
(1987) 171; R. G. Newcombe, Stat. Med. 17 (1998) 873; B. L. Welch, Biometrika 34 (1947) 28.
Each single interval has 95 %: of twenty figures that do not differ, one interval is expected to exclude 0.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.results.intervals import CONFIDENCE, IntervalEnds

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Method = Literal["tango", "bootstrap", "student", "newcombe", "welch"]
METHODS: dict[Method, str] = {
    "tango": "Tango's score interval and McNemar's exact test of the pairs that changed",
    "bootstrap": "BCa bootstrap of the mean paired difference, and a test by flipping its signs",
    "student": "Student's t of the paired differences",
    "newcombe": "Newcombe's interval and Fisher's exact test, unpaired",
    "welch": "Welch's t, unpaired",
}
_RESAMPLES, _SEED = 9999, 0
_NEAR = 1e-9  # how near to its ends, and to the difference itself, an interval's bound is looked for
_LEAST = 10  # pairs that must move for a bootstrap: of fewer, its intervals are too narrow


@dataclass(frozen=True)
class Contrast:
    """The difference B - A of a figure in two runs, with a 95 % interval and a test.

    a, b: the figure in each run; difference: b - a; interval: of the difference; p: of the test that it is 0. Interval
    and p are None if there are too few results. pairs: number of pairs, 0 for unpaired results; up, down: number of
    pairs in which B is larger, in which A is.
    """

    a: float
    b: float
    difference: float
    interval: IntervalEnds | None
    p: float | None
    method: Method
    pairs: int
    up: int
    down: int

    @property
    def same(self) -> bool:
        """Tell whether no pair of results differs, or, for unpaired results, whether the two figures are equal."""
        return not self.up and not self.down and self.difference == 0


def contrast_fractions(a: Bools, b: Bools) -> Contrast:
    """Compare the shares of true in paired results a and b, (n,) each, by Tango's interval and McNemar's test."""
    up, down, n = int((b & ~a).sum()), int((a & ~b).sum()), len(a)
    shares = float(a.mean()), float(b.mean())
    return Contrast(*shares, (up - down) / n, tango_interval(up, down, n), mcnemar(up, down), "tango", n, up, down)


def contrast_shares(a: Array, b: Array) -> Contrast:
    """Compare the means of shares in paired results a and b, (n,) each, by a bootstrap, since differences are skewed.

    If fewer than ten pairs differ, or all differ equally, Student's t is used.
    """
    change = b - a
    if np.count_nonzero(change) < _LEAST or np.ptp(change) == 0:
        return contrast_means(a, b)
    return _paired(a, b, _bootstrap(change), _flipped(change), "bootstrap")


def contrast_means(a: Array, b: Array) -> Contrast:
    """Compare the means of paired results a and b, (n,) each, by Student's t; no interval and p for n < 2."""
    change, interval, p = b - a, None, None
    if len(change) >= 2:
        from scipy.stats import t

        mean, error = float(change.mean()), float(change.std(ddof=1)) / sqrt(len(change))
        half = float(t.ppf((1 + CONFIDENCE) / 2, len(change) - 1)) * error
        interval = IntervalEnds(mean - half, mean + half)
        p = float(2 * t.sf(abs(mean) / error, len(change) - 1)) if error else None if mean else 1.0
    return _paired(a, b, interval, p, "student")


def contrast_fractions_apart(a: Bools, b: Bools) -> Contrast:
    """Compare the shares of true in unpaired results a, (n,), and b, (m,), by Newcombe's interval and Fisher's test."""
    from scipy.stats import fisher_exact

    (k, n), (j, m) = (int(a.sum()), len(a)), (int(b.sum()), len(b))
    p = np.asarray(fisher_exact([[k, n - k], [j, m - j]]))[1].item()
    return Contrast(k / n, j / m, j / m - k / n, newcombe_interval(k, n, j, m), p, "newcombe", 0, 0, 0)


def contrast_means_apart(a: Array, b: Array) -> Contrast:
    """Compare the means of unpaired results a, (n,), and b, (m,), by Welch's t.

    There is no interval and no p for fewer than 2 results, or if neither varies.
    """
    interval, p = None, None
    if min(len(a), len(b)) >= 2 and max(np.ptp(a), np.ptp(b)) > 0:
        from scipy.stats import ttest_ind

        found = ttest_ind(b, a, equal_var=False)
        bounds = found.confidence_interval(CONFIDENCE)
        interval, p = IntervalEnds(float(bounds.low), float(bounds.high)), np.asarray(found)[1].item()
    return Contrast(float(a.mean()), float(b.mean()), float(b.mean() - a.mean()), interval, p, "welch", 0, 0, 0)


def mcnemar(up: int, down: int) -> float:
    """Compute p of McNemar's exact test that pairs change from no to yes (`up`) as often as from yes to no (`down`)."""
    from scipy.stats import binomtest

    return float(binomtest(up, up + down).pvalue) if up + down else 1.0


def tango_interval(up: int, down: int, n: int) -> IntervalEnds:
    """Find Tango's 95 % interval of the difference d of two paired fractions: all d that a score test does not reject.

    Of n pairs, `up` changed from no to yes and `down` from yes to no. The ends of the interval solve

        (up - down - n d)^2 = z^2 n (2 q + d (1 - d)),  q the most likely fraction of `down` if the difference is d
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    z2 = float(norm.ppf((1 + CONFIDENCE) / 2)) ** 2

    def excess(d: float) -> float:
        linear = -up - down + (2 * n - up + down) * d
        q = (sqrt(max(linear**2 + 8 * n * down * d * (1 - d), 0.0)) - linear) / (4 * n)
        return (up - down - n * d) ** 2 - z2 * n * (2 * q + d * (1 - d))

    middle = (up - down) / n

    def root(low: float, high: float) -> float:
        found = brentq(excess, low, high, xtol=_NEAR)
        assert isinstance(found, float)
        return found

    low = -1.0 if down == n else root(-1 + _NEAR, middle - _NEAR)
    return IntervalEnds(low, 1.0 if up == n else root(middle + _NEAR, 1 - _NEAR))


def newcombe_interval(k: int, n: int, j: int, m: int) -> IntervalEnds:
    """Compute Newcombe's 95 % interval of the difference j/m - k/n of two unpaired fractions."""
    from scipy.stats import binomtest

    a, b = (binomtest(count, total).proportion_ci(CONFIDENCE, "wilson") for count, total in ((k, n), (j, m)))
    first, second = k / n, j / m
    low = second - first - sqrt((second - b.low) ** 2 + (a.high - first) ** 2)
    high = second - first + sqrt((b.high - second) ** 2 + (first - a.low) ** 2)
    return IntervalEnds(float(low), float(high))


def _paired(a: Array, b: Array, interval: IntervalEnds | None, p: float | None, method: Method) -> Contrast:
    change = b - a
    up, down = int((change > 0).sum()), int((change < 0).sum())
    return Contrast(float(a.mean()), float(b.mean()), float(change.mean()), interval, p, method, len(a), up, down)


def _bootstrap(change: Array) -> IntervalEnds:
    from scipy.stats import bootstrap

    rng = np.random.default_rng(_SEED)
    found = bootstrap((change,), np.mean, n_resamples=_RESAMPLES, confidence_level=CONFIDENCE, method="BCa", rng=rng)
    return IntervalEnds(float(found.confidence_interval.low), float(found.confidence_interval.high))


def _flipped(change: Array) -> float:
    from scipy.stats import permutation_test

    rng = np.random.default_rng(_SEED)
    found = permutation_test(
        (change,), np.mean, permutation_type="samples", vectorized=True, n_resamples=_RESAMPLES, rng=rng
    )
    return float(found.pvalue)
