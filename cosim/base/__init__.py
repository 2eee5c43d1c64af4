"""The ground of every other folder: errors, bounds, quantities with units, safe writing of files, strict reading."""
