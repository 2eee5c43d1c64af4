"""A trained network as plain typed weights, and the discrete-time reference that everything else must match."""
