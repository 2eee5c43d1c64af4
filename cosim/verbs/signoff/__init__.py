"""Command `cosim signoff`: check a circuit as a tape-out review would, with PASS or FAIL, on one page."""
