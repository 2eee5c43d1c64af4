"""Dispersive delays: lines of tau-cells, whose mean delay is a bias current."""
