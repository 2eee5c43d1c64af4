"""The sheet of an xschem schematic: placed symbols, wires and texts, and the text of its file.

    v {..}                           version of the file format: 1.0, which all versions of xschem read
    G {..} V {} S {} E {}            attributes: of a symbol in G, of a schematic none
    C {symbol} x y turn flip {..}    a placed symbol with its attributes; turn: quarter turns clockwise after the flip
    N x1 y1 x2 y2 {lab=net}          a wire; wires connect where one ends, and only cross elsewhere
    T {text} x y turn flip w h {}    a text, x y its left upper corner
    L, P, A, B layer ..              line, polygon, arc, box; a box on layer 5 is a pin

Coordinates are integers, y grows downward, and pins and wires are on a grid of GRID. Source: xschem manual, "developer
info".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Point = tuple[int, int]
Box = tuple[int, int, int, int]  # left, top, right, bottom
Wire = tuple[int, int, int, int]

GRID = 10
TEXT = 0.2  # size of the texts beside symbols
LETTER, LINE = 8, 14  # width of a letter and height of a line at that size, at most
HEAD = "v {xschem version=2.8.1 file_version=1.0}\n"
_EMPTY = "V {}\nS {}\nE {}\n"
_ESCAPED = str.maketrans({"\\": "\\\\", "{": "\\{", "}": "\\}"})


@dataclass(frozen=True)
class Symbol:
    """A symbol of xschem.

    name: its file in the folder of the schematics; pins: (name, place) in the order of SPICE; box: its drawing without
    texts; attributes: of the symbol, with `type` and `format`; drawing: the lines of the file that draw it; beside:
    area of the texts beside it, None without.
    """

    name: str
    pins: tuple[tuple[str, Point], ...]
    box: Box
    attributes: str
    drawing: str
    beside: Box | None = None

    @property
    def text(self) -> str:
        """Return the text of the symbol's file."""
        pins = "".join(
            f"B 5 {x - 2.5:g} {y - 2.5:g} {x + 2.5:g} {y + 2.5:g} {{name={name} dir=inout}}\n"
            for name, (x, y) in self.pins
        )
        return f"{HEAD}G {{{self.attributes}}}\n{_EMPTY}{self.drawing}{pins}"


@dataclass(frozen=True)
class Placed:
    """A symbol on a sheet: where its origin is, how it is turned, its attributes, and the nets of its pins."""

    symbol: Symbol
    at: Point
    nets: tuple[str, ...]
    fields: Mapping[str, str]
    flip: bool = False
    upside_down: bool = False

    def moved(self, point: Point) -> Point:
        """Return the place on the sheet of a point of the symbol."""
        x, y = point
        turn = -1 if self.upside_down else 1
        return self.at[0] + turn * (-x if self.flip else x), self.at[1] + turn * y

    @property
    def pins(self) -> tuple[tuple[str, Point], ...]:
        """Return (net, place) of each pin, in the order of the symbol's pins."""
        return tuple((net, self.moved(place)) for net, (_, place) in zip(self.nets, self.symbol.pins, strict=True))

    def area(self, box: Box) -> Box:
        """Return the area on the sheet of a box of the symbol."""
        (x1, y1), (x2, y2) = self.moved(box[:2]), self.moved(box[2:])
        return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


Direction = Literal["in", "out", "inout"]


@dataclass
class Schematic:
    """A schematic while it is drawn: placed symbols, wires by net, and texts (text, place, size)."""

    placed: list[Placed] = field(default_factory=list[Placed])
    wires: list[tuple[str, Wire]] = field(default_factory=list[tuple[str, Wire]])
    texts: list[tuple[str, Point, float]] = field(default_factory=list[tuple[str, Point, float]])
    counted: int = 0  # labels and ports

    def place(self, placed: Placed) -> Placed:
        """Place a symbol; return it."""
        self.placed.append(placed)
        return placed

    def name(self, symbol: Symbol, net: str, at: Point, *, flip: bool = False) -> Placed:
        """Place a symbol of one pin that gives its net a name: a label, a port or a rail; return it."""
        self.counted += 1
        return self.place(Placed(symbol, at, (net,), {"name": f"p{self.counted}", "lab": net}, flip))

    def wire(self, net: str, start: Point, end: Point) -> None:
        """Draw a straight wire of a net, if it has a length."""
        if start != end:
            self.wires.append((net, (*min(start, end), *max(start, end))))

    def write(self, text: str, at: Point, size: float = TEXT) -> None:
        """Write a text with its left upper corner at a place."""
        self.texts.append((text, at, size))

    @property
    def text(self) -> str:
        """Return the text of the sheet's file."""
        lines = [
            *(f"T {{{escape(text)}}} {x} {y} 0 0 {size} {size} {{}}" for text, (x, y), size in self.texts),
            *(f"N {x1} {y1} {x2} {y2} {{lab={net}}}" for net, (x1, y1, x2, y2) in self.wires),
            *map(_format_placed, self.placed),
        ]
        return f"{HEAD}G {{}}\n{_EMPTY}" + "".join(f"{line}\n" for line in lines)


def escape(text: str) -> str:
    """Return a text as it stands between braces in a file of xschem: with braces and backslashes escaped."""
    return text.translate(_ESCAPED)


def _format_placed(placed: Placed) -> str:
    fields = " ".join(f"{name}={value}" for name, value in placed.fields.items())
    turns = f"{2 * placed.upside_down} {int(placed.flip)}"
    return f"C {{{placed.symbol.name}}} {placed.at[0]} {placed.at[1]} {turns} {{{fields}}}"
