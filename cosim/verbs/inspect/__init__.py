"""Command `cosim inspect`: print the content of a checkpoint."""
