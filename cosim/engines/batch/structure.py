"""A circuit as the solver takes it: nets, lines, devices, places in the matrix, and the program of its LU.

Voltage sources make no unknowns: a net that sources connect to ground or to another net is that one plus their values.
The order of elimination is that of minimum degree.
Source: W. F. Tinney and J. W. Walker, Proceedings of the IEEE 55 (1967) 1801, scheme 2.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.elements import GROUND, Capacitor, Element, Mos, Source
from cosim.engines.batch.layout import Solver
from cosim.engines.batch.tables import Kind
from cosim.engines.batch.unsupported import Unsupported

Whole = NDArray[np.int64]
SPARE = 16
Shape = tuple[tuple[str | float, ...], ...]


@dataclass(frozen=True)
class TabulatedDevice:
    """A transistor, or two in series with one gate. parts: names, the lower first; flipped: drain and source are."""

    kind: Kind
    drain: str
    gate: str
    source: str
    bulk: str
    size: int
    parts: tuple[str, ...]
    flipped: bool = False

    @property
    def sign(self) -> float:
        """1 of an n device."""
        return 1.0 if self.kind.polarity == "n" else -1.0


def devices_of(elements: Iterable[Element]) -> tuple[TabulatedDevice, ...]:
    """The transistors of a flat circuit, self-cascodes as one.

    Of a stack, three or more in series with one gate, each stays by itself, and its lowest is taken as one whose source
    floats: at millivolts from drain to source and a gate far above threshold the table of the others is not made for.
    """
    transistors = [element for element in elements if isinstance(element, Mos)]
    ends: dict[str, list[Mos]] = defaultdict(list)
    for mos in transistors:
        for net in (mos.drain, mos.source, mos.gate, mos.bulk):
            ends[net].append(mos)
    for element in elements:
        if not isinstance(element, Mos):
            for net in _ends(element):
                ends[net].append(_OTHER)
    upper, feet = dict[str, Mos](), set[str]()
    for mos in transistors:
        if mos.source != mos.bulk or (found := _cascode(mos, ends[mos.drain])) is None:
            continue
        if _cascode(found, ends[found.drain]) is None:
            upper[mos.name] = found
        else:
            feet.add(mos.name)
    above = {mos.name for mos in upper.values()}
    return tuple(
        _floating(mos) if mos.name in feet else _device(mos, upper.get(mos.name))
        for mos in transistors
        if mos.name not in above
    )


_OTHER = Mos("", "", "", "", "", "n", 0.0, 0.0)


def _ends(element: Element) -> tuple[str, str]:
    assert isinstance(element, Capacitor | Source), "a flat circuit has no instances"
    return element.a, element.b


def _cascode(lower: Mos, beside: Sequence[Mos]) -> Mos | None:
    """The device in series on top of it, where nothing else is on the net between them."""
    others = [mos for mos in beside if mos is not lower]
    if len(beside) != 2 or len(others) != 1:
        return None
    (mos,) = others
    same = (mos.polarity, mos.gate, mos.bulk, mos.m) == (lower.polarity, lower.gate, lower.bulk, lower.m)
    return mos if same and mos.source == lower.drain and mos.gate != lower.drain else None


def _device(mos: Mos, upper: Mos | None) -> TabulatedDevice:
    if upper is not None:
        kind = Kind(mos.polarity, mos.w, mos.l, cascode=(upper.w, upper.l))
        return TabulatedDevice(kind, upper.drain, mos.gate, mos.source, mos.bulk, mos.m, (mos.name, upper.name))
    if mos.source == mos.bulk:
        return TabulatedDevice(
            Kind(mos.polarity, mos.w, mos.l), mos.drain, mos.gate, mos.source, mos.bulk, mos.m, (mos.name,)
        )
    if mos.drain == mos.bulk:
        kind = Kind(mos.polarity, mos.w, mos.l)
        return TabulatedDevice(kind, mos.source, mos.gate, mos.drain, mos.bulk, mos.m, (mos.name,), flipped=True)
    return _floating(mos)


def _floating(mos: Mos) -> TabulatedDevice:
    kind = Kind(mos.polarity, mos.w, mos.l, floating=True)
    return TabulatedDevice(kind, mos.drain, mos.gate, mos.source, mos.bulk, mos.m, (mos.name,))


@dataclass(frozen=True)
class Nets:
    """row: net -> its unknown, -1 for ground; paths: net -> (source, sign) that it stands above that unknown."""

    names: tuple[str, ...]
    row: Mapping[str, int]
    paths: Mapping[str, tuple[tuple[str, float], ...]]

    @property
    def unknowns(self) -> int:
        """Return the number of unknowns."""
        return 1 + max(self.row.values())

    def behind(self, source: str) -> tuple[tuple[str, ...], float]:
        """Nets that a source connects to the rest, and 1 where their current flows through it from its first net."""
        found = [(net, sign) for net, path in self.paths.items() for name, sign in path if name == source]
        return tuple(net for net, _ in found), -found[0][1] if found else 1.0


def nets_of(elements: Sequence[Element], devices: Sequence[TabulatedDevice]) -> Nets:
    """Raises Unsupported where voltage sources make a loop."""
    names = dict.fromkeys([GROUND])
    for device in devices:
        names.update(dict.fromkeys((device.drain, device.gate, device.source, device.bulk)))
    joined: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    for element in elements:
        if isinstance(element, Mos):
            continue
        names.update(dict.fromkeys(_ends(element)))
        if isinstance(element, Source) and element.kind == "v":
            joined[element.b].append((element.a, element.name, 1.0))
            joined[element.a].append((element.b, element.name, -1.0))
    row: dict[str, int] = {}
    paths: dict[str, tuple[tuple[str, float], ...]] = {}
    unknowns = 0
    for root in names:
        if root in row:
            continue
        own, unknowns = (-1, unknowns) if root == GROUND else (unknowns, unknowns + 1)
        row[root], paths[root], waiting = own, (), [(root, "")]
        while waiting:
            net, through = waiting.pop()
            for other, source, sign in joined[net]:
                if source == through:
                    continue
                if other in row:
                    raise Unsupported(f"voltage source {source} closes a loop of voltage sources")
                row[other], paths[other] = own, (*paths[net], (source, sign))
                waiting.append((other, source))
    return Nets(tuple(names), row, paths)


@dataclass
class Pattern:
    """The entries of the matrix that devices write, by rows before any order."""

    unknowns: int
    entries: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def at(self, i: int, j: int) -> int:
        """A number for the entry of two rows, -1 where one is ground."""
        if i < 0 or j < 0:
            return -1
        return self.entries.setdefault((i, j), len(self.entries))

    def pair(self, i: int, j: int) -> tuple[int, int, int, int]:
        """The four of a conductance between two rows."""
        return self.at(i, i), self.at(i, j), self.at(j, i), self.at(j, j)


@dataclass(frozen=True)
class Program:
    """The LU of a pattern. order: row -> place among the pivots; places: entry number -> row of the matrix;

    size: entries with fill; SPARE rows follow, for what is written to entries of ground: one after the other, because a
    sum into one row waits for the sum before it. solver: the eliminations, by places in the matrix.
    """

    order: Whole
    places: Whole
    size: int
    solver: Solver

    def placed(self, entries: Whole) -> Whole:
        """Entry numbers of the pattern, -1 for those of ground, as rows of the matrix."""
        spare = self.size + np.arange(entries.size).reshape(entries.shape) % SPARE
        return np.where(entries < 0, spare, self.places[entries])


def factor(pattern: Pattern) -> Program:
    """Order by minimum degree and write the program down."""
    n = pattern.unknowns
    order = minimum_degree(n, pattern.entries)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    rows: list[set[int]] = [{k} for k in range(n)]  # columns of each row, in the new order
    columns = [set[int]() for _ in range(n)]
    for i, j in pattern.entries:
        rows[int(rank[i])].add(int(rank[j]))
    for i, found in enumerate(rows):
        for j in found:
            columns[j].add(i)
    for k in range(n):
        right = {j for j in rows[k] if j > k}
        for i in [i for i in columns[k] if i > k]:
            for j in right - rows[i]:
                columns[j].add(i)
            rows[i] |= right
    place = {pair: at for at, pair in enumerate((i, j) for i in range(n) for j in sorted(rows[i]))}
    below = [[i for i in sorted(columns[k]) if i > k] for k in range(n)]
    right = [[j for j in sorted(rows[k]) if j > k] for k in range(n)]
    targets = [[place[i, j] for j in right[k]] for k in range(n) for i in below[k]]
    places = _whole(place[int(rank[i]), int(rank[j])] for i, j in pattern.entries)
    seen: list[list[int]] = [[] for _ in range(n)]
    for i, j in pattern.entries:
        if i != j:
            seen[int(rank[j])].append(int(rank[i]))
    solver = Solver(
        pivot=_whole(place[k, k] for k in range(n)),
        below_at=_starts(below),
        below=_whole(place[i, k] for k in range(n) for i in below[k]),
        below_row=_whole(i for found in below for i in found),
        right_at=_starts(right),
        right=_whole(place[k, j] for k in range(n) for j in right[k]),
        right_row=_whole(j for found in right for j in found),
        target=_whole(t for found in targets for t in found),
        target_at=_starts(targets),
        seen_at=_starts(seen),
        seen=_whole(place[i, k] for k in range(n) for i in seen[k]),
        seen_row=_whole(i for found in seen for i in found),
    )
    return Program(rank, places, len(place), solver)


def minimum_degree(n: int, entries: Iterable[tuple[int, int]]) -> list[int]:
    """The order in which to eliminate: always a row with the fewest neighbours left, the first of several."""
    beside: list[set[int]] = [set() for _ in range(n)]
    for i, j in entries:
        if i != j:
            beside[i].add(j)
            beside[j].add(i)
    order: list[int] = []
    left = set(range(n))
    while left:
        k = min(left, key=lambda row: (len(beside[row]), row))
        order.append(k)
        left.remove(k)
        for i in beside[k]:
            beside[i] |= beside[k]
            beside[i] -= {i, k}
    return order


def _whole(values: Iterable[int]) -> Whole:
    return np.array(list(values), dtype=np.int64)


def _starts(lists: Sequence[Sequence[int]]) -> Whole:
    return np.concatenate([[0], np.cumsum([len(one) for one in lists], dtype=np.int64)]).astype(np.int64)


def shape_of(elements: Iterable[Element]) -> Shape:
    """Return everything that the solver's structure depends on: all but values of sources and what transistors drew."""
    return tuple(
        (one.name, one.drain, one.gate, one.source, one.bulk, one.polarity, one.w, one.l, one.m)
        if isinstance(one, Mos)
        else (one.name, *_ends(one), one.value if isinstance(one, Capacitor) else one.kind)  # pyright: ignore
        for one in elements
    )
