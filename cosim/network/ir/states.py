"""States of a circuit's memories: those that they should have, from what the software network did, and whether two
are the same."""

import numpy as np
from numpy.typing import NDArray

from cosim.network.ir.graph import Lowered
from cosim.network.ir.nodes import Memory
from cosim.network.reference import Trace, later
from cosim.network.types import INPUT

States = NDArray[np.int16 | np.float64]  # whole, or analog
OFF_LEVEL = -999


def software_states(graph: Lowered, reference: Trace) -> States:
    """Return the states that a trained network has in software for the memories of its graph, (n, time, cells).

    A state is (h - zero) / step. It is not limited to the memory's rungs. Where h is between the levels of a whole
    state, as an update of the other sign leaves a toggle, it is OFF_LEVEL: no circuit has it.
    """
    columns: list[States] = []
    for node in graph.memories:
        state = (_behind(reference, node) - node.zero) / node.step
        whole = np.rint(state)
        near = np.where(np.abs(state - whole) < 0.01, whole, OFF_LEVEL).astype(np.int16)
        columns.append(state if node.tolerance else near)
    return np.stack(columns, axis=2)


def _behind(reference: Trace, node: Memory) -> NDArray[np.float64]:
    """Return a memory's value, (n, time), from a software evaluation of the trained network.

    A shift cell has its signal some frames before, first its start.
    """
    inputs = reference.inputs.units if node.layer == INPUT else reference.signals[node.layer]
    return later(inputs[:, :, node.index], node.behind, node.zero + node.step * node.start)


def tolerances(graph: Lowered) -> NDArray[np.float64]:
    """Return how far two states of each memory in a network's graph may differ and count as equal, steps, (cells,)."""
    return np.array([node.tolerance for node in graph.memories])


def differ(first: States, second: States, allowed: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return (..., cells) booleans: two states of a memory in a network's graph are not the same, by `tolerances`."""
    return np.abs(first - second) > allowed if allowed.any() else first != second
