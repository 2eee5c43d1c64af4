"""minGRU: a leaky integrator whose rate is an input, in a gated tau-cell."""
