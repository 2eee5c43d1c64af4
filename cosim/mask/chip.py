"""The whole macro: rows, wires, capacitors, supplies and pins, as rectangles in nanometres.

Wells of their own: some transistors of a row, with a tap below them that metal joins to their sources.

Such a row has no rail and no tap that runs through; around its wells lies the substrate.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median_low

from cosim.base.errors import InputError, MappingError
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Mos
from cosim.mask.blocks import (
    BOTTOM,
    HALF_TAP,
    RAIL_TOP,
    STRIP,
    UNDER,
    VDD,
    Box,
    LayoutTile,
    NetMetal,
    Shape,
    TransistorBlock,
    contacts,
    stack,
)
from cosim.mask.plates import Plate, bottoms, draw_plates, place
from cosim.mask.route import FullError, NetClasses, NoRoomError, RoutingPlan, Wires, manners, route
from cosim.mask.rows import OWN, PIN, RowGoals, WellBand, find_bands, find_rows, flipped, higher, net_order
from cosim.technology.types import DrawingRules, Technology

_APART = 600  # nm, between the rows and the straps of the supplies
_MET = 500  # nm, from a strap's inner edge to the vias of wires that end on it
_MARGIN = 600  # nm, from a bottom plate to the edge
MOST = 4000  # transistors and capacitors: with more, the wires up across the rows fill them from edge to edge
_FEWEST = 0.4  # of the rows that make the smallest macro: fewer and longer ones take their place where wires need room


@dataclass(frozen=True)
class DrawnChip:
    """A drawn circuit: shapes, labels, pins from left to right, and what was placed.

    A pin is on metal4 at the lower edge, or on a supply's strap of metal2; a label is in the middle of its box.
    """

    name: str
    shapes: tuple[Shape, ...]
    labels: tuple[NetMetal, ...]
    pins: tuple[NetMetal, ...]
    bands: tuple[WellBand, ...]
    wires: Wires
    plates: tuple[Plate, ...]
    blocks: tuple[TransistorBlock, ...]
    box: Box

    @property
    def dummies(self) -> tuple[Mos, ...]:
        """Return the number of dummy units, which are on a rail at the ends of rows of mirrors."""
        rows = (row for band in self.bands for row in band.rows)
        return tuple(sorted((one.block.lower for row in rows for one in row.ends), key=lambda mos: mos.name))

    @property
    def area(self) -> float:
        """Return the area of the whole macro, m2."""
        return (self.box[2] - self.box[0]) * (self.box[3] - self.box[1]) * 1e-18


def drawing_of(technology: Technology) -> DrawingRules:
    """Return the rules for drawing a mask; raises InputError for a technology without `[layout]`."""
    if technology.drawing is None:
        raise InputError(
            f"{technology.name} has no table [layout], so nothing can be drawn in it; take --technology gf180mcu, or "
            "add the table, see docs/how-to/layout.md"
        )
    return technology.drawing


def draw_chip(circuit: Circuit, ports: Sequence[str], technology: Technology, name: str) -> DrawnChip:
    """Draw the mask of a flat circuit.

    ports: nets with a pin; name: of the chip. Raises InputError and MappingError for what cannot be drawn.
    """
    drawing = drawing_of(technology)
    if (count := len(circuit.elements)) > MOST:
        raise MappingError(
            f"{name}: must have at most {MOST} transistors and capacitors to be drawn, not {count}, for the wires "
            "across its rows would find no room; draw a smaller network, see docs/papers/limits.md"
        )
    capacitors = [element for element in circuit.elements if isinstance(element, Capacitor)]
    outside = (*ports, *(net for one in capacitors for net in (one.a, one.b)))
    blocks = stack((element for element in circuit.elements if isinstance(element, Mos)), outside)
    own = next((block.lower for block in blocks if block.own_well and block.polarity == "n"), None)
    if own is not None:
        raise MappingError(f"transistor {own.name} is in a p well of its own, on {own.bulk}, which cannot be drawn yet")
    known, beside = manners(circuit, ports), sum(one.value for one in capacitors) / technology.capacitor_density * 1e18
    wanted = RowGoals(net_order(blocks, drawing), tuple(ports), known.urgent, beside)
    rows = find_rows(blocks, wanted, drawing)
    least = rows * _FEWEST
    while True:
        bands = find_bands(blocks, wanted, rows, drawing)
        try:
            plan, wires = _routed(bands, capacitors, ports, known, technology)
            break
        except NoRoomError:
            rows = rows * 7 // 8
            if rows < least:
                raise
    under, strap = [one for _, one in bottoms(plan.plates, drawing)], drawing["strap"]
    left = min([-_APART - strap, *(one[0] - _MARGIN for one in under)])
    far = max([plan.right + _APART + strap, *(one[2] + _MARGIN for one in under)])
    box = (left, plan.edge, far, plan.bands[-1].high + 500)
    shapes = [*_rows(plan.bands, plan.right, drawing), *_supplies(plan, box, drawing), *_wires(wires, plan, drawing)]
    shapes += draw_plates(plan.plates, {trunk.net: trunk.x for trunk in wires.trunks}, plan.straps, drawing)
    shapes.append(("boundary", box))
    pins = _pins(wires, plan, box, drawing)
    labels = _labels(pins, wires, plan.bands)
    return DrawnChip(name, tuple(shapes), labels, pins, plan.bands, wires, plan.plates, tuple(blocks), box)


def _routed(
    bands: Sequence[WellBand],
    capacitors: Sequence[Capacitor],
    ports: Sequence[str],
    known: NetClasses,
    technology: Technology,
) -> tuple[RoutingPlan, Wires]:
    """Return the plan of the wires between rows, whose bands are as high as their wires make them, and the wires.

    Raises NoRoomError where the rows are too short for the wires between them, MappingError for a capacitor.
    """
    drawing = drawing_of(technology)
    while True:
        right = max(row.right for band in bands for row in band.rows)
        plates = place(capacitors, technology.capacitor_density, drawing, (0, bands[0].low, right, bands[-1].high))
        middles = defaultdict[str, list[int]](list)
        for terminal in (one for band in bands for one in band.terminals()):
            middles[terminal.net].append((terminal.box[0] + terminal.box[2]) // 2)
        places = {net: int(median_low(xs)) for net, xs in middles.items()}
        straps = {VDD: -_APART - _MET, GROUND: right + _APART + _MET}
        edge = bands[0].low - PIN
        plan = RoutingPlan(tuple(bands), frozenset(ports), places, tuple(plates), straps, edge, right, known)
        try:
            return plan, route(plan, drawing)
        except FullError as error:
            bands = higher(bands, error.args[0])


def _rows(bands: Sequence[WellBand], right: int, drawing: DrawingRules) -> list[Shape]:
    """Draw the rows of a layout: devices, taps, implants, wells and rails."""
    shapes: list[Shape] = []
    grow = drawing["active_implant"]
    for band in bands:
        n = band.rows[0].polarity == "n"
        source, tap = ("nplus", "pplus") if n else ("pplus", "nplus")
        y = band.y
        own = band.rows[0].well == OWN
        if own:
            shapes += draw_wells(band, drawing)
        else:
            shapes.append(("comp", (0, y - HALF_TAP, right, y + HALF_TAP)))
            shapes.append((tap, (-grow, y - HALF_TAP - grow, right + grow, y + HALF_TAP + grow)))
            shapes += contacts((0, y - HALF_TAP, right, y + HALF_TAP), drawing)
        for k, row in enumerate(band.rows):
            low, high = flipped(HALF_TAP + grow, row.top, y, k)
            shapes.append((source, (-300, low, right + 300, high)))
            for tile in (*row.tiles, *row.ends):
                for layer, (x1, y1, x2, y2) in tile.shapes:
                    bottom, top = flipped(y1, y2, y, k)
                    shapes.append((layer, (x1, bottom, x2, top)))
        if not n and not own:
            shapes.append(("nwell", (-600, band.low, right + 600, band.high)))
    return shapes


def _straps(right: int, drawing: DrawingRules) -> dict[str, tuple[int, int]]:
    """Return rail -> smallest and largest x of its vertical strap, nm."""
    strap = drawing["strap"]
    return {VDD: (-_APART - strap, -_APART), GROUND: (right + _APART, right + _APART + strap)}


def _supplies(plan: RoutingPlan, box: Box, drawing: DrawingRules) -> list[Shape]:
    """Draw the supplies of a layout: straps of metal2 at both sides, and each band's rail of metal1 to its own."""
    straps, via = _straps(plan.right, drawing), drawing["via"]
    shapes: list[Shape] = [("metal2", (x1, box[1], x2, box[3])) for x1, x2 in straps.values()]
    for band in (one for one in plan.bands if one.rows[0].well != OWN):
        rail = GROUND if band.rows[0].polarity == "n" else VDD
        x1, x2 = straps[rail]
        low, high = (x1, plan.right) if rail == VDD else (0, x2)
        shapes.append(("metal1", (low, band.y - RAIL_TOP, high, band.y + RAIL_TOP)))
        for k in range(4):
            a = x1 + 400 + k * 600
            shapes.append(("via1", (a, band.y - via // 2, a + via, band.y + via // 2)))
    return shapes


def _wires(wires: Wires, plan: RoutingPlan, drawing: DrawingRules) -> list[Shape]:
    shapes: list[Shape] = []
    half, via = drawing["metal_width"] // 2, drawing["via"] // 2
    end, least = via + drawing["via_end"], drawing["metal_area"] // drawing["metal_width"] // 10 * 5 + 5
    by_net = {trunk.net: trunk for trunk in wires.trunks}

    def hole(layer: str, x: int, y: int) -> None:
        shapes.append((layer, (x - via, y - via, x + via, y + via)))

    def along(low: int, high: int) -> tuple[int, int]:
        middle = (low + high) // 10 * 5
        return min(low - end, middle - least), max(high + end, middle + least)

    for trunk in wires.trunks:
        low, high = along(trunk.y1, trunk.y2)
        bottom = plan.edge if trunk.net in plan.ports else low
        shapes.append(("metal4", (trunk.x - half, bottom, trunk.x + half, high)))
    for track in wires.tracks:
        low, high = along(track.x1, track.x2)
        shapes.append(("metal3", (low, track.y - half, high, track.y + half)))
        if track.net in by_net:
            hole("via3", by_net[track.net].x, track.y)
        if track.net in plan.straps:
            hole("via2", plan.straps[track.net], track.y)
    for stub in wires.stubs:
        shapes.append(("metal2", (stub.x - half, stub.low - end, stub.x + half, stub.high + end)))
        hole("via1", stub.x, stub.y1)
        hole("via2", stub.x, stub.y2)
    return shapes


def _pins(wires: Wires, plan: RoutingPlan, box: Box, drawing: DrawingRules) -> tuple[NetMetal, ...]:
    half = drawing["metal_width"] // 2
    found = [
        NetMetal(trunk.net, (trunk.x - half, plan.edge, trunk.x + half, plan.edge + 2 * half), "metal4")
        for trunk in wires.trunks
        if trunk.net in plan.ports
    ]
    straps = _straps(plan.right, drawing)
    found += [NetMetal(net, (x1, box[1], x2, box[1] + 1000), "metal2") for net, (x1, x2) in straps.items()]
    return tuple(sorted(found, key=lambda pin: pin.box))


def _labels(pins: Sequence[NetMetal], wires: Wires, bands: Sequence[WellBand]) -> tuple[NetMetal, ...]:
    """Return one label a net: on its pin, on the foundry's layer for labels of pins; of a net without one on its first
    track, or on the metal between the two units of a block, on the layer of that metal, where no tool takes it for a
    pin."""
    found = {pin.net: NetMetal(pin.net, pin.box, f"{pin.layer}_label") for pin in pins}
    for track in wires.tracks:
        found.setdefault(track.net, NetMetal(track.net, (track.x1, track.y, track.x2, track.y), "metal3"))
    for band in bands:
        for k, row in enumerate(band.rows):
            for tile in row.tiles:
                for inner in tile.inner:
                    x1, y1, x2, y2 = inner.box
                    low, high = flipped(y1, y2, band.y, k)
                    found.setdefault(inner.net, NetMetal(inner.net, (x1, low, x2, high)))
    return tuple(found.values())


def draw_wells(band: WellBand, drawing: DrawingRules) -> list[Shape]:
    """Draw the wells of a row whose transistors have own wells, each with its tap.

    Raises MappingError if no source in a well is on the well's net.
    """
    shapes: list[Shape] = []
    for _, members in groupby(band.rows[0].tiles, key=lambda tile: tile.block.bulk):
        shapes += _well(list(members), band.y, drawing)
    return shapes


def _well(members: list[LayoutTile], y: int, drawing: DrawingRules) -> list[Shape]:
    active = [box for tile in members for layer, box in tile.shapes if layer == "comp"]
    x1, x2, top = min(box[0] for box in active), max(box[2] for box in active), max(box[3] for box in active)
    edge, grow = drawing["well_active"], drawing["active_implant"]
    shapes: list[Shape] = [
        ("nwell", (x1 - edge, y - UNDER, x2 + edge, y + top + edge)),
        ("comp", (x1, y - HALF_TAP, x2, y + HALF_TAP)),
        ("nplus", (x1 - grow, y - HALF_TAP - grow, x2 + grow, y + HALF_TAP + grow)),
        ("metal1", (x1, y - RAIL_TOP, x2, y + RAIL_TOP)),
        *contacts((x1, y - HALF_TAP, x2, y + HALF_TAP), drawing),
    ]
    sources = [box for tile in members if not tile.is_head for box in _sources(tile)]
    if not sources:
        one = members[0].block.lower
        raise MappingError(
            f"transistor {one.name}: its well {one.bulk} is on no source in it, which cannot be drawn yet"
        )
    shapes += [("metal1", (a, y, b, y + BOTTOM + STRIP)) for a, b in sources]
    return shapes


def _sources(tile: LayoutTile) -> list[tuple[int, int]]:
    """Return the x intervals, nm, in which a block's lower metal is on the net of its well."""
    if tile.block.ends[0] != tile.block.bulk:
        return []
    return [(one.box[0], one.box[2]) for one in tile.terminals if one.box[1] == BOTTOM]
