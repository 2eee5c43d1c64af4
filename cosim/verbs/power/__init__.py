"""Command `cosim power`: supply power of each block, static and dynamic, by simulation and by behavioral equations."""
