"""A circuit as data, and its deck text. Knows nothing of networks."""
