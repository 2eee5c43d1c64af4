"""Splines through points: of scipy, which has no types."""

import numpy as np
from scipy.interpolate import CubicSpline  # pyright: ignore[reportMissingTypeStubs]

from cosim.engines.batch.tables import Array, GridAxis


def cubics(axis: GridAxis, rows: Array) -> Array:
    """Through rows of values at an axis' points: (cells, rows, 4), the coefficient of power 0 first."""
    powers = np.asarray(CubicSpline(axis.points, rows, axis=1).c, dtype=np.float64)  # (4, cells, rows)
    return np.ascontiguousarray(np.moveaxis(powers[::-1], 0, -1))


def resample(points: Array, values: Array, wanted: Array) -> Array:
    """Values along the first axis, at other points."""
    return np.asarray(CubicSpline(points, values)(wanted), dtype=np.float64)


def sample_points(axis: GridAxis) -> Array:
    """Return the points at which a quadratic spline is best tied: the ends of its axis, and the middle of each cell."""
    points = axis.points
    return np.concatenate([points[:1], points[:-1] + axis.step / 2, points[-1:]])


def quadratics(axis: GridAxis, samples: Array) -> Array:
    """Coefficients of the quadratic B-splines of `Float` along the first axis, through values at `sample_points`."""
    count = axis.count
    weights = np.zeros((count + 1, count + 1))
    weights[0, :2] = weights[-1, -2:] = 0.5
    for cell in range(count - 1):
        weights[cell + 1, cell : cell + 3] = 0.125, 0.75, 0.125
    found = np.linalg.solve(weights, samples.reshape(count + 1, -1))
    return found.reshape(samples.shape).astype(np.float64)
