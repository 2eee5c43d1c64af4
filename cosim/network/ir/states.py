"""States of a circuit's memories: those expected from a run of the software network, and which of them are equal."""

import numpy as np
from numpy.typing import NDArray

from cosim.network.ir.graph import LoweredGraph
from cosim.network.ir.nodes import Memory
from cosim.network.reference import Trace, later
from cosim.network.types import INPUT

States = NDArray[np.int16 | np.float64]  # whole, or analog
OFF_LEVEL = -999


def software_states(graph: LoweredGraph, reference: Trace) -> States:
    """Return the states of a trained network's recurrent units in software, as the nodes of its graph count them.

    reference: the network's software run. Returns (n, time, cells): (h - zero) / step, which may exceed what the unit's
    circuit can hold. A whole state whose h lies between two levels becomes OFF_LEVEL, which no circuit has.
    """
    columns: list[States] = []
    for node in graph.memories:
        state = (_behind(reference, node) - node.zero) / node.step
        whole = np.rint(state)
        near = np.where(np.abs(state - whole) < 0.01, whole, OFF_LEVEL).astype(np.int16)
        columns.append(state if node.tolerance else near)
    return np.stack(columns, axis=2)


def _behind(reference: Trace, node: Memory) -> NDArray[np.float64]:
    """Return the h that a memory should have, (n, time), from a software run of the trained network.

    For a shift cell it is that of its source some frames earlier, and at first the source's start.
    """
    inputs = reference.inputs.units if node.layer == INPUT else reference.signals[node.layer]
    return later(inputs[:, :, node.index], node.behind, node.zero + node.step * node.start)


def tolerances(graph: LoweredGraph) -> NDArray[np.float64]:
    """Return by how many steps two states of each memory may differ and count as equal, (cells,)."""
    return np.array([node.tolerance for node in graph.memories])


def differ(first: States, second: States, allowed: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell where two records of the states of a network's recurrent units differ, (..., cells).

    allowed: (cells,) differences that are none, as `tolerances` returns."""
    return np.abs(first - second) > allowed if allowed.any() else first != second
