"""Currents and charges of tables in plain numpy: what the engine's loops must give, for tests and for measured errors.

All voltages are those of an n device, arrays that broadcast; beyond an axis its last cell is continued.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engines.batch.tables import RANK, Array, Float, GridAxis, Tied

NDArrayInt = NDArray[np.int64]


def tied_current(table: Tied, x: Array, y: Array, vt_shift: tuple[float, float] = (0.0, 0.0)) -> Array:
    """Drain current in A at x = V_GS and y = V_DS, V; vt_shift: of the lower and the upper device, V."""
    a, *c, _ = _cubic(table.gate, table.x, x)
    *b, _ = _cubic(table.drain, table.y, y)
    r, s, _, r_upper, s_upper, _ = _cubic(table.responses, table.x, x)
    lower, more = vt_shift[0], vt_shift[1] - vt_shift[0]
    a = a + r * lower + s * lower**2 / 2 + r_upper * more + s_upper * more**2 / 2
    return np.exp(a) * sum(c[k] * b[k] for k in range(RANK))


def tied_charges(table: Tied, x: Array, y: Array) -> tuple[Array, Array]:
    """Charge of gate and drain in C at x = V_GS and y = V_DS, V."""
    *_, q = _cubic(table.gate, table.x, x)
    *_, j = _cubic(table.drain, table.y, y)
    overlap = table.c_gd * (x - y)
    return q + overlap, j - overlap


def tied_responses(table: Tied, x: Array) -> Array:
    """r in 1/V, s in 1/V2 and e, as `tables` has them, along the first axis."""
    return _cubic(table.responses, table.x, x)


@dataclass(frozen=True, eq=False)
class FloatValues:
    """Current from the higher to the lower end, A; charges of gate, lower and higher end, C."""

    current: Array
    gate: Array
    lower: Array
    higher: Array


def float_values(table: Float, gate: Array, source: Array, drain: Array, vt_shift: float = 0.0) -> FloatValues:
    """At V_G and V_S of the lower end, both to the bulk, and V_DS >= 0, V."""
    axes = (table.gate, table.source, table.drain)
    weights = [
        _quadratic(axis, v) for axis, v in zip(axes, (gate - table.shift * vt_shift, source, drain), strict=True)
    ]
    total: Array = np.zeros(1)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                cells = tuple(cell + step for (cell, _), step in zip(weights, (i, j, k), strict=True))
                weight = weights[0][1][i] * weights[1][1][j] * weights[2][1][k]
                total = total + weight[..., None] * table.values[cells]
    l, *charges = np.moveaxis(total, -1, 0)  # noqa: E741
    return FloatValues(np.exp(l) * -np.expm1(-drain / table.thermal), *charges)


def _cell(axis: GridAxis, v: Array) -> tuple[NDArrayInt, Array]:
    """Cell of each voltage, and how far it is from the cell's lower end in steps."""
    cell = np.clip(np.floor((v - axis.start) / axis.step), 0, axis.count - 2).astype(np.int64)
    return cell, (v - axis.start) / axis.step - cell


def _cubic(cells: Array, axis: GridAxis, v: Array) -> Array:
    """All columns of cubics, (columns, *shape of v)."""
    cell, t = _cell(axis, np.asarray(v, dtype=float))
    powers = (t * axis.step)[..., None, None] ** np.arange(4)
    return np.moveaxis((cells[cell] * powers).sum(axis=-1), -1, 0)


def _quadratic(axis: GridAxis, v: Array) -> tuple[NDArrayInt, tuple[Array, Array, Array]]:
    """Cell and the weights of its three B-splines."""
    cell, t = _cell(axis, np.asarray(v, dtype=float))
    return cell, ((1 - t) ** 2 / 2, 0.5 + t - t**2, t**2 / 2)
