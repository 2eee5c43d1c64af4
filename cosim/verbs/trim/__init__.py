"""cosim trim: set converters at the bias pins of drawn chips, and count again."""
