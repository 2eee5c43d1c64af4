"""Differences from chip to chip: drawn per device, put into a netlist, and turned into factors of currents."""
