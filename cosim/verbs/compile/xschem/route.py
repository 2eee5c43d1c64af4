"""Wires of a schematic: short ones between pins of a net, found on the grid; what is too far apart gets labels.

A wire bends seldom, crosses wires of other nets only straight, and keeps off symbols and their texts. It ends at a pin
or on a wire of its own net, where no other net crosses, because xschem connects what a wire's end touches.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise

from cosim.verbs.compile.xschem.sheet import GRID, Box, Placed, Point, Schematic, Wire

_LONGEST = 100.0  # cost of a wire, in steps of the grid
_STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))
_BEND, _CROSSING, _TEXT, _NEAR = 4.0, 3.0, 4.0, 1.0  # cost beside that of a step
_TRIED = 2500  # points of the grid that are looked at for a wire, at most
_STRAIGHT = 80  # steps of a wire without bends that is preferred to any other


def points_of(wire: Wire) -> Iterator[Point]:
    """Yield the grid points of a wire, its ends among them."""
    x1, y1, x2, y2 = wire
    if y1 == y2:
        yield from ((x, y1) for x in range(x1, x2 + 1, GRID))
    else:
        yield from ((x1, y) for y in range(y1, y2 + 1, GRID))


def _inside(box: Box) -> Iterator[Point]:
    x1, y1, x2, y2 = (-(-box[0] // GRID), -(-box[1] // GRID), box[2] // GRID, box[3] // GRID)
    yield from ((x * GRID, y * GRID) for x in range(x1, x2 + 1) for y in range(y1, y2 + 1))


@dataclass
class Router:
    """The grid of a sheet while its wires are routed.

    pins: place -> net; blocked: points inside symbols; costly: points of texts; close: points next to a pin; along:
    point -> nets of the wires through it, and whether they run horizontally, None for an end or a corner; groups: net
    -> its parts that wires connect, as points.
    """

    sheet: Schematic
    pins: dict[Point, str] = field(default_factory=dict[Point, str])
    blocked: set[Point] = field(default_factory=set[Point])
    costly: set[Point] = field(default_factory=set[Point])
    close: set[Point] = field(default_factory=set[Point])
    along: dict[Point, dict[str, bool | None]] = field(default_factory=lambda: defaultdict(dict))
    groups: dict[str, list[set[Point]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for placed in self.sheet.placed:
            self.take(placed)
        for net, wire in self.sheet.wires:
            self._occupy(net, wire)
            self._join(net, set(points_of(wire)))

    def take(self, placed: Placed) -> None:
        """Take a symbol that was placed into account: its pins, its drawing and its texts."""
        self.blocked |= set(_inside(placed.area(placed.symbol.box)))
        if placed.symbol.beside is not None:
            self.costly |= set(_inside(placed.area(placed.symbol.beside)))
        for net, (x, y) in placed.pins:
            place = x, y
            self.pins[place] = net
            self.close |= {(x + dx * GRID, y + dy * GRID) for dx, dy in _STEPS}
            self._join(net, {place})

    def connect(self, net: str, zones: Mapping[Point, str] | None = None) -> None:
        """Route wires between the parts of a net that are near each other.

        zones: place of a pin -> its zone, where wires must not leave the zones; None where they may.
        """
        parts = sorted(self.groups[net], key=lambda part: min(part))
        done: list[set[Point]] = []
        while parts:
            one = parts.pop(0)
            zone = _zones(one, zones)
            near = parts if zone is None else [part for part in parts if _zones(part, zones) == zone]
            path = self._straight(net, one, near) or self._path(net, one, near)
            if path is None:
                done.append(one)
                continue
            reached = next(part for part in parts if path[-1] in part)
            self._draw(net, path)
            parts.remove(reached)
            parts.insert(0, one | reached | set(path))
        self.groups[net] = sorted(done, key=lambda part: (-len(part), min(part)))

    def _join(self, net: str, points: set[Point]) -> None:
        touching = [part for part in self.groups[net] if part & points]
        others = [part for part in self.groups[net] if not part & points]
        self.groups[net] = [*others, points.union(*touching)]

    def _occupy(self, net: str, wire: Wire) -> None:
        x1, y1, x2, y2 = wire
        for point in points_of(wire):
            end = point in ((x1, y1), (x2, y2))
            before = self.along[point].get(net, y1 == y2)
            self.along[point][net] = None if end or before != (y1 == y2) else y1 == y2

    def _draw(self, net: str, path: list[Point]) -> None:
        corners = [
            path[0],
            *(b for a, b, c in zip(path, path[1:], path[2:], strict=False) if (a[0] == b[0]) != (b[0] == c[0])),
            path[-1],
        ]
        for start, end in pairwise(corners):
            self.sheet.wire(net, start, end)
            self._occupy(net, (*min(start, end), *max(start, end)))

    def _straight(self, net: str, one: set[Point], parts: list[set[Point]]) -> list[Point] | None:
        """Return the grid points of the shortest straight wire from one part of a net to another, None without one."""
        rows, best = dict[tuple[bool, int], list[Point]](), (float("inf"), 0, ())
        for x, y in self._open(net, one):
            rows.setdefault((True, y), []).append((x, y))
            rows.setdefault((False, x), []).append((x, y))
        for part in parts:
            for end in sorted(self._open(net, part)):
                for flat in (True, False):
                    for start in rows.get((flat, end[flat]), ()):
                        length = abs(end[0] - start[0]) + abs(end[1] - start[1])
                        if (length, abs(end[1])) < best[:2] and length <= GRID * _STRAIGHT:
                            wire = list(points_of((*min(start, end), *max(start, end))))
                            inner = (self._cost(net, point, flat, goal=False) for point in wire[1:-1])
                            if all(cost is not None and cost < _BEND for cost in inner):
                                best = (length, abs(end[1]), tuple(wire if start < end else wire[::-1]))
        return list(best[2]) or None

    def _open(self, net: str, points: Iterable[Point]) -> set[Point]:
        """Return the points of a net where a wire may begin or end: those that no other net crosses."""
        return {point for point in points if point not in self.along or self.along[point].keys() <= {net}}

    def _path(self, net: str, start: Iterable[Point], parts: list[set[Point]]) -> list[Point] | None:
        """Return the grid points of the cheapest wire from one part of a net to any other; None where none is short."""
        free = self._open(net, (point for part in parts for point in part))
        if not free:
            return None
        xs, ys = zip(*free, strict=True)
        near = min(xs), min(ys), max(xs), max(ys)
        heap: list[tuple[float, float, Point, int]] = []
        cost, before = dict[tuple[Point, int], float](), dict[tuple[Point, int], tuple[Point, int]]()
        for point in sorted(self._open(net, start)):
            for k in range(4):
                cost[point, k] = 0.0
                heappush(heap, (_distance(point, near), 0.0, point, k))
        for _ in range(_TRIED):
            if not heap:
                return None
            bound, spent, point, way = heappop(heap)
            if spent > cost[point, way]:
                continue
            if bound > _LONGEST:
                return None
            if point in free:
                return _traced((point, way), before)
            crossing = spent and point in self.along
            for k, (dx, dy) in enumerate(_STEPS):
                if k != way and (crossing or not spent or k // 2 == way // 2):
                    continue
                after = point[0] + dx * GRID, point[1] + dy * GRID
                step = self._cost(net, after, dy == 0, goal=after in free)
                if step is None:
                    continue
                total = spent + step + (_BEND if k != way else 0.0)
                if total < cost.get((after, k), float("inf")):
                    cost[after, k], before[after, k] = total, (point, way)
                    heappush(heap, (total + _distance(after, near), total, after, k))
        return None

    def _cost(self, net: str, point: Point, horizontal: bool, *, goal: bool) -> float | None:  # noqa: FBT001
        """Return the cost of a step to a point, None where a wire of this net must not go."""
        if goal:
            return 1.0
        if point in self.blocked or point in self.pins:
            return None
        total = 1.0
        if point in self.along:
            for other, runs in self.along[point].items():
                if other == net or runs is None or runs == horizontal:
                    return None
                total += _CROSSING
        return total + _TEXT * (point in self.costly) + _NEAR * (point in self.close)


def _zones(part: set[Point], zones: Mapping[Point, str] | None) -> set[str] | None:
    return None if zones is None else {zones[point] for point in part & zones.keys()}


def _distance(point: Point, box: Box) -> float:
    """Return the steps on the grid from a point to a box."""
    x, y = point
    across = max(box[0] - x, 0, x - box[2])
    return (across + max(box[1] - y, 0, y - box[3])) / GRID


def _traced(last: tuple[Point, int], before: dict[tuple[Point, int], tuple[Point, int]]) -> list[Point]:
    found = [last]
    while found[-1] in before:
        found.append(before[found[-1]])
    return [point for point, _ in reversed(found)]
