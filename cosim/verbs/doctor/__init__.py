"""Command `cosim doctor`: say what is installed and what is missing."""
