"""Two runs' figures compared: the difference B - A with its 95 % interval and a test.

    yes or no, paired    Tango's score interval; McNemar's exact test
    shares, paired       bias-corrected and accelerated bootstrap of the mean difference; test by flipping signs
    means, paired        Student's t of the differences; of shares, too, where fewer than ten pairs move
    yes or no, apart     Newcombe's interval (method 10, of Wilson's); Fisher's exact test
    means, apart         Welch's t

Sources: T. Tango, Stat. Med. 17 (1998) 891; Q. McNemar, Psychometrika 12 (1947) 153; B. Efron, J. Am. Stat. Assoc. 82
(1987) 171; R. G. Newcombe, Stat. Med. 17 (1998) 873; B. L. Welch, Biometrika 34 (1947) 28.
Each interval is one of 95 % by itself: of twenty figures without a difference one is expected to leave 0 out.
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
    """One figure in two runs, and B - A; `interval` and `p` are None where there are too few to tell.

    pairs: how many were paired, 0 where the runs share none; up, down: pairs in which B is larger, or A.
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
        """Tell whether tested results are equal: no pair of them differs, or, unpaired, the figures do not."""
        return not self.up and not self.down and self.difference == 0


def contrast_fractions(a: Bools, b: Bools) -> Contrast:
    """Test the difference of a yes or no figure in paired results of n things, (n,) each; with interval and p."""
    up, down, n = int((b & ~a).sum()), int((a & ~b).sum()), len(a)
    shares = float(a.mean()), float(b.mean())
    return Contrast(*shares, (up - down) / n, tango_interval(up, down, n), mcnemar(up, down), "tango", n, up, down)


def contrast_shares(a: Array, b: Array) -> Contrast:
    """Test the difference of mean shares in paired results of n things, (n,) each, whose differences are skewed; by
    Student's t where few move."""
    change = b - a
    if np.count_nonzero(change) < _LEAST or np.ptp(change) == 0:
        return contrast_means(a, b)
    return _paired(a, b, _bootstrap(change), _flipped(change), "bootstrap")


def contrast_means(a: Array, b: Array) -> Contrast:
    """Test the difference of a figure's mean in paired results of n things, (n,) each; with interval and p."""
    change, interval, p = b - a, None, None
    if len(change) >= 2:
        from scipy.stats import t

        mean, error = float(change.mean()), float(change.std(ddof=1)) / sqrt(len(change))
        half = float(t.ppf((1 + CONFIDENCE) / 2, len(change) - 1)) * error
        interval = IntervalEnds(mean - half, mean + half)
        p = float(2 * t.sf(abs(mean) / error, len(change) - 1)) if error else None if mean else 1.0
    return _paired(a, b, interval, p, "student")


def contrast_fractions_apart(a: Bools, b: Bools) -> Contrast:
    """Test the difference of a yes or no figure in unpaired results of n and m things; with interval and p."""
    from scipy.stats import fisher_exact

    (k, n), (j, m) = (int(a.sum()), len(a)), (int(b.sum()), len(b))
    p = np.asarray(fisher_exact([[k, n - k], [j, m - j]]))[1].item()
    return Contrast(k / n, j / m, j / m - k / n, newcombe_interval(k, n, j, m), p, "newcombe", 0, 0, 0)


def contrast_means_apart(a: Array, b: Array) -> Contrast:
    """Test the difference of a figure's mean in unpaired results of n and m things; with interval and p."""
    interval, p = None, None
    if min(len(a), len(b)) >= 2 and max(np.ptp(a), np.ptp(b)) > 0:
        from scipy.stats import ttest_ind

        found = ttest_ind(b, a, equal_var=False)
        bounds = found.confidence_interval(CONFIDENCE)
        interval, p = IntervalEnds(float(bounds.low), float(bounds.high)), np.asarray(found)[1].item()
    return Contrast(float(a.mean()), float(b.mean()), float(b.mean() - a.mean()), interval, p, "welch", 0, 0, 0)


def mcnemar(up: int, down: int) -> float:
    """Compute p of McNemar's exact test of paired results: whether as many pairs turned one way as the other."""
    from scipy.stats import binomtest

    return float(binomtest(up, up + down).pvalue) if up + down else 1.0


def tango_interval(up: int, down: int, n: int) -> IntervalEnds:
    """Find the interval of a test of paired results: the differences d of two fractions that a score test at 5 % does
    not refuse, where `up` of n pairs turned from no to yes and `down` from yes to no.

        (up - down - n d)^2 = z^2 n (2 q + d (1 - d)),  q the likeliest fraction of `down` where the difference is d
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
    """Compute the interval of the difference j/m - k/n of unpaired results from Wilson's intervals of both
    fractions."""
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
