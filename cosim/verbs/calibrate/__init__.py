"""cosim calibrate: measure a technology's cells and write its calibration."""
