"""The range of every state over data: what decides how many rungs a ladder needs."""

import numpy as np

from cosim.network.layers import Array, EpsilonLayer
from cosim.network.reference import run_reference
from cosim.network.types import Network

BATCH = 256  # samples in memory at once


def measure_state_ranges(
    network: Network, x: np.ndarray, lengths: np.ndarray, origin: str = "data"
) -> dict[str, Array]:
    """Return layer -> (2, width): smallest and largest h in software over samples x (n, time, features), raw.

    Only these layers have more levels than two. The state before the first step counts, later steps than the last valid
    one do not. Raises InputError as `run_reference`.
    """
    layers = [layer for layer in network.recurrent_layers if isinstance(layer, EpsilonLayer) and layer.epsilon != 0]
    ranges = {layer.name: np.stack([layer.start] * 2) for layer in layers}
    for first in range(0, len(x) if ranges else 0, BATCH):
        part = slice(first, first + BATCH)
        trace = run_reference(network, x[part], lengths[part], origin)
        valid = np.arange(x.shape[1])[None, :] < lengths[part, None]
        for name, (low, high) in ranges.items():
            states = trace.signals[name][valid]
            ranges[name] = np.stack([np.minimum(low, states.min(axis=0)), np.maximum(high, states.max(axis=0))])
    return ranges
