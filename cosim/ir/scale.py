"""Scale: software units become ampere. `i_unit` is the only scale factor of the whole flow."""

from cosim.ir.graph import Lowered, Scaled
from cosim.ir.nodes import MemoryCurrents


def scale(graph: Lowered, i_unit: float) -> Scaled:
    """The graph with i_unit, ampere per software 1.0, and the set-points of its memories in ampere."""
    currents = {
        node.name: MemoryCurrents(node.rise * i_unit, node.fall * i_unit, node.level * i_unit)
        for node in graph.memories
    }
    return Scaled(graph.nodes, graph.weights, i_unit, currents)
