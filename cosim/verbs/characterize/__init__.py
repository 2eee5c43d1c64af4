"""cosim characterize: sweep a cell: ideal, as drawn, calibrated."""
