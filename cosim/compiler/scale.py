"""Scale: software units become ampere. `i_unit` is the only scale factor of the whole flow."""

from cosim.network.ir.graph import Lowered, Scaled
from cosim.network.ir.nodes import MemoryCurrents, ThresholdUnit


def scale(graph: Lowered, i_unit: float) -> Scaled:
    """Scale a graph to ampere, a pass of the compiler: i_unit per software 1.0, and set-points of its memories."""
    currents: dict[str, MemoryCurrents] = {}
    for node in graph.memories:
        rise, fall = (node.rise, node.fall) if isinstance(node, ThresholdUnit) else (0.0, 0.0)
        currents[node.name] = MemoryCurrents(rise * i_unit, fall * i_unit, node.level * i_unit)
    return Scaled(graph.nodes, graph.weights, i_unit, currents, left_out=graph.left_out)
