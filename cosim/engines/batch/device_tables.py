"""Tables of devices, currents and charges over voltages as splines, and their evaluation in plain numpy.

Voltages, currents and charges are those of an n device; a p device is its mirror image (`sign` -1 on all of them).

    three-terminal  source and bulk on one net, which holds for 85 to 100 % of a network's transistors. x = V_GS, y =
    V_DS:
                    I = exp(a(x)) sum_k c_k(x) b_k(y)      k < RANK, a weighted low-rank fit of the sweeps
                    Q_G = q(x) + C_gd (x - y),   Q_D = j(y) - C_gd (x - y)
                    A self-cascode, two in series with one gate, is one such device: its inner net has no equation.
    four-terminal   source and bulk on different nets. V_G, V_S, V_D to the bulk; the lower end is the source:
                    I = exp(l) (1 - exp(-V_DS / U_T)),   l and the charges of gate, lower and higher end: functions of
                    three voltages. I flows from the higher to the lower end; what an end loses to the bulk is left
                    out; the circuit has gmin in its place.

A deviating three-terminal device carries exp(r dV + s dV^2 / 2 + e ln beta) times as much; r, s and e: functions of x.
Its gate has the charge q(x - dV); where several share a gate line, dV is their mean.
In a cascode dV and beta are those of the lower device, and a second such term has by how much the upper one deviates
more: dV_upper - dV_lower, beta_upper / beta_lower; what moves both then costs one term, and its square is right, too.
A deviating four-terminal device is that at V_G - shift dV, and carries beta times as much.
Tests compare the kernels with the functions below, and tables are measured against the simulator with them.
The separated form: docs/explanation/engine.md; BSIM4's `delvto` is not exactly a shift of the gate.

A file holds a table with its provenance: `table_bytes` and `load_table`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.base.arrays import check_forms
from cosim.base.errors import InputError
from cosim.base.seal import seal_npz
from cosim.base.store import kept_arrays
from cosim.technology.types import Polarity

Array = NDArray[np.float64]
RANK = 8  # largest `error` of all technologies' unit devices, that of sky130's p mirror: 1.8 % with 6, 0.6 % with 8
GATE_COLUMNS = RANK + 2  # c_k, a, q
DRAIN_COLUMNS = RANK + 1  # b_k, j
RESPONSES = 6  # r, s, e of a device or of both of a cascode, then those of the upper one's difference
FOUR_TERMINAL_COLUMNS = 4  # l, Q_G, Q of the lower end, Q of the higher end
_Arrays = Mapping[str, NDArray[Any]]  # of a file
_REPAIR = "it is measured anew"
_THREE_TERMINAL = {
    "provenance": "text", "x": "real 3", "y": "real 3", "gate": f"real x {GATE_COLUMNS} 4",
    "drain": f"real y {DRAIN_COLUMNS} 4", "responses": f"real x {RESPONSES} 4", "c_gd": "real", "error": "real",
}  # fmt: skip
_FOUR_TERMINAL = {
    "provenance": "text", "gate": "real 3", "source": "real 3", "drain": "real 3",
    "values": f"real gate source drain {FOUR_TERMINAL_COLUMNS}", "thermal": "real", "shift": "real", "error": "real",
}  # fmt: skip


class DeviceKind(NamedTuple):
    """A kind of device in the batched engine; its table depends on the kind, the process and the condition.

    w, l: drawn size, m; four_terminal: its table is a `FourTerminalTable`, else a `ThreeTerminalTable`; cascode: size
    of the device in series on top, m, None without one.
    """

    polarity: Polarity
    w: float
    l: float  # noqa: E741 - the field's own letter
    four_terminal: bool = False
    cascode: tuple[float, float] | None = None

    @property
    def sign(self) -> float:
        """Return 1 for an n device of the batched engine, -1 for a p device."""
        return 1.0 if self.polarity == "n" else -1.0


@dataclass(frozen=True, eq=False)
class GridAxis:
    """An axis of a device table: `count` equally spaced voltages from `start`, `step` apart, V."""

    start: float
    step: float
    count: int

    @property
    def points(self) -> Array:
        """Return all voltages of a device table's axis, V."""
        return self.start + self.step * np.arange(float(self.count))

    @property
    def stop(self) -> float:
        """Return the last voltage of a device table's axis, V."""
        return self.start + self.step * (self.count - 1)


@dataclass(frozen=True, eq=False)
class ThreeTerminalTable:
    """The batched engine's table of a device whose source is on its bulk, over x = V_GS and y = V_DS.

    gate (cells of x, GATE_COLUMNS, 4), drain (cells of y, DRAIN_COLUMNS, 4), responses (cells of x, RESPONSES, 4):
    cubics in the distance from the cell's lower end in V, the coefficient of power 0 first. c_gd: F. error: largest
    relative error of the current halfway between the points of the sweeps, from 1 pA to 100 nA, V_DS above 0.1 V.
    """

    x: GridAxis
    y: GridAxis
    gate: Array
    drain: Array
    responses: Array
    c_gd: float
    error: float


@dataclass(frozen=True, eq=False)
class FourTerminalTable:
    """The batched engine's table of a device whose source is not on its bulk, over V_G, V_S and V_DS.

    values (V_G, V_S, V_DS, FOUR_TERMINAL_COLUMNS): coefficients of quadratic B-splines over the axes; shift: dV_G over
    dV. In cell i, at t = (v - start) / step - i with 0 <= t < 1, the value is the sum over j = 0, 1, 2 of w_j values[i
    + j] with w = ((1 - t)^2 / 2, 1/2 + t - t^2, t^2 / 2), so each axis has one value more than points. thermal: U_T, V.
    error: largest relative error of the current off the samples, from 1 pA to 100 nA, V_DS above 0.1 V.
    """

    gate: GridAxis
    source: GridAxis
    drain: GridAxis
    values: Array
    thermal: float
    shift: float
    error: float


DeviceTable = ThreeTerminalTable | FourTerminalTable
NDArrayInt = NDArray[np.int64]


def three_terminal_current(
    table: ThreeTerminalTable, x: Array, y: Array, vt_shift: tuple[float, float] = (0.0, 0.0)
) -> Array:
    """Compute the drain current, A, from a device table at x = V_GS and y = V_DS, V, which broadcast.

    vt_shift: of the lower and the upper device, V. Beyond the end of an axis the last cell's cubic is continued.
    """
    *c, a, _ = _cubic(table.gate, table.x, x)
    *b, _ = _cubic(table.drain, table.y, y)
    r, s, _, r_upper, s_upper, _ = _cubic(table.responses, table.x, x)
    lower, more = vt_shift[0], vt_shift[1] - vt_shift[0]
    a = a + r * lower + s * lower**2 / 2 + r_upper * more + s_upper * more**2 / 2
    return np.exp(a) * sum(c[k] * b[k] for k in range(RANK))


def three_terminal_charges(table: ThreeTerminalTable, x: Array, y: Array) -> tuple[Array, Array]:
    """Compute the charges of gate and drain, C, from a device table at x = V_GS and y = V_DS, V, which broadcast."""
    *_, q = _cubic(table.gate, table.x, x)
    *_, j = _cubic(table.drain, table.y, y)
    overlap = table.c_gd * (x - y)
    return q + overlap, j - overlap


def four_terminal_values(
    table: FourTerminalTable, gate: Array, source: Array, drain: Array
) -> tuple[Array, Array, Array, Array]:
    """Compute from a device table a current, A, and the charges of gate, lower and higher end, C.

    The current flows from the higher to the lower end. gate, source: V_G and V_S of the lower end, both to the bulk, V;
    drain: V_DS >= 0, V; all broadcast.
    """
    axes = (table.gate, table.source, table.drain)
    weights = [_quadratic(axis, v) for axis, v in zip(axes, (gate, source, drain), strict=True)]
    total: Array = np.zeros(1)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                cells = tuple(cell + step for (cell, _), step in zip(weights, (i, j, k), strict=True))
                weight = weights[0][1][i] * weights[1][1][j] * weights[2][1][k]
                total = total + weight[..., None] * table.values[cells]
    l, *charges = np.moveaxis(total, -1, 0)  # noqa: E741
    in_gate, in_lower, in_higher = charges
    return np.exp(l) * -np.expm1(-drain / table.thermal), in_gate, in_lower, in_higher


def _cell(axis: GridAxis, v: Array) -> tuple[NDArrayInt, Array]:
    """Return the cell of each voltage on an axis, and the voltage's distance from the cell's lower end in steps."""
    cell = np.clip(np.floor((v - axis.start) / axis.step), 0, axis.count - 2).astype(np.int64)
    return cell, (v - axis.start) / axis.step - cell


def _cubic(cells: Array, axis: GridAxis, v: Array) -> Array:
    """Return all columns of a table of cubics at voltages v: (columns, *shape of v)."""
    cell, t = _cell(axis, np.asarray(v, dtype=float))
    powers = (t * axis.step)[..., None, None] ** np.arange(4)
    return np.moveaxis((cells[cell] * powers).sum(axis=-1), -1, 0)


def _quadratic(axis: GridAxis, v: Array) -> tuple[NDArrayInt, tuple[Array, Array, Array]]:
    """Return the cell of each voltage, and the weights of its three quadratic B-splines."""
    cell, t = _cell(axis, np.asarray(v, dtype=float))
    return cell, ((1 - t) ** 2 / 2, 0.5 + t - t**2, t**2 / 2)


def cubics(axis: GridAxis, rows: Array, bend: int = 0) -> Array:
    """Return the cubic spline through rows of a device table at an axis' points: (cells, rows, 4), power 0 first.

    bend: the point where the functions' second derivatives may jump, so that a spline ends there; 0 for none.
    """
    # a third of a worker's time to load, and kept tables have no use for it
    from scipy.interpolate import CubicSpline  # pyright: ignore[reportMissingTypeStubs]

    parts = [slice(0, bend + 1), slice(bend, axis.count)] if bend else [slice(0, axis.count)]
    splines = [CubicSpline(axis.points[part], rows[:, part], axis=1).c for part in parts]
    powers = np.concatenate([np.asarray(one, dtype=np.float64) for one in splines], axis=1)  # (4, cells, rows)
    return np.ascontiguousarray(np.moveaxis(powers[::-1], 0, -1))


def resample(points: Array, values: Array, wanted: Array) -> Array:
    """Interpolate a device table's values along the first axis from some points to others, by a cubic spline."""
    from scipy.interpolate import CubicSpline  # pyright: ignore[reportMissingTypeStubs]

    return np.asarray(CubicSpline(points, values)(wanted), dtype=np.float64)


def sample_points(axis: GridAxis) -> Array:
    """Return the voltages, V, whose values determine a device table's quadratic spline: axis ends and cell middles."""
    points = axis.points
    return np.concatenate([points[:1], points[:-1] + axis.step / 2, points[-1:]])


def quadratics(axis: GridAxis, samples: Array) -> Array:
    """Return a device table's quadratic B-spline coefficients along the first axis, from samples at `sample_points`."""
    count = axis.count
    weights = np.zeros((count + 1, count + 1))
    weights[0, :2] = weights[-1, -2:] = 0.5
    for cell in range(count - 1):
        weights[cell + 1, cell : cell + 3] = 0.125, 0.75, 0.125
    found = np.linalg.solve(weights, samples.reshape(count + 1, -1))
    return found.reshape(samples.shape).astype(np.float64)


def table_name(provenance: str) -> str:
    """Return the name of a device table's file in the cache; provenance: the JSON of all that the table depends on."""
    name = json.loads(provenance)["technology"]
    return f"tables/{name}.{hashlib.sha256(provenance.encode()).hexdigest()[:16]}.npz"


def table_bytes(table: DeviceTable, provenance: str) -> bytes:
    """Return the content of a device table's file, with a checksum; equal tables give equal bytes."""
    arrays: dict[str, NDArray[Any]] = {"provenance": np.array(provenance)}
    for name, value in vars(table).items():
        match value:
            case GridAxis(start, step, count):
                arrays[name] = np.array([start, step, count])
            case _:
                arrays[name] = np.asarray(value)
    if isinstance(table, FourTerminalTable):
        arrays["values"] = table.values.astype(np.float32)
    return seal_npz(arrays, provenance)


def load_table(path: Path, provenance: str) -> DeviceTable:
    """Load the batched engine's device table in a file.

    Raises InputError where the file is damaged or has another provenance.
    """
    if (stored := kept_arrays(path, provenance)) is None:
        raise InputError(f"{path}: holds no device table of this provenance; {_REPAIR}")
    check_forms(stored, _FOUR_TERMINAL if "values" in stored else _THREE_TERMINAL, str(path), _REPAIR)
    try:
        return _four_terminal(stored) if "values" in stored else _three_terminal(stored)
    except ValueError:
        raise InputError(f"{path}: must hold axes that rise, and finite numbers; {_REPAIR}") from None


def _three_terminal(stored: _Arrays) -> ThreeTerminalTable:
    x, y = _stored_axis(stored["x"], len(stored["gate"]) + 1), _stored_axis(stored["y"], len(stored["drain"]) + 1)
    gate, drain, responses = (_finite(stored[name]) for name in ("gate", "drain", "responses"))
    c_gd, error = (float(_finite(stored[name])) for name in ("c_gd", "error"))
    return ThreeTerminalTable(x, y, gate, drain, responses, c_gd, error)


def _four_terminal(stored: _Arrays) -> FourTerminalTable:
    values, names = _finite(stored["values"]), ("gate", "source", "drain")
    gate, source, drain = (_stored_axis(stored[name], values.shape[k] - 1) for k, name in enumerate(names))
    thermal, shift, error = (float(_finite(stored[name])) for name in ("thermal", "shift", "error"))
    return FourTerminalTable(gate, source, drain, values, thermal, shift, error)


def _stored_axis(stored: NDArray[Any], count: int) -> GridAxis:
    """Return an axis of a device table as the batched engine keeps it.

    Raises ValueError where it is not of `count` points that rise.
    """
    start, step, stored_count = _finite(stored).tolist()
    if stored_count != count or count < 1 or step <= 0:
        raise ValueError
    return GridAxis(start, step, count)


def _finite(stored: NDArray[Any]) -> NDArray[np.float64]:
    """Return an array of a device table that the batched engine kept, in double precision.

    Raises ValueError where it is not finite.
    """
    if not np.isfinite(stored).all():
        raise ValueError
    return stored.astype(np.float64)
