"""Calibration: the cells of a technology measured once, and which file of measurements applies."""
