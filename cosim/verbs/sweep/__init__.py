"""Command `cosim sweep`: run another verb at every value of one or two of its options."""
