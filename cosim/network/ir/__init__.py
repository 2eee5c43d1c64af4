"""The graph of a network: nodes, edges and states, before it becomes a circuit."""
