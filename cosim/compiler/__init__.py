"""The compiler: passes from a network to a circuit, in one order, with a check after each."""
