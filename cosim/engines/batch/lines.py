# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Gate lines and drain lines: the functions that tied devices share, at the voltages where they are needed.

A gate line is a gate net with its source net and table: weights of one signal share it, so its functions are evaluated
once. A drain line is the same for drains. Near to where it was evaluated, a line is its tangent. A lane that moved is
evaluated alone: the vector then holds the functions, a row of LANES in the table for each power of the cubics.
"""

from math import exp
from typing import Any

from cosim.engines.batch.compiled import inner, jit
from cosim.engines.batch.lanes import (
    LANES,
    absolute,
    add_to,
    but_lowest,
    count_up,
    flags,
    load,
    load_at,
    lowest,
    not_below,
    pick,
    splat,
    store,
    where,
)
from cosim.engines.batch.layout import GROUND, MATRIX, NEARBY
from cosim.engines.batch.tables import RANK, RESPONSES

NEAR = 5e-4  # V: so near to where it was evaluated, a device is its tangent; (NEAR / U_T)^2 / 2 = 2e-4 of its current
SATURATED = 0.2  # V of V_DS, beyond which currents bend e^-8 times as much
NEAR_SATURATED = 1e-2  # V: the same there, 3e-5 of its current
NOWHERE = 1e9  # V: where a line stands that was never evaluated


@jit
def gate_lines(s: Any, v: Any, varied: bool, asked: int) -> None:
    """Find how far each gate line is from its last evaluation, evaluate anew those that moved, and add their charges.

    With `asked` NEARBY no line is evaluated anew. varied: responses are evaluated as well.
    """
    volt, gates, sign, kept, apart = v.volt, s.gates, s.gate_sign, v.gate_kept, v.gate_apart
    for line in range(gates.shape[0]):
        x = (load(volt, gates[line, 0]) - load(volt, gates[line, 1])) * sign[line]
        far = x - load(kept, line)
        if asked != NEARBY:
            moved = not_below(absolute(far), splat(NEAR))
            todo = flags(moved)
            if todo != 0:
                count_up(v.gate_version, line)
                far = where(moved, splat(0.0), far)
                while todo != 0:
                    lane = lowest(todo)
                    todo = but_lowest(todo)
                    _gate(s, v, line, lane, pick(x, lane), varied)
        store(apart, line, far)
    _add_charges(v.charge, gates, (sign, s.gate_size, s.gate_alone), (apart, v.gate_charge), asked)


@jit
def drain_lines(s: Any, v: Any, asked: int) -> None:
    """Find how far each drain line is from its last evaluation, evaluate anew those that moved, and add their charges.

    With `asked` NEARBY no line is evaluated anew.
    """
    volt, drains, sign, kept, apart = v.volt, s.drains, s.drain_sign, v.drain_kept, v.drain_apart
    for line in range(drains.shape[0]):
        y, stood = (load(volt, drains[line, 0]) - load(volt, drains[line, 1])) * sign[line], load(kept, line)
        far = y - stood
        if asked != NEARBY:
            near = where(not_below(stood, splat(SATURATED)), splat(NEAR_SATURATED), splat(NEAR))
            moved = not_below(absolute(far), near)
            todo = flags(moved)
            if todo != 0:
                count_up(v.drain_version, line)
                far = where(moved, splat(0.0), far)
                while todo != 0:
                    lane = lowest(todo)
                    todo = but_lowest(todo)
                    _drain(s, v, line, lane, pick(y, lane))
        store(apart, line, far)
    _add_charges(v.charge, drains, (sign, s.drain_size, s.drain_alone), (apart, v.drain_charge), asked)


@inner
def _add_charges(charge: Any, lines: Any, of_lines: Any, near: Any, asked: int) -> None:
    """Charges of lines on their nets, and where it is asked on their sources.

    Lines of one source follow each other: a sum in memory would wait for the last one.
    """
    (sign, size, alone), (apart, fixed) = of_lines, near
    there, at_source = GROUND, splat(0.0)
    for line in range(lines.shape[0]):
        tangent = load(fixed, 2 * line) + load(fixed, 2 * line + 1) * load(apart, line)
        coulomb = tangent * (sign[line] * size[line])
        add_to(charge, lines[line, 0], coulomb)
        if asked != MATRIX or not alone[line]:
            if lines[line, 1] != there:
                add_to(charge, there, at_source)
                there, at_source = lines[line, 1], splat(0.0)
            at_source = at_source - coulomb
    add_to(charge, there, at_source)


@inner
def _place(x: float, axis: Any, table: int) -> Any:
    """Cell of x on the axis (start, 1 / step, cells) of a table, the place in it, and how far outside the axis x is."""
    start, rate, cells = axis[table, 0], axis[table, 1], axis[table, 2]
    inside = max(min(x, start + cells / rate), start)
    place = (inside - start) * rate
    cell = min(int(place), int(cells) - 1)
    return cell, (place - cell) / rate, x - inside


@inner
def _cubics(table: Any, begin: int, cell: int, u: float) -> Any:
    """Values and derivatives of all functions at u from their cell's beginning."""
    at = begin + 4 * LANES * cell
    p1, p2, p3 = load_at(table, at + LANES), load_at(table, at + 2 * LANES), load_at(table, at + 3 * LANES)
    value = ((p3 * u + p2) * u + p1) * u + load_at(table, at)
    return value, (p3 * (u * 3.0) + p2 * 2.0) * u + p1


@inner
def _gate(s: Any, v: Any, line: int, lane: int, x: float, varied: bool) -> None:
    """A lane's gate line: RANK currents with their derivatives, the charge with its own, and answers to deviations."""
    table, at = s.gates[line, 2], line * 2 * RANK
    cell, u, out = _place(x, s.gate_axis, table)
    value, slope = _cubics(s.gate_table, s.gate_at[table], cell, u)
    bend = pick(slope, 0)
    level = exp(pick(value, 0) + bend * out)
    current, by_gate = value * level, (value * bend + slope) * level
    for k in range(RANK):
        v.gate[at + k, lane], v.gate[at + RANK + k, lane] = pick(current, k + 1), pick(by_gate, k + 1)
    by_charge = pick(slope, RANK + 1)
    v.gate_charge[2 * line, lane], v.gate_charge[2 * line + 1, lane] = (
        pick(value, RANK + 1) + by_charge * out,
        by_charge,
    )
    v.gate_kept[line, lane] = x
    if varied:
        value, slope = _cubics(s.response_table, s.response_at[table], cell, u)
        at = line * 2 * RESPONSES
        for k in range(RESPONSES):
            v.response[at + k, lane], v.response[at + RESPONSES + k, lane] = pick(value, k), pick(slope, k)


@inner
def _drain(s: Any, v: Any, line: int, lane: int, y: float) -> None:
    """A lane's drain line: RANK factors and the charge, with their derivatives."""
    table, at = s.drains[line, 2], line * 2 * RANK
    cell, u, out = _place(y, s.drain_axis, table)
    value, slope = _cubics(s.drain_table, s.drain_at[table], cell, u)
    value = value + slope * out
    for k in range(RANK):
        v.drain[at + k, lane], v.drain[at + RANK + k, lane] = pick(value, k), pick(slope, k)
    v.drain_charge[2 * line, lane], v.drain_charge[2 * line + 1, lane] = pick(value, RANK), pick(slope, RANK)
    v.drain_kept[line, lane] = y
