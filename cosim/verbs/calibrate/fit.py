"""From samples to figures: crossings of a level, and fits of the relative error."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def fit_relative(terms: Array, values: Array) -> tuple[tuple[float, ...], float]:
    """Fit a calibration by least squares of the relative error: it must be right at 0.1 nA as much as at 4 nA."""
    solution, *_ = np.linalg.lstsq(terms / values[:, None], np.ones_like(values), rcond=None)
    error = float(np.max(np.abs(terms @ solution / values - 1)))
    return tuple(map(float, solution)), error


def find_crossings(time: Array, values: Array, level: float) -> list[float]:
    """Return the times at which a cell that `cosim calibrate` measures passes a level, either way.

    Values are linear between samples.
    """
    above = values > level
    found = []
    for i in np.flatnonzero(above[1:] != above[:-1]):
        fraction = (level - values[i]) / (values[i + 1] - values[i])
        found.append(float(time[i] + fraction * (time[i + 1] - time[i])))
    return found
