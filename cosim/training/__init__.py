"""Training of hardware networks in torch."""
