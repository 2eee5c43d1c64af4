"""The window of two comparators that ladders and registers decide by."""

from typing import Any

import numpy as np

from cosim.units.kind import Array, CellEquations


def window_thresholds(cell: CellEquations[Any, Any, Any]) -> tuple[Array, Array]:
    """Upper and lower threshold, ampere, of a cell whose bias and factors have one for either."""
    upper, lower = cell.factors.upper, cell.factors.lower
    if cell.ideal:
        i_rise, i_fall, _ = cell.asked
        return np.asarray(upper * i_rise), np.asarray(lower * i_fall)
    found = cell.calibration
    return upper * found.upper.decides_at(cell.bias.i_upper), lower * found.lower.decides_at(cell.bias.i_lower)
