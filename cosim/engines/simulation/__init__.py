"""Samples through an engine: test benches, plans, worker processes, audits."""
