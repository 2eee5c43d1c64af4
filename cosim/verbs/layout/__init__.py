"""cosim layout: draw a trained network as a mask, and check it."""
