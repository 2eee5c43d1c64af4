"""Extract capacitances and resistances of the wires of a drawn layout.

A wire has a capacitance to ground, to the wires below and beside it, and what junctions add:

    over      of areas and of the field at their edges, to the layers below and to ground: see below
    beside    C = c l / (s + s_0)     two edges of one layer that see each other over a length l at a spacing s
    junction  what diffusions and wells have beyond the models

Edges of a layer see no further than REACH beside them. Gates are the transistor's own and left out. Equation of what is
beside: the kit's magic technology file, R. T. Edwards, open_pdks; its coefficients: see the technology's file.

Between layers, the field spreads from the edges of wires, so a wire counts as wider than it is. A place at the distance
d from its edge belongs to it with the weight

    w = exp(-d / (c_rim / c_area))

up to half way to its next neighbour on its layer, so that an edge with nothing beside it has c_rim over a plane. Two
layers have, over all places, with what lies between them as a shield,

    C = integral of c_area w_upper w_lower (product of 1 - w between) dA

and ground has w = 1. c_area, c_rim: the kit's magic technology file, R. T. Edwards, open_pdks. The weight is a choice
of cosim; docs/how-to/layout.md holds it against a field solver.

The resistance of a net is an upper bound. With it come what it can do, delay over the frame and drop over U_T:

    R = R_sheet l / w of its trunk, of its two longest tracks, twice its longest stub and its longest terminal, the
        metal of its farthest plate, and the contacts and vias of two ends
    G = R_sheet l / w of poly, from the contact of a gate line to its farthest gate: its head, the strip that joins its
        fingers along the whole line, a finger; of the longest gate line
    t = (R + 2 G) C              C: all its wires and its capacitor, without the gates themselves
    V = I R                      I: all units that its transistors pass on, each at the unit current; no more than the
                                 supply current of the whole circuit with all inputs on; none runs in poly
    e = V / U_T                  by what share a current changes whose transistor sees the drop at its gate or source

A path on the net is never longer, so what is small here needs no place in the circuit. The supplies' nets are their
straps, entered at one end, and the longest rail of a row or wire to one of their terminals, at the supply current of
the whole circuit. Sheet and via resistances: the kit's magic technology file, section extract, nominal.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from cosim.circuit.elements import GROUND, Capacitor, Mos
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.mask.blocks import RAIL_TOP, STRIP, VDD, Box, heights
from cosim.mask.chip import DrawnChip, drawing_of
from cosim.mask.gds import ExtractedLayout, label_of
from cosim.mask.plates import WIRE
from cosim.technology.types import CONDUCTORS, DrawingRules, WireTable

GRID = 70  # nm, of the places
SEEN = 8000  # nm, from which an edge sees nothing: `sidehalo` of the kit's file
_STRIP = 60_000  # nm of height that are laid out at a time, to bound memory
_SUBSTRATE = "vss"
Pair = tuple[str, str]
Weights = NDArray[np.float32]


@dataclass(frozen=True)
class _Plane:
    """A layer within a strip of the layout, as a raster: for each place the number of the nearest wire and its
    distance, nm."""

    owner: NDArray[np.int32]
    away: Weights

    def weight(self, spread: float) -> Weights:
        """Return the weight with which each place belongs to its nearest wire, 0 to 1; spread: c_rim / c_area, m."""
        return np.where(self.away < SEEN, np.exp(-self.away / np.float32(spread * 1e9)), np.float32(0))


def between_layers(drawn: ExtractedLayout, wires: WireTable) -> dict[Pair, float]:
    """Return the capacitances between metal or poly layers, (upper net, lower net or substrate) -> F; gates are left
    out."""
    nets = sorted(drawn.boxes)
    others = [*nets, _SUBSTRATE]
    farads: dict[Pair, float] = defaultdict(float)
    for planes in _strips(drawn, nets):
        for (upper, lower), places in _strip_pairs(planes, wires, len(nets)):
            per_place = wires.over[upper][lower] * (GRID * 1e-9) ** 2
            for at in np.flatnonzero(places).tolist():
                k, other = divmod(at, len(others))
                farads[nets[k], others[other]] += float(places[at]) * per_place
    return farads


def _strip_pairs(
    planes: Mapping[str, _Plane], wires: WireTable, nets: int
) -> Iterator[tuple[tuple[str, str], NDArray[np.float64]]]:
    """Yield two layers of a drawn strip, the lower one may be ground, and their weighted places for each pair of nets.

    Pairs are numbered upper net * (nets + 1) + lower net or ground.
    """
    for k, upper in enumerate(CONDUCTORS):
        if upper not in planes:
            continue
        plane = planes[upper]
        left = _downward(k, planes, wires)
        for lower in (*reversed(CONDUCTORS[:k]), "ground"):
            spread = wires.rim[upper][lower] / wires.over[upper][lower]
            worth = plane.weight(spread) * left
            if lower == "ground":
                worth = np.where(plane.owner < nets, worth, 0)
                yield (upper, lower), _counted(plane.owner, np.full_like(plane.owner, nets), worth, nets)
            elif lower in planes:
                below = planes[lower].weight(spread)
                yield (upper, lower), _counted(plane.owner, planes[lower].owner % nets, worth * below, nets)
                left *= 1 - below


def _downward(k: int, planes: Mapping[str, _Plane], wires: WireTable) -> Weights:
    """Return how much of what belongs to a layer sees what is below: not its edges where the next layer covers them."""
    plane = planes[CONDUCTORS[k]]
    above = CONDUCTORS[k + 1] if k + 1 < len(CONDUCTORS) else ""
    if above not in planes:
        return np.ones_like(plane.away)
    cover = planes[above].weight(wires.rim[above][CONDUCTORS[k]] / wires.over[above][CONDUCTORS[k]])
    return np.where(plane.away > 0, 1 - cover, np.float32(1))


def _counted(upper: NDArray[np.int32], lower: NDArray[np.int32], worth: Weights, nets: int) -> NDArray[np.float64]:
    pairs = (upper % nets).astype(np.int64) * (nets + 1) + lower
    inner = slice(SEEN // GRID, -(SEEN // GRID))  # the rest belongs to the next strips
    return np.bincount(pairs[inner].ravel(), worth[inner].ravel(), nets * (nets + 1)).astype(np.float64)


def _strips(drawn: ExtractedLayout, nets: list[str]) -> Iterator[dict[str, _Plane]]:
    """Yield the layout strip by strip, each as layer -> raster from the lowest layer up, with all wires within SEEN
    of it."""
    boxes = {layer: sorted(_numbered(drawn, nets, layer), key=lambda one: one[1][1]) for layer in CONDUCTORS}
    every = [box for found in boxes.values() for _, box in found]
    if not every:
        return
    margin = SEEN // GRID
    left, right = min(box[0] for box in every) - SEEN, max(box[2] for box in every) + SEEN
    low, high = min(box[1] for box in every) - SEEN, max(box[3] for box in every) + SEEN
    rows = _STRIP // GRID
    for first in range(0, -(-(high - low) // GRID), rows):
        y = low + (first - margin) * GRID
        shape = rows + 2 * margin, -(-(right - left) // GRID)
        planes = {layer: _plane(found, (left, y), shape) for layer, found in boxes.items()}
        yield {layer: plane for layer, plane in planes.items() if plane is not None}


def _numbered(drawn: ExtractedLayout, nets: list[str], layer: str) -> Iterator[tuple[int, Box]]:
    """Yield (number of the net, box) for each shape on a layer of the layout.

    For poly that is a gate, the number of nets is added to the number.
    """
    for number, net in enumerate(nets):
        for box in drawn.boxes[net].get(layer, ()):
            yield number, box
        for box in drawn.boxes[net].get("gate", ()) if layer == "poly" else ():
            yield number + len(nets), box


def _plane(boxes: list[tuple[int, Box]], corner: tuple[int, int], shape: tuple[int, int]) -> _Plane | None:
    owner = np.full(shape, -1, dtype=np.int32)
    (x, y), top = corner, corner[1] + shape[0] * GRID
    for number, box in boxes:
        if box[3] > y and box[1] < top:
            a, b = ((value - x + GRID // 2) // GRID for value in (box[0], box[2]))
            c, d = (max((value - y + GRID // 2) // GRID, 0) for value in (box[1], box[3]))
            owner[c:d, a:b] = number
    if not (owner >= 0).any():
        return None
    found = distance_transform_edt(owner < 0, return_indices=True)
    assert found is not None
    away, (rows, columns) = found
    distance = np.maximum(away.astype(np.float32) - np.float32(0.5), 0) * np.float32(GRID)
    return _Plane(owner[rows, columns], distance)


REACH = 2000  # nm
_CELL = 4000  # nm, of the search grid


@dataclass(frozen=True)
class Parasitic:
    """A wire capacitance between two nets of the layout, F; kind: ground, over, beside or junction."""

    a: str
    b: str
    kind: str
    farad: float


_Places = dict[tuple[int, int], list[tuple[str, Box]]]  # the boxes of one layer, each with its net, by cell of a grid


def _by_place(boxes: Iterator[tuple[str, Box]]) -> _Places:
    found: _Places = defaultdict(list)
    for net, box in boxes:
        for key in _keys(box):
            found[key].append((net, box))
    return found


def _keys(box: Box) -> Iterator[tuple[int, int]]:
    for x in range(box[0] // _CELL, box[2] // _CELL + 1):
        for y in range(box[1] // _CELL, box[3] // _CELL + 1):
            yield x, y


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def extract(drawn: ExtractedLayout, drawing: DrawingRules, drawn_before: float = 0.0) -> list[Parasitic]:
    """Extract the capacitances of a layout's wires, F, one sum for each pair of nets and kind.

    drawn_before: length of diffusion that the transistor models already contain, m.
    """
    places = {layer: _by_place(_boxes(drawn, layer)) for layer in CONDUCTORS}
    total: dict[tuple[Pair, str], float] = defaultdict(float)

    def add(a: str, b: str, kind: str, farad: float) -> None:
        if a != b:
            total[(min(a, b), max(a, b)), kind] += farad

    for (net, other), farad in between_layers(drawn, drawing.wires).items():
        add(net, other, "ground" if other == _SUBSTRATE else "over", farad)
    for layer in CONDUCTORS:
        for net, box in _boxes(drawn, layer):
            for other, farad in _beside(layer, net, box, places[layer], drawing.wires):
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


def _beside(layer: str, net: str, box: Box, places: _Places, wires: WireTable) -> Iterator[tuple[str, float]]:
    """Yield (net, F) for the capacitance of a box's right and upper edges to the next edges of other nets."""
    cap, offset = wires.beside[layer]
    for across in (True, False):
        for other, length, gap in _facing(net, box, places, across=across):
            yield other, cap * length / (gap + offset * 1e9)


def _facing(net: str, box: Box, places: _Places, *, across: bool) -> Iterator[tuple[str, int, int]]:
    """Yield (net, length, spacing) for each edge that an edge of a box faces, nm; across: the right edge, else the
    upper one."""
    x, y = (0, 1) if across else (1, 0)
    seen = (box[2], box[1], box[2] + REACH, box[3]) if across else (box[0], box[3], box[2], box[3] + REACH)
    found: list[tuple[int, int, int, str]] = []
    for other, one in {one for key in _keys(seen) for one in places.get(key, ())}:
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


@dataclass(frozen=True)
class Resistance:
    """The wire resistance of a net and its effects.

    It holds resistance of the wires from end to end and of poly from a contact to the farthest gate, ohm; capacitance,
    F; current, A; delay as a share of a frame; and voltage drop over U_T.
    """

    net: str
    ohm: float
    gate: float
    farad: float
    ampere: float
    delay: float
    drop: float

    @property
    def worst(self) -> float:
        """Return the larger of two shares: the net's delay over the frame, and its voltage drop over U_T."""
        return max(self.delay, self.drop)


def resistances(chip: DrawnChip, design: Design, wires: Iterable[Parasitic], supply: float) -> list[Resistance]:
    """Return the wire resistance of each net that has a wire, those with the worst effect first.

    supply: largest supply current of the circuit, A.
    """
    drawing = drawing_of(design.technology)
    ohms, gates = signal_ohms(chip, drawing), gate_ohms(chip, drawing)
    ohms |= supply_ohms(chip, ohms, drawing)
    farads = {net: sum(kinds.values()) for net, kinds in by_net(list(wires)).items()}
    for element in design.flat.elements:
        if isinstance(element, Capacitor):
            for net in (element.a, element.b):
                farads[label_of(net)] = farads.get(label_of(net), 0.0) + element.value
    amperes = _currents(design, supply)
    frame, thermal = Timing().t_step, design.technology.thermal_voltage
    found: list[Resistance] = []
    for net, ohm in ohms.items():
        gate, farad, ampere = gates.get(net, 0.0), farads.get(label_of(net), 0.0), amperes.get(net, 0.0)
        delay, drop = (ohm + 2 * gate) * farad / frame, ohm * ampere / thermal
        found.append(Resistance(label_of(net), ohm, gate, farad, ampere, delay, drop))
    return sorted(found, key=lambda one: (-one.worst, one.net))


def signal_ohms(chip: DrawnChip, drawing: DrawingRules) -> dict[str, float]:
    """Return net -> largest resistance of its metal between two ends, ohm, for each net with a track."""
    wires, wide = chip.wires, drawing["metal_width"]
    tracks: dict[str, list[int]] = defaultdict(list)
    stubs: dict[str, int] = defaultdict(int)
    for track in wires.tracks:
        tracks[track.net].append(track.x2 - track.x1)
    for stub in wires.stubs:
        stubs[stub.net] = max(stubs[stub.net], stub.high - stub.low)
    trunks = {trunk.net: trunk for trunk in wires.trunks}
    sheet, via = drawing.sheet, drawing.via
    ends = 2 * sum(via[name] for name in ("contact", "via1", "via2", "via3"))
    strips = _terminals(chip)
    found: dict[str, float] = {}
    for net, lengths in tracks.items():
        squares = {"metal1": 2 * strips.get(net, 0.0), "metal2": 2 * stubs[net] / wide}
        squares["metal3"] = sum(sorted(lengths)[-2:]) / wide
        ohm = ends
        if (trunk := trunks.get(net)) is not None:
            squares["metal4"] = (trunk.y2 - trunk.y1) / wide
            ends_of_plates = [x for plate in chip.plates if plate.net == net for x in (plate.box[0], plate.box[2])]
            if ends_of_plates:
                squares["metal5"] = max(abs(trunk.x - x) for x in ends_of_plates) / WIRE
                ohm += 2 * via["via4"]
        found[net] = ohm + sum(sheet[layer] * count for layer, count in squares.items())
    return found


def _terminals(chip: DrawnChip) -> dict[str, float]:
    """Return net -> squares (length over width) of its longest metal1 terminal."""
    found: dict[str, float] = defaultdict(float)
    for terminal in (one for band in chip.bands for one in band.terminals()):
        x1, y1, x2, y2 = terminal.box
        found[terminal.net] = max(found[terminal.net], (x2 - x1) / (y2 - y1))
    return found


def gate_ohms(chip: DrawnChip, drawing: DrawingRules) -> dict[str, float]:
    """Return gate line -> largest resistance of its poly from a contact to a gate, ohm."""
    found: dict[str, float] = defaultdict(float)
    for row in (row for band in chip.bands for row in band.rows):
        start = 0
        for tile in row.tiles:
            left, right = _ends(tile.shapes)
            if tile.is_head:
                start = left
                continue
            at, (_, l, *upper) = heights(tile.block, drawing), tile.block.shape  # noqa: E741 - a length
            squares = (right - start) / min(l, STRIP)
            if upper:
                squares += (at.tie + STRIP - at.gate) / STRIP + (at.tie + STRIP - at.upper) / upper[1]
            ohm = drawing.sheet["poly"] * squares
            found[tile.block.gate] = max(found[tile.block.gate], ohm)
    return found


def _ends(shapes: Iterable[tuple[str, tuple[int, int, int, int]]]) -> tuple[int, int]:
    """Return the smallest and largest x of the poly in a tile's shapes, nm."""
    boxes = [box for layer, box in shapes if layer == "poly"]
    return min((box[0] for box in boxes), default=0), max((box[2] for box in boxes), default=0)


def supply_ohms(chip: DrawnChip, wires: Mapping[str, float], drawing: DrawingRules) -> dict[str, float]:
    """Return supply -> largest resistance, ohm: its strap, and behind that either a row's rail with vias or a wire.

    wires: resistance of the wires to terminals off the rails, ohm.
    """
    sheet, via = drawing.sheet, drawing.via
    strap = sheet["metal2"] * (chip.box[3] - chip.box[1]) / drawing["strap"]
    rail = sheet["metal1"] * (chip.box[2] - chip.box[0]) / (2 * RAIL_TOP)
    rail += via["via1"] + via["contact"]
    return {net: strap + max(rail, wires.get(net, 0.0)) for net in (VDD, GROUND)}


def _currents(design: Design, supply: float) -> Mapping[str, float]:
    """Return net -> largest current from transistors into its wires, A: units times the unit current, at most
    `supply`."""
    units: dict[tuple[str, str], int] = defaultdict(int)
    for element in design.flat.elements:
        if isinstance(element, Mos):
            for net in {element.drain, element.source}:
                units[net, element.polarity] += element.m
    found: dict[str, float] = {}
    for (net, _), count in units.items():
        found[net] = min(max(found.get(net, 0.0), count * design.i_unit), supply)
    return found | {VDD: supply, GROUND: supply}
