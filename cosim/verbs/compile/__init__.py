"""cosim compile: compile a trained network to a transistor netlist."""
