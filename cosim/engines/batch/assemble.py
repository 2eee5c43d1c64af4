"""Assemble a circuit for the kernels: the arrays of `arrays.CircuitArrays` from its devices and their tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Tolerances
from cosim.circuit.elements import Capacitor, Element, Resistor, Source
from cosim.engines.batch.arrays import GROUND, CircuitArrays
from cosim.engines.batch.circuit import (
    SPARE,
    MatrixLayout,
    Nets,
    SparsityPattern,
    TabulatedDevice,
    Unsupported,
    check_driven,
    devices_of,
    nets_of,
    symbolic_lu,
)
from cosim.engines.batch.device_tables import (
    FOUR_TERMINAL_COLUMNS,
    DeviceKind,
    DeviceTable,
    FourTerminalTable,
    GridAxis,
    ThreeTerminalTable,
)
from cosim.engines.batch.lanes import LANES

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]  # fields of Structure
_GMIN = Tolerances().gmin  # S, with which tables are measured


@dataclass(frozen=True, eq=False)
class AssembledCircuit:
    """A circuit that the batched engine can solve, as arrays.

    net, source: name -> index, that of a source with its letter; three_terminal, four_terminal: devices in the order of
    their arrays; sample_clocks (gates, sources): by how much a source's volt turns each sample
    gate off, 1, -1 or 0.
    """

    nets: Nets
    net: Mapping[str, int]
    source: Mapping[str, int]
    three_terminal: tuple[TabulatedDevice, ...]
    four_terminal: tuple[TabulatedDevice, ...]
    matrix: MatrixLayout
    arrays: CircuitArrays
    sample_clocks: Array


def assemble(elements: Sequence[Element], tables: Mapping[DeviceKind, DeviceTable]) -> AssembledCircuit:
    """Assemble a flat circuit into arrays for the batched engine; tables: for each kind of its devices.

    Raises Unsupported for an element or a device without a model.
    """
    devices = devices_of(elements)
    nets = nets_of(elements, devices)
    check_driven(elements, nets)
    net = {name: index for index, name in enumerate(nets.names)}
    sources = [element for element in elements if isinstance(element, Source)]
    source = {element.letter + element.name: index for index, element in enumerate(sources)}
    builder = _ArrayBuilder(nets, net, SparsityPattern(nets.unknowns))
    three_terminal = builder.ordered(device for device in devices if not device.kind.four_terminal)
    four_terminal = tuple(device for device in devices if device.kind.four_terminal)
    kinds = list(dict.fromkeys(device.kind for device in three_terminal))
    line_arrays, lines_of = builder.lines(three_terminal, kinds)
    fields = {
        **builder.linear(elements, three_terminal, four_terminal, tables),
        **line_arrays,
        **builder.three_terminal(three_terminal, lines_of),
        **builder.four_terminal(four_terminal),
        **_three_terminal_tables([tables[kind] for kind in kinds]),
        **_four_terminal_tables([tables[kind] for kind in dict.fromkeys(device.kind for device in four_terminal)]),
    }
    matrix = symbolic_lu(builder.pattern)
    rows = np.array([nets.row[name] for name in nets.names])
    row = np.where(rows < 0, nets.unknowns, matrix.order[rows])
    offsets = [(net[name], source[f"v{through}"], sign) for name, path in nets.paths.items() for through, sign in path]
    placed = {key: _matrix_places(matrix, key, values) for key, values in fields.items()}
    capacitors, capacitance = placed.pop("capacitors"), placed.pop("capacitance")
    resistors, conductance = placed.pop("resistors"), placed["conductance"]
    placed["capacitance_matrix"] = _linear_matrix(matrix, capacitors, capacitance)
    placed["conductance_matrix"] = _linear_matrix(matrix, resistors, conductance)
    placed["resistors"] = np.ascontiguousarray(resistors[:, :2])
    arrays = CircuitArrays(
        row=row.astype(np.int64),
        offsets=np.array([pair[:2] for pair in offsets], dtype=np.int64).reshape(-1, 2),
        offset_sign=np.array([sign for *_, sign in offsets], dtype=np.float64),
        current_sources=np.array(
            [(net[one.a], net[one.b], source[f"i{one.name}"]) for one in sources if one.kind == "i"], dtype=np.int64
        ).reshape(-1, 3),
        **_capacitors_by_net(capacitors, capacitance, len(net)),
        **placed,
    )
    clocks = _sample_clocks(elements, four_terminal, nets, source)
    return AssembledCircuit(nets, net, source, three_terminal, four_terminal, matrix, arrays, clocks)


def _sample_clocks(
    elements: Sequence[Element], switches: Iterable[TabulatedDevice], nets: Nets, source: Mapping[str, int]
) -> Array:
    """Return `AssembledCircuit.sample_clocks`: a row for each gate net of switches with a capacitor at one end.

    Gates that transistors drive, as those of a clock generator, are left out. Where wires are capacitors
    (`--extracted`), other switches count as sample gates too, which only shortens steps.
    """
    kept = {net for one in elements if isinstance(one, Capacitor) for net in (one.a, one.b) if nets.row[net] >= 0}
    gates = {(one.gate, one.kind.polarity) for one in switches if {one.drain, one.source} & kept}
    driven = sorted((gate, polarity) for gate, polarity in gates if nets.row[gate] < 0)
    found = np.zeros((len(driven), len(source)))
    for row, (gate, polarity) in zip(found, driven, strict=True):
        for through, sign in nets.paths[gate]:
            row[source[f"v{through}"]] += -sign if polarity == "n" else sign
    return found


_PLACES = {
    "capacitors": slice(2, 6),
    "resistors": slice(2, 6),
    "gate_lines": slice(3, 7),
    "drain_lines": slice(3, 7),
    "three_terminal": slice(4, 10),
    "four_terminal": slice(5, 14),
}


def _matrix_places(matrix: MatrixLayout, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return an array of the circuit with its entry numbers of the pattern replaced by places in the matrix."""
    found = values.copy()
    if columns := _PLACES.get(name):
        found[:, columns] = matrix.matrix_rows(found[:, columns])
    return found


def _linear_matrix(matrix: MatrixLayout, pairs: Whole, values: Array) -> Array:
    """Return the entries of capacitors, F, or resistors, S, in the matrix: positive on the diagonal, else negative."""
    found = np.zeros(matrix.size + SPARE)
    for column, sign in zip(range(2, 6), (1.0, -1.0, -1.0, 1.0), strict=True):
        np.add.at(found, pairs[:, column], sign * values)
    return found


def _capacitors_by_net(capacitors: Whole, capacitance: Array, nets: int) -> Columns:
    """Return the capacitors as a sparse matrix from voltages of nets to their charges, row by row."""
    found: dict[tuple[int, int], float] = {}
    for (a, b), one in zip(capacitors[:, :2].tolist(), capacitance.tolist(), strict=True):
        for pair, value in (((a, a), one), ((a, b), -one), ((b, a), -one), ((b, b), one)):
            found[pair] = found.get(pair, 0.0) + value
    pairs = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    return {
        "capacitor_start": np.searchsorted(pairs[:, 0], np.arange(nets + 1)).astype(np.int64),
        "capacitor_net": np.ascontiguousarray(pairs[:, 1]),
        "capacitance": np.array([found[a, b] for a, b in pairs.tolist()], dtype=np.float64),
    }


class _ArrayBuilder:
    """A builder of a circuit's arrays; nets are indices in them, matrix entries are numbers of the pattern."""

    def __init__(self, nets: Nets, net: Mapping[str, int], pattern: SparsityPattern) -> None:
        self.nets, self.net, self.pattern = nets, net, pattern

    def fixed(self, net: str) -> bool:
        """Tell whether sources alone determine the net's voltage, so that it is no unknown."""
        return self.nets.row[net] < 0

    def ordered(self, devices: Iterable[TabulatedDevice]) -> tuple[TabulatedDevice, ...]:
        """Return three-terminal devices in three groups, each in order of their nets.

        The groups are devices of which only the drain net is unknown, those with an unknown source net, and those with
        neither.
        """

        def place(device: TabulatedDevice) -> tuple[int, int, int]:
            group = 1 if not self.fixed(device.source) else 2 if self.fixed(device.drain) else 0
            return group, self.net[device.source], self.net[device.drain]

        return tuple(sorted(devices, key=place))

    def _pair(self, a: str, b: str) -> tuple[int, int, int, int]:
        return self.pattern.pair(self.nets.row[a], self.nets.row[b])

    def linear(
        self,
        elements: Sequence[Element],
        three_terminal: Sequence[TabulatedDevice],
        four_terminal: Sequence[TabulatedDevice],
        tables: Mapping[DeviceKind, DeviceTable],
    ) -> Columns:
        """Return resistors and capacitors, among them those between gates and drains of three-terminal devices.

        Resistors of gmin stand for what a junction of a four-terminal device loses; other tables have it in their
        current.
        """
        capacitance: dict[tuple[str, str], float] = {}
        for element in elements:
            if isinstance(element, Capacitor):
                capacitance[element.a, element.b] = capacitance.get((element.a, element.b), 0.0) + element.value
        for device in three_terminal:
            table = tables[device.kind]
            assert isinstance(table, ThreeTerminalTable)
            if device.gate != device.drain:
                pair = device.gate, device.drain
                capacitance[pair] = capacitance.get(pair, 0.0) + device.size * table.c_gd
        conductance: dict[tuple[str, str], float] = {}
        for device in four_terminal:
            for pair in ((end, device.bulk) for end in (device.drain, device.source) if end != device.bulk):
                conductance[pair] = conductance.get(pair, 0.0) + device.size * _GMIN
        resistors = [(one.a, one.b, 1.0 / one.value) for one in elements if isinstance(one, Resistor)]
        resistors += [(*pair, value) for pair, value in conductance.items()]
        return {
            "capacitors": self._rows(capacitance),
            "capacitance": np.array(list(capacitance.values()), dtype=np.float64),
            "resistors": self._rows((a, b) for a, b, _ in resistors),
            "conductance": np.array([value for *_, value in resistors], dtype=np.float64),
        }

    def _rows(self, pairs: Iterable[tuple[str, str]]) -> Whole:
        """Return for each pair of nets their indices, and the numbers of its four entries: (n, 6)."""
        rows = [(self.net[a], self.net[b], *self._pair(a, b)) for a, b in pairs]
        return np.array(rows, dtype=np.int64).reshape(-1, 6)

    def lines(
        self, three_terminal: Sequence[TabulatedDevice], kinds: Sequence[DeviceKind]
    ) -> tuple[Columns, dict[TabulatedDevice, tuple[int, int]]]:
        """Return the gate and drain lines of three-terminal devices, and each device's gate line and drain line."""
        of: dict[TabulatedDevice, tuple[int, int]] = {}
        found: tuple[dict[tuple[str, str, int], list[float]], ...] = ({}, {})
        for device in three_terminal:
            table = kinds.index(device.kind)
            places: list[int] = []
            for lines, end in zip(found, (device.gate, device.drain), strict=True):
                line = lines.setdefault((end, device.source, table), [float(len(lines)), device.kind.sign, 0.0])
                line[2] += device.size
                places.append(int(line[0]))
            of[device] = places[0], places[1]
        arrays: Columns = {}
        for name, lines in zip(("gate", "drain"), found, strict=True):
            arrays[f"{name}_source_known"] = np.array([self.fixed(source) for _, source, _ in lines], dtype=np.bool_)
            rows = [(self.net[end], self.net[source], table, *self._pair(end, source)) for end, source, table in lines]
            arrays[f"{name}_lines"] = np.array(rows, dtype=np.int64).reshape(-1, 7)
            arrays[f"{name}_sign"] = np.array([line[1] for line in lines.values()], dtype=np.float64)
            arrays[f"{name}_size"] = np.array([line[2] for line in lines.values()], dtype=np.float64)
        return arrays, of

    def three_terminal(
        self, devices: Sequence[TabulatedDevice], lines: Mapping[TabulatedDevice, tuple[int, int]]
    ) -> Columns:
        """Return the arrays of three-terminal devices, on their lines."""
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
            "three_terminal": np.array(rows, dtype=np.int64).reshape(-1, 10),
            "three_terminal_sign": np.array([device.kind.sign for device in devices], dtype=np.float64),
            "three_terminal_size": np.array([device.size for device in devices], dtype=np.float64),
            "upper_share": np.array([_upper_share(device.kind) for device in devices], dtype=np.float64),
            "three_terminal_groups": np.array([alone, alone + inner, len(devices), grounded], dtype=np.int64),
        }

    def four_terminal(self, devices: Sequence[TabulatedDevice]) -> Columns:
        """Return the arrays of four-terminal devices. Raises Unsupported where a bulk is no known voltage."""
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
            "four_terminal": np.array(rows, dtype=np.int64).reshape(-1, 14),
            "four_terminal_sign": np.array([device.kind.sign for device in devices], dtype=np.float64),
            "four_terminal_size": np.array([device.size for device in devices], dtype=np.float64),
        }


def _upper_share(kind: DeviceKind) -> float:
    """Return the upper transistor's share of a cascode's gate area, 0 for a single transistor."""
    if kind.cascode is None:
        return 0.0
    upper = kind.cascode[0] * kind.cascode[1]
    return upper / (upper + kind.w * kind.l)


def _three_terminal_tables(tables: Sequence[DeviceTable]) -> Columns:
    """Return the tables of three-terminal devices, all in one array each, with where each begins and its axes."""
    three_terminal = [table for table in tables if isinstance(table, ThreeTerminalTable)]
    found: Columns = {
        "gate_axis": np.array([_axis(table.x) for table in three_terminal]).reshape(-1, 3),
        "drain_axis": np.array([_axis(table.y) for table in three_terminal]).reshape(-1, 3),
    }
    for name, parts in (
        ("gate", [table.gate for table in three_terminal]),
        ("drain", [table.drain for table in three_terminal]),
        ("response", [table.responses for table in three_terminal]),
    ):
        rows = [_by_power(part) for part in parts]
        found[f"{name}_table"] = (
            np.concatenate([one.ravel() for one in rows]) if rows else np.zeros(0, dtype=np.float32)
        )
        found[f"{name}_table_start"] = np.cumsum([0, *(one.size for one in rows)], dtype=np.int64)
    return found


def _by_power(cubics: Array) -> NDArray[np.float32]:
    """Return cubics (cells, columns, 4) as (cells, 4, columns): all columns' coefficients of a power side by side.

    Columns of zeros fill the last vector of LANES.
    """
    found = np.zeros((len(cubics), 4, LANES * -(-cubics.shape[1] // LANES)), dtype=np.float32)
    found[:, :, : cubics.shape[1]] = cubics.transpose(0, 2, 1)
    return found


def _four_terminal_tables(tables: Sequence[DeviceTable]) -> Columns:
    """Return the tables of four-terminal devices in one array, with where each begins and its axes.

    A row of `four_terminal_axis` holds the axes of gate, source and drain, then U_T and the gate's shift.
    """
    floats = [table for table in tables if isinstance(table, FourTerminalTable)]
    parts = [one.values.reshape(-1, FOUR_TERMINAL_COLUMNS) for one in floats]
    beyond = np.zeros((LANES, FOUR_TERMINAL_COLUMNS))  # two points are read at a time
    axes = [(*_axis(one.gate), *_axis(one.source), *_axis(one.drain), one.thermal, one.shift) for one in floats]
    return {
        "four_terminal_table": np.concatenate([*parts, beyond]).ravel().astype(np.float32),
        "four_terminal_table_start": np.cumsum([0, *map(len, parts)], dtype=np.int64),
        "four_terminal_axis": np.array(axes, dtype=np.float64).reshape(-1, 11),
    }


def _axis(axis: GridAxis) -> tuple[float, float, float]:
    """Return start, V, 1 / step, 1/V, and the number of cells of an axis."""
    return axis.start, 1.0 / axis.step, float(axis.count - 1)
