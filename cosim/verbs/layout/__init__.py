"""Command `cosim layout`: draw a compiled network as a mask, and check it."""
