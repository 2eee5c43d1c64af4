"""95 % intervals: of a fraction by Clopper and Pearson, Biometrika 26 (1934) 404; of a mean by Student's t."""

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
MOST = 1000  # samples that one would simulate to know a sign


class IntervalEnds(NamedTuple):
    """The two ends of an interval, in the unit of the quantity; in JSON a list of two numbers."""

    low: float
    high: float


@dataclass(frozen=True)
class Interval:
    """A mean with the ends of its 95 % interval, all in one unit; low and high are None for a single sample."""

    mean: float
    low: float | None
    high: float | None


def interval(right: int, total: int, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Compute (fraction, low, high): right / total of independent cases, and its Clopper-Pearson interval."""
    from scipy.stats import binomtest  # a second to load, and workers have no use for it

    found = binomtest(right, total).proportion_ci(confidence, "exact")
    return right / total, float(found.low), float(found.high)


def running_intervals(passes: Sequence[bool], confidence: float = CONFIDENCE) -> NDArray[np.float64]:
    """Compute (fraction, low, high) of true cases among the first 1, 2, ... n cases, (n, 3), each as by `interval`."""
    from scipy.stats import beta

    right = np.cumsum(np.asarray(passes, dtype=np.int64))
    total = np.arange(1, len(right) + 1)
    tail = (1 - confidence) / 2
    low = np.where(right > 0, beta.ppf(tail, np.maximum(right, 1), total - right + 1), 0.0)
    high = np.where(right < total, beta.ppf(1 - tail, right + 1, np.maximum(total - right, 1)), 1.0)
    return np.stack([right / total, low, high], axis=1)


def quantile_t(values: Sized, confidence: float = CONFIDENCE) -> float:
    """Return the factor by which a mean's standard error gives half its two-sided interval, from Student's t.

    values: the sample, of which only the length is used.
    """
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, len(values) - 1))


def mean_interval(values: NDArray[np.float64]) -> Interval:
    """Compute the mean of a sample, (n,), with its 95 % interval by Student's t, None for n < 2."""
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return Interval(mean, None, None)
    half = float(quantile_t(values) * values.std(ddof=1) / np.sqrt(count))
    return Interval(mean, mean - half, mean + half)


def share_interval(values: NDArray[np.float64] | NDArray[np.bool_]) -> Interval:
    """Compute the mean of shares, (n,) numbers from 0 to 1, with its 95 % interval clipped to 0 and 1.

    The interval is Student's, or Clopper and Pearson's if all shares are 0 or all are 1.
    """
    shares = values.astype(np.float64)
    if len(shares) and np.ptp(shares) == 0 and shares[0] in (0.0, 1.0):
        return Interval(*interval(int(shares.sum()), len(shares)))
    found = mean_interval(shares)
    if found.low is None or found.high is None:
        return found
    return Interval(found.mean, max(found.low, 0.0), min(found.high, 1.0))


def shows_sign(found: Interval) -> bool:
    """Tell whether a mean's interval excludes 0, so that the mean's sign is known; False for a single sample."""
    if found.low is None or found.high is None:
        return False
    return found.low > 0 or found.high < 0 or found.low == found.mean == found.high


def samples_to_sign(found: Interval, samples: int) -> int | None:
    """Estimate how many samples of the same spread would give a mean's interval that excludes 0.

    found: the mean of `samples` samples with its interval. Return None beyond MOST samples, or without an interval.
    """
    from scipy.stats import t

    if found.high is None:
        return None
    deviation = (found.high - found.mean) * np.sqrt(samples) / t.ppf((1 + CONFIDENCE) / 2, samples - 1)
    counts = np.arange(2, MOST + 1)
    enough = t.ppf((1 + CONFIDENCE) / 2, counts - 1) * deviation / np.sqrt(counts) < abs(found.mean)
    return int(counts[enough.argmax()]) if enough.any() else None
