"""ngspice as a library in this process, through PySpice."""
