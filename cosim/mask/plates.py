"""Metal capacitors: a column of top plates over one bottom plate of metal4, beside the rows.

    strap ==M5== [via4  bottom plate of metal4                               ]
                 [   (top plate)==M5==================]=========* trunk of the net

Capacitors on the positive supply stand left of the rows, those on ground right of them: the LVS deck of the kit takes
no via between lower metals under a top plate, so nothing can be wired below.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cosim.base.errors import MappingError
from cosim.circuit.elements import GROUND, Capacitor
from cosim.mask.blocks import VDD, Box, Shape
from cosim.technology.types import DrawingRules

WIRE = 500  # nm, metal5 of a plate
_LANE = 250  # nm, of the search for the height of a plate's wire
_APART = 2500  # nm, from which two such wires do not see each other
_ABOVE_BAR = 3000  # nm, over the metal5 that leaves the bottom plates
_GROUPS = 3200  # nm more between two bottom plates
_BETWEEN = 700  # nm between top plates one above the other
_COLUMNS = 800  # nm between columns of them
_LEAST = 4500  # nm, height and width of a top plate that its wire can leave
_BAR = 1800  # nm, height of the metal that joins bottom plates to the strap, below them
_UNDER_ROWS = 600  # nm from the lower edge of the rows to that metal
_EDGE = 20  # nm by which a bottom plate reaches further than it must


@dataclass(frozen=True)
class Plate:
    """A capacitor as drawn: its net, its rail, its top plate and the height of the wire that leaves it; `group`: those
    of a rail with one number have one bottom plate."""

    capacitor: Capacitor
    net: str
    rail: str
    box: Box
    y: int
    group: int

    @property
    def farad_area(self) -> int:
        """Return the area of the capacitor's top plate, nm2."""
        return (self.box[2] - self.box[0]) * (self.box[3] - self.box[1])


def _columns(areas: Sequence[float], height: int, drawing: DrawingRules) -> tuple[int, int, int]:
    """Return how many plates of a rail stand in a column, their height in nm, and how many columns have a bottom plate.

    These columns take the least width, preferably with wires that keep their distance.
    """
    best: tuple[float, tuple[int, int, int]] | None = None
    largest = max(areas)
    for each in range(1, len(areas) + 1):
        high = min(((height + _BETWEEN) // each - _BETWEEN) // 10 * 10, int(largest / _LEAST) // 10 * 10)
        wide = largest / max(high, 1)
        together = int(drawing["plate_largest"] // (each * largest))
        count = -(-len(areas) // each)
        if together < 1 or (each > 1 and min(high, wide) < _LEAST):
            continue
        high = min(high, 10 * math.ceil(math.sqrt(largest) / 10)) if each == 1 else high
        cost = count * (largest / high + _COLUMNS) + -(-count // together) * _GROUPS
        cost += 1e6 * (count * _APART > high - _ABOVE_BAR - _BETWEEN)
        if best is None or cost < best[0]:
            best = cost, (each, high, together)
    assert best is not None
    return best[1]


def place(capacitors: Sequence[Capacitor], density: float, drawing: DrawingRules, room: Box) -> list[Plate]:
    """Place the capacitors of a layout in columns, each as high as `room`, bottom to top.

    Those on the supply go outwards from the left edge of `room`, those on ground from its right edge; the metal that
    joins them to their strap lies below.
    """
    plates: list[Plate] = []
    for rail in (VDD, GROUND):
        mine = [one for one in capacitors if rail in (one.a, one.b)]
        if not mine:
            continue
        areas = [one.value / density * 1e18 for one in mine]
        for one, area in zip(mine, areas, strict=True):
            if not drawing["plate_smallest"] <= area <= drawing["plate_largest"]:
                raise MappingError(f"capacitor {one.name}: {one.value * 1e15:g} fF is no single plate of this process")
        edge = drawing["plate_in"] + _EDGE
        bottom = room[1] + drawing["plate_metal"] + edge - _UNDER_ROWS  # a bar lies between
        each, high, together = _columns(areas, room[3] - edge - bottom, drawing)
        step = 10 * round(max(areas) / high / 10) + _COLUMNS
        for k, (one, area) in enumerate(zip(mine, areas, strict=True)):
            column, place_in = divmod(k, each)
            wide, group = 10 * round(area / high / 10), column // together
            y = bottom + place_in * (high + _BETWEEN)
            away = drawing["plate_metal"] + edge + 280 + column * step + group * _GROUPS
            x = room[0] - away - wide if rail == VDD else room[2] + away
            net = one.b if one.a == rail else one.a
            lane = _lane(one, (y, y + high), [plate.y for plate in plates])
            plates.append(Plate(one, net, rail, (x, y, x + wide, y + high), lane, group))
    drawn = {plate.capacitor.name for plate in plates}
    for one in capacitors:
        if one.name not in drawn:
            raise MappingError(
                f"capacitor {one.name} from {one.a} to {one.b}, neither of which is a supply, cannot be drawn yet; "
                "leave its block out of --with"
            )
    return plates


def _lane(capacitor: Capacitor, span: tuple[int, int], taken: Sequence[int]) -> int:
    """Return the height of a capacitor's wire, nm: far enough from other wires, and near the middle of the plate.

    Raises MappingError if there is no room for the wire.
    """
    lanes = range(span[0] + _ABOVE_BAR, span[1] - 700, _LANE)

    def worth(y: int) -> tuple[int, int]:
        apart = min((abs(y - one) for one in taken), default=_APART)
        return min(apart, _APART), -abs(2 * y - span[0] - span[1])

    best = max(lanes, key=worth)
    if worth(best)[0] < 2 * WIRE:
        raise MappingError(f"capacitor {capacitor.name}: there is no room for its wire")
    return best


def bottoms(plates: Sequence[Plate], drawing: DrawingRules) -> list[tuple[str, Box]]:
    """Return the bottom plates of the capacitors, each with its rail; their outer edge holds the vias to metal5."""
    found: list[tuple[str, Box]] = []
    for rail, group in dict.fromkeys((plate.rail, plate.group) for plate in plates):
        boxes = [plate.box for plate in plates if (plate.rail, plate.group) == (rail, group)]
        edge = drawing["plate_in"] + _EDGE
        left, right = (edge + 1400, edge) if rail == VDD else (edge, edge + 1400)
        low, high = min(box[1] for box in boxes) - edge, max(box[3] for box in boxes) + edge
        found.append((rail, (min(box[0] for box in boxes) - left, low, max(box[2] for box in boxes) + right, high)))
    return found


def draw_plates(
    plates: Sequence[Plate], trunks: dict[str, int], straps: dict[str, int], drawing: DrawingRules
) -> list[Shape]:
    """Draw all capacitors, their wires to the trunks (net -> x) and those of the bottom plates to the straps."""
    shapes: list[Shape] = []
    half, via = WIRE // 2, drawing["via"]
    for plate in plates:
        x1, _, x2, _ = plate.box
        shapes += [(layer, plate.box) for layer in ("plate", "plate_mark")]
        x, y = trunks[plate.net], plate.y
        ends = (x1 + 600, max(x2, x) + half) if plate.rail == VDD else (min(x1, x) - half, x2 - 600)
        shapes.append(("metal5", (ends[0], y - half, ends[1], y + half)))
        step = via + drawing["plate_via_space"]
        for k in range(min((x2 - x1 - 2000) // step, 4)):
            a = x1 + 1000 + k * step
            shapes.append(("via4", (a, y - via // 2, a + via, y + via // 2)))
        shapes.append(("via4", (x - via // 2, y - via // 2, x + via // 2, y + via // 2)))
    for rail, box in bottoms(plates, drawing):
        shapes += [("metal4", box), ("plate_length", box)]
        x = box[0] + 420 if rail == VDD else box[2] - 420 - via
        low, strap = box[1] + 1000, straps[rail]
        bar = box[1] - drawing["plate_metal"] - _BAR
        shapes.append(("metal5", (x - 200, bar, x + via + 200, low + 1600)))
        shapes.append(("metal5", (min(x - 200, strap - 300), bar, max(x + via + 200, strap + 300), bar + _BAR)))
        for k in range(3):
            shapes.append(("via4", (x, low + 520 * k, x + via, low + 520 * k + via)))
            y = bar + 200 + 520 * k
            for layer in ("via2", "via3", "via4"):
                shapes.append((layer, (strap - via // 2, y, strap + via // 2, y + via)))
        for layer in ("metal3", "metal4"):
            shapes.append((layer, (strap - 300, bar, strap + 300, bar + _BAR)))
    return shapes
