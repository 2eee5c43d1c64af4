"""What 1.0 in software is on the chip unless somebody asks otherwise: a current, and so many unit devices."""

I_UNIT = 1e-9  # A: thresholds of 0.1 to 4 units then fall into the cell's calibrated range
DEFAULT_UNITS, MAX_UNITS = 8, 64  # unit devices, where weights have no grid, and at most


def units_for(grid: float | None) -> int:
    """Unit devices per 1.0 that make a grid of weights exact, as far as there are so many."""
    return DEFAULT_UNITS if grid is None else max(1, min(MAX_UNITS, round(1 / grid)))
