"""Schematics of the cells that a network is built from, as SVG: transistors, wires and names of nets on a sheet.

Transistors and nets have the names of the netlist, as the docstrings of `cosim.cells` give them. Only this module
imports schemdraw.
"""

from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Literal, NamedTuple

import schemdraw
import schemdraw.elements as parts
from schemdraw.segments import SegmentText

from cosim.circuit.elements import Circuit
from cosim.network.ir.graph import LoweredGraph
from cosim.network.ir.nodes import And, Pedestal
from cosim.technology.types import Polarity
from cosim.units.table import unit_of
from cosim.verbs.compile.device_sizes import NO_SIZES, Sizes, sizes_of

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
    """The terminals of a drawn transistor: first is the upper or left end of its channel, last the other end."""

    first: Point
    last: Point
    gate: Point


class Sheet:
    """A drawing to which transistors, wires and names of nets are added at coordinates; y grows upwards.

    sizes: name of a transistor -> texts written beside it. Two texts mean a self-cascode, drawn as two transistors.
    """

    def __init__(self, sizes: Sizes = NO_SIZES) -> None:
        self.sizes = sizes
        self.drawing = schemdraw.Drawing(canvas="svg", show=False)
        self.drawing.config(fontsize=_SIZE, lw=_WIDTH, font=_FONT, color=_INK, margin=0.3)

    def mos(self, polarity: Polarity, at: Point, name: str, gate: Side = "left", key: str = "") -> TransistorEnds:
        """Draw a transistor downwards from `at`, or, if its gate is at the top or bottom, to the right of `at`.

        The source of an upright p transistor is its upper end, of an n transistor its lower end. key: the transistor's
        name in `sizes`, if it is not `name`.
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
        """Draw a transistor with a horizontal channel, from `at` to the right."""
        x, y = at
        end = 1 if gate == "top" else -1
        self._symbol(polarity, at, gate)
        self.text((x + HEIGHT - 0.2, y + (0.78 if sizes else 0.55) * end), name, "right")
        for size in sizes[:1]:
            self.text((x + HEIGHT - 0.2, y + 0.4 * end), size, "right", size=_SMALL)
        return TransistorEnds(at, (x + HEIGHT, y), (x + HALF, y + end * REACH))

    def _symbol(self, polarity: Polarity, at: Point, gate: Side, scale: float = 1.0) -> None:
        """Draw the symbol of a transistor without its name and size."""
        kind = parts.AnalogNFet if polarity == "n" else parts.AnalogPFet
        element = kind(offset_gate=False).theta(90 if gate in ("top", "bottom") else 0).at(at).scale(scale)
        if gate in ("left", "bottom"):
            element.reverse()
        self.drawing.add(element)

    def diode(self, polarity: Polarity, at: Point, name: str, gate: Side = "left") -> TransistorEnds:
        """Draw a transistor whose gate is wired to its drain, at a joint 0.4 beyond the transistor's end."""
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

    def dot(self, *points: Point) -> None:
        """Draw a joint of a schematic's wires at each point."""
        for point in points:
            self.drawing.add(parts.Dot(radius=0.07).at(point))

    def port(self, at: Point, name: str, side: Side = "left") -> None:
        """Draw a terminal with its name beside it."""
        self.drawing.add(parts.Dot(open=True, radius=0.09).at(at))
        self.text(at, name, side, NET)

    def lead(self, start: Point, end: Point, name: str, side: Side = "left") -> None:
        """Draw a wire that ends in a terminal, with the terminal's name beside it."""
        self.wire(start, end)
        self.port(end, name, side)

    def supply(self, *points: Point) -> None:
        """Draw V_DD at each point of a schematic."""
        for point in points:
            self.drawing.add(parts.Vdd().at(point))
            self.text((point[0], point[1] + 0.45), "vdd", "top")

    def ground(self, *points: Point) -> None:
        """Draw a ground at each point of a schematic of `cosim compile`."""
        for point in points:
            self.drawing.add(parts.Ground().at(point))

    def capacitor(self, top: Point, bottom: Point, name: str) -> None:
        """Draw a schematic's capacitor between two points, one above the other."""
        self.drawing.add(parts.Capacitor().endpoints(top, bottom))
        self.text((top[0] + 0.3, (top[1] + bottom[1]) / 2), name, "right")

    def arrow(self, start: Point, end: Point, name: str = "", side: Side = "right") -> None:
        """Draw an arrow for a current or for the direction of a signal, with a name beside it."""
        self.drawing.add(parts.Arrow(headwidth=0.18, headlength=0.25).endpoints(start, end))
        if name:
            self.text(((start[0] + end[0]) / 2, (start[1] + end[1]) / 2), name, side)

    def box(self, centre: Point, width: float, height: float, *lines: str, key: str = "") -> None:
        """Draw a block with its name in lines, and below them the texts that `sizes` has for `key`."""
        lines = (*lines, *self.sizes.get(key, ()))
        x, y = centre
        self.drawing.add(
            parts.Rect(corner1=(-width / 2, -height / 2), corner2=(width / 2, height / 2)).theta(0).at(centre)
        )
        for k, line in enumerate(lines):
            self.text((x, y + 0.5 * ((len(lines) - 1) / 2 - k)), line, "centre")

    def text(self, at: Point, name: str, side: Side | Literal["centre"], color: str = _INK, size: int = _SIZE) -> None:
        """Write a name beside a point, or centred on it."""
        shift = (0, 0) if side == "centre" else _SHIFT[side]
        align = ("center", "center") if side == "centre" else _ALIGN[side]
        element = parts.Element().at((at[0] + shift[0], at[1] + shift[1])).theta(0)
        element.segments.append(SegmentText((0, 0), name, align=align, color=color, font=_FONT, fontsize=size))
        self.drawing.add(element)


def _schematic(draw: Callable[..., None]) -> Callable[..., bytes]:
    """Decorate a function that draws on a sheet so that it takes the sheet's sizes and returns the drawing as SVG."""

    @wraps(draw)
    def drawn(sizes: Sizes = NO_SIZES, **options: bool) -> bytes:
        sheet = Sheet(sizes)
        draw(sheet, **options)
        return sheet.drawing.get_imagedata("svg")

    return drawn


@_schematic
def draw_mirror(sheet: Sheet) -> None:
    """Draw a signal's diode, its copy into gate line n, and one weight of each sign, as SVG."""
    low, node = -2.9, -2.5
    diode = sheet.mos("p", (0, 0), "diode", "right", "diode p")
    copy = sheet.mos("p", (2.6, 0), "copy", "left")
    line = sheet.mos("n", (2.6, low), "diode", "right", "diode n")
    push = sheet.mos("p", (7.4, 0), "w < 0")
    pull = sheet.mos("n", (7.4, low), "w > 0")
    sheet.supply(diode.first, copy.first, push.first)
    sheet.ground(line.last, pull.last)
    sheet.wire(diode.gate, copy.gate)
    sheet.wire((1.3, -HALF), (1.3, -2.1), (0, -2.1))
    sheet.dot((1.3, -HALF), (0, -2.1))
    sheet.wire(diode.last, (0, -2.5))
    sheet.arrow((0, -2.5), (0, -3.6), "signal I", "left")
    sheet.text((1.3, -2.1), "p", "right", NET)
    sheet.wire(copy.last, line.first)
    sheet.wire((line.gate[0], node), (2.6, node))
    sheet.wire((line.gate[0], node), line.gate, pull.gate)
    sheet.dot((2.6, node), line.gate)
    sheet.text((5.0, line.gate[1]), "n", "top", NET)
    sheet.lead(push.gate, (5.9, push.gate[1]), "p")
    sheet.wire(push.last, pull.first)
    sheet.wire((7.4, node), (8.4, node))
    sheet.dot((7.4, node))
    sheet.port((8.4, node), "node", "right")


@_schematic
def draw_rectifier(sheet: Sheet) -> None:
    """Draw a row of weights on its summing node, and the diode that forms max(I, 0), as SVG."""
    node = -2.07
    diode = sheet.diode("p", (0, 0), "diode")
    push = sheet.mos("p", (4.2, 0), "w < 0", "left")
    pulls = [sheet.mos("n", (x, node - 0.4), "w > 0", "left") for x in (4.2, 8.0)]
    sheet.supply(diode.first, push.first)
    sheet.wire(diode.last, (0, node), (8.0, node), pulls[1].first)
    sheet.wire((4.2, node), pulls[0].first)
    sheet.wire(push.last, (4.2, node))
    sheet.dot((4.2, node))
    sheet.ground(pulls[0].last, pulls[1].last)
    sheet.port(push.gate, "p")
    for pull in pulls:
        sheet.port(pull.gate, "n")
    sheet.wire((8.0, node), (9.0, node))
    sheet.dot((8.0, node))
    sheet.port((9.0, node), "node", "right")


@_schematic
def draw_schmitt(sheet: Sheet) -> None:
    """Draw the schematic of the Schmitt cell, nine transistors, as SVG."""
    mid, low = -2.7, -4.75
    v0 = mid - HALF
    m1, m9 = sheet.mos("p", (0, 0), "M1"), sheet.mos("p", (3.2, 0), "M9", "right")
    m7, m4 = sheet.diode("p", (6.6, 0), "M7"), sheet.diode("p", (10.4, 0), "M4")
    m2 = sheet.mos("n", (1.6, low), "M2")
    m6, m8 = sheet.mos("n", (6.6, mid), "M6"), sheet.mos("n", (6.6, low), "M8")
    m3, m5 = sheet.mos("n", (10.4, mid), "M3"), sheet.mos("n", (10.4, low), "M5")
    sheet.supply(m1.first, m9.first, m7.first, m4.first)
    sheet.ground(m2.last, m8.last, m5.last)
    sheet.wire(m9.gate, m7.gate)
    sheet.text((4.6, m9.gate[1]), "fb", "top", NET)
    sheet.dot(m7.gate)
    for upper, middle, lower in ((m7, m6, m8), (m4, m3, m5)):
        sheet.wire(upper.last, middle.first)
        sheet.wire(middle.last, lower.first)
    sheet.wire(m1.last, (0, v0), m6.gate)
    sheet.wire(m9.last, (3.2, v0))
    sheet.wire((1.6, v0), m2.first)
    sheet.dot((1.6, v0), (3.2, v0))
    sheet.text((4.4, v0), "v0", "top", NET)
    for drawn, name in ((m1, "cand"), (m2, "thresh"), (m8, "width"), (m5, "gain"), (m3, "v0")):
        sheet.port(drawn.gate, name)
    sheet.lead((10.4, -2.07), (11.4, -2.07), "out", "right")


@_schematic
def draw_clocked(sheet: Sheet) -> None:
    """Draw the gates that turn the Schmitt cell into a clocked cell, as SVG.

    They are the sample gate, the reset with the hold capacitor, and the decision gate.
    """
    _draw_gate(sheet, (0, 0), "sn", "sp", "clk", "clkb", "cand")
    reset = sheet.mos("p", (5.0, 2.3), "reset")
    sheet.supply(reset.first, (7.0, 2.3))
    sheet.port(reset.gate, "resetb")
    sheet.wire(reset.last, (5.0, 0))
    sheet.capacitor((7.0, 2.3), (7.0, 0), "hold")
    sheet.dot((5.0, 0), (7.0, 0))
    sheet.lead((2.7, 0), (8.0, 0), "hold: gate of M1", "right")
    _draw_gate(sheet, (0, -4.6), "dn", "dp", "clkb", "clk", "v0")
    sheet.lead((2.7, -4.6), (8.0, -4.6), "latch: gates of M3, M6", "right")


def _draw_gate(sheet: Sheet, at: Point, n: str, p: str, n_gate: str, p_gate: str, source: str) -> None:
    """Draw a transmission gate at (x, y), with a wire from a port at x - 1.0 to x + 2.7."""
    x, y = at
    upper = sheet.mos("n", (x, y + 0.6), n, "top")
    lower = sheet.mos("p", (x, y - 0.6), p, "bottom")
    for end in (upper.first, upper.last):
        sheet.wire(end, (end[0], y - 0.6))
    sheet.wire((x - 1.0, y), (x, y))
    sheet.wire((x + HEIGHT, y), (x + 2.7, y))
    sheet.dot((x, y), (x + HEIGHT, y))
    sheet.port(upper.gate, n_gate, "top")
    sheet.port(lower.gate, p_gate, "bottom")
    sheet.port((x - 1.0, y), source)


@_schematic
def draw_bias(sheet: Sheet, *, pedestal: bool = True) -> None:
    """Draw a bias diode and the cell transistor that its line drives, as SVG; pedestal: add the pedestal's sink."""
    diode = sheet.diode("n", (0, 0), "diode", "right")
    sheet.arrow((0, 1.6), (0, 0.4), "bias current", "left")
    sheet.port((0, 1.6), "pin", "top")
    sheet.wire((0, 0.4), diode.first)
    sink = sheet.mos("n", (3.6, 0), "cell's device", "left")
    sheet.wire(diode.gate, sink.gate)
    sheet.dot(diode.gate)
    sheet.text((1.8, sink.gate[1]), "line", "top", NET)
    sheet.port(sink.first, "cell", "top")
    sheet.ground(diode.last, sink.last)
    if pedestal:
        own = sheet.mos("n", (9.0, 0), "pedestal sink", "left")
        sheet.port(own.first, "out of a state", "top")
        sheet.port(own.gate, "its line")
        sheet.ground(own.last)


@_schematic
def draw_dpi(sheet: Sheet) -> None:
    """Draw the schematic of the differential pair integrator as SVG."""
    pair, vc = -2.4, -5.0
    feed = sheet.mos("p", (1.5, 0), "in")
    m1, m2 = sheet.mos("p", (0, pair), "M1"), sheet.mos("p", (3.0, pair), "M2", "right")
    tau = sheet.mos("n", (3.0, vc - 0.4), "tau")
    out = sheet.mos("n", (9.0, vc - 0.4), "out0")
    sheet.supply(feed.first)
    sheet.wire(feed.last, (1.5, -2.0))
    sheet.wire(m1.first, (0, -2.0), (3.0, -2.0), m2.first)
    sheet.dot((1.5, -2.0))
    sheet.text((3.0, -2.0), "vs", "right", NET)
    sheet.wire(m1.last, (0, pair - HEIGHT - 0.3))
    sheet.ground((0, pair - HEIGHT - 0.3), tau.last, out.last, (6.0, vc - 1.8))
    sheet.wire(m2.last, tau.first)
    sheet.wire(m2.gate, (m2.gate[0], vc))
    sheet.wire((3.0, vc), (7.4, vc), (7.4, out.gate[1]), out.gate)
    sheet.dot((3.0, vc), (m2.gate[0], vc), (6.0, vc))
    sheet.text((5.0, vc), "vc", "top", NET)
    sheet.capacitor((6.0, vc), (6.0, vc - 1.8), "C")
    for drawn, name in ((feed, "line"), (m1, "vg"), (tau, "tau")):
        sheet.port(drawn.gate, name)
    sheet.port(out.first, "out0", "top")


@_schematic
def draw_quantiser(sheet: Sheet) -> None:
    """Draw the schematic of the three-level quantiser in blocks, as SVG."""
    sheet.box((1.8, 0), 2.4, 1.8, "sample", "gate", key="sampler")
    sheet.wire((3.0, 0), (4.4, 0))
    sheet.dot((4.4, 0))
    sheet.text((3.7, 0), "hold", "top", NET)
    for y, name, decision in ((1.4, "upper", "up"), (-1.4, "lower", "down")):
        sheet.box((7.0, y), 3.2, 1.8, "comparator", name, key="comparator")
        sheet.wire((4.4, 0), (4.4, y))
        sheet.arrow((4.4, y), (5.4, y))
        sheet.arrow((8.6, y), (10.6, y))
        sheet.text((9.6, y), decision, "top", NET)
    sheet.box((12.5, 0), 3.8, 4.4, "driver", "I_base, I_delta", key="driver")
    sheet.arrow((-0.6, 0), (0.6, 0))
    sheet.port((-0.6, 0), "cand")
    sheet.lead((14.4, 0), (15.4, 0), "in", "right")
    for x, top, name in ((1.8, 0.9, "clk"), (12.5, 2.2, "pulse")):
        sheet.arrow((x, top + 1.0), (x, top))
        sheet.port((x, top + 1.0), name, "top")


@_schematic
def draw_ladder(sheet: Sheet) -> None:
    """Draw three rungs of a ladder as a block diagram, SVG.

    Each state, low-passed by a DPI, opens the window of both neighbours.
    """
    width, gap = 3.2, 2.8
    centres = [k * (width + gap) for k in range(3)]
    for k, x in enumerate(centres, start=1):
        sheet.box((x, 0), width, 1.8, f"rung {k}", "9T cell", key="rung_off")
        sheet.arrow((x, 2.0), (x, 0.9))
        sheet.arrow((x, -0.9), (x, -2.0), f"alpha s{k}", "right")
    for x in centres[:-1]:
        left, right = x + width / 2, x + width / 2 + gap
        sheet.arrow((left, 0.4), (right, 0.4), "DPI", "top")
        sheet.arrow((right, -0.4), (left, -0.4), "DPI", "bottom")
    end = centres[-1]
    sheet.wire((-1.8, 2.0), (end, 2.0))
    sheet.port((-1.8, 2.0), "in")
    sheet.lead((0, -2.0), (end + 1.8, -2.0), "out", "right")
    for x in centres[:-1]:
        sheet.dot((x, 2.0))
    for x in centres[1:]:
        sheet.dot((x, -2.0))


@_schematic
def draw_counter(sheet: Sheet) -> None:
    """Draw a counter as a block diagram, SVG: its two decisions, and below them one of its bits."""
    _draw_bit(sheet, ("up", "down"), "carries to bit k + 1")


@_schematic
def draw_reflector(sheet: Sheet) -> None:
    """Draw a reflector as a block diagram, SVG: its two decisions, and below them one of its bits."""
    _draw_bit(sheet, ("up",), "carry to bit k + 1")


def _draw_bit(sheet: Sheet, carried: tuple[str, ...], words: str) -> None:
    """Draw two decisions and one bit that they turn over; carried: decisions with a carry to the next bit."""
    sheet.box((1.4, 0), 2.4, 1.8, "sample", "gate", key="sampler")
    sheet.text((3.2, 0), "hold", "top", NET)
    for y, name in ((1.6, "upper"), (-1.6, "lower")):
        sheet.box((5.6, y), 2.8, 1.8, name, "and latch", key="window_decision")
        sheet.wire((2.6, 0), (3.7, 0), (3.7, y))
        sheet.arrow((3.7, y), (4.2, y))
    sheet.arrow((-0.5, 0), (0.2, 0))
    sheet.port((-0.5, 0), "cand")
    for y, x, turn, end, name in ((1.6, 9.0, -3.4, 2.4, "up"), (-1.6, 8.0, -4.2, 1.2, "down")):
        sheet.wire((7.0, y), (x, y), (x, turn), (end, turn))
        sheet.arrow((end, turn), (end, -5.0))
        sheet.text((7.5, y), name, "top", NET)
        if name in carried:
            sheet.dot((x, turn))
            sheet.arrow((x, turn), (10.0, turn))
    sheet.text((10.1, -3.8 if len(carried) > 1 else -3.4), words, "right", NET)
    for x, name, below in ((1.8, "next", "of bit k"), (5.4, "master", "latch"), (9.0, "slave", "latch")):
        sheet.box((x, -5.8), 2.6, 1.6, name, below)
    sheet.box((12.6, -5.8), 2.0, 1.6, "2^k", "I_gain")
    for start, stop in ((3.1, 4.1), (6.7, 7.7), (10.3, 11.6)):
        sheet.arrow((start, -5.8), (stop, -5.8))
    sheet.text((10.9, -5.8), "q", "top", NET)
    sheet.dot((10.9, -5.8))
    sheet.wire((10.9, -5.8), (10.9, -7.6), (1.8, -7.6))
    sheet.arrow((1.8, -7.6), (1.8, -6.6))
    sheet.lead((13.6, -5.8), (14.2, -5.8), "out", "right")


@_schematic
def draw_toggle(sheet: Sheet) -> None:
    """Draw a toggle as a block diagram, SVG: its master and its slave."""
    sheet.box((1.8, 0), 2.4, 1.8, "sample", "gate", key="sampler")
    sheet.box((6.2, 0), 3.2, 1.6, "comparator", key="comparator")
    sheet.box((11.2, 0), 3.8, 1.6, "drive", "I_base, I_delta")
    sheet.box((16.4, 0), 3.2, 1.6, "clocked", "9T cell", key="schmitt_clocked")
    sheet.arrow((-0.6, 0), (0.6, 0))
    sheet.port((-0.6, 0), "cand")
    for start, end, name in ((3.0, 4.6, "hold"), (7.8, 9.3, "up"), (13.1, 14.8, "")):
        sheet.arrow((start, 0), (end, 0))
        sheet.text(((start + end) / 2, 0), name, "top", NET)
    sheet.lead((18.0, 0), (19.0, 0), "out", "right")
    sheet.wire((16.4, -0.8), (16.4, -1.7), (11.2, -1.7))
    sheet.arrow((11.2, -1.7), (11.2, -0.8))
    sheet.text((13.8, -1.7), "q", "top", NET)
    for x, name in ((1.8, "clk"), (16.4, "pulse")):
        sheet.arrow((x, 1.8), (x, 0.8))
        sheet.port((x, 1.8), name, "top")


@_schematic
def draw_register(sheet: Sheet) -> None:
    """Draw a thermometer register as a block diagram, SVG: decisions, gates, switches for the value's sign, levels."""
    sheet.box((1.8, 0), 2.4, 1.8, "sample", "gate", key="sampler")
    sheet.box((6.4, 0), 3.6, 2.4, "decisions", "upper, lower", key="window_decision")
    sheet.box((11.6, 0), 3.2, 1.6, "gates")
    sheet.box((11.6, -3.0), 3.2, 1.6, "switches")
    sheet.box((17.4, -1.5), 4.0, 4.6, "levels 1 ... K", "each kept by", "its own latch", key="level_off")
    sheet.arrow((-0.6, 0), (0.6, 0))
    sheet.port((-0.6, 0), "cand")
    sheet.arrow((3.0, 0), (4.6, 0))
    sheet.text((3.8, 0), "hold", "top", NET)
    sheet.arrow((8.2, 0), (10.0, 0))
    sheet.arrow((11.6, -0.8), (11.6, -2.2), "up, upb")
    for y, name in ((0.0, "write"), (-3.0, "val")):
        sheet.arrow((13.2, y), (15.4, y))
        sheet.text((14.3, y), name, "top", NET)
    for y, name in ((-2.6, "pos"), (-3.4, "neg")):
        sheet.arrow((8.8, y), (10.0, y))
        sheet.port((8.8, y), name)
    sheet.lead((19.4, -1.5), (20.4, -1.5), "out", "right")
    for x, top, name in ((1.8, 0.9, "clk"), (11.6, 0.8, "pulse")):
        sheet.arrow((x, top + 1.0), (x, top))
        sheet.port((x, top + 1.0), name, "top")


@_schematic
def draw_level(sheet: Sheet) -> None:
    """Draw one level of a thermometer register as SVG: comparator, keeper, and its part of the output."""
    m7 = sheet.diode("p", (9.2, 0), "M7", "left")
    fb = m7.last[1] - 0.4
    b = fb - 0.3 - 2 * HEIGHT
    low = b - 0.2
    m1, m2 = sheet.mos("p", (0, 0), "M1"), sheet.mos("n", (0, low), "M2")
    m9, keep = sheet.mos("p", (4.6, 0), "M9", "right"), sheet.mos("n", (4.6, low), "keep")
    m8 = sheet.mos("n", (9.2, low), "M8")
    m10, m11 = sheet.mos("n", (7.6, fb - 0.3), "M10"), sheet.mos("n", (10.8, fb - 0.3), "M11", "right")
    m4, m6 = sheet.mos("n", m10.last, "M4"), sheet.mos("n", m11.last, "M6", "right")
    m3, m5 = sheet.mos("n", (16.0, low + HEIGHT + 0.3), "M3"), sheet.mos("n", (16.0, low), "M5")
    sheet.supply(m1.first, m9.first, m7.first)
    sheet.ground(m2.last, keep.last, m8.last, m5.last)
    for upper, lower, name in ((m1, m2, "v0"), (m9, keep, "q")):
        sheet.wire(upper.last, lower.first)
        sheet.text((lower.first[0], lower.first[1] + 0.7), name, "right", NET)
    sheet.wire(m9.gate, m7.gate)
    sheet.text((m9.gate[0] + 0.6, m9.gate[1]), "fb", "top", NET)
    for side in (m10, m11):
        sheet.wire(m7.last, (9.2, fb), (side.first[0], fb), side.first)
    for side in (m4, m6):
        sheet.wire(side.last, (side.last[0], b), (9.2, b))
    sheet.wire((9.2, b), m8.first)
    sheet.wire(m3.last, m5.first)
    for drawn, name in ((m1, "val"), (m2, "turn"), (keep, "keep"), (m8, "keep"), (m5, "gain"), (m3, "q")):
        sheet.port(drawn.gate, name)
    for drawn, name in ((m10, "write"), (m4, "v0")):
        sheet.port(drawn.gate, name)
    for drawn, name in ((m11, "writeb"), (m6, "q")):
        sheet.port(drawn.gate, name, "right")
    sheet.wire(m3.first, (16.0, m3.first[1] + 0.4), (17.0, m3.first[1] + 0.4))
    sheet.port((17.0, m3.first[1] + 0.4), "out", "right")


@_schematic
def draw_tau_cell(sheet: Sheet) -> None:
    """Draw a gated tau-cell without its mirrors as SVG: M1 to M4, both sources of I_tau, the switch and C."""
    low = -3.4
    m1, t3, t2, m4 = (sheet.mos("p", (4.2 * k, 0), name) for k, name in enumerate(("M1", "tau3", "tau2", "M4")))
    m3, m2 = sheet.mos("p", (4.2, low), "M3"), sheet.mos("p", (8.4, low), "M2")
    sheet.supply(m1.first, t3.first, t2.first, m4.first)
    for top, own, name in ((t3, m3, "b"), (t2, m2, "s")):
        sheet.wire(top.last, own.first)
        sheet.text(own.first, name, "right", NET)
        sheet.ground(own.last)
        sheet.port(top.gate, "tau")
    sheet.port(m1.gate, "b")
    sheet.port(m1.last, "d", "bottom")
    sheet.port(m3.gate, "d")
    sheet.port(m2.gate, "d")
    sheet.arrow((m2.first[0] + 0.8, m2.first[1]), (m4.gate[0] - 0.4, m2.first[1]), "pulse", "top")
    sheet.capacitor((m4.gate[0], m4.gate[1] - 2.0), (m4.gate[0], m4.gate[1] - 3.8), "C to vdd")
    sheet.wire(m4.gate, (m4.gate[0], m4.gate[1] - 2.0))
    sheet.text(m4.gate, "vc", "top", NET)
    sheet.port(m4.last, "I", "bottom")


@_schematic
def draw_ratio_gate(sheet: Sheet) -> None:
    """Draw a ratio gate as SVG: two copies on diodes, a third diode below both, and the pair that shares a tail."""
    low, feet = -3.2, -6.4
    copy, half = (sheet.mos("p", (x, 0), name, "left") for x, name in ((0, "copy"), (4.6, "half")))
    da, db = (sheet.diode("n", (x, low), name, "left") for x, name in ((0, "da"), (4.6, "db")))
    foot = sheet.diode("n", (2.3, feet), "low", "left")
    diode = sheet.diode("p", (9.6, 0), "diode", "right")
    a, b = (sheet.mos("n", (x, low), name, "left") for x, name in ((9.6, "a"), (14.2, "b")))
    tail = sheet.mos("n", (11.9, feet), "tail", "left")
    sheet.supply(copy.first, half.first, diode.first, (14.2, 0.0))
    sheet.ground(foot.last, tail.last)
    for top, bottom, name in ((copy, da, "a"), (half, db, "b")):
        sheet.wire(top.last, bottom.first)
        sheet.text((top.last[0], top.last[1] - 0.5), name, "right", NET)
    sheet.wire(diode.last, a.first)
    sheet.wire((14.2, 0.0), b.first)
    for left, right, end, name in ((da, db, foot, "r"), (a, b, tail, "t")):
        level = left.last[1] - 0.4
        sheet.wire(left.last, (left.last[0], level), (right.last[0], level), right.last)
        sheet.wire((end.first[0], level), end.first)
        sheet.text((end.first[0], level), name, "top", NET)
    for drawn, name in ((copy, "line"), (half, "half"), (a, "a"), (b, "b"), (tail, "bias")):
        sheet.port(drawn.gate, name)
    sheet.port(diode.last, "tau", "right")


@_schematic
def draw_steering(sheet: Sheet) -> None:
    """Draw a symbol comparator and a steering AND as SVG; the AND is a current source below a switch for each bit."""
    upper, middle, lower = 0.0, -HEIGHT, -2 * HEIGHT
    m1, m2 = sheet.mos("p", (0, upper), "M1"), sheet.mos("n", (0, middle - 0.6), "M2")
    sheet.supply(m1.first)
    sheet.wire(m1.last, m2.first)
    out = m2.first[1] + 0.3
    sheet.dot((0, out))
    sheet.lead((0, out), (1.2, out), "x", "right")
    sheet.ground(m2.last)
    sheet.port(m1.gate, "line p")
    sheet.port(m2.gate, "half of one")
    stack = [
        sheet.mos("n", (7.0, y), name, "left") for y, name in ((upper, "bit 1"), (middle, "bit 2"), (lower, "source"))
    ]
    for drawn, name in zip(stack, ("q: latch of a cell", "x", "gain"), strict=True):
        sheet.port(drawn.gate, name)
    sheet.wire(stack[0].first, (7.0, 0.4), (8.4, 0.4))
    sheet.port((8.4, 0.4), "node", "right")
    sheet.ground(stack[2].last)


RATIO = "Rate that saturates: ratio gate of a minGRU"
CELLS: dict[str, tuple[str, Callable[[Sizes], bytes]]] = {
    "9T cell": ("Memory: nine-transistor Schmitt trigger", draw_schmitt),
    "clocked": ("Clocked cell: M1 sees hold, M3 and M6 see latch", draw_clocked),
    "quantiser": ("Three-level quantiser in front of a ladder", draw_quantiser),
    "ladder": ("Ladder: rungs that open each other's windows", draw_ladder),
    "counter": ("Counter: its decisions, and one of its bits", draw_counter),
    "reflector": ("Reflector: its decisions, and one of its bits", draw_reflector),
    "DPI": ("Low pass between rungs: differential pair integrator", draw_dpi),
    "toggle": ("Toggle: master and slave", draw_toggle),
    "register": ("Thermometer register: a value is written, or its levels stay", draw_register),
    "level": ("Level of the register: comparator, keeper, output", draw_level),
    "tau-cell": ("Low pass whose rate is a current: gated tau-cell", draw_tau_cell),
    "ratio gate": (RATIO, draw_ratio_gate),
}  # as `UnitKind.schematics` names them
STEERING = "Product of bits: symbol comparator, and a steering AND"
_WORDS = {
    "mirror": "Signal and weights: a current mirror, one transistor a weight",
    "row": "Summing node: a row of weights with its rectifier",
    **{name: words for name, (words, _) in CELLS.items()},
    "steering": STEERING,
    "bias": "Bias: a pin, its diode and what it leads",
}  # name of a schematic -> its description, in the order of a page


def drawn_schematics(graph: LoweredGraph) -> dict[str, str]:
    """Return the schematics that a network's page shows: name -> description."""
    drawn = {"mirror", "row", "bias", *(name for node in graph.memories for name in unit_of(node).schematics)}
    if any(True for _ in graph.of(And)):
        drawn.add("steering")
    return {name: words for name, words in _WORDS.items() if name in drawn}


def schematics_of(graph: LoweredGraph, circuit: Circuit) -> dict[str, bytes]:
    """Return the schematics of the cells that a network uses, with sizes: description -> drawing as SVG."""
    pedestal, sizes = any(True for _ in graph.of(Pedestal)), sizes_of(circuit)
    draw: dict[str, Callable[[Sizes], bytes]] = {
        "mirror": draw_mirror,
        "row": draw_rectifier,
        **{name: draw for name, (_, draw) in CELLS.items()},
        "steering": draw_steering,
        "bias": lambda sizes: draw_bias(sizes, pedestal=pedestal),
    }
    return {words: draw[name](sizes[name]) for name, words in drawn_schematics(graph).items()}
