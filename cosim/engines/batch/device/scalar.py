# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""One bench a thread: what `lanes` does for a vector, a thread does for its own column of (rows, benches).

`STANDS_FOR` says which function of the kernels each of these stands for. Tables hold the functions of a line side by
side for a vector's sake; here they are read one after the other.
"""

from math import exp
from typing import Any

import numba.cuda

from cosim.engines.batch import floating, lanes, lines
from cosim.engines.batch.floating import _weights
from cosim.engines.batch.lines import _place
from cosim.engines.batch.tables import FLOAT_COLUMNS, RANK, RESPONSES

cuda: Any = numba.cuda
_WIDE = lanes.LANES  # functions of a line in a table


def load(array: Any, row: Any) -> Any:
    """Return the thread's own number in a row of an array."""
    return array[row, cuda.grid(1)]


def store(array: Any, row: Any, value: Any) -> None:
    """Put a number into the thread's own column of a row."""
    array[row, cuda.grid(1)] = value


def add_to(array: Any, row: Any, value: Any) -> None:
    """Add a number to the thread's own column of a row."""
    array[row, cuda.grid(1)] += value


def store_where(array: Any, row: Any, mask: Any, value: Any) -> None:
    """Put a number into the thread's own column of a row where `mask` is not 0."""
    if mask != 0.0:
        array[row, cuda.grid(1)] = value


def as_in(array: Any, value: Any) -> Any:
    """Convert a number to the precision of an array."""
    return array.dtype.type(value)


def splat(number: Any) -> Any:
    """Return the number itself: a thread has one lane."""
    return number


def own_lane() -> Any:
    """Return the range that holds the thread's own lane alone."""
    lane = cuda.grid(1)
    return range(lane, lane + 1)


def count_up(version: Any, line: Any) -> None:
    """Count one more evaluation of a line."""
    version[line, cuda.grid(1)] += 1


def counted(version: Any, line: Any) -> Any:
    """Return how often a line was evaluated."""
    return version[line, cuda.grid(1)]


def count_as(version: Any, line: Any, count: Any) -> None:
    """Set how often a line was evaluated."""
    version[line, cuda.grid(1)] = count


def absolute(a: Any) -> Any:
    """Return |a|."""
    return abs(a)


def least(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers; `a` where `b` is nan."""
    return a if a < b or b != b else b


def most(a: Any, b: Any) -> Any:
    """Return the larger of two numbers; `a` where `b` is nan."""
    return a if a > b or b != b else b


def where(mask: Any, yes: Any, no: Any) -> Any:
    """Return `yes` where `mask` is not 0, else `no`."""
    return yes if mask != 0.0 else no


def not_below(a: Any, b: Any) -> Any:
    """Return 1.0 where a < b does not hold, as of nan, else 0.0."""
    return 0.0 if a < b else 1.0


def flags(mask: Any) -> Any:
    """Return 1 where `mask` is not 0, else 0."""
    return 1 if mask != 0.0 else 0


def lowest(some: Any) -> Any:
    """Return the thread's own lane, the only one that may have a flag."""
    return cuda.grid(1)


def but_lowest(some: Any) -> Any:
    """Return no flags, which is what remains without the thread's own lane."""
    return 0


def pick(value: Any, lane: Any) -> Any:
    """Return the number itself: a thread has one lane."""
    return value


def bounded(x: Any) -> Any:
    """Return e to the power of x, with x limited to -600 and 600."""
    return exp(min(max(x, -600.0), 600.0))


def _cubic(table: Any, at: Any, u: Any) -> Any:
    """Value and derivative of one function at u from its cell's beginning."""
    p1, p2, p3 = float(table[at + _WIDE]), float(table[at + 2 * _WIDE]), float(table[at + 3 * _WIDE])
    return ((p3 * u + p2) * u + p1) * u + float(table[at]), (p3 * (u * 3.0) + p2 * 2.0) * u + p1


def gate_line(s: Any, v: Any, line: Any, lane: Any, x: Any, varied: Any) -> None:
    """Evaluate a gate line's tables at x, V: functions, charge and, if `varied`, responses, with derivatives."""
    table, at = s.gates[line, 2], line * 2 * RANK
    cell, u, out = _place(x, s.gate_axis, table)
    begin = s.gate_at[table] + 4 * _WIDE * cell
    value, bend = _cubic(s.gate_table, begin, u)
    level = exp(value + bend * out)
    for k in range(RANK):
        value, slope = _cubic(s.gate_table, begin + k + 1, u)
        v.gate[at + k, lane], v.gate[at + RANK + k, lane] = value * level, (value * bend + slope) * level
    value, slope = _cubic(s.gate_table, begin + RANK + 1, u)
    v.gate_charge[2 * line, lane], v.gate_charge[2 * line + 1, lane] = value + slope * out, slope
    v.gate_kept[line, lane] = x
    if varied:
        begin, at = s.response_at[table] + 4 * _WIDE * cell, line * 2 * RESPONSES
        for k in range(RESPONSES):
            value, slope = _cubic(s.response_table, begin + k, u)
            v.response[at + k, lane], v.response[at + RESPONSES + k, lane] = value, slope


def drain_line(s: Any, v: Any, line: Any, lane: Any, y: Any) -> None:
    """Evaluate a drain line's table at y, V: functions and charge, with derivatives."""
    table, at = s.drains[line, 2], line * 2 * RANK
    cell, u, out = _place(y, s.drain_axis, table)
    begin = s.drain_at[table] + 4 * _WIDE * cell
    for k in range(RANK):
        value, slope = _cubic(s.drain_table, begin + k, u)
        v.drain[at + k, lane], v.drain[at + RANK + k, lane] = value + slope * out, slope
    value, slope = _cubic(s.drain_table, begin + RANK, u)
    v.drain_charge[2 * line, lane], v.drain_charge[2 * line + 1, lane] = value + slope * out, slope
    v.drain_kept[line, lane] = y


def column(values: Any, first: Any, rows: Any, places: Any, k: Any) -> Any:
    """A column of a floating device's table with its three derivatives by place."""
    (wi, di), (wj, dj), (wk, dk) = _weights(places[0]), _weights(places[1]), _weights(places[2])
    f = fi = fj = fk = 0.0
    for a in range(3):
        g = gj = gk = 0.0
        for b in range(3):
            row = FLOAT_COLUMNS * (first + (a * rows[0] + b) * rows[1]) + k
            p, q, r = float(values[row]), float(values[row + FLOAT_COLUMNS]), float(values[row + 2 * FLOAT_COLUMNS])
            value = p * wk[0] + q * wk[1] + r * wk[2]
            g, gj = g + value * wj[b], gj + value * dj[b]
            gk = gk + (p * dk[0] + q * dk[1] + r * dk[2]) * wj[b]
        f, fi, fj, fk = f + g * wi[a], fi + g * di[a], fj + gj * wi[a], fk + gk * wi[a]
    return f, fi, fj, fk


def columns(values: Any, first: Any, rows: Any, places: Any) -> Any:
    """Return the four columns of a floating device's table, each with its three derivatives by place."""
    return (
        column(values, first, rows, places, 0),
        column(values, first, rows, places, 1),
        column(values, first, rows, places, 2),
        column(values, first, rows, places, 3),
    )


STANDS_FOR: tuple[tuple[Any, Any], ...] = (
    (lanes.load, load),
    (lanes.store, store),
    (lanes.add_to, add_to),
    (lanes.store_where, store_where),
    (lanes.as_in, as_in),
    (lanes.splat, splat),
    (lanes.lanes, own_lane),
    (lanes.count_up, count_up),
    (lanes.counted, counted),
    (lanes.count_as, count_as),
    (lanes.absolute, absolute),
    (lanes.least, least),
    (lanes.most, most),
    (lanes.where, where),
    (lanes.not_below, not_below),
    (lanes.flags, flags),
    (lanes.lowest, lowest),
    (lanes.but_lowest, but_lowest),
    (lanes.pick, pick),
    (lanes.exp, bounded),
    (lines._gate, gate_line),
    (lines._drain, drain_line),
    (floating.columns, columns),
)
