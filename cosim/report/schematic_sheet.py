"""A sheet on which transistors, wires and names of nets are drawn; the only importer of schemdraw."""

from itertools import pairwise
from typing import Literal, NamedTuple

import schemdraw
import schemdraw.elements as parts
from schemdraw.segments import SegmentText

from cosim.technology.types import Polarity

Point = tuple[float, float]
Side = Literal["left", "right", "top", "bottom"]
HEIGHT = 5 / 3  # of a transistor, between source and drain
REACH = 11 / 12  # from its channel's line to the end of its gate
HALF = HEIGHT / 2
_FONT, _SIZE, _WIDTH = "Arial, Helvetica, sans-serif", 13, 1.5
_INK, NET = "#1c1c1c", "#0b5394"
_ALIGN: dict[Side, tuple[Literal["left", "center", "right"], Literal["bottom", "center", "top"]]] = {
    "left": ("right", "center"),
    "right": ("left", "center"),
    "top": ("center", "bottom"),
    "bottom": ("center", "top"),
}
_SHIFT: dict[Side, Point] = {"left": (-0.2, 0), "right": (0.2, 0), "top": (0, 0.15), "bottom": (0, -0.3)}


class Drawn(NamedTuple):
    """The ends of a drawn transistor; `first` is the upper one, or the left one of a lying transistor."""

    first: Point
    last: Point
    gate: Point


class Sheet:
    """A drawing to which transistors, wires and names of nets are added at coordinates; y grows upwards."""

    def __init__(self) -> None:
        self.drawing = schemdraw.Drawing(canvas="svg", show=False)
        self.drawing.config(fontsize=_SIZE, lw=_WIDTH, font=_FONT, color=_INK, margin=0.3)

    def mos(self, polarity: Polarity, at: Point, name: str, gate: Side = "left") -> Drawn:
        """A transistor that stands below `at`, or with its gate at top or bottom lies to the right of it.

        The source of an upright p transistor is its upper end, that of an n transistor its lower one.
        """
        kind = parts.AnalogNFet if polarity == "n" else parts.AnalogPFet
        lying = gate in ("top", "bottom")
        element = kind(offset_gate=False).theta(90 if lying else 0).at(at)
        if gate in ("left", "bottom"):
            element.reverse()
        self.drawing.add(element)
        x, y = at
        if lying:
            end = 1 if gate == "top" else -1
            self.text((x + HEIGHT - 0.2, y + 0.55 * end), name, "right")
            return Drawn(at, (x + HEIGHT, y), (x + HALF, y + end * REACH))
        end = -1 if gate == "left" else 1
        self.text((x - 0.02 * end, y - HALF), name, "right" if gate == "left" else "left")
        return Drawn(at, (x, y - HEIGHT), (x + end * REACH, y - HALF))

    def diode(self, polarity: Polarity, at: Point, name: str, gate: Side = "left") -> Drawn:
        """A transistor whose gate is wired to its drain; the wire leaves it by 0.4."""
        drawn = self.mos(polarity, at, name, gate)
        drain = drawn.last if polarity == "p" else drawn.first
        y = drain[1] + (-0.4 if polarity == "p" else 0.4)
        self.wire(drawn.gate, (drawn.gate[0], y), (drain[0], y), drain)
        self.dot((drain[0], y))
        return drawn

    def wire(self, *points: Point) -> None:
        """Straight lines from point to point."""
        for start, end in pairwise(points):
            self.drawing.add(parts.Line().endpoints(start, end))

    def dot(self, at: Point) -> None:
        """A joint."""
        self.drawing.add(parts.Dot(radius=0.07).at(at))

    def port(self, at: Point, name: str, side: Side = "left") -> None:
        """A terminal, its name beside it."""
        self.drawing.add(parts.Dot(open=True, radius=0.09).at(at))
        self.text(at, name, side, NET)

    def supply(self, *points: Point) -> None:
        """V_DD at each point."""
        for point in points:
            self.drawing.add(parts.Vdd().at(point))
            self.text((point[0], point[1] + 0.45), "vdd", "top")

    def ground(self, *points: Point) -> None:
        """Ground at each point."""
        for point in points:
            self.drawing.add(parts.Ground().at(point))

    def capacitor(self, top: Point, bottom: Point, name: str) -> None:
        """A capacitor between two points, one above the other."""
        self.drawing.add(parts.Capacitor().endpoints(top, bottom))
        self.text((top[0] + 0.3, (top[1] + bottom[1]) / 2), name, "right")

    def arrow(self, start: Point, end: Point, name: str = "", side: Side = "right") -> None:
        """A current, or where a signal goes."""
        self.drawing.add(parts.Arrow(headwidth=0.18, headlength=0.25).endpoints(start, end))
        if name:
            self.text(((start[0] + end[0]) / 2, (start[1] + end[1]) / 2), name, side)

    def box(self, centre: Point, width: float, height: float, *lines: str) -> None:
        """A block with its name in lines."""
        x, y = centre
        self.drawing.add(
            parts.Rect(corner1=(-width / 2, -height / 2), corner2=(width / 2, height / 2)).theta(0).at(centre)
        )
        for k, line in enumerate(lines):
            self.text((x, y + 0.5 * ((len(lines) - 1) / 2 - k)), line, "centre")

    def text(self, at: Point, name: str, side: Side | Literal["centre"], color: str = _INK) -> None:
        """A name beside a point, or on it."""
        shift = (0, 0) if side == "centre" else _SHIFT[side]
        align = ("center", "center") if side == "centre" else _ALIGN[side]
        element = parts.Element().at((at[0] + shift[0], at[1] + shift[1])).theta(0)
        element.segments.append(SegmentText((0, 0), name, align=align, color=color, font=_FONT, fontsize=_SIZE))
        self.drawing.add(element)

    def svg(self) -> bytes:
        """The drawing as SVG."""
        return self.drawing.get_imagedata("svg")
