"""The common-mode offset of a signed unit: what lifts its candidate and both thresholds to where currents can be."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

OFFSET_MARGIN = 0.25  # software units between the largest beta and the offset, so that fall stays off the leakage floor
OFFSET_STEP = 0.125


def common_mode_offset(beta: ArrayLike) -> NDArray[np.floating]:
    """Return the offset that makes a signed unit's currents non-negative, in software units.

    beta: the largest at which the unit may reset; any shape, in its precision.
    """
    return np.ceil((np.asarray(beta) + OFFSET_MARGIN) / OFFSET_STEP) * OFFSET_STEP


def largest_beta(upper: float) -> float:
    """Return the largest constant beta of a signed unit whose upper threshold, offset included, is `upper`, units."""
    return (upper - OFFSET_MARGIN - OFFSET_STEP) / 2
