"""Capacitance of the wires of a drawn layout: to ground, to wires below and beside, and what junctions add.

    over      of areas and of the field at their edges, to the layers below and to ground: see `cosim.layout.field`
    beside    C = c l / (s + s_0)     two edges of one layer that see each other over a length l at a spacing s
    junction  what diffusions and wells have beyond the models

Edges of a layer see no further than REACH beside them. Gates are the transistor's own and left out. Equation of what is
beside: the kit's magic technology file, R. T. Edwards, open_pdks; its coefficients: see the technology's file.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from cosim.circuit.elements import GROUND
from cosim.layout.connect import ExtractedLayout
from cosim.layout.field import between_layers
from cosim.layout.tiles import Box
from cosim.technology.drawing import CONDUCTORS, DrawingRules, WireTable

REACH = 2000  # nm
_CELL = 4000  # nm, of the search grid
_SUBSTRATE = "vss"
Pair = tuple[str, str]


@dataclass(frozen=True)
class Parasitic:
    """A capacitance between two nets as the layout names them, farad: `kind` ground, over, beside or junction."""

    a: str
    b: str
    kind: str
    farad: float


class _Grid:
    """The boxes of one layer by place."""

    def __init__(self, boxes: Iterator[tuple[str, Box]]) -> None:
        self.cells: dict[tuple[int, int], list[tuple[str, Box]]] = defaultdict(list)
        for net, box in boxes:
            for key in _keys(box):
                self.cells[key].append((net, box))

    def near(self, box: Box) -> set[tuple[str, Box]]:
        """Return the boxes that may meet another one."""
        return {one for key in _keys(box) for one in self.cells.get(key, ())}


def _keys(box: Box) -> Iterator[tuple[int, int]]:
    for x in range(box[0] // _CELL, box[2] // _CELL + 1):
        for y in range(box[1] // _CELL, box[3] // _CELL + 1):
            yield x, y


def _common(a: Box, b: Box) -> Box | None:
    box = max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])
    return box if box[0] < box[2] and box[1] < box[3] else None


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def extract(drawn: ExtractedLayout, drawing: DrawingRules, drawn_before: float = 0.0) -> list[Parasitic]:
    """Extract all capacitances of a drawn layout's wires, farad; those of one pair of nets and kind are added up.

    drawn_before: length of a diffusion that the models already have, m.
    """
    grids = {layer: _Grid(_boxes(drawn, layer)) for layer in CONDUCTORS}
    total: dict[tuple[Pair, str], float] = defaultdict(float)

    def add(a: str, b: str, kind: str, farad: float) -> None:
        if a != b:
            total[(min(a, b), max(a, b)), kind] += farad

    for (net, other), farad in between_layers(drawn, drawing.wires, _SUBSTRATE).items():
        add(net, other, "ground" if other == _SUBSTRATE else "over", farad)
    for layer in CONDUCTORS:
        for net, box in _boxes(drawn, layer):
            for other, farad in _beside(layer, net, box, grids[layer], drawing.wires):
                add(net, other, "beside", farad)
    for net, box in _boxes(drawn, "nwell"):
        add(net, _SUBSTRATE, "junction", _area(box) * drawing.wires.well * 1e-18)
    for net, bulk, farad in _junctions(drawn, drawing, drawn_before):
        add(net, bulk, "junction", farad)
    return [Parasitic(*pair, kind, farad) for (pair, kind), farad in sorted(total.items()) if farad]


def _boxes(drawn: ExtractedLayout, layer: str) -> Iterator[tuple[str, Box]]:
    for net, layers in drawn.boxes.items():
        for box in layers.get(layer, ()):
            yield net, box


def _beside(layer: str, net: str, box: Box, grid: _Grid, wires: WireTable) -> Iterator[tuple[str, float]]:
    """Yield (net, F) for the capacitance of a box's right and upper edges to the next edges of other nets."""
    cap, offset = wires.beside[layer]
    for across in (True, False):
        for other, length, gap in _facing(net, box, grid, across=across):
            yield other, cap * length / (gap + offset * 1e9)


def _facing(net: str, box: Box, grid: _Grid, *, across: bool) -> Iterator[tuple[str, int, int]]:
    """Net, length and spacing of what an edge sees: the right one where `across`, else the upper one."""
    x, y = (0, 1) if across else (1, 0)
    seen = (box[2], box[1], box[2] + REACH, box[3]) if across else (box[0], box[3], box[2], box[3] + REACH)
    found: list[tuple[int, int, int, str]] = []
    for other, one in grid.near(seen):
        low, high = max(one[y], box[y]), min(one[y + 2], box[y + 2])
        if low < high and box[x + 2] <= one[x] < box[x + 2] + REACH:
            found.append((one[x] - box[x + 2], low, high, other))
    covered: list[tuple[int, int]] = []
    for gap, low, high, other in sorted(found):
        free = high - low - sum(max(min(high, b) - max(low, a), 0) for a, b in covered)
        covered = _joined([*covered, (low, high)])
        if free > 0 and other != net and gap > 0:
            yield other, free, gap


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged


def _junctions(drawn: ExtractedLayout, drawing: DrawingRules, before: float) -> Iterator[tuple[str, str, float]]:
    """Yield (net, bulk, F) for the junctions of drawn diffusions beyond what the models assume, at no voltage.

    It is negative where transistors share a diffusion.
    """
    for unit in drawn.units:
        drain, _, source, bulk = unit.nets
        polarity = next(key for key, name in drawing.mos.items() if name == unit.model)
        flat, edge = drawing.wires.junctions[polarity]
        w = unit.w * 1e-9
        for net, area, rim in zip((drain, source), unit.areas, unit.rims, strict=True):
            yield net, bulk, flat * (area - w * before) + edge * (rim - 2 * (w + before) if before else rim)


def by_net(parasitics: list[Parasitic]) -> dict[str, dict[str, float]]:
    """Return the wire capacitances of a layout as net -> kind -> farad."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in parasitics:
        for net in (one.a, one.b):
            found[net][one.kind] += one.farad
    return {net: dict(kinds) for net, kinds in sorted(found.items()) if net not in (_SUBSTRATE, GROUND)}
