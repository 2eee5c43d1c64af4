"""Data of a CMOS process: device models, grid, supply, mismatch coefficients."""
