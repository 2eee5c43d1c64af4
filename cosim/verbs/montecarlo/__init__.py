"""cosim montecarlo: draw chips that vary and count how many work."""
