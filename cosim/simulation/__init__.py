"""Testbench and ngspice."""
