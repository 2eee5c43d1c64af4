"""Variation from chip to chip, drawn for each device, the spread of currents that it causes, and device noise."""
