"""The states that the circuit's memories should have, from what the software network did."""

import numpy as np
from numpy.typing import NDArray

from cosim.ir.graph import Lowered
from cosim.network.reference import Trace

States = NDArray[np.int16 | np.float64]  # whole, or analog
OFF_LEVEL = -999


def software_states(graph: Lowered, reference: Trace) -> NDArray[np.int16]:
    """The state that each memory should have, (n, time, cells), s = (h - zero) / step; not limited to its rungs.

    Where h is between the levels, as an update of the other sign leaves a toggle, it is OFF_LEVEL: no circuit has it.
    """
    columns = []
    for node in graph.memories:
        h = reference.signals[node.layer][:, :, node.index]
        state = (h - node.zero) / node.step
        whole = np.rint(state)
        columns.append(np.where(np.abs(state - whole) < 0.01, whole, OFF_LEVEL).astype(np.int16))
    return np.stack(columns, axis=2)
