"""Constant: cells whose state no input can change leave the graph; what they deliver joins the biases of their readers.

A candidate is constant if all its weights on signals that change are 0: then the state is the same for every input, in
every frame.

    u = max(b + sum of W over constants, 0)        the state that this leaves: `UnitKind.settled_state`
    b' = b + W level s                             of a row that reads the state s; at s = 0 nothing is left to add

A cell leaves only if the rest of the circuit computes the same without it. So its state is that of the reset if a row
reads it a frame late, all its readers take it by mirrors, and their biases can take over its weight as whole unit
devices. A cell that reads only such cells is constant itself. The remaining stages are numbered anew.
"""

from collections.abc import Mapping
from dataclasses import replace

from cosim.network.ir.graph import Edge, LeftOut, LoweredGraph
from cosim.network.ir.nodes import UNIT_CURRENT, And, Memory, Node, Rectifier, UnitCurrent, Weight
from cosim.units.sizing import largest_count
from cosim.units.table import unit_of

_WHOLE = 1e-6  # unit devices; how exactly a weight must be a whole number of them


def leave_out_constants(graph: LoweredGraph, units: int) -> LoweredGraph:
    """Remove the constant cells from a graph, a pass of the compiler; the result's `left_out` names them.

    The graph stays as it is if all cells are constant or none is. units: unit devices per weight 1.0.
    """
    weights, states = dict(graph.weights), dict[str, int]()
    currents = _constant_currents(graph)
    for node in graph.memories:
        if node.name in currents and (moved := _folded(graph, weights, node, currents[node.name], units)) is not None:
            weights |= moved
            states[node.name] = round(currents[node.name] / node.level)
    if not states or len(states) == sum(1 for _ in graph.memories):
        return graph
    gone = states.keys() | _unread(graph, states)
    kept = {edge: weight for edge, weight in weights.items() if not gone & {*edge}}
    dropped = {edge: weight for edge, weight in graph.weights.items() if gone & {*edge}}
    nodes = {name: node for name, node in graph.nodes.items() if name not in gone}
    left_out = LeftOut({name: graph.nodes[name] for name in graph.nodes if name in gone}, states, dropped)
    return LoweredGraph(_restaged(nodes), kept, left_out=left_out)


def _constant_currents(graph: LoweredGraph) -> dict[str, float]:
    """Return node -> current, in software units, for nodes whose current is constant from the first frame on."""
    found: dict[str, float] = {}
    for name in graph.order:
        node = graph.nodes[name]
        if isinstance(node, UnitCurrent):
            found[name] = 1.0
        elif isinstance(node, Rectifier | Memory):
            drive = _constant_drive(graph, name, found)
            if drive is None:
                continue
            if isinstance(node, Rectifier):
                found[name] = max(drive, 0.0)
            elif (state := _state(graph, node, max(drive, 0.0))) is not None:
                found[name] = node.level * state
    return found


def _constant_drive(graph: LoweredGraph, name: str, known: Mapping[str, float]) -> float | None:
    """Return the sum into a node, in software units; None if a source of it is not constant.

    known: constant node -> its current.
    """
    terms = [(source, weight.target) for source, weight in graph.into(name) if weight.target]
    if any(source not in known for source, _ in terms):
        return None
    return sum(target * known[source] for source, target in terms)


def _state(graph: LoweredGraph, node: Memory, candidate: float) -> int | None:
    """Return the state of a cell with this constant candidate; None if the state is not the same in all frames.

    A cell whose thresholds move with the input may decide anything. If a row reads the cell a frame late, the row sees
    the reset's state first, so the state must be that one.
    """
    if any(graph.into(node.name, role) for role in ("beta", "rate")):
        return None
    state = unit_of(node).settled_state(candidate)
    late = any(graph.weights[edge].late for edge in graph.out_of(node.name))
    return None if late and state != node.start else state


def _folded(
    graph: LoweredGraph, weights: dict[Edge, Weight], node: Memory, current: float, units: int
) -> dict[Edge, Weight] | None:
    """Return the changed biases of a constant cell's readers, with the cell's part added; None if one cannot take it.

    current: that the cell delivers, in software units; units: unit devices per weight 1.0.
    """
    folded: dict[Edge, Weight] = {}
    for edge in graph.out_of(node.name):
        weight, bias = weights[edge], (UNIT_CURRENT, edge[1])
        if weight.role != "drive" or bias not in weights:
            return None
        if not (added := weight.target * current):
            continue
        target = weights[bias].target + added
        whole = abs(added * units - round(added * units)) < _WHOLE
        if not whole or abs(target) * units > largest_count(UNIT_CURRENT):
            return None
        folded[bias] = replace(weights[bias], target=target)
    return folded


def _unread(graph: LoweredGraph, states: Mapping[str, int]) -> set[str]:
    """Return the names of a graph's rectifiers and Ands that are read only by cells that leave the graph.

    states: cell that leaves -> its constant state.
    """
    found = set[str]()
    for node in graph.of(Rectifier, And):
        readers = {target for _, target in graph.out_of(node.name)}
        if readers and readers <= states.keys():
            found.add(node.name)
    return found


def _restaged(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """Return the nodes with their stages renumbered, so that no number is missing."""
    stages = sorted({node.stage for node in nodes.values() if isinstance(node, Memory)})
    place = {stage: k for k, stage in enumerate(stages)}
    return {
        name: replace(node, stage=place[node.stage]) if isinstance(node, Memory) else node
        for name, node in nodes.items()
    }
