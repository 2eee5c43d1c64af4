"""cosim sweep: run a verb at every value of one or two of its options."""
