"""States of a circuit's memories: those expected from a run of the software network, and which of them are equal."""

import numpy as np
from numpy.typing import NDArray

from cosim.network.ir.graph import Lowered
from cosim.network.ir.nodes import Memory
from cosim.network.reference import Trace, later
from cosim.network.types import INPUT

States = NDArray[np.int16 | np.float64]  # whole, or analog
OFF_LEVEL = -999


def software_states(graph: Lowered, reference: Trace) -> States:
    """Return the states that the graph's memories should have after a software run, (n, time, cells).

    A state is (h - zero) / step, and may exceed what the memory's circuit can hold. If a whole state has an h between
    two levels, as an update of the other sign leaves a toggle, its state is OFF_LEVEL, which no circuit has.
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


def tolerances(graph: Lowered) -> NDArray[np.float64]:
    """Return by how many steps two states of each memory may differ and count as equal, (cells,)."""
    return np.array([node.tolerance for node in graph.memories])


def differ(first: States, second: States, allowed: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which states (..., cells) of a network's memories differ, as booleans; allowed: see `tolerances`."""
    return np.abs(first - second) > allowed if allowed.any() else first != second
