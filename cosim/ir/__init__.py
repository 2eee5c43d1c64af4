"""The network as a typed graph of currents: lower (weights -> graph), scale (-> ampere), size (-> devices)."""
