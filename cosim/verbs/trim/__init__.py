"""cosim trim: set converters at the bias pins of chips with mismatch, and count those that work."""
