"""Trained networks on disk: what a file holds becomes a checked network, or is refused."""
