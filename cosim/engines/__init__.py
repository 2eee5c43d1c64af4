"""Everything that runs a circuit or its equations: a folder for each engine, behind one protocol."""
