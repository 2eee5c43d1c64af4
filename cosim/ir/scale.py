"""Scale: software units become ampere. `i_unit` is the only scale factor of the whole flow."""

import networkx as nx

from cosim.ir.nodes import Ladder, MemoryCurrents, Schmitt, Toggle, nodes_of


def scale(graph: nx.DiGraph, i_unit: float) -> nx.DiGraph:
    """A copy of the graph with `currents` on every memory node; `graph.graph['i_unit']` in ampere."""
    scaled = graph.copy()
    scaled.graph["i_unit"] = i_unit
    for node in nodes_of(scaled, Schmitt, Ladder, Toggle):
        scaled.nodes[node.name]["currents"] = MemoryCurrents(
            node.rise * i_unit, node.fall * i_unit, node.level * i_unit
        )
    return scaled
