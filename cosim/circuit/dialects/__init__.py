"""The languages of circuit simulators: one file each."""
