"""From a flattened circuit to a checked mask: rows of unit devices, wires, checks, extraction."""
