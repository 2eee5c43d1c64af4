"""cosim sensitivity: name the transistors that decide a sample, by an adjoint (backward) run."""
