"""The scale of software 1.0 on the chip, as a current and as a number of unit devices, and the limits of both.

The compiler refuses values beyond the limits, and training keeps learned values within them.
"""

from cosim.base.bounds import UNITS
from cosim.base.errors import MappingError

I_UNIT = 1e-9  # A: thresholds of 0.1 to 4 units then fall into the cell's calibrated range
DEFAULT_UNITS, MAX_UNITS = 8, int(UNITS.high)  # unit devices, where weights have no grid, and at most
MAX_COUNT = 64  # unit devices of one weight; more belongs into a larger i_unit
MIN_WIDTH = 12e-12  # A; below about this the 9T cell shows no hysteresis (arXiv 2605.07936)
MIN_FALL = 10e-12  # A; a lower threshold must stand clear of leakage and of the rectifier's residue
MAX_RISE = 8e-9  # A; end of the calibrated range


def units_for(grid: float | None) -> int:
    """Return how many unit devices per 1.0 make a grid of weights exact, at most MAX_UNITS.

    grid: step of the weights; None, for weights without a grid, gives DEFAULT_UNITS.
    """
    return DEFAULT_UNITS if grid is None else max(1, min(MAX_UNITS, round(1 / grid)))


def check_units(grid: float | None, units: int, origin: str) -> None:
    """Raise MappingError if `units` unit devices per 1.0 cannot make a grid of weights that others could.

    A weight k grid, k whole, is k grid units devices. So with 1 / grid whole, units must be a multiple of 1 / grid.
    """
    exact = units_for(grid)
    if grid is None or abs(exact * grid - 1) > 1e-9 or units % exact == 0:
        return
    raise MappingError(
        f"{origin}: weights on a grid of 1/{exact} need {exact} unit devices per 1.0 or a multiple of it, not {units}, "
        f"with which 1/{exact} would be {units / exact:g} devices; leave --units out, or in Python use "
        f"find_calibration(technology, units={exact})"
    )
