"""Command `cosim backbone`: train the seed paper's backbone, a large network that stays software."""
