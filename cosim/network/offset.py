"""The common-mode offset of a signed unit: what lifts its candidate and both thresholds to where currents can be."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

OFFSET_MARGIN = 0.25  # software units between the largest beta and the offset, so that fall stays off the leakage floor
OFFSET_STEP = 0.125


def common_mode_offset(beta: ArrayLike) -> NDArray[np.floating]:
    """Return the offset to add for the largest beta at which a unit may reset, in software units; any shape, in its
    precision."""
    return np.ceil((np.asarray(beta) + OFFSET_MARGIN) / OFFSET_STEP) * OFFSET_STEP


def largest_beta(upper: float) -> float:
    """Return the largest constant beta of a unit whose upper threshold, offset included, may be `upper`, units."""
    return (upper - OFFSET_MARGIN - OFFSET_STEP) / 2
