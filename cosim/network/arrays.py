"""A network as named arrays and JSON, which is how files hold it, and its hash."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from cosim.network.layers import EpsilonLayer, SignedLayer
from cosim.network.types import Network

FORMAT = "cosim-checkpoint"
VERSION, LATE_VERSION, LEVELS_VERSION = 1, 2, 3  # plain, with late sources, with levels or ends of a count
RANGES = "ranges."  # prefix of the arrays of Network.state_ranges, optional


def network_to_arrays(network: Network) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return a trained network as data in memory, named float64 arrays and JSON meta, whatever file it goes into.

    It is hashed so, too; the inverse of `network_from_arrays`.
    """
    arrays = {"input.offset": network.encoding.offset, "input.scale": network.encoding.scale}
    layers = []
    for i, layer in enumerate(network.layers):
        arrays |= {f"layers.{i}.{name}": array for name, array in layer.arrays().items()}
        entry: dict[str, Any] = {"name": layer.name, "kind": layer.kind, "sources": list(layer.sources)}
        entry |= {"epsilon": layer.epsilon} if isinstance(layer, EpsilonLayer) else {}
        if isinstance(layer, SignedLayer):
            entry |= {"levels": layer.levels} if layer.levels is not None else {}
            entry |= {"ends": list(layer.ends)} if layer.ends is not None else {}
        layers.append(entry)
    arrays |= {f"readout.{name}": array for name, array in network.readout.arrays().items()}
    arrays |= {f"{RANGES}{name}": array for name, array in network.state_ranges.items()}
    meta = {
        "format": FORMAT,
        "version": format_version(layers, arrays, late=bool(network.late)),
        "task": network.task,
        "labels": list(network.labels),
        "weight_grid": network.weight_grid,
        "ramp_steps": network.encoding.ramp_steps,
        "input_levels": network.encoding.levels,
        "layers": layers,
        "readout": {"sources": list(network.readout.sources), "pooling": network.readout.pooling},
        "history": dict(network.history),
        **({"late": {name: asdict(late) for name, late in network.late.items()}} if network.late else {}),
        **({"regression": True} if network.regression else {}),
    }
    return {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in arrays.items()}, meta


def hash_network(network: Network) -> str:
    """Return a hash of all that a network computes with: encoding, weights, epsilons, architecture, pooling; not its
    history."""
    arrays, meta = network_to_arrays(replace(network, history={}, state_ranges={}))
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()[:16]


def format_version(layers: object, arrays: Iterable[str], *, late: bool) -> int:
    """Return the version of a trained network as data that these layers need, as its JSON meta describes them.

    arrays: the names of its arrays.
    """
    described = layers if isinstance(layers, list | tuple) else ()
    begun = {
        f"layers.{i}.initial"
        for i, one in enumerate(described)
        if isinstance(one, dict) and one.get("kind") == SignedLayer.kind
    }
    if begun & set(arrays):
        return LEVELS_VERSION
    newer = ("levels", "ends")
    if any(isinstance(layer, dict) and layer.get(name) is not None for layer in described for name in newer):
        return LEVELS_VERSION
    return LATE_VERSION if late else VERSION
