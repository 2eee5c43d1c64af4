"""What can run a circuit or its equations, each a folder behind one protocol."""
