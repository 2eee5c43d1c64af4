"""Search for the circuits that a network could be, over their parameters, kept trial by trial."""
