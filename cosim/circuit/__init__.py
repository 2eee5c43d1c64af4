"""A circuit as data, and its deck text. This folder knows nothing of networks."""
