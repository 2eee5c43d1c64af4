"""Command `cosim reproduce`: train the networks in the papers' tables, and print both figures beside each other."""
