"""cosim simulate: run test samples through ngspice at transistor level."""
