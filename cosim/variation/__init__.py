"""Differences from chip to chip, drawn for each device, the spread of currents that they make, and device noise."""
