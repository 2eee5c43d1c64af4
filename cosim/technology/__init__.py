"""CMOS processes as data: device models, layout grid, supply, mismatch coefficients, measured behaviour of cells."""
