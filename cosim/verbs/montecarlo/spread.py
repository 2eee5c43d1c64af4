"""Spread of a figure over many chips: bins that fit it, and how far it is from a normal distribution."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_BINS = 60  # of a picture that is three inches wide
_CONFIDENCE = 0.95


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
        """The share of values beyond the band."""
        return float(((self.values < self.low) | (self.values > self.high)).mean())


def normal_quantiles(values: Array) -> Quantiles:
    """Compute the quantiles of a sample (n,) beside those of a normal distribution, and the band for such a sample.

    The k-th of n sorted uniform numbers has the distribution beta(k, n + 1 - k): its median is the abscissa, its ends
    at 2.5 and 97.5 % are the band; B. C. Arnold, N. Balakrishnan, H. N. Nagaraja, A First Course in Order Statistics
    (1992), 2.2.
    """
    from scipy.stats import beta, norm

    x = np.sort(np.asarray(values, dtype=np.float64))
    mean, sd = float(x.mean()), float(x.std(ddof=1)) if len(x) > 1 else 0.0
    rank = np.arange(1, len(x) + 1)
    tail = (1 - _CONFIDENCE) / 2
    theory, low, high = (norm.ppf(beta.ppf(share, rank, rank[::-1])) for share in (0.5, tail, 1 - tail))
    return Quantiles(theory, x, mean, sd, mean + sd * low, mean + sd * high)


def bin_edges(values: Array, quantum: float = 0.0) -> Array:
    """Return the borders of a histogram's bins: of numpy's `auto`, the narrower of Sturges and Freedman-Diaconis.

    With a quantum, the least difference of what comes in steps from 0, each bin holds the same whole number of steps,
    one where there are few of them. At most MOST_BINS.
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
