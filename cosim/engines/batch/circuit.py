"""Circuits as the engine sees them: flat, with tabulated devices, nets as unknowns, and the LU of their matrix planned.

Voltage sources make no unknowns: a net that sources connect to ground or to another net is that one plus their values.
The LU is planned once for all instances of a circuit, from the sparsity pattern alone; the order of elimination is that
of minimum degree.
Source: W. F. Tinney and J. W. Walker, Proceedings of the IEEE 55 (1967) 1801, scheme 2.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.elements import GROUND, Capacitor, Circuit, Element, Mos, Resistor, Source
from cosim.engines.batch.arrays import LuProgram
from cosim.engines.batch.device_tables import DeviceKind


class Unsupported(Exception):
    """A circuit that the batched engine has no model for, so that another must run it; the text says what."""


Key = TypeVar("Key")
Value = TypeVar("Value")


class FlatCircuit(NamedTuple):
    """A flat circuit of the batched engine in two parts: its sources, and all other elements.

    Benches whose other elements are equal share one tuple of them.
    """

    shared: tuple[Element, ...]
    sources: tuple[Source, ...]

    @property
    def elements(self) -> tuple[Element, ...]:
        """Return all elements of the batched engine's flat circuit, the sources last."""
        return (*self.shared, *self.sources)


class RecentValues(Generic[Key, Value]):
    """A cache of the batched engine for the last few values of a slow function; keys are compared, not hashed."""

    def __init__(self, count: int) -> None:
        self._count, self._kept = count, list[tuple[Key, Value]]()

    def of(self, key: Key, make: Callable[[Key], Value]) -> Value:
        """Return the cached value of a key, or compute it by `make` and keep it in the engine's cache."""
        for at, (other, value) in enumerate(self._kept):
            if other == key:
                self._kept.append(self._kept.pop(at))
                return value
        value = make(key)
        self._kept = [*self._kept[-self._count + 1 :], (key, value)]
        return value


_flats: RecentValues[Circuit, FlatCircuit] = RecentValues(2)


def split_sources(circuit: Circuit) -> tuple[Circuit, tuple[Source, ...]]:
    """Return a circuit to simulate without the sources of its top level, and these sources.

    Two such circuits of the same objects are equal at once, because tuples look first whether objects are the same.
    """
    sources = tuple([element for element in circuit.elements if isinstance(element, Source)])
    rest = tuple([element for element in circuit.elements if not isinstance(element, Source)])
    return replace(circuit, elements=rest), sources


def flatten(circuit: Circuit) -> FlatCircuit:
    """Return a circuit without subcircuits, as the batched engine simulates it."""
    undriven, sources = split_sources(circuit)
    shared, inner = _flats.of(undriven, _flatten)
    return FlatCircuit(shared, (*inner, *sources))


def _flatten(circuit: Circuit) -> FlatCircuit:
    """Return a circuit without sources at its top level as a flat one; those of its subcircuits are its sources."""
    rest, sources = split_sources(circuit.flat())
    return FlatCircuit(rest.elements, sources)


Whole = NDArray[np.int64]
SPARE = 16  # places of the matrix for entries of ground
CircuitKey = tuple[tuple[str | float, ...], ...]


@dataclass(frozen=True)
class TabulatedDevice:
    """A transistor of the batched engine, evaluated from a table, or a self-cascode of two with one gate.

    parts: names of the transistors, the lower first; size: multiplicity; flipped: drain and source have changed places.
    """

    kind: DeviceKind
    drain: str
    gate: str
    source: str
    bulk: str
    size: int
    parts: tuple[str, ...]
    flipped: bool = False


def devices_of(elements: Iterable[Element]) -> tuple[TabulatedDevice, ...]:
    """Return the batched engine's devices of a flat circuit, where each self-cascode is one device.

    The transistors of a stack (three or more in series with one gate) stay single devices, and the lowest has a
    four-terminal table: at millivolts from drain to source and a gate far above threshold the three-terminal table is
    too coarse.
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
        _four_terminal_device(mos) if mos.name in feet else _device(mos, upper.get(mos.name))
        for mos in transistors
        if mos.name not in above
    )


_OTHER = Mos("", "", "", "", "", "n", 0.0, 0.0)


def _ends(element: Element) -> tuple[str, str]:
    assert isinstance(element, Capacitor | Resistor | Source), "a flat circuit has no instances"
    return element.a, element.b


def _cascode(lower: Mos, beside: Sequence[Mos]) -> Mos | None:
    """Return the transistor in series on top of `lower` with the same gate; None if others share the net."""
    others = [mos for mos in beside if mos is not lower]
    if len(beside) != 2 or len(others) != 1:
        return None
    (mos,) = others
    same = (mos.polarity, mos.gate, mos.bulk, mos.m) == (lower.polarity, lower.gate, lower.bulk, lower.m)
    return mos if same and mos.source == lower.drain and mos.gate != lower.drain else None


def _device(mos: Mos, upper: Mos | None) -> TabulatedDevice:
    if upper is not None:
        kind = DeviceKind(mos.polarity, mos.w, mos.l, cascode=(upper.w, upper.l))
        return TabulatedDevice(kind, upper.drain, mos.gate, mos.source, mos.bulk, mos.m, (mos.name, upper.name))
    if mos.source == mos.bulk:
        return TabulatedDevice(
            DeviceKind(mos.polarity, mos.w, mos.l), mos.drain, mos.gate, mos.source, mos.bulk, mos.m, (mos.name,)
        )
    if mos.drain == mos.bulk:
        kind = DeviceKind(mos.polarity, mos.w, mos.l)
        return TabulatedDevice(kind, mos.source, mos.gate, mos.drain, mos.bulk, mos.m, (mos.name,), flipped=True)
    return _four_terminal_device(mos)


def _four_terminal_device(mos: Mos) -> TabulatedDevice:
    kind = DeviceKind(mos.polarity, mos.w, mos.l, four_terminal=True)
    return TabulatedDevice(kind, mos.drain, mos.gate, mos.source, mos.bulk, mos.m, (mos.name,))


@dataclass(frozen=True)
class Nets:
    """The nets of a circuit in the batched engine, and the solver's unknowns.

    row: net -> its unknown, -1 for a net fixed to ground; paths: net -> (source, sign) of the voltages to add to that
    unknown.
    """

    names: tuple[str, ...]
    row: Mapping[str, int]
    paths: Mapping[str, tuple[tuple[str, float], ...]]

    @property
    def unknowns(self) -> int:
        """Return the number of unknowns of the solver, node voltages."""
        return 1 + max(self.row.values())

    def behind(self, source: str) -> tuple[tuple[str, ...], float]:
        """Return the nets of a simulated circuit whose voltages include that of a voltage source, and a sign.

        The sign is 1 where the current out of these nets flows through the source from its first net, else -1.
        """
        found = [(net, sign) for net, path in self.paths.items() for name, sign in path if name == source]
        return tuple(net for net, _ in found), -found[0][1] if found else 1.0


def nets_of(elements: Sequence[Element], devices: Sequence[TabulatedDevice]) -> Nets:
    """Return the nets of simulated elements and devices with their unknowns.

    Raises Unsupported for a loop of voltage sources.
    """
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


def check_driven(elements: Sequence[Element], nets: Nets) -> None:
    """Raise Unsupported for a net on which there are only gates, bulks and capacitors: leakage sets its voltage.

    The net between the transistors of a self-cascode, which is one device here, is none of `nets`.
    """
    driven = {-1}
    for element in elements:
        match element:
            case Mos(_, drain, _, source):
                driven |= {nets.row[net] for net in (drain, source) if net in nets.row}
            case Capacitor():
                pass
            case _:
                driven |= {nets.row[net] for net in _ends(element)}
    if floating := next((net for net, row in nets.row.items() if row not in driven), None):
        raise Unsupported(f"only gates and capacitors are on the net {floating}, so leakage sets its voltage")


@dataclass
class SparsityPattern:
    """The entries of the solver's matrix that devices write, numbered in the order in which they are asked for.

    Rows and columns are in their original order.
    """

    unknowns: int
    entries: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def at(self, i: int, j: int) -> int:
        """Return the number of an entry of the solver's matrix, -1 where its row or column is ground."""
        if i < 0 or j < 0:
            return -1
        return self.entries.setdefault((i, j), len(self.entries))

    def pair(self, i: int, j: int) -> tuple[int, int, int, int]:
        """Return the numbers of the solver matrix' four entries that a conductance between two rows has."""
        return self.at(i, i), self.at(i, j), self.at(j, i), self.at(j, j)


@dataclass(frozen=True)
class MatrixLayout:
    """Places of a sparsity pattern's entries in the solver's matrix, and the program of its LU.

    order: row -> place among the pivots; places: entry number -> place in the matrix; size: entries with fill; behind
    them come SPARE more, for what is written to entries of ground: one after the other, because a sum into one place
    waits for the sum before it. lu: the eliminations.
    """

    order: Whole
    places: Whole
    size: int
    lu: LuProgram

    def matrix_rows(self, entries: Whole) -> Whole:
        """Return the places in the solver's matrix of entry numbers, SPARE places for the -1 of ground."""
        spare = self.size + np.arange(entries.size).reshape(entries.shape) % SPARE
        return np.where(entries < 0, spare, self.places[entries])


def symbolic_lu(pattern: SparsityPattern) -> MatrixLayout:
    """Plan the solver's LU for a sparsity pattern: order of elimination by minimum degree, fill, and the program."""
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
    neighbour_entry: list[list[int]] = [[] for _ in range(n)]
    for i, j in pattern.entries:
        if i != j:
            neighbour_entry[int(rank[j])].append(int(rank[i]))
    program = LuProgram(
        pivot=_whole(place[k, k] for k in range(n)),
        below_start=_starts(below),
        below=_whole(place[i, k] for k in range(n) for i in below[k]),
        below_row=_whole(i for found in below for i in found),
        right_start=_starts(right),
        right=_whole(place[k, j] for k in range(n) for j in right[k]),
        right_row=_whole(j for found in right for j in found),
        target=_whole(t for found in targets for t in found),
        target_start=_starts(targets),
        neighbour_start=_starts(neighbour_entry),
        neighbour_entry=_whole(place[i, k] for k in range(n) for i in neighbour_entry[k]),
        neighbour_row=_whole(i for found in neighbour_entry for i in found),
    )
    return MatrixLayout(rank, places, len(place), program)


def minimum_degree(n: int, entries: Iterable[tuple[int, int]]) -> list[int]:
    """Return the order in which the solver eliminates n rows: always the row with the fewest remaining neighbours."""
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


def circuit_key(elements: Iterable[Element]) -> CircuitKey:
    """Return all that the batched solver's structure depends on: no values of sources, no deviations."""
    return tuple(
        (one.name, one.drain, one.gate, one.source, one.bulk, one.polarity, one.w, one.l, one.m)
        if isinstance(one, Mos)
        else (one.letter, one.name, *_ends(one), one.kind if isinstance(one, Source) else one.value)  # pyright: ignore
        for one in elements
    )
