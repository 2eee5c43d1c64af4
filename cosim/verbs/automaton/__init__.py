"""Command `cosim automaton`: turn a regular language into a network with exact state."""
