"""cosim signoff: check a circuit as a tape-out review would: PASS or FAIL, one page."""
