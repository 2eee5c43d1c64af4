"""The schematic of a compiled network as SVG: signals, rows of mirrors, cells and readout from left to right.

`network_parts` collects a design's boxes, in columns, and the wires between them; `draw_network` places and draws them.
The SVG is written as text: the same network gives the same bytes, and names from files are escaped. A box or wire shows
its title when the mouse is over it. Lengths are in pixels. `data-box` and `data-wire` tell which wires belong to a box.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from cosim.base.quantities import format_quantity
from cosim.compiler.design import Design, once_per_design
from cosim.network.ir.graph import Edge, LoweredGraph, SizedGraph
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
from cosim.results.html import escape
from cosim.verbs.words import network_name

BOXES, WIRES = 48, 2000  # of a column, of a picture; beyond them neighbours are drawn as one
CELLS = {
    "Schmitt": "9T Schmitt",
    "MinGru": "tau-cell",
    "Gamma": "delay line",
    "Shift": "9T shift cell",
}  # others by the name of their node
_SENDS = {"beta": "beta, into the threshold lines", "value": "value", "gate": "gate", "rate": "rate"}
LABELLED = 24, 420  # weights of a row, and of all rows, up to which each has its label
_LINE, _PORT, _PAD, _APART = 14.0, 11.0, 6.0, 10.0
_NUMBER, _SUM, _STUB, _NARROW, _TEXT, _SMALL = 30.0, 16.0, 10.0, 84.0, 6.4, 5.2
_TOP, _MARGIN, _LANE, _BEND = 46.0, 14.0, 9.0, 5.0
_GAP_LEAST, _GAP_MOST = 90.0, 260.0
_LONGEST, _SHORT = 30, 16  # letters of a line, of a name at a port
_SOFT = ' class="soft"'
_STYLE = """
svg.network { font: 11px system-ui, sans-serif; fill: #1c1c1c; background: white; }
svg.network .box rect { fill: white; stroke: #1c1c1c; }
svg.network .row rect { stroke: #5f6368; } svg.network .soft { fill: #5f6368; }
svg.network .cell rect { stroke-width: 1.8; } svg.network .head { font-weight: 600; font-size: 12px; }
svg.network .port { font-size: 9px; } svg.network .number { text-anchor: end; }
svg.network path { fill: none; stroke-opacity: .5; }
svg.network .plus { stroke: #1f77b4; } svg.network .minus { stroke: #d6453d; } svg.network .stub { stroke: #888; }
svg.network text.plus, svg.network text.minus { stroke: none; }
svg.network text.plus { fill: #2b7bba; } svg.network text.minus { fill: #d6453d; }
svg.network .late { stroke-dasharray: 5 3; }
svg.network path:hover { stroke-opacity: 1; stroke-width: 4px; } svg.network g.box:hover rect { stroke-width: 2.6; }
"""


@dataclass(frozen=True)
class Box:
    """A box of the network's picture, which stands for one node of the graph, or for several neighbours of one layer.

    nodes: names of the nodes; kind: source, rectifier, and, cell or output; column: number of its column, from the
    left; lines: text in the box; title: text shown when the mouse is over the box.
    """

    nodes: tuple[str, ...]
    kind: str
    column: int
    lines: tuple[str, ...]
    title: str


@dataclass(frozen=True)
class Wire:
    """A wire of the network's picture: one weight, or all weights between two boxes.

    source, target: places of the boxes in the list of `network_parts`; weight: as built, the sum if there are several;
    label: number of unit devices, with sign; back: feeds back, to no column further right; late: read one frame later;
    drives: adds to the sum of a row.
    """

    source: int
    target: int
    weight: float
    label: str
    title: str
    back: bool
    late: bool
    drives: bool


def network_parts(design: Design) -> tuple[tuple[Box, ...], tuple[Wire, ...], tuple[str, ...]]:
    """Return the boxes of a compiled network's picture, its wires, and the title of each column.

    Boxes come column by column, each from top to bottom; wires by their target box, then in the order of the sources.
    Neighbours are drawn as one box where a column has more than BOXES boxes, or the picture more than WIRES wires.
    Weights of 0 and weights on the pedestal are left out.
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
    return boxes, wires, heads


def _built(graph: SizedGraph, edge: Edge) -> bool:
    return graph.mirrors[edge].count != 0 or edge in graph.steered or graph.weights[edge].role != "drive"


def _columns(graph: LoweredGraph) -> list[list[str]]:
    """Return the names of the nodes, column by column, for the network's picture.
    A node is right of all nodes that it reads in the same frame; the cells of a stage share a column; outputs come
    last."""
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


def _groups(graph: LoweredGraph, column: Sequence[str], most: int) -> Iterator[tuple[str, ...]]:
    """Yield the groups of nodes that share a box: neighbours of one layer, if the column has more than `most` nodes."""
    size = -(-len(column) // most)
    for _, family in groupby(column, lambda name: _family(graph.nodes[name])):
        names = tuple(family)
        yield from (names[first : first + size] for first in range(0, len(names), size))


def _family(node: Node) -> tuple[str, str]:
    return type(node).__name__, getattr(node, "layer", "")


def _head(graph: LoweredGraph, column: Sequence[str]) -> str:
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
        between = f"{boxes[source].lines[0]} into {boxes[target].lines[0]}"
        title = f"{len(edges)} weights of {between}: {devices} unit devices, sum {built:g}"
        return Wire(source, target, built, f"{len(edges)} w", title, back, late, drives)
    count, mirror = graph.mirrors[first].count, graph.mirrors[first]
    label = f"{count:+d}" if count else {"gate": "bit"}.get(weight.role, weight.role)
    made = f"{count:+d} unit devices, {mirror.realised:g}"
    if first in graph.steered:
        label, made = f"{mirror.realised:+g}", f"steered, {format_quantity(graph.steered[first], 'A')}"
    what = "" if drives else f", {_SENDS[weight.role]}"
    when = ", read a frame later" if late else ""
    device = f" ({design.assembly.weights[first]})" if design.assembly.weights.get(first) else ""
    title = f"{weight.origin}{what}{when}: {weight.target:.6g} wanted, built {made}{device}"
    return Wire(source, target, mirror.realised or weight.target, label, title, back, late, drives)


@dataclass(frozen=True)
class _Place:
    """The place of a box in pixels: left edge of its row of mirrors, own left edge, top, width and height."""

    row: float
    left: float
    top: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.top + self.height / 2

    @property
    def right(self) -> float:
        return self.left + self.width


class _Layout:
    """The coordinates of a network's picture; each box has, at its left, a row of mirrors with a port for each wire."""

    def __init__(self, boxes: Sequence[Box], wires: Sequence[Wire], heads: Sequence[str]) -> None:
        self.boxes, self.wires, self.heads = boxes, wires, heads
        self.arriving = defaultdict[int, list[Wire]](list)
        for wire in wires:
            self.arriving[wire.target].append(wire)
        fullest, of_one = LABELLED
        most = max(map(len, self.arriving.values()), default=0)
        self.labelled = most <= fullest and len(wires) <= of_one
        self.back = sorted({wire.source for wire in wires if wire.back})
        named = (_shortened(boxes[wire.source].lines[0], _SHORT) for wire in wires)
        names = _SMALL * max(map(len, named), default=0) if self.labelled else 0.0
        self.row = names + (_NUMBER if self.labelled else 0.0) + _SUM
        self.heaviest = max((abs(wire.weight) for wire in wires), default=1.0) or 1.0

    @cached_property
    def places(self) -> tuple[_Place, ...]:
        """Return the place of every box, in pixels."""
        columns = defaultdict[int, list[int]](list)
        for k, box in enumerate(self.boxes):
            columns[box.column].append(k)
        heights = [self._height(k) for k in range(len(self.boxes))]
        tallest = max(sum(heights[k] + _APART for k in column) for column in columns.values())
        found: dict[int, _Place] = {}
        x = _MARGIN
        for number, column in sorted(columns.items()):
            boxes = [self.boxes[k] for k in column]
            reads = any(self.arriving[k] for k in column)
            x += self._gap(column) if number else 0
            left = x + (self.row + _STUB if reads else 0)
            width = max(_NARROW, *(_TEXT * len(line) + 2 * _PAD for box in boxes for line in self.lines(box)))
            used = sum(heights[k] + _APART for k in column)
            y = _TOP + (tallest - used) / 2
            for k in column:
                found[k] = _Place(x if self.arriving[k] else left, left, y, width, heights[k])
                y += heights[k] + _APART
            x = left + width
        return tuple(found[k] for k in range(len(self.boxes)))

    @property
    def width(self) -> float:
        """Return the width of the picture, in pixels."""
        right = max(place.right for place in self.places) + _BEND * len(self.back)
        return max(right, sum(_TEXT * len(text) + 12 for text in self.legend.values())) + _MARGIN

    @property
    def floor(self) -> float:
        """Return the lowest edge of all boxes, in pixels from the top."""
        return max(place.top + place.height for place in self.places)

    @property
    def height(self) -> float:
        """Return the height of the picture, in pixels: boxes, a lane for each signal that feeds back, and legend."""
        return self.floor + (_LANE * (len(self.back) + 1) if self.back else 0) + 34

    @property
    def legend(self) -> dict[str, str]:
        """Return the legend of colours and numbers: CSS class of the text -> text."""
        numbers = "numbers: unit devices of a mirror; " if self.labelled else ""
        return {
            "plus": "pulls (weight > 0)",
            "minus": "pushes (weight < 0)",
            "soft": f"{numbers}width: root of the weight's size; dashed: read a frame later",
        }

    def lane(self, source: int) -> float:
        """Return the y of the lane, below all boxes, on which a box's signal feeds back, in pixels."""
        return self.floor + _LANE * (self.back.index(source) + 1)

    def lines(self, box: Box) -> tuple[str, ...]:
        """Return the lines of text in a box."""
        lines = box.lines if self.labelled or box.kind == "output" else box.lines[:2]
        return tuple(_shortened(line, _LONGEST) for line in lines)

    def port(self, wire: Wire) -> tuple[float, float]:
        """Return the point at which a wire reaches its target's row of mirrors, (x, y) in pixels."""
        place, wires = self.places[wire.target], self.arriving[wire.target]
        return place.row, place.top + place.height * (wires.index(wire) + 0.5) / len(wires)

    def _height(self, k: int) -> float:
        own = _LINE * len(self.lines(self.boxes[k])) + _PAD
        return max(own, _PORT * len(self.arriving[k]) + _PAD) if self.labelled else own

    def _gap(self, column: Sequence[int]) -> float:
        wires = sum(len(self.arriving[k]) for k in column)
        back = _BEND * len(self.back) if self.back else 0
        return min(_GAP_MOST, _GAP_LEAST + 0.8 * wires) + back


def _shortened(line: str, most: int) -> str:
    return line if len(line) <= most else line[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


@once_per_design
def draw_network(design: Design) -> str:
    """Return the picture of a compiled network as text, one SVG element for a file or for a page."""
    layout = _Layout(*network_parts(design))
    network = design.network
    cells = sum(True for _ in design.graph.memories)
    title = f"{network_name(network)}: {cells} cells, {len(layout.wires)} wires"
    drawn = [
        *(_draw_wire(layout, wire) for wire in layout.wires if not wire.back),
        *_draw_feedback(layout),
        *(_draw_box(layout, k) for k in range(len(layout.boxes))),
        *_draw_heads(layout),
        _legend(layout),
    ]
    size = f'width="{layout.width:.0f}" height="{layout.height:.0f}"'
    view = f'viewBox="0 0 {layout.width:.0f} {layout.height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="network" role="img" {size} {view}>'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>\n" + "\n".join(drawn) + "\n</svg>\n"
    )


def _draw_wire(layout: _Layout, wire: Wire) -> str:
    start, (x, y) = layout.places[wire.source], layout.port(wire)
    bend = max(30.0, (x - start.right) / 2)
    ends = (start.right, start.middle, start.right + bend, start.middle, x - bend, y, x, y)
    return _path("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}".format(*ends), layout, wire)


def _draw_feedback(layout: _Layout) -> list[str]:
    """Draw the signals that feed back, each on its own lane below all boxes; return SVG elements."""
    drawn: list[str] = []
    for wire in (wire for wire in layout.wires if wire.back):
        start, (x, y), lane = layout.places[wire.source], layout.port(wire), layout.lane(wire.source)
        out = _BEND * (layout.back.index(wire.source) + 1)
        route = (
            f"M{start.right:.1f} {start.middle:.1f}H{start.right + out:.1f}V{lane:.1f}H{x - out:.1f}V{y:.1f}H{x:.1f}"
        )
        drawn.append(_path(route, layout, wire))
    return drawn


def _path(route: str, layout: _Layout, wire: Wire) -> str:
    width = 0.5 + 3.0 * (abs(wire.weight) / layout.heaviest) ** 0.5
    kind = _sign(wire) + (" late" if wire.late else "")
    return (
        f'<path class="{kind}" data-wire="{wire.source} {wire.target}" stroke-width="{width:.1f}" d="{route}">'
        f"<title>{escape(wire.title)}</title></path>"
    )


def _sign(wire: Wire) -> str:
    return "plus" if wire.weight >= 0 else "minus"


def _draw_box(layout: _Layout, k: int) -> str:
    box, place = layout.boxes[k], layout.places[k]
    lines = layout.lines(box)
    top = place.middle - _LINE * (len(lines) - 1) / 2 + 4
    texts = "".join(
        f'<text x="{place.left + _PAD:.1f}" y="{top + _LINE * n:.1f}"{_SOFT if n else ""}>{escape(line)}</text>'
        for n, line in enumerate(lines)
    )
    row = _draw_row(layout, k) if layout.arriving[k] else ""
    return (
        f'{row}<g class="box {box.kind}" data-box="{k}"><title>{escape(box.title)}</title>'
        f"{_rectangle(place.left, place, place.width, 3 if box.kind == 'cell' else 0)}{texts}</g>"
    )


def _draw_row(layout: _Layout, k: int) -> str:
    """Draw the row of mirrors in front of box k, or the bits of an AND: a port, a name and a number for each wire."""
    box, place, wires = layout.boxes[k], layout.places[k], layout.arriving[k]
    right = place.row + layout.row
    labels = ""
    for wire in wires if layout.labelled else ():
        x, y = layout.port(wire)
        name = _shortened(layout.boxes[wire.source].lines[0].partition(" ")[0].rstrip(":,"), _SHORT)
        number = f'x="{right - _SUM:.1f}" y="{y + 3:.1f}"'
        labels += (
            f'<text class="port soft" x="{x + 3:.1f}" y="{y + 3:.1f}">{escape(name)}</text>'
            f'<text class="port number {_sign(wire)}" {number}>{escape(wire.label)}</text>'
        )
    sign = "&amp;" if box.kind == "and" else "\N{GREEK CAPITAL LETTER SIGMA}"
    return (
        f'<g class="box row"><title>{escape(_row_title(box, wires))}</title>'
        f"{_rectangle(place.row, place, layout.row, 0)}{labels}"
        f'<text x="{right - _SUM + 4:.1f}" y="{place.middle + 4:.1f}">{sign}</text></g>'
        f'<path class="stub" d="M{right:.1f} {place.middle:.1f}H{place.left:.1f}"/>'
    )


def _row_title(box: Box, wires: Sequence[Wire]) -> str:
    if box.kind == "and":
        return f"{box.nodes[0]}: on where all {len(wires)} bits are"
    sums = [wire for wire in wires if wire.drives]
    title = f"row of {box.nodes[0]}: {len(sums)} wires, sum of weights {sum(wire.weight for wire in sums):g}"
    other = len(wires) - len(sums)
    return f"{title}; {other} more into the cell itself" if other else title


def _rectangle(x: float, place: _Place, width: float, round_: float) -> str:
    return f'<rect x="{x:.1f}" y="{place.top:.1f}" width="{width:.1f}" height="{place.height:.1f}" rx="{round_:g}"/>'


def _draw_heads(layout: _Layout) -> list[str]:
    first: dict[int, _Place] = {}
    for box, place in zip(layout.boxes, layout.places, strict=True):
        first.setdefault(box.column, place)
    heads = zip(first.values(), layout.heads, strict=True)
    return [f'<text class="head" x="{place.row:.1f}" y="22">{escape(head)}</text>' for place, head in heads]


def _legend(layout: _Layout) -> str:
    y = layout.height - 12
    x, drawn = _MARGIN, ""
    for kind, text in layout.legend.items():
        drawn += f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
        x += _TEXT * len(text) + 12
    return drawn
