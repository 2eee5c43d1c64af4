"""The states that the circuit's memories should have, from what the software network did."""

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cosim.ir.nodes import Ladder, Schmitt, Toggle, nodes_of
from cosim.network.reference import Trace

OFF_LEVEL = -999


def software_states(graph: nx.DiGraph, reference: Trace) -> NDArray[np.int16]:
    """The state that each memory should have, (n, time, cells), s = (h - zero) / step; not limited to its rungs.

    Where h is between the levels, as an update of the other sign leaves a toggle, it is OFF_LEVEL: no circuit has it.
    """
    columns = []
    for node in nodes_of(graph, Schmitt, Ladder, Toggle):
        h = reference.signals[node.layer][:, :, node.index]
        state = (h - node.zero) / node.step
        whole = np.rint(state)
        columns.append(np.where(np.abs(state - whole) < 0.01, whole, OFF_LEVEL).astype(np.int16))
    return np.stack(columns, axis=2)
