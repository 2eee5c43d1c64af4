"""cosim compare: hold software, behavioral and ngspice against each other."""
