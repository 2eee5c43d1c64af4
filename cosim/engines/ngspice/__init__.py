"""ngspice as a library in a process of its own, through PySpice."""
