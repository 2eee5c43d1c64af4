"""Command `cosim characterize`: simulate a cell over its range, as drawn and calibrated, beside its ideal equation."""
