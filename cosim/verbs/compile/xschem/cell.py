"""The schematic of one subcircuit: its elements in groups between the rails, wired, with its ports at the sides."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from textwrap import wrap

from cosim.base.errors import MappingError
from cosim.circuit.elements import GROUND, Element, Instance, Mos, Subcircuit
from cosim.technology.types import POLARITIES, Polarity, Technology
from cosim.verbs.compile.xschem.groups import Group, arrange, find_groups, levels_of, top_and_bottom
from cosim.verbs.compile.xschem.route import Router
from cosim.verbs.compile.xschem.sheet import GRID, LETTER, TEXT, Direction, Placed, Point, Schematic, Symbol
from cosim.verbs.compile.xschem.symbols import (
    ABOVE,
    GROUND_RAIL,
    LABEL,
    PORTS,
    SUPPLY,
    transistor_fields,
    two_pin_fields,
    two_pin_symbol,
)

ROW = 80  # from a transistor to the next of its stack
_MIDDLE = 60  # from the middle to the nearest transistors
_SMALL = 0.14  # size of the text on where an element comes from
_WRAP, _SMALL_LINE = 22, 10  # letters of its lines, and their height
_SIDE = 80  # from the elements to the ports
_LIST = 190  # from the elements to the list of ports that wires do not reach
_TRUNK = 3  # stacks that meet at a wire in the middle, at least
_TOP: dict[str, Direction] = {"vdd": "inout"}  # of the top level, which has no ports
_BOXES = 8  # boxes in a row
_SHARED = 4  # boxes that wires connect, at most


@dataclass(frozen=True)
class Library:
    """The symbols that a circuit's schematics use.

    transistors: (polarity, whether it lies on its side) -> symbol; blocks: of subcircuits; directions: of their ports.
    """

    technology: Technology
    foundry: bool
    transistors: Mapping[tuple[Polarity, bool], Symbol]
    blocks: Mapping[str, Symbol]
    directions: Mapping[str, dict[str, Direction]]

    def transistor(self, mos: Mos, at: Point, *, lying: bool = False) -> Placed:
        """Return a transistor as a symbol at a place."""
        fields = transistor_fields(mos, self.technology, foundry=self.foundry)
        nets = (mos.drain, mos.gate, mos.source, mos.bulk)
        return Placed(self.transistors[mos.polarity, lying], at, nets, fields)

    def instance(self, element: Instance, at: Point) -> Placed:
        """Return an instance of a subcircuit as a symbol at a place."""
        return Placed(self.blocks[element.subcircuit], at, element.nets, {"name": f"x{element.name}"})


def draw_cell(block: Subcircuit, library: Library) -> Schematic:
    """Return the schematic of a subcircuit."""
    directions = library.directions.get(block.name, _TOP)
    rails = {GROUND, *(port for port, way in directions.items() if way == "inout")}
    groups = find_groups(block, rails)
    boxes = [group for group in groups if group.kind == "box"]
    sheet = Schematic()
    transistors = [element for element in block.elements if isinstance(element, Mos)]
    levels = levels_of(transistors, rails)
    rows: dict[Polarity, int] = {
        polarity: max((levels[mos.name] for mos in transistors if mos.polarity == polarity), default=0)
        for polarity in POLARITIES
    }
    cell = _Cell(sheet, library, directions, levels, rows)
    cell.place(arrange([group for group in groups if group.kind != "box"], directions))
    place_boxes(sheet, library, [one for group in boxes for one in group.elements if isinstance(one, Instance)])
    finish(sheet, block, directions)
    return sheet


@dataclass
class _Cell:
    """A sheet while groups of elements are placed on it from left to right; levels: of transistors from their rails.

    rows: of each polarity, the highest level; open: net -> ends of stacks towards the middle; meeting: net -> number of
    stacks with it in the middle.
    """

    sheet: Schematic
    library: Library
    directions: Mapping[str, Direction]
    levels: Mapping[str, int]
    rows: Mapping[Polarity, int]
    x: int = 0
    open: dict[str, list[Point]] = field(default_factory=lambda: defaultdict(list))
    meeting: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def place(self, groups: Sequence[Group]) -> None:
        """Place all groups in their order."""
        for group in groups:
            match group.kind, group.elements:
                case "stack", _:
                    self._stack([one for one in group.elements if isinstance(one, Mos)])
                case "gate", (Mos() as p, Mos() as n):
                    self._gate(p, n, group)
                case _, (one,):
                    self._single(one)
                case _:
                    raise AssertionError(group)
        for net, ends in self.open.items():
            for end in ends if self.meeting[net] >= _TRUNK else ():
                self.sheet.wire(net, end, (end[0], 0))

    def height(self, mos: Mos) -> int:
        """Return the y of a transistor: p above the middle, n below it, in rows by their distance from the rail."""
        step = _MIDDLE + 30 + (self.rows[mos.polarity] - self.levels[mos.name]) * ROW
        return -step if mos.polarity == "p" else step

    def _stack(self, stack: Sequence[Mos]) -> None:
        labels = [mos.gate for mos in stack]
        left = 4 * GRID + max((LETTER * len(net) for net in labels if self.directions.get(net) == "in"), default=0)
        x = self.x + -(-left // GRID) * GRID
        ends: list[Placed] = []
        for mos in stack:
            placed = self.sheet.place(self.library.transistor(mos, (x, self.height(mos))))
            ends.append(placed)
            self._close(mos, placed)
            explain(self.sheet, mos.origin, (x + 34, placed.at[1] + 36))
        for (upper, one), (lower, other) in pairwise(zip(stack, ends, strict=True)):
            net = top_and_bottom(upper)[1]
            self.sheet.wire(net, (x + 20, one.at[1] + 30), (x + 20, other.at[1] - 30))
            if upper.gate == lower.gate and upper.polarity == lower.polarity:
                self.sheet.wire(upper.gate, one.moved((-20, 0)), one.moved((-30, 0)))
                self.sheet.wire(upper.gate, one.moved((-30, 0)), other.moved((-30, 0)))
                self.sheet.wire(upper.gate, other.moved((-20, 0)), other.moved((-30, 0)))
        self._count_middle(stack, ends)
        self.x = x + 130

    def _count_middle(self, stack: Sequence[Mos], ends: Sequence[Placed]) -> None:
        """Count the net of a stack in the middle of the sheet, and note its end there if the stack has one polarity."""
        lowest = next((k for k, mos in reversed(list(enumerate(stack))) if mos.polarity == "p"), None)
        net = top_and_bottom(stack[0])[0] if lowest is None else top_and_bottom(stack[lowest])[1]
        self.meeting[net] += 1
        if lowest is None:
            self.open[net].append(ends[0].moved((20, -30)))
        elif lowest == len(stack) - 1:
            self.open[net].append(ends[lowest].moved((20, 30)))

    def _close(self, mos: Mos, placed: Placed) -> None:
        """Draw the short wires of a transistor to itself: gate to drain of a diode, bulk to source."""
        down = 1 if mos.polarity == "p" else -1
        if mos.gate == mos.drain:
            corners = ((-20, 0), (-30, 0), (-30, 40 * down), (20, 40 * down), (20, 30 * down))
            for start, end in pairwise(map(placed.moved, corners)):
                self.sheet.wire(mos.gate, start, end)
        if mos.bulk == mos.source:
            self.sheet.wire(mos.bulk, placed.moved((20, 0)), placed.moved((20, -30 * down)))

    def _gate(self, p: Mos, n: Mos, group: Group) -> None:
        """Place a transmission gate: p above n, joined on both sides."""
        x = self.x + 60
        signals = self.directions
        left = p.source if signals.get(p.source) == "in" or p.source not in group.driven else p.drain
        for mos, y in ((p, -30), (n, 30)):
            one = self.library.transistor(mos, (x, y), lying=True)
            flip = mos.drain != left
            self.sheet.place(Placed(one.symbol, one.at, one.nets, one.fields, flip=flip))
        for net, side in ((left, -30), (p.drain if left == p.source else p.source, 30)):
            self.sheet.wire(net, (x + side, -30), (x + side, 30))
        self.x = x + 80

    def _single(self, element: Element) -> None:
        """Place an element of two nets, next to the rail that it is on."""
        assert not isinstance(element, Mos | Instance)
        x = self.x + 40
        way = {d for d in (element.a, element.b) if d == GROUND or self.directions.get(d) == "inout"}
        polarity: Polarity = "n" if GROUND in way else "p"
        far = _MIDDLE + 30 + self.rows[polarity] * ROW
        y = 0 if len(way) != 1 else far if polarity == "n" else -far
        below = element.b if y <= 0 else element.a
        upside_down = below in way if y < 0 else element.a == GROUND if y > 0 else False
        nets, fields = (element.a, element.b), two_pin_fields(element)
        self.sheet.place(Placed(two_pin_symbol(element), (x, y), nets, fields, upside_down=upside_down))
        self.x = x + 90


def explain(sheet: Schematic, origin: str, at: Point) -> None:
    """Write below an element where it comes from."""
    parts = re.split(" (?=target|realised|rise|fall|level)", origin) if origin else ()
    for k, line in enumerate(line for part in parts for line in wrap(part, _WRAP)):
        sheet.write(line, (at[0], at[1] + _SMALL_LINE * k), _SMALL)


def place_boxes(sheet: Schematic, library: Library, instances: Sequence[Instance]) -> None:
    """Place instances in rows below what is on a sheet."""
    bottoms = [placed.at[1] for placed in sheet.placed]
    y = max(bottoms) + 2 * ROW if bottoms else 0
    for first in range(0, len(instances), _BOXES):
        x, lowest = 0, y
        for element in instances[first : first + _BOXES]:
            x += -(-(LETTER * max(map(len, element.nets), default=0) + 4 * GRID) // GRID) * GRID
            placed = sheet.place(library.instance(element, (x, y)))
            explain(sheet, element.origin, (x + 5, placed.symbol.box[3] + y + 18))
            x, lowest = x + placed.symbol.box[2] + 60, max(lowest, y + placed.symbol.box[3])
        y = -(-lowest // GRID) * GRID + 100


def finish(
    sheet: Schematic, block: Subcircuit, directions: Mapping[str, Direction], zones: Mapping[Point, str] | None = None
) -> None:
    """Name the rails of a sheet, place its ports, wire its nets, and label what wires do not connect.

    zones: place of a pin -> its zone, where wires must not leave the zones; None where they may.
    """
    rails = {GROUND, *(port for port, way in directions.items() if way == "inout")}
    _name_rails(sheet, rails)
    router = Router(sheet)
    labels = _Labels(sheet, router)
    gates, shared = _lines(sheet, directions)
    for net in sorted(router.groups.keys() & (gates | rails)):
        labels.label_all(net)
    for net in sorted(router.groups.keys() & shared - rails):
        if zones is not None:
            router.connect(net, zones)
        labels.label_all(net)
    loose = router.groups.keys() - gates - shared - rails
    for net in block.ports:
        if net in loose and not _named(sheet, net):
            _place_side_port(sheet, router, net, directions[net])
    for net in sorted(loose, key=lambda net: (_width(router, net), net)):
        router.connect(net, zones)
        labels.label_all(net)
    listed = [port for port in block.ports if not _named(sheet, port) or port in rails]
    _list_ports(sheet, listed, directions)
    order = {port: place for place, port in enumerate(block.ports)}  # of the ports in xschem's netlist
    ports = tuple(PORTS.values())
    sheet.placed.sort(key=lambda placed: order[placed.fields["lab"]] if placed.symbol in ports else -1)
    _title(sheet, block)


def _named(sheet: Schematic, net: str) -> set[Point]:
    """Return where symbols of one pin give a net its name; labels do not count."""
    return {
        placed.at for placed in sheet.placed if placed.fields.get("lab") == net and placed.symbol not in (LABEL, ABOVE)
    }


def _name_rails(sheet: Schematic, rails: set[str]) -> None:
    """Place a rail's symbol at each pin of a rail at which a symbol begins or ends; others get labels."""
    for placed in list(sheet.placed):
        _, y1, _, y2 = placed.area(placed.symbol.box)
        for net, (x, y) in placed.pins:
            if net == GROUND and y >= y2:
                sheet.name(GROUND_RAIL, net, (x, y))
            elif net in rails and net != GROUND and y <= y1:
                sheet.name(SUPPLY, net, (x, y))


def _lines(sheet: Schematic, directions: Mapping[str, Direction]) -> tuple[set[str], set[str]]:
    """Return the nets that labels connect: inputs that only gates are on, and nets that many boxes share."""
    gates, others, boxes = set[str](), set[str](), defaultdict[str, int](int)
    for placed in sheet.placed:
        is_box = placed.symbol.attributes.startswith("type=subcircuit")
        for net in set(placed.nets) if is_box else ():
            boxes[net] += 1
        for (name, _), net in zip(placed.symbol.pins, placed.nets, strict=True):
            if "lab" not in placed.fields:
                (gates if name == "g" and not is_box else others).add(net)
    lines = {net for net in gates - others if directions.get(net) == "in"}
    return lines, {net for net, n in boxes.items() if n > _SHARED or (directions.get(net) == "in" and n > 1)}


def _place_side_port(sheet: Schematic, router: Router, net: str, direction: Direction) -> None:
    """Place a port at the side of a sheet, at the height of the pin or wire of its net that is nearest to that side."""
    xs = [x for x, _ in router.pins]
    points = sorted(point for part in router.groups[net] for point in part)
    if direction == "in":
        x, (_, y), step = min(xs) - _SIDE, points[0], 2 * GRID
    else:
        x, (_, y), step = max(xs) + _SIDE, min(points, key=lambda at: (-at[0], abs(at[1]))), 2 * GRID
    taken = {place[1] for place in router.pins if abs(place[0] - x) < _SIDE}
    while y in taken:
        y += step
    router.take(sheet.name(PORTS[direction], net, (x, y)))


def _width(router: Router, net: str) -> int:
    xs, ys = zip(*(point for part in router.groups[net] for point in part), strict=True)
    return max(xs) - min(xs) + max(ys) - min(ys)


@dataclass
class _Labels:
    """The labels of a sheet while they are placed, each where it covers least."""

    sheet: Schematic
    router: Router

    def label_all(self, net: str) -> None:
        """Label every part of a net that no port or rail's symbol names."""
        named = _named(self.sheet, net)
        for part in self.router.groups[net]:
            if not part & named:
                self.label(net, part)

    def label(self, net: str, part: set[Point]) -> None:
        """Place one label on a part of a net where it covers least."""
        router, long = self.router, LETTER * len(net)
        best: tuple[float, Point, int] | None = None
        for x, y in sorted(part):
            if router.along.get((x, y), {}).keys() - {net}:
                continue
            pin = (x, y) in router.pins
            for way, place in enumerate(((x - 5 - long, x - 5, y), (x + 5, x + 5 + long, y), (x, x + long, y - 10))):
                if way == 2 and pin:
                    continue
                covered = self._covered(place, part)
                trial = (covered + self._preference(net, (x, y), way), (x, y), way)
                best = trial if best is None or trial < best else best
        if best is None:
            raise MappingError(f"xschem: the net {net} has no room for its name; leave --to xschem out")
        _, (x, y), way = best
        self.sheet.name(ABOVE if way == 2 else LABEL, net, (x, y), flip=way == 1)
        router.pins[x, y] = net  # a wire that crossed it there would be connected
        start, end, height = ((x - 5 - long, x - 5, y), (x + 5, x + 5 + long, y), (x, x + long, y - 10))[way]
        for point in range(-(-start // GRID) * GRID, end + 1, GRID):
            router.costly.add((point, height))

    def _preference(self, net: str, point: Point, way: int) -> float:
        """Return the cost of a label's place: on the left of a pin, or above a wire, it costs nothing."""
        if way == 2:
            long = LETTER * len(net)
            under = ((x, point[1]) for x in range(point[0], point[0] + long + 1, GRID))
            return 0.0 if all(self.router.along.get(one, {}).get(net, True) is not False for one in under) else 2.0
        wired = point in self.router.along
        return 0.2 * way + (0.6 if wired else 0.0)

    def _covered(self, place: tuple[int, int, int], part: set[Point]) -> float:
        """Return how much the text from x to x at a y covers: wires, pins, drawings, texts."""
        start, end, y = place
        router = self.router
        return sum(
            2.0 * ((x, y) in router.along) + 3.0 * ((x, y) in router.pins) + 2.0 * ((x, y) in router.blocked)
            + 1.5 * ((x, y) in router.costly)
            for x in range(-(-start // GRID) * GRID, end + 1, GRID)
        )  # fmt: skip


def _list_ports(sheet: Schematic, ports: Sequence[str], directions: Mapping[str, Direction]) -> None:
    """Place ports that labels connect in columns at the left of a sheet."""
    places = [place for placed in sheet.placed for _, place in placed.pins] or [(0, 0)]
    left, top = min(x for x, _ in places), min(y for _, y in places)
    rows = max(10, (max(y for _, y in places) - top) // (2 * GRID))
    wide = -(-(LETTER * max(map(len, ports), default=0) + 5 * GRID) // GRID) * GRID
    for k, port in enumerate(ports):
        x = left - _LIST - wide * ((len(ports) - 1) // rows - k // rows)
        way = directions[port]
        sheet.name(PORTS[way], port, (x, top + 2 * GRID * (k % rows)), flip=way != "in")


def _title(sheet: Schematic, block: Subcircuit) -> None:
    places = [place for placed in sheet.placed for _, place in placed.pins] or [(0, 0)]
    x, y = min(x for x, _ in places), min(y for _, y in places)
    summary = block.summary.removeprefix(f"{block.name}: ").replace("\n", " ")
    sheet.write(f"{block.name}: {summary}" if summary else block.name, (x, y - 80), 2 * TEXT)
