"""cosim harden: train, enlarge and trim a network's circuit until enough chips work."""
