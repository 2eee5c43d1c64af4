"""The graph of a network: nodes, edges and states, before there is a circuit."""
