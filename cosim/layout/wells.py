"""Wells of their own: some transistors of a row, with a tap below them that metal joins to their sources.

Such a row has no rail and no tap that runs through; around its wells lies the substrate.
"""

from itertools import groupby

from cosim.base.errors import MappingError
from cosim.layout.floorplan import PlacedTile, WellBand
from cosim.layout.tiles import BOTTOM, HALF_TAP, RAIL_TOP, STRIP, UNDER, Shape, contacts
from cosim.technology.drawing import DrawingRules


def draw_wells(band: WellBand, drawing: DrawingRules) -> list[Shape]:
    """Return the wells of a row, each with its tap. Raises MappingError for a well whose net no source in it is on."""
    shapes: list[Shape] = []
    for _, members in groupby(band.rows[0].placed, key=lambda placed: placed.block.bulk):
        shapes += _well(list(members), band.y, drawing)
    return shapes


def _well(members: list[PlacedTile], y: int, drawing: DrawingRules) -> list[Shape]:
    active = [box for placed in members for layer, box in placed.tile.shapes if layer == "comp"]
    x1, x2, top = min(box[0] for box in active), max(box[2] for box in active), max(box[3] for box in active)
    edge, grow = drawing["well_active"], drawing["active_implant"]
    shapes: list[Shape] = [
        ("nwell", (x1 - edge, y - UNDER, x2 + edge, y + top + edge)),
        ("comp", (x1, y - HALF_TAP, x2, y + HALF_TAP)),
        ("nplus", (x1 - grow, y - HALF_TAP - grow, x2 + grow, y + HALF_TAP + grow)),
        ("metal1", (x1, y - RAIL_TOP, x2, y + RAIL_TOP)),
        *contacts((x1, y - HALF_TAP, x2, y + HALF_TAP), drawing),
    ]
    sources = [box for placed in members if not placed.is_head for box in _sources(placed)]
    if not sources:
        one = members[0].block.lower
        raise MappingError(
            f"transistor {one.name}: its well {one.bulk} is on no source in it, which cannot be drawn yet"
        )
    shapes += [("metal1", (a, y, b, y + BOTTOM + STRIP)) for a, b in sources]
    return shapes


def _sources(placed: PlacedTile) -> list[tuple[int, int]]:
    """From where to where a block's lower metal is on its well's net."""
    if placed.block.ends[0] != placed.block.bulk:
        return []
    return [(one.box[0], one.box[2]) for one in placed.tile.terminals if one.box[1] == BOTTOM]
