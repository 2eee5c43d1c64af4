"""Units at both ends of a row of mirrors, so that its outermost units have neighbours, too: all of their nets are the
rail, and the netlist of LVS has them.

     ---- end ----   metal of the rail over all of it
    [o]|  |          poly with its contact, diffusion
     ==== tap ====   rail
"""

from cosim.circuit.elements import Mos
from cosim.layout.blocks import RAIL, TransistorBlock, nanometres
from cosim.layout.tiles import BOTTOM, STRIP, LayoutTile, contacts, heights
from cosim.technology.drawing import DrawingRules

_BESIDE = 460  # nm from the left edge to the diffusion, the gate's contact between


def dummy_of(mos: Mos, name: str) -> Mos:
    """Return a unit device as large as a transistor's, with all its terminals on the rail."""
    rail = RAIL[mos.polarity]
    return Mos(name, rail, rail, rail, rail, mos.polarity, mos.w, mos.l)


def dummy_width(mos: Mos, drawing: DrawingRules) -> int:
    """Return the width that a dummy unit takes in a row, nm."""
    return _BESIDE + nanometres(mos.w) + drawing["poly_end"]


def draw_dummy(mos: Mos, x: int, drawing: DrawingRules) -> LayoutTile:
    """Draw a unit device on the rail with its left edge at x, nm."""
    tile, at = LayoutTile(), heights(TransistorBlock(mos), drawing)
    w, whole = nanometres(mos.w), drawing["contact"] + 2 * drawing["contact_in"]
    a, right = x + _BESIDE, x + dummy_width(mos, drawing)
    tile.right, tile.top = right, at.top
    tile.add("comp", a, BOTTOM, a + w, at.end)
    tile.add("poly", a - drawing["poly_end"], at.gate, right, at.gate_top)
    tile.add("poly", x, at.gate, a, at.gate + STRIP)
    tile.add("metal1", x, 0, right, at.end)
    pads = (a, BOTTOM, a + w, BOTTOM + whole), (a, at.end - whole, a + w, at.end)
    for box in (*pads, (x, at.gate, x + STRIP, at.gate + STRIP)):
        tile.shapes += contacts(box, drawing)
    return tile
