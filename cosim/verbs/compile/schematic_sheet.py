"""A sheet on which transistors, wires and names of nets are drawn; the only importer of schemdraw."""

from itertools import pairwise
from typing import Literal, NamedTuple

import schemdraw
import schemdraw.elements as parts
from schemdraw.segments import SegmentText

from cosim.technology.types import Polarity
from cosim.verbs.compile.device_sizes import NO_SIZES, Sizes

Point = tuple[float, float]
Side = Literal["left", "right", "top", "bottom"]
HEIGHT = 5 / 3  # of a transistor, between source and drain
REACH = 11 / 12  # from its channel's line to the end of its gate
HALF = HEIGHT / 2
_FONT, _SIZE, _SMALL, _WIDTH = "Arial, Helvetica, sans-serif", 13, 10, 1.5
_INK, NET = "#1c1c1c", "#0b5394"
_ALIGN: dict[Side, tuple[Literal["left", "center", "right"], Literal["bottom", "center", "top"]]] = {
    "left": ("right", "center"),
    "right": ("left", "center"),
    "top": ("center", "bottom"),
    "bottom": ("center", "top"),
}
_SHIFT: dict[Side, Point] = {"left": (-0.2, 0), "right": (0.2, 0), "top": (0, 0.15), "bottom": (0, -0.3)}


class TransistorEnds(NamedTuple):
    """The ends of a drawn transistor; `first` is the upper one, or the left one of a lying transistor."""

    first: Point
    last: Point
    gate: Point


class Sheet:
    """A drawing to which transistors, wires and names of nets are added at coordinates; y grows upwards.

    sizes: what is written beside the transistors that have these names; one with two sizes is a self-cascode, which is
    drawn as the two transistors that it is.
    """

    def __init__(self, sizes: Sizes = NO_SIZES) -> None:
        self.sizes = sizes
        self.drawing = schemdraw.Drawing(canvas="svg", show=False)
        self.drawing.config(fontsize=_SIZE, lw=_WIDTH, font=_FONT, color=_INK, margin=0.3)

    def mos(self, polarity: Polarity, at: Point, name: str, gate: Side = "left", key: str = "") -> TransistorEnds:
        """Draw a transistor below `at`, or with its gate at top or bottom to the right of that point.

        The source of an upright p transistor is its upper end, that of an n transistor its lower one. key: its name in
        `sizes` where that is another one.
        """
        sizes = self.sizes.get(key or name, ())
        if gate in ("top", "bottom"):
            return self._lying(polarity, at, name, gate, sizes)
        x, y = at
        end = -1 if gate == "left" else 1
        side: Side = "right" if gate == "left" else "left"
        beside = x - 0.02 * end
        if len(sizes) < 2:
            self._symbol(polarity, at, gate)
            raised = 0.2 if sizes else 0.0
            self.text((beside, y - HALF + raised), name, side)
            for size in sizes:
                self.text((beside, y - HALF - 0.25), size, side, size=_SMALL)
            return TransistorEnds(at, (x, y - HEIGHT), (x + end * REACH, y - HALF))
        gates = [(x + end * REACH / 2, y - share * HALF) for share in (0.5, 1.5)]
        for share, size in zip((0.0, 1.0), sizes if polarity == "p" else reversed(sizes), strict=True):
            self._symbol(polarity, (x, y - share * HALF), gate, 0.5)
            self.text((beside, y - (share + 0.5) * HALF - (0.12 if share else -0.12)), size, side, size=_SMALL)
        self.text((beside, y - HALF), name, side)
        self.wire(*gates)
        self.wire((gates[0][0], y - HALF), (x + end * REACH, y - HALF))
        self.dot((gates[0][0], y - HALF))
        return TransistorEnds(at, (x, y - HEIGHT), (x + end * REACH, y - HALF))

    def _lying(self, polarity: Polarity, at: Point, name: str, gate: Side, sizes: tuple[str, ...]) -> TransistorEnds:
        """Draw a transistor to the right of `at`."""
        x, y = at
        end = 1 if gate == "top" else -1
        self._symbol(polarity, at, gate)
        self.text((x + HEIGHT - 0.2, y + (0.78 if sizes else 0.55) * end), name, "right")
        for size in sizes[:1]:
            self.text((x + HEIGHT - 0.2, y + 0.4 * end), size, "right", size=_SMALL)
        return TransistorEnds(at, (x + HEIGHT, y), (x + HALF, y + end * REACH))

    def _symbol(self, polarity: Polarity, at: Point, gate: Side, scale: float = 1.0) -> None:
        """Draw a transistor's symbol alone."""
        kind = parts.AnalogNFet if polarity == "n" else parts.AnalogPFet
        element = kind(offset_gate=False).theta(90 if gate in ("top", "bottom") else 0).at(at).scale(scale)
        if gate in ("left", "bottom"):
            element.reverse()
        self.drawing.add(element)

    def diode(self, polarity: Polarity, at: Point, name: str, gate: Side = "left") -> TransistorEnds:
        """Draw a transistor whose gate is wired to its drain; the wire leaves it by 0.4."""
        drawn = self.mos(polarity, at, name, gate)
        drain = drawn.last if polarity == "p" else drawn.first
        y = drain[1] + (-0.4 if polarity == "p" else 0.4)
        self.wire(drawn.gate, (drawn.gate[0], y), (drain[0], y), drain)
        self.dot((drain[0], y))
        return drawn

    def wire(self, *points: Point) -> None:
        """Draw straight lines of a schematic from point to point."""
        for start, end in pairwise(points):
            self.drawing.add(parts.Line().endpoints(start, end))

    def dot(self, at: Point) -> None:
        """Draw a joint of a schematic's wires."""
        self.drawing.add(parts.Dot(radius=0.07).at(at))

    def port(self, at: Point, name: str, side: Side = "left") -> None:
        """Draw a terminal of a schematic, its name beside it."""
        self.drawing.add(parts.Dot(open=True, radius=0.09).at(at))
        self.text(at, name, side, NET)

    def supply(self, *points: Point) -> None:
        """Draw V_DD at each point of a schematic."""
        for point in points:
            self.drawing.add(parts.Vdd().at(point))
            self.text((point[0], point[1] + 0.45), "vdd", "top")

    def ground(self, *points: Point) -> None:
        """Draw a ground at each point of a schematic."""
        for point in points:
            self.drawing.add(parts.Ground().at(point))

    def capacitor(self, top: Point, bottom: Point, name: str) -> None:
        """Draw a schematic's capacitor between two points, one above the other."""
        self.drawing.add(parts.Capacitor().endpoints(top, bottom))
        self.text((top[0] + 0.3, (top[1] + bottom[1]) / 2), name, "right")

    def arrow(self, start: Point, end: Point, name: str = "", side: Side = "right") -> None:
        """Draw an arrow for a current, or for where a signal goes."""
        self.drawing.add(parts.Arrow(headwidth=0.18, headlength=0.25).endpoints(start, end))
        if name:
            self.text(((start[0] + end[0]) / 2, (start[1] + end[1]) / 2), name, side)

    def box(self, centre: Point, width: float, height: float, *lines: str, key: str = "") -> None:
        """Draw a block with its name in lines, and below them what `sizes` has for `key`."""
        lines = (*lines, *self.sizes.get(key, ()))
        x, y = centre
        self.drawing.add(
            parts.Rect(corner1=(-width / 2, -height / 2), corner2=(width / 2, height / 2)).theta(0).at(centre)
        )
        for k, line in enumerate(lines):
            self.text((x, y + 0.5 * ((len(lines) - 1) / 2 - k)), line, "centre")

    def text(self, at: Point, name: str, side: Side | Literal["centre"], color: str = _INK, size: int = _SIZE) -> None:
        """Write a name beside a point of a schematic, or on it."""
        shift = (0, 0) if side == "centre" else _SHIFT[side]
        align = ("center", "center") if side == "centre" else _ALIGN[side]
        element = parts.Element().at((at[0] + shift[0], at[1] + shift[1])).theta(0)
        element.segments.append(SegmentText((0, 0), name, align=align, color=color, font=_FONT, fontsize=size))
        self.drawing.add(element)

    def svg(self) -> bytes:
        """Return the schematic as SVG."""
        return self.drawing.get_imagedata("svg")
