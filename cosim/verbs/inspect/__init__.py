"""cosim inspect: print what is in a checkpoint."""
