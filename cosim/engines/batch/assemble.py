"""The arrays of a circuit: what `layout.Structure` and `layout.Solver` hold, from its devices and their tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.elements import Capacitor, Element, Source
from cosim.engines.batch.lanes import LANES
from cosim.engines.batch.layout import GROUND, Structure
from cosim.engines.batch.structure import SPARE, Nets, Pattern, Program, TabulatedDevice, devices_of, factor, nets_of
from cosim.engines.batch.tables import FLOAT_COLUMNS, Float, GridAxis, Kind, Table, Tied
from cosim.engines.batch.unsupported import Unsupported

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]  # fields of Structure


@dataclass(frozen=True, eq=False)
class Assembled:
    """A circuit ready to be solved. net, source: name -> index; tied, floating: devices in the arrays' order."""

    nets: Nets
    net: Mapping[str, int]
    source: Mapping[str, int]
    tied: tuple[TabulatedDevice, ...]
    floating: tuple[TabulatedDevice, ...]
    program: Program
    structure: Structure


def assemble(elements: Sequence[Element], tables: Mapping[Kind, Table]) -> Assembled:
    """Raises Unsupported for what there is no model of."""
    devices = devices_of(elements)
    nets = nets_of(elements, devices)
    net = {name: index for index, name in enumerate(nets.names)}
    sources = [element for element in elements if isinstance(element, Source)]
    source = {element.name: index for index, element in enumerate(sources)}
    maker = _Maker(nets, net, Pattern(nets.unknowns))
    tied = maker.ordered(device for device in devices if not device.kind.floating)
    floating = tuple(device for device in devices if device.kind.floating)
    kinds = list(dict.fromkeys(device.kind for device in tied))
    lines = maker.lines(tied, kinds)
    fields = {
        **maker.linear(elements, tied, tables),
        **lines.arrays,
        **maker.tied(tied, lines.of),
        **maker.floating(floating),
        **tied_tables([tables[kind] for kind in kinds]),
        **float_tables([tables[kind] for kind in dict.fromkeys(device.kind for device in floating)]),
    }
    program = factor(maker.pattern)
    rows = np.array([nets.row[name] for name in nets.names])
    row = np.where(rows < 0, nets.unknowns, program.order[rows])
    offsets = [(net[name], source[through], sign) for name, path in nets.paths.items() for through, sign in path]
    placed = {key: _placed(program, key, values) for key, values in fields.items()}
    capacitors, farad = placed.pop("capacitors"), placed.pop("farad")
    placed["constant"] = _constant(program, capacitors, farad)
    structure = Structure(
        row=row.astype(np.int64),
        offsets=np.array([pair[:2] for pair in offsets], dtype=np.int64).reshape(-1, 2),
        offset_sign=np.array([sign for *_, sign in offsets], dtype=np.float64),
        currents=np.array(
            [(net[one.a], net[one.b], source[one.name]) for one in sources if one.kind == "i"], dtype=np.int64
        ).reshape(-1, 3),
        **_by_net(capacitors, farad, len(net)),
        **placed,
    )
    return Assembled(nets, net, source, tied, floating, program, structure)


_PLACES = {"capacitors": slice(2, 6), "gates": slice(3, 7), "drains": slice(3, 7), "tied": slice(4, 10)}


def _placed(program: Program, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Entry numbers of the pattern as rows of the matrix."""
    columns = slice(5, 14) if name == "floating" else _PLACES.get(name)
    if columns is None:
        return values
    found = values.copy()
    found[:, columns] = program.placed(found[:, columns])
    return found


def _constant(program: Program, capacitors: Whole, farad: Array) -> Array:
    """Return the capacitors' entries in the matrix, F: positive on the diagonal, negative off it."""
    found = np.zeros(program.size + SPARE)
    for column, sign in zip(range(2, 6), (1.0, -1.0, -1.0, 1.0), strict=True):
        np.add.at(found, capacitors[:, column], sign * farad)
    return found


def _by_net(capacitors: Whole, farad: Array, nets: int) -> Columns:
    """Capacitors as the rows of a matrix from voltages to charges."""
    found: dict[tuple[int, int], float] = {}
    for (a, b), one in zip(capacitors[:, :2].tolist(), farad.tolist(), strict=True):
        for pair, value in (((a, a), one), ((a, b), -one), ((b, a), -one), ((b, b), one)):
            found[pair] = found.get(pair, 0.0) + value
    pairs = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    return {
        "capacitor_at": np.searchsorted(pairs[:, 0], np.arange(nets + 1)).astype(np.int64),
        "capacitor_net": np.ascontiguousarray(pairs[:, 1]),
        "farad": np.array([found[a, b] for a, b in pairs.tolist()], dtype=np.float64),
    }


@dataclass(frozen=True, eq=False)
class _Lines:
    """Gate and drain lines as arrays; of: device -> its gate line and drain line."""

    arrays: Columns
    of: Mapping[TabulatedDevice, tuple[int, int]]


class _Maker:
    """Arrays with nets as indices and places as numbers of the pattern."""

    def __init__(self, nets: Nets, net: Mapping[str, int], pattern: Pattern) -> None:
        self.nets, self.net, self.pattern = nets, net, pattern

    def fixed(self, net: str) -> bool:
        """Tell whether sources alone determine the net's voltage, so that it is no unknown."""
        return self.nets.row[net] < 0

    def ordered(self, devices: Iterable[TabulatedDevice]) -> tuple[TabulatedDevice, ...]:
        """Tied devices: whose drain alone is unknown, whose source is unknown, whose neither is; by net in each."""

        def place(device: TabulatedDevice) -> tuple[int, int, int]:
            group = 1 if not self.fixed(device.source) else 2 if self.fixed(device.drain) else 0
            return group, self.net[device.source], self.net[device.drain]

        return tuple(sorted(devices, key=place))

    def _pair(self, a: str, b: str) -> tuple[int, int, int, int]:
        return self.pattern.pair(self.nets.row[a], self.nets.row[b])

    def linear(
        self, elements: Sequence[Element], tied: Sequence[TabulatedDevice], tables: Mapping[Kind, Table]
    ) -> Columns:
        """Capacitors, and what the gates of tied devices share with their drains."""
        farad: dict[tuple[str, str], float] = {}
        for element in elements:
            if isinstance(element, Capacitor):
                farad[element.a, element.b] = farad.get((element.a, element.b), 0.0) + element.value
        for device in tied:
            table = tables[device.kind]
            assert isinstance(table, Tied)
            if device.gate != device.drain:
                pair = device.gate, device.drain
                farad[pair] = farad.get(pair, 0.0) + device.size * table.c_gd
        rows = [(self.net[a], self.net[b], *self._pair(a, b)) for a, b in farad]
        return {
            "capacitors": np.array(rows, dtype=np.int64).reshape(-1, 6),
            "farad": np.array(list(farad.values()), dtype=np.float64),
        }

    def lines(self, tied: Sequence[TabulatedDevice], kinds: Sequence[Kind]) -> _Lines:
        """The gate lines and drain lines of tied devices."""
        of: dict[TabulatedDevice, tuple[int, int]] = {}
        found: tuple[dict[tuple[str, str, int], list[float]], ...] = ({}, {})
        for device in tied:
            table = kinds.index(device.kind)
            places: list[int] = []
            for lines, end in zip(found, (device.gate, device.drain), strict=True):
                line = lines.setdefault((end, device.source, table), [float(len(lines)), device.sign, 0.0])
                line[2] += device.size
                places.append(int(line[0]))
            of[device] = places[0], places[1]
        arrays: Columns = {}
        for name, lines in zip(("gate", "drain"), found, strict=True):
            arrays[f"{name}_alone"] = np.array([self.fixed(source) for _, source, _ in lines], dtype=np.bool_)
            rows = [(self.net[end], self.net[source], table, *self._pair(end, source)) for end, source, table in lines]
            arrays[f"{name}s"] = np.array(rows, dtype=np.int64).reshape(-1, 7)
            arrays[f"{name}_sign"] = np.array([line[1] for line in lines.values()], dtype=np.float64)
            arrays[f"{name}_size"] = np.array([line[2] for line in lines.values()], dtype=np.float64)
        return _Lines(arrays, of)

    def tied(self, devices: Sequence[TabulatedDevice], lines: Mapping[TabulatedDevice, tuple[int, int]]) -> Columns:
        """Devices on their lines."""
        row, at = self.nets.row, self.pattern.at
        rows: list[tuple[int, ...]] = []
        for device in devices:
            d, g, s = row[device.drain], row[device.gate], row[device.source]
            places = at(d, g), at(d, d), at(d, s), at(s, g), at(s, d), at(s, s)
            rows.append((*lines[device], self.net[device.drain], self.net[device.source], *places))
        alone = sum(not self.fixed(one.drain) and self.fixed(one.source) for one in devices)
        inner = sum(not self.fixed(one.source) for one in devices)
        grounded = sum(not self.fixed(one.drain) and self.net[one.source] == GROUND for one in devices)
        return {
            "tied": np.array(rows, dtype=np.int64).reshape(-1, 10),
            "tied_sign": np.array([device.sign for device in devices], dtype=np.float64),
            "tied_size": np.array([device.size for device in devices], dtype=np.float64),
            "cascode": np.array([len(device.parts) > 1 for device in devices], dtype=np.bool_),
            "groups": np.array([alone, alone + inner, len(devices), grounded], dtype=np.int64),
        }

    def floating(self, devices: Sequence[TabulatedDevice]) -> Columns:
        """Devices whose source is not on their bulk. Raises Unsupported where the bulk floats, too."""
        kinds = list(dict.fromkeys(device.kind for device in devices))
        row, at = self.nets.row, self.pattern.at
        rows: list[tuple[int, ...]] = []
        for device in devices:
            if not self.fixed(device.bulk):
                raise Unsupported(f"transistor {device.parts[0]} has a bulk that floats, {device.bulk}")
            ends = row[device.gate], row[device.source], row[device.drain]
            nets = (self.net[net] for net in (device.gate, device.drain, device.source, device.bulk))
            rows.append((*nets, kinds.index(device.kind), *(at(i, j) for i in ends for j in ends)))
        return {
            "floating": np.array(rows, dtype=np.int64).reshape(-1, 14),
            "float_sign": np.array([device.sign for device in devices], dtype=np.float64),
            "float_size": np.array([device.size for device in devices], dtype=np.float64),
        }


def tied_tables(tables: Sequence[Table]) -> Columns:
    """Return the tables of tied devices in one array each, with where each begins."""
    tied = [table for table in tables if isinstance(table, Tied)]
    found: Columns = {
        "gate_axis": np.array([_axis(table.x) for table in tied]).reshape(-1, 3),
        "drain_axis": np.array([_axis(table.y) for table in tied]).reshape(-1, 3),
    }
    for name, parts in (
        ("gate", [table.gate for table in tied]),
        ("drain", [table.drain for table in tied]),
        ("response", [table.responses for table in tied]),
    ):
        rows = [_by_power(part) for part in parts]
        found[f"{name}_table"] = (
            np.concatenate([one.ravel() for one in rows]) if rows else np.zeros(0, dtype=np.float32)
        )
        found[f"{name}_at"] = np.cumsum([0, *(one.size for one in rows)], dtype=np.int64)
    return found


def _by_power(cubics: Array) -> NDArray[np.float32]:
    """(cells, columns, 4) as (cells, 4, LANES): all functions' coefficients of a power side by side."""
    found = np.zeros((len(cubics), 4, LANES), dtype=np.float32)
    found[:, :, : cubics.shape[1]] = cubics.transpose(0, 2, 1)
    return found


def float_tables(tables: Sequence[Table]) -> Columns:
    """Return the tables of floating devices in one array, with where each begins and its axes.

    A row of `float_axis` holds the axes of gate, source and drain, then U_T and the gate's shift.
    """
    floats = [table for table in tables if isinstance(table, Float)]
    parts = [one.values.reshape(-1, FLOAT_COLUMNS) for one in floats]
    beyond = np.zeros((LANES, FLOAT_COLUMNS))  # two points are read at a time
    axes = [(*_axis(one.gate), *_axis(one.source), *_axis(one.drain), one.thermal, one.shift) for one in floats]
    return {
        "float_table": np.concatenate([*parts, beyond]).ravel().astype(np.float32),
        "float_at": np.cumsum([0, *map(len, parts)], dtype=np.int64),
        "float_axis": np.array(axes, dtype=np.float64).reshape(-1, 11),
    }


def _axis(axis: GridAxis) -> tuple[float, float, float]:
    """Start, 1 / step, cells."""
    return axis.start, 1.0 / axis.step, float(axis.count - 1)
