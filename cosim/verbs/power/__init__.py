"""cosim power: supply power per block: static, dynamic, energy; ngspice and behavioral."""
