"""What a CMOS process offers: device models, grid, supply, mismatch coefficients."""
