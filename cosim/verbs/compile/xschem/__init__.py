"""xschem schematics and symbols of a compiled network."""
