"""Command `cosim explore`: search for the cheapest circuits that still work."""
