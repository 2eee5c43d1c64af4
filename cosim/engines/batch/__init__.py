"""Many instances of one circuit at once: coupled nodal analysis on tables measured from the simulator's own cards."""
