"""Training of hardware networks in torch; the only part of the package that needs torch to be installed."""
