"""Which circuits a network could be: a search over their parameters, kept trial by trial."""
