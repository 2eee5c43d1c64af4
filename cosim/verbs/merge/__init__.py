"""Command `cosim merge`: join the parts of a Monte Carlo run that were made on several machines."""
