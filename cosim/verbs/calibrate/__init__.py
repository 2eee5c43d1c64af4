"""Command `cosim calibrate`: measure a technology's cells and write the calibration that the compiler uses."""
