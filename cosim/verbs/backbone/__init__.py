"""cosim backbone: train the seed paper's backbone, which stays software."""
