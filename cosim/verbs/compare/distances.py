"""Distances of candidates from thresholds in software."""

import numpy as np
from numpy.typing import NDArray

from cosim.compiler.design import Design
from cosim.network.ir.states import software_states
from cosim.network.reference import Trace
from cosim.network.types import Network
from cosim.units.shift import Shift


def threshold_distances(network: Network, reference: Trace) -> NDArray[np.float64]:
    """Compute the distance of each candidate to its nearer threshold in units, (n, time, cells)."""
    margins: list[NDArray[np.float64]] = []
    for layer in network.recurrent_layers:
        trace = reference.layers[layer.name]
        low, high = trace.window or (np.full(layer.width, -np.inf), np.full(layer.width, np.inf))
        margins.append(np.minimum(np.abs(trace.candidate - low), np.abs(trace.candidate - high)))
    return np.concatenate(margins, axis=2)


def cell_distances(design: Design, reference: Trace) -> NDArray[np.float64]:
    """Return the distance of each cell's candidate to its nearer threshold in units, (n, time, cells of the circuit).

    The candidate of a shift cell is the level of the bit that it takes over.
    """
    layers = design.network.recurrent_layers
    places = [(layer.name, k) for layer in layers for k in range(layer.width)]
    units = dict(zip(places, np.moveaxis(threshold_distances(design.network, reference), 2, 0), strict=True))
    states = software_states(design.graph, reference)
    margins: list[NDArray[np.float64]] = []
    for k, node in enumerate(design.graph.memories):
        if isinstance(node, Shift):
            level = node.level * states[:, :, k]
            margins.append(np.minimum(np.abs(level - node.rise), np.abs(level - node.fall)))
        else:
            margins.append(units[node.layer, node.index])
    return np.stack(margins, axis=2)
