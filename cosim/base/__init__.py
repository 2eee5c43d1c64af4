"""The ground of every other folder: errors, bounds, quantities with units, files that are whole, strict reading."""
