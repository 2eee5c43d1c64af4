"""Many chips of one design: each drawn, run on the same samples, kept, and counted."""
