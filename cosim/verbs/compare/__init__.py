"""cosim compare: compare software, behavioral model and circuit simulator on the same samples."""
