"""Command `cosim train`: train a network for a task such that a circuit can realise it."""
