"""Command `cosim demo`: train, compile, simulate and compare a small network on real data."""
