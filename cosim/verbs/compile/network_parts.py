"""A compiled network as boxes in columns and wires between them: what `network.svg` shows, before it has places."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cosim.base.quantities import format_quantity
from cosim.compiler.design import Design
from cosim.network.ir.graph import Edge, Lowered, Sized
from cosim.network.ir.nodes import (
    PEDESTAL,
    And,
    InputCurrent,
    Memory,
    Node,
    Output,
    Rectifier,
    ThresholdUnit,
    UnitCurrent,
)

BOXES, WIRES = 48, 2000  # of a column, of a picture; beyond them neighbours are drawn as one
CELLS = {
    "Schmitt": "9T Schmitt",
    "MinGru": "tau-cell",
    "Gamma": "delay line",
    "Shift": "9T shift cell",
}  # others by the name of their node
_SENDS = {"beta": "beta, into the threshold lines", "value": "value", "gate": "gate", "rate": "rate"}


@dataclass(frozen=True)
class Box:
    """A box of the network picture by `cosim compile`: one node, or neighbours of one layer.

    nodes: their names; kind: source, rectifier, and, cell or output; lines: what is written in it; title: what it says
    when it is pointed at.
    """

    nodes: tuple[str, ...]
    kind: str
    column: int
    lines: tuple[str, ...]
    title: str


@dataclass(frozen=True)
class Wire:
    """One weight, or all between two boxes: from box to box, by their places in `NetworkDrawing.boxes`.

    weight: as built, the sum of them for several; label: unit devices with their sign; back: does not lead to a column
    further right, so it feeds back; late: is read a frame later; drives: leads to the sum of a row.
    """

    source: int
    target: int
    weight: float
    label: str
    title: str
    back: bool
    late: bool
    drives: bool


@dataclass(frozen=True)
class NetworkDrawing:
    """boxes: column by column, from top to bottom; wires: those into a box in the order of their sources; heads: what
    is over each column; grouped: the most nodes that are one box."""

    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    heads: tuple[str, ...]
    grouped: int = 1


def network_parts(design: Design) -> NetworkDrawing:
    """Return all parts of a network, or with neighbours as one where there are more than BOXES in a column or WIRES in
    all.

    Weights on the pedestal and those of 0 are left out.
    """
    graph = design.graph
    columns = _columns(graph)
    built = [edge for edge in graph.weights if edge[0] != PEDESTAL and _built(graph, edge)]
    most = BOXES
    while True:
        groups = [group for column in columns for group in _groups(graph, column, most)]
        place = {name: k for k, group in enumerate(groups) for name in group}
        between = defaultdict[tuple[int, int], list[Edge]](list)
        for edge in built:
            between[place[edge[0]], place[edge[1]]].append(edge)
        if len(between) <= WIRES or most == 1:
            break
        most //= 2
    column_of = {name: k for k, column in enumerate(columns) for name in column}
    boxes = tuple(_box(design, group, column_of[group[0]]) for group in groups)
    ends = sorted(between, key=lambda pair: (pair[1], pair[0]))
    wires = tuple(_wire(design, boxes, pair, between[pair]) for pair in ends)
    heads = tuple(_head(graph, column) for column in columns)
    return NetworkDrawing(boxes, wires, heads, max(map(len, groups)))


def _built(graph: Sized, edge: Edge) -> bool:
    return graph.mirrors[edge].count != 0 or edge in graph.steered or graph.weights[edge].role != "drive"


def _columns(graph: Lowered) -> list[list[str]]:
    """Return names by column: each right of all that it reads at once, the cells of a stage together, outputs last."""
    depth = dict.fromkeys(graph.nodes, 0)
    reads = defaultdict[str, list[str]](list)
    for (source, target), weight in graph.weights.items():
        if not weight.late:
            reads[target].append(source)
    stages = 1 + max((node.stage for node in graph.memories), default=0)
    for _ in range(stages + 1):
        for name in graph.order:
            if not isinstance(graph.nodes[name], InputCurrent | UnitCurrent) and name != PEDESTAL:
                depth[name] = max([depth[name], 1, *(depth[source] + 1 for source in reads[name])])
        for stage in range(stages):
            together = [node.name for node in graph.memories if node.stage == stage]
            depth |= dict.fromkeys(together, max((depth[name] for name in together), default=0))
    last = 1 + max(depth[name] for name, node in graph.nodes.items() if not isinstance(node, Output))
    depth |= {node.name: last for node in graph.of(Output)}
    columns: list[list[str]] = [[] for _ in range(last + 1)]
    for name in graph.nodes:
        if name != PEDESTAL:
            columns[depth[name]].append(name)
    return [column for column in columns if column]


def _groups(graph: Lowered, column: Sequence[str], most: int) -> Iterator[tuple[str, ...]]:
    """Yield the groups of a column: neighbours of one layer together, where there are more than `most`."""
    size = -(-len(column) // most)
    family = [_family(graph.nodes[name]) for name in column]
    start = 0
    for end in range(1, len(column) + 1):
        if end == len(column) or family[end] != family[start] or end - start == size:
            yield tuple(column[start:end])
            start = end


def _family(node: Node) -> tuple[str, str]:
    return type(node).__name__, getattr(node, "layer", "")


def _head(graph: Lowered, column: Sequence[str]) -> str:
    nodes = [graph.nodes[name] for name in column]
    first = nodes[0]
    match first:
        case Output():
            return f"readout, {len(nodes)} rows"
        case InputCurrent() | UnitCurrent():
            count = sum(isinstance(node, InputCurrent) for node in nodes)
            return f"{count} input{'s' * (count > 1)}"
        case _:
            layers = dict.fromkeys(getattr(node, "layer", "") for node in nodes)
            return f"{', '.join(filter(None, layers))}: {len(nodes)}"


def _box(design: Design, group: tuple[str, ...], column: int) -> Box:
    nodes = [design.graph.nodes[name] for name in group]
    kind, lines, title = _describe(design, nodes[0])
    if len(group) > 1:
        last = group[-1].rpartition(".")[2]
        lines = (f"{group[0]} to {last}", f"{len(group)} {lines[1] if kind == 'cell' else ''}".rstrip())
        title = f"{len(group)} as one, the first: {title}"
    return Box(group, kind, column, lines, title)


def _describe(design: Design, node: Node) -> tuple[str, tuple[str, ...], str]:
    """Return kind, lines and title of one node's box."""
    match node:
        case InputCurrent(name, index, step):
            encoding = design.network.encoding
            ramp = index >= encoding.features
            what = f"time ramp over {encoding.ramp_steps} steps" if ramp else f"feature {index}"
            steps = "continuous" if step is None else f"in steps of {step:g}"
            unit = format_quantity(design.i_unit, "A")
            unread = not any(_built(design.graph, edge) for edge in design.graph.out_of(name))
            beside = ", ramp" * ramp + ", not read" * unread
            return "source", (name + beside,), f"{name}: {what}, 0 to {unit}, {steps}{beside if unread else ''}"
        case Output(name, index):
            labels = design.network.labels
            label = labels[index] if index < len(labels) else str(index)
            return "output", (name, label), f"{name}: current of class {label} into the readout's virtual ground"
        case Rectifier(name):
            return "rectifier", (name, "max(sum, 0)"), f"{name}: what its row gives, or 0"
        case And(name):
            return "and", (name, "AND"), f"{name}: the unit current where all of its bits are on, else 0"
        case Memory():
            return _describe_cell(design, node)
        case _:
            unit = format_quantity(design.i_unit, "A")
            return "source", (f"{node.name}: {unit}",), f"{node.name}: the constant {unit}; a weight on it is a bias"


def _describe_cell(design: Design, node: Memory) -> tuple[str, tuple[str, ...], str]:
    kind = CELLS.get(type(node).__name__, type(node).__name__.lower())
    if node.most > 1:
        kind += f" 0 to {node.most}, from {node.start}"
    elif node.start and not node.tolerance:
        kind += ", begins on"
    high = format_quantity(node.level * design.i_unit, "A")
    if not isinstance(node, ThresholdUnit):
        return "cell", (node.name, kind, f"level {high}"), f"{node.name}: {kind}, full scale {high}"
    asked = design.graph.currents[node.name]
    up, down = format_quantity(asked.i_rise, "A"), format_quantity(asked.i_fall, "A")
    two = node.two_sided
    lines = (node.name, kind, f"rise {up}{f', fall {down}' if two else ''}", f"level {high}")
    below = f", falls at {down}" if two else ""
    pins = ", ".join(design.assembly.cell_bias[node.name])
    return "cell", lines, f"{node.name}: {kind}, rises at {up}{below}, level of a step {high}; bias pins {pins}"


def _wire(design: Design, boxes: Sequence[Box], ends: tuple[int, int], edges: list[Edge]) -> Wire:
    graph, (source, target), (first, *others) = design.graph, ends, edges
    weight = graph.weights[first]
    drives = weight.role == "drive"
    built = sum(graph.mirrors[edge].realised for edge in edges)
    back = boxes[source].column >= boxes[target].column
    late = all(graph.weights[edge].late for edge in edges)
    if others:
        devices = sum(abs(graph.mirrors[edge].count) for edge in edges)
        title = f"{len(edges)} weights of {_ends(boxes, source, target)}: {devices} unit devices, sum {built:g}"
        return Wire(source, target, built, f"{len(edges)} w", title, back, late, drives)
    count, mirror = graph.mirrors[first].count, graph.mirrors[first]
    label = f"{count:+d}" if count else {"gate": "bit"}.get(weight.role, weight.role)
    made = f"{count:+d} unit devices, {mirror.realised:g}"
    if first in graph.steered:
        label, made = f"{mirror.realised:+g}", f"steered, {format_quantity(graph.steered[first], 'A')}"
    what = "" if drives else f", {_SENDS[weight.role]}"
    when = ", read a frame later" if late else ""
    device = design.assembly.weights.get(first, "")
    title = f"{weight.origin}{what}{when}: {weight.target:.6g} wanted, built {made}" + (
        f" ({device})" if device else ""
    )
    return Wire(source, target, mirror.realised or weight.target, label, title, back, late, drives)


def _ends(boxes: Sequence[Box], source: int, target: int) -> str:
    return f"{boxes[source].lines[0]} into {boxes[target].lines[0]}"
