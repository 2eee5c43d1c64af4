# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Look up tables in one lane: the functions of a gate or drain line, or the columns of a four-terminal device.

A vector of LANES numbers holds here the functions of a table side by side, not instances: a lane that moved is
evaluated alone, LANES of its functions at once. `cuda_threads` reads the same tables one function after the other.
s is the circuit (`arrays.CircuitArrays`), v the values of its tile (`arrays.TileValues`).
"""

from math import exp
from typing import Any

from cosim.engines.batch.compiled import inlined_jit
from cosim.engines.batch.device_tables import (
    DRAIN_COLUMNS,
    FOUR_TERMINAL_COLUMNS,
    GATE_COLUMNS,
    RANK,
    RESPONSES,
)
from cosim.engines.batch.lanes import LANES, extract, halves, halves_added, load_consecutive, splat

# Numbers between the coefficients of successive powers in a table. A gate or drain line has two vectors: its RANK
# factors c_k or b_k, then a and q, or j, then zeros.
LINE_WIDTH, RESPONSE_WIDTH = 2 * LANES, LANES
assert RANK == LANES
assert DRAIN_COLUMNS < GATE_COLUMNS <= LINE_WIDTH
assert RESPONSES <= RESPONSE_WIDTH


@inlined_jit
def table_cell(x: float, axis: Any, table: int) -> Any:
    """Return the cell of x on a device table's axis, the distance from the cell's beginning, V, and the excess, V.

    axis: start, 1 / step and cells of each table. The excess is how far x is outside of the axis.
    """
    start, rate, cells = axis[table, 0], axis[table, 1], axis[table, 2]
    nearest = max(min(x, start + cells / rate), start)
    place = (nearest - start) * rate
    cell = min(int(place), int(cells) - 1)
    return cell, (place - cell) / rate, x - nearest


@inlined_jit
def inside(out: float) -> float:
    """Return 1 at a place on a table's axis, 0 at one beyond it, where a function that is kept has no slope."""
    return 1.0 if out == 0.0 else 0.0


@inlined_jit
def spline_weights(place: float) -> Any:
    """Return a device table's weights of three quadratic B-splines at a place in a cell, 0 to 1.

    Their derivatives by place follow.
    """
    r = 1.0 - place
    return (0.5 * r * r, 0.5 + place * r, 0.5 * place * place), (-r, 1.0 - 2.0 * place, place)


@inlined_jit
def _cubics(table: Any, at: int, width: int, u: float) -> Any:
    """Return values and derivatives of the LANES functions from `at` on, at u V from their cell's beginning."""
    p1, p2 = load_consecutive(table, at + width), load_consecutive(table, at + 2 * width)
    p3 = load_consecutive(table, at + 3 * width)
    value = ((p3 * u + p2) * u + p1) * u + load_consecutive(table, at)
    return value, (p3 * (u * 3.0) + p2 * 2.0) * u + p1


@inlined_jit
def evaluate_gate_line(s: Any, v: Any, line: int, lane: int, x: float, has_deviations: bool) -> None:
    """Evaluate a simulated gate line's tables in one lane at V_GS = x, V, and store them with derivatives by V_GS.

    They are RANK currents exp(a) c_k, A, the gate's charge, C, and with `has_deviations` the responses to deviations.
    """
    table, at = s.gate_lines[line, 2], line * 2 * RANK
    cell, u, out = table_cell(x, s.gate_axis, table)
    begin = s.gate_table_start[table]
    first = begin + 4 * LINE_WIDTH * cell
    value, slope = _cubics(s.gate_table, first, LINE_WIDTH, u)
    slope = slope * inside(out)  # beyond the axis c_k is kept, and a is continued
    others, their_slopes = _cubics(s.gate_table, first + LANES, LINE_WIDTH, u)
    bend, capacitance = extract(their_slopes, 0), extract(their_slopes, 1)
    level = exp(extract(others, 0) + bend * out)
    current, by_gate = value * level, (value * bend + slope) * level
    for k in range(RANK):
        v.gate_functions[at + k, lane] = extract(current, k)
        v.gate_functions[at + RANK + k, lane] = extract(by_gate, k)
    charge = extract(others, 1) + capacitance * out
    if has_deviations:
        shifted_cell, shifted_u, shifted_out = table_cell(x - v.gate_shift[line, lane], s.gate_axis, table)
        first = begin + 4 * LINE_WIDTH * shifted_cell
        others, their_slopes = _cubics(s.gate_table, first + LANES, LINE_WIDTH, shifted_u)
        capacitance = extract(their_slopes, 1)
        charge = extract(others, 1) + capacitance * shifted_out
    v.gate_charge[2 * line, lane], v.gate_charge[2 * line + 1, lane] = charge, capacitance
    v.gate_point[line, lane] = x
    if has_deviations:
        first = s.response_table_start[table] + 4 * RESPONSE_WIDTH * cell
        value, slope = _cubics(s.response_table, first, RESPONSE_WIDTH, u)
        slope = slope * inside(out)
        at = line * 2 * RESPONSES
        for k in range(RESPONSES):
            v.gate_responses[at + k, lane] = extract(value, k)
            v.gate_responses[at + RESPONSES + k, lane] = extract(slope, k)


@inlined_jit
def evaluate_drain_line(s: Any, v: Any, line: int, lane: int, y: float) -> None:
    """Evaluate a simulated drain line's table in one lane at V_DS = y, V.

    It stores RANK factors b_k, charge and derivatives.
    """
    table, at = s.drain_lines[line, 2], line * 2 * RANK
    cell, u, out = table_cell(y, s.drain_axis, table)
    first = s.drain_table_start[table] + 4 * LINE_WIDTH * cell
    value, slope = _cubics(s.drain_table, first, LINE_WIDTH, u)
    value = value + slope * out
    charge, capacitance = _cubics(s.drain_table, first + LANES, LINE_WIDTH, u)
    for k in range(RANK):
        v.drain_functions[at + k, lane] = extract(value, k)
        v.drain_functions[at + RANK + k, lane] = extract(slope, k)
    v.drain_charge[2 * line, lane] = extract(charge, 0) + extract(capacitance, 0) * out
    v.drain_charge[2 * line + 1, lane] = extract(capacitance, 0)
    v.drain_point[line, lane] = y


@inlined_jit
def spline_columns(values: Any, first: int, rows: Any, places: Any, rates: Any, out: Any) -> Any:
    """Return in a kernel the four columns of a four-terminal table, each with its derivatives by three voltages.

    first: the first coefficient of the place; rows: of the two inner axes; places: in the cells of the three axes, 0 to
    1; rates: 1 / step of each axis, 1/V; out: how far the voltages are beyond the axes, V.
    """
    (wi, di), (wj, dj), (wk, dk) = spline_weights(places[0]), spline_weights(places[1]), spline_weights(places[2])
    f = fi = fj = fk = splat(0.0)
    low, high = halves(wk[0], wk[1]), halves(wk[2], 0.0)  # LANES numbers are the columns of two points
    d_low, d_high = halves(dk[0], dk[1]), halves(dk[2], 0.0)
    for a in range(3):
        g = gj = gk = splat(0.0)
        for b in range(3):
            row = FOUR_TERMINAL_COLUMNS * (first + (a * rows[0] + b) * rows[1])
            p, q = load_consecutive(values, row), load_consecutive(values, row + LANES)
            value = p * low + q * high
            g, gj = g + value * wj[b], gj + value * dj[b]
            gk = gk + (p * d_low + q * d_high) * wj[b]
        f, fi, fj, fk = f + g * wi[a], fi + g * di[a], fj + gj * wi[a], fk + gk * wi[a]
    by_first, by_second = halves_added(fi) * rates[0], halves_added(fj) * rates[1]
    by_third = halves_added(fk) * rates[2]
    value = halves_added(f) + by_first * out[0] + by_second * out[1] + by_third * out[2]
    if out[0] != 0.0 or out[1] != 0.0 or out[2] != 0.0:
        # The continued value is linear along the axes that the place is beyond, and the slopes there change along the
        # others. Without these terms the tangent is not the value's, and Newton's method can circle for ever.
        along = (rates[0] * out[0], rates[1] * out[1], rates[2] * out[2])
        ij, ik, jk = _mixed_slopes(values, first, rows, places)
        by_first = by_first + (ij * along[1] + ik * along[2]) * (rates[0] * inside(out[0]))
        by_second = by_second + (ij * along[0] + jk * along[2]) * (rates[1] * inside(out[1]))
        by_third = by_third + (ik * along[0] + jk * along[1]) * (rates[2] * inside(out[2]))
    return (
        (extract(value, 0), extract(by_first, 0), extract(by_second, 0), extract(by_third, 0)),
        (extract(value, 1), extract(by_first, 1), extract(by_second, 1), extract(by_third, 1)),
        (extract(value, 2), extract(by_first, 2), extract(by_second, 2), extract(by_third, 2)),
        (extract(value, 3), extract(by_first, 3), extract(by_second, 3), extract(by_third, 3)),
    )


@inlined_jit
def _mixed_slopes(values: Any, first: int, rows: Any, places: Any) -> Any:
    """Return the columns' second derivatives by two places: first and second, first and third, second and third."""
    (wi, di), (wj, dj), (wk, dk) = spline_weights(places[0]), spline_weights(places[1]), spline_weights(places[2])
    ij = ik = jk = splat(0.0)
    low, high = halves(wk[0], wk[1]), halves(wk[2], 0.0)
    d_low, d_high = halves(dk[0], dk[1]), halves(dk[2], 0.0)
    for a in range(3):
        for b in range(3):
            row = FOUR_TERMINAL_COLUMNS * (first + (a * rows[0] + b) * rows[1])
            p, q = load_consecutive(values, row), load_consecutive(values, row + LANES)
            by_third = p * d_low + q * d_high
            ij = ij + (p * low + q * high) * (di[a] * dj[b])
            ik, jk = ik + by_third * (di[a] * wj[b]), jk + by_third * (wi[a] * dj[b])
    return halves_added(ij), halves_added(ik), halves_added(jk)
