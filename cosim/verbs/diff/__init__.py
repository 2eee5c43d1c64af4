"""Command `cosim diff`: say what changed between two runs, by how much, and where."""
