"""Command `cosim simulate`: run test samples through a circuit simulator at transistor level."""
