"""95 % intervals: of a fraction by Clopper and Pearson, Biometrika 26 (1934) 404; of a mean by Student's t."""

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
MOST = 1000  # samples that one would simulate to know a sign


class IntervalEnds(NamedTuple):
    """The ends of an interval, in the unit of what it is of; in JSON a list of two."""

    low: float
    high: float


@dataclass(frozen=True)
class Interval:
    """A mean with the ends of its interval, in its unit; a single sample's mean has none."""

    mean: float
    low: float | None
    high: float | None


def interval(right: int, total: int, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Compute the share of `right` among `total` independent cases with its interval: (fraction, low, high)."""
    from scipy.stats import binomtest  # a second to load, and workers have no use for it

    found = binomtest(right, total).proportion_ci(confidence, "exact")
    return right / total, float(found.low), float(found.high)


def running_intervals(passes: Sequence[bool], confidence: float = CONFIDENCE) -> NDArray[np.float64]:
    """Compute fraction, low and high of the first 1, 2, ... n cases, (n, 3), each as `interval` gives them."""
    from scipy.stats import beta

    right = np.cumsum(np.asarray(passes, dtype=np.int64))
    total = np.arange(1, len(right) + 1)
    tail = (1 - confidence) / 2
    low = np.where(right > 0, beta.ppf(tail, np.maximum(right, 1), total - right + 1), 0.0)
    high = np.where(right < total, beta.ppf(1 - tail, right + 1, np.maximum(total - right, 1)), 1.0)
    return np.stack([right / total, low, high], axis=1)


def quantile_t(values: Sized, confidence: float = CONFIDENCE) -> float:
    """Return Student's t of a two-sided interval of the mean of these values."""
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, len(values) - 1))


def mean_interval(values: NDArray[np.float64]) -> Interval:
    """Compute the mean of a sample with its interval."""
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return Interval(mean, None, None)
    half = float(quantile_t(values) * values.std(ddof=1) / np.sqrt(count))
    return Interval(mean, mean - half, mean + half)


def share_interval(values: NDArray[np.float64] | NDArray[np.bool_]) -> Interval:
    """Compute the mean of shares (n,) with its interval within 0 and 1."""
    shares = values.astype(np.float64)
    if len(shares) and np.ptp(shares) == 0 and shares[0] in (0.0, 1.0):
        return Interval(*interval(int(shares.sum()), len(shares)))
    found = mean_interval(shares)
    if found.low is None or found.high is None:
        return found
    return Interval(found.mean, max(found.low, 0.0), min(found.high, 1.0))


def shows_sign(found: Interval) -> bool:
    """Tell whether the interval of a mean excludes 0, so that its sign is known; a single sample's does not."""
    if found.low is None or found.high is None:
        return False
    return found.low > 0 or found.high < 0 or found.low == found.mean == found.high


def samples_to_sign(found: Interval, samples: int) -> int | None:
    """Compute from a mean's interval how many samples of that spread would show its sign; None beyond MOST, or without
    spread."""
    from scipy.stats import t

    if found.high is None:
        return None
    deviation = (found.high - found.mean) * np.sqrt(samples) / t.ppf((1 + CONFIDENCE) / 2, samples - 1)
    counts = np.arange(2, MOST + 1)
    enough = t.ppf((1 + CONFIDENCE) / 2, counts - 1) * deviation / np.sqrt(counts) < abs(found.mean)
    return int(counts[enough.argmax()]) if enough.any() else None
