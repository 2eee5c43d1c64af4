# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""The functions of `lanes`, `compiled` and `table_lookup` for a CUDA device, where a thread is what a lane is there.

Arrays are (rows, benches), and a thread works on its own column. Kernels are imported with this module in the place of
the other three, see `cuda`, so every name that kernels import from those is here.
Tables hold the functions of a line side by side for a vector's sake; here they are read one after the other.
s is the circuit (`arrays.CircuitArrays`), v the values of its tile (`arrays.TileValues`).
"""

import math
from typing import Any

import numba.cuda

from cosim.engines.batch import table_lookup
from cosim.engines.batch.device_tables import FOUR_TERMINAL_COLUMNS, RANK, RESPONSES
from cosim.engines.batch.table_lookup import LINE_WIDTH, RESPONSE_WIDTH

cuda: Any = numba.cuda
LANES = 1  # of a thread
jit = inlined_jit = cached_jit = cuda.jit(device=True)
table_cell: Any = jit(table_lookup.table_cell.py_func)
inside: Any = jit(table_lookup.inside.py_func)
spline_weights: Any = jit(table_lookup.spline_weights.py_func)


@jit
def load(array: Any, row: Any) -> Any:
    """Return the GPU thread's own number in a row of a kernel's array."""
    return array[row, cuda.grid(1)]


@jit
def store(array: Any, row: Any, value: Any) -> None:
    """Put a number into the GPU thread's own column of a row of a kernel's array."""
    array[row, cuda.grid(1)] = value


@jit
def add_to(array: Any, row: Any, value: Any) -> None:
    """Add a number to the GPU thread's own column of a row of a kernel's array."""
    array[row, cuda.grid(1)] += value


@jit
def store_where(array: Any, row: Any, mask: Any, value: Any) -> None:
    """Put a number into the GPU thread's own column of a kernel's row where `mask` is not 0."""
    if mask != 0.0:
        array[row, cuda.grid(1)] = value


@jit
def in_precision_of(array: Any, value: Any) -> Any:
    """Convert a number of a GPU kernel of the batched engine to the precision of an array."""
    return array.dtype.type(value)


@jit
def splat(number: Any) -> Any:
    """Return the number itself, as a GPU kernel's thread has one lane."""
    return number


@jit
def each_lane() -> Any:
    """Return the range that holds the GPU thread's own lane alone, for a kernel's loops."""
    lane = cuda.grid(1)
    return range(lane, lane + 1)


@jit
def count_evaluation(version: Any, line: Any) -> None:
    """Count in a GPU kernel one more evaluation of a circuit's gate or drain line."""
    version[line, cuda.grid(1)] += 1


@jit
def evaluation_count(version: Any, line: Any) -> Any:
    """Return in a GPU kernel how often a circuit's gate or drain line was evaluated."""
    return version[line, cuda.grid(1)]


@jit
def set_evaluation_count(version: Any, line: Any, count: Any) -> None:
    """Set in a GPU kernel how often a circuit's gate or drain line was evaluated."""
    version[line, cuda.grid(1)] = count


@jit
def absolute(a: Any) -> Any:
    """Return |a| in a GPU kernel of the batched engine."""
    return abs(a)


@jit
def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers in a GPU kernel; `a` where `b` is nan."""
    return a if a < b or b != b else b


@jit
def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two numbers in a GPU kernel; `a` where `b` is nan."""
    return a if a > b or b != b else b


@jit
def select(mask: Any, yes: Any, no: Any) -> Any:
    """Return in a GPU kernel `yes` where `mask` is not 0, else `no`."""
    return yes if mask != 0.0 else no


@jit
def not_less(a: Any, b: Any) -> Any:
    """Return in a GPU kernel 1.0 where a < b does not hold, as for nan, else 0.0."""
    return 0.0 if a < b else 1.0


@jit
def lane_mask(mask: Any) -> Any:
    """Return in a GPU kernel 1 where `mask` is not 0, else 0."""
    return 1 if mask != 0.0 else 0


@jit
def first_lane(bits: Any) -> Any:
    """Return the GPU thread's own lane, the only one whose bit may be 1."""
    return cuda.grid(1)


@jit
def without_first_lane(bits: Any) -> Any:
    """Return no bits, which is what a GPU kernel has left without the thread's own lane."""
    return 0


@jit
def extract(value: Any, lane: Any) -> Any:
    """Return the number itself, as a GPU kernel's thread has one lane."""
    return value


@jit
def exp(x: Any) -> Any:
    """Return e to the power of x in a GPU kernel, with x limited to -600 and 600."""
    return math.exp(min(max(x, -600.0), 600.0))


@jit
def _cubic(table: Any, at: Any, width: Any, u: Any) -> Any:
    """Return value and derivative of the function at `at` of a table at u V from its cell's beginning."""
    p1, p2, p3 = float(table[at + width]), float(table[at + 2 * width]), float(table[at + 3 * width])
    return ((p3 * u + p2) * u + p1) * u + float(table[at]), (p3 * (u * 3.0) + p2 * 2.0) * u + p1


@jit
def evaluate_gate_line(s: Any, v: Any, line: Any, lane: Any, x: Any, has_deviations: Any) -> None:
    """Evaluate the tables of a simulated gate line at V_GS = x, V, in a GPU kernel.

    They give functions, charge and, if `has_deviations`, responses.
    """
    table, at = s.gate_lines[line, 2], line * 2 * RANK
    cell, u, out = table_cell(x, s.gate_axis, table)
    first = s.gate_table_start[table] + 4 * LINE_WIDTH * cell
    value, bend = _cubic(s.gate_table, first + RANK, LINE_WIDTH, u)
    level = math.exp(value + bend * out)
    for k in range(RANK):
        value, slope = _cubic(s.gate_table, first + k, LINE_WIDTH, u)
        v.gate_functions[at + k, lane], v.gate_functions[at + RANK + k, lane] = (
            value * level,
            (value * bend + slope * inside(out)) * level,
        )
    shift = v.gate_shift[line, lane] if has_deviations else 0.0
    shifted_cell, shifted_u, shifted_out = table_cell(x - shift, s.gate_axis, table)
    shifted = s.gate_table_start[table] + 4 * LINE_WIDTH * shifted_cell
    value, slope = _cubic(s.gate_table, shifted + RANK + 1, LINE_WIDTH, shifted_u)
    v.gate_charge[2 * line, lane], v.gate_charge[2 * line + 1, lane] = value + slope * shifted_out, slope
    v.gate_point[line, lane] = x
    if has_deviations:
        first, at = s.response_table_start[table] + 4 * RESPONSE_WIDTH * cell, line * 2 * RESPONSES
        for k in range(RESPONSES):
            value, slope = _cubic(s.response_table, first + k, RESPONSE_WIDTH, u)
            v.gate_responses[at + k, lane], v.gate_responses[at + RESPONSES + k, lane] = value, slope * inside(out)


@jit
def evaluate_drain_line(s: Any, v: Any, line: Any, lane: Any, y: Any) -> None:
    """Evaluate the table of a drain line at V_DS = y, V, in a GPU kernel: functions, charge and derivatives."""
    table, at = s.drain_lines[line, 2], line * 2 * RANK
    cell, u, out = table_cell(y, s.drain_axis, table)
    first = s.drain_table_start[table] + 4 * LINE_WIDTH * cell
    for k in range(RANK):
        value, slope = _cubic(s.drain_table, first + k, LINE_WIDTH, u)
        v.drain_functions[at + k, lane], v.drain_functions[at + RANK + k, lane] = value + slope * out, slope
    value, slope = _cubic(s.drain_table, first + RANK, LINE_WIDTH, u)
    v.drain_charge[2 * line, lane], v.drain_charge[2 * line + 1, lane] = value + slope * out, slope
    v.drain_point[line, lane] = y


@jit
def _spline_column(values: Any, first: Any, rows: Any, places: Any, rates: Any, out: Any, k: Any) -> Any:
    """Return column k of a four-terminal device's table with its derivatives by three voltages.

    Beyond an axis it is continued as in `table_lookup.spline_columns`.
    """
    (wi, di), (wj, dj), (wk, dk) = spline_weights(places[0]), spline_weights(places[1]), spline_weights(places[2])
    f = fi = fj = fk = fij = fik = fjk = 0.0
    for a in range(3):
        g = gj = gk = gjk = 0.0
        for b in range(3):
            row = FOUR_TERMINAL_COLUMNS * (first + (a * rows[0] + b) * rows[1]) + k
            p, q = float(values[row]), float(values[row + FOUR_TERMINAL_COLUMNS])
            r = float(values[row + 2 * FOUR_TERMINAL_COLUMNS])
            value = p * wk[0] + q * wk[1] + r * wk[2]
            g, gj = g + value * wj[b], gj + value * dj[b]
            by_third = p * dk[0] + q * dk[1] + r * dk[2]
            gk, gjk = gk + by_third * wj[b], gjk + by_third * dj[b]
        f, fi, fj, fk = f + g * wi[a], fi + g * di[a], fj + gj * wi[a], fk + gk * wi[a]
        fij, fik, fjk = fij + gj * di[a], fik + gk * di[a], fjk + gjk * wi[a]
    fi, fj, fk = fi * rates[0], fj * rates[1], fk * rates[2]
    value = f + fi * out[0] + fj * out[1] + fk * out[2]
    along = (rates[0] * out[0], rates[1] * out[1], rates[2] * out[2])
    fi = fi + (fij * along[1] + fik * along[2]) * (rates[0] * inside(out[0]))
    fj = fj + (fij * along[0] + fjk * along[2]) * (rates[1] * inside(out[1]))
    fk = fk + (fik * along[0] + fjk * along[1]) * (rates[2] * inside(out[2]))
    return value, fi, fj, fk


@jit
def spline_columns(values: Any, first: Any, rows: Any, places: Any, rates: Any, out: Any) -> Any:
    """Return in a GPU kernel the four columns of a four-terminal device's table, each with three derivatives.

    rates, out: 1 / step of each axis, 1/V, and how far the voltages are beyond the axes, V.
    """
    return (
        _spline_column(values, first, rows, places, rates, out, 0),
        _spline_column(values, first, rows, places, rates, out, 1),
        _spline_column(values, first, rows, places, rates, out, 2),
        _spline_column(values, first, rows, places, rates, out, 3),
    )
