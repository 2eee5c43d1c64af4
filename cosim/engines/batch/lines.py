# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Gate lines and drain lines: the functions that tied devices share, at the voltages where they are needed.

A gate line is a gate net with its source net and table: weights of one signal share it, so its functions are evaluated
once. A drain line is the same for drains. Near to where it was evaluated, a line is its tangent.
"""

from typing import Any

from cosim.engines.batch.lanes import (
    absolute,
    add_to,
    exp,
    floor,
    gather,
    inner,
    jit,
    largest,
    least,
    load,
    most,
    splat,
    store,
)
from cosim.engines.batch.layout import WHOLE
from cosim.engines.batch.tables import DRAIN_COLUMNS, GATE_COLUMNS, RANK, RESPONSES

NEAR = 2e-4  # V: so near to where it was evaluated, a device is its tangent; (NEAR / U_T)^2 / 2 = 3e-5 of its current


@jit
def gate_lines(s: Any, v: Any, varied: bool, asked: int) -> None:
    volt, charge, kept, apart, fixed = v.volt, v.charge, v.gate_kept, v.gate_apart, v.gate_charge
    gates, sign, size, axis, version = s.gates, s.gate_sign, s.gate_size, s.gate_axis, v.gate_version
    alone = s.gate_alone
    for line in range(gates.shape[0]):
        net, source = gates[line, 0], gates[line, 1]
        x, far, is_far = _moved(volt, net, source, sign[line], kept, line, version[line] == 0)
        if is_far:
            version[line] += 1
            far = splat(0.0)
            store(kept, line, x)
            cell, u, out = _cell(x, axis, gates[line, 2])
            _refresh_gate(s.gate_table, s.gate_at[gates[line, 2]], (cell, u, out), (v.gate, fixed), line)
            if varied:
                _respond(s, v.response, line, cell, u)
        store(apart, line, far)
        coulomb = (load(fixed, 2 * line) + load(fixed, 2 * line + 1) * far) * (sign[line] * size[line])
        add_to(charge, net, coulomb)
        if asked == WHOLE or not alone[line]:
            add_to(charge, source, splat(0.0) - coulomb)


@jit
def drain_lines(s: Any, v: Any, asked: int) -> None:
    volt, charge, kept, apart, fixed = v.volt, v.charge, v.drain_kept, v.drain_apart, v.drain_charge
    drains, sign, size, axis, version = s.drains, s.drain_sign, s.drain_size, s.drain_axis, v.drain_version
    alone = s.drain_alone
    for line in range(drains.shape[0]):
        net, source = drains[line, 0], drains[line, 1]
        y, far, is_far = _moved(volt, net, source, sign[line], kept, line, version[line] == 0)
        if is_far:
            version[line] += 1
            far = splat(0.0)
            store(kept, line, y)
            place = _cell(y, axis, drains[line, 2])
            _refresh_drain(s.drain_table, s.drain_at[drains[line, 2]], place, (v.drain, fixed), line)
        store(apart, line, far)
        coulomb = (load(fixed, 2 * line) + load(fixed, 2 * line + 1) * far) * (sign[line] * size[line])
        add_to(charge, net, coulomb)
        if asked == WHOLE or not alone[line]:
            add_to(charge, source, splat(0.0) - coulomb)


@inner
def _moved(volt: Any, net: int, source: int, sign: float, kept: Any, line: int, fresh: bool) -> Any:
    """Voltage of a line, how far it is from where the line was evaluated, and whether that is too far."""
    x = (load(volt, net) - load(volt, source)) * sign
    apart = x - load(kept, line)
    return x, apart, fresh or not largest(absolute(apart)) < NEAR


@inner
def _cell(x: Any, axis: Any, table: int) -> Any:
    """Cell of x on the axis (start, 1 / step, cells) of a table, the place in it, and how far outside the axis x is."""
    start, rate, cells = axis[table, 0], axis[table, 1], axis[table, 2]
    inside = most(least(x, splat(start + cells / rate)), splat(start))
    place = (inside - start) * rate
    cell = least(floor(place), splat(cells - 1.0))
    return cell, (place - cell) * (1.0 / rate), x - inside


@inner
def _cubic(table: Any, cell: Any, stride: int, offset: int, u: Any) -> Any:
    """Value and derivative of a cubic at u from its cell's beginning."""
    p1 = gather(table, cell, stride, offset + 1)
    p2 = gather(table, cell, stride, offset + 2)
    p3 = gather(table, cell, stride, offset + 3)
    value = ((p3 * u + p2) * u + p1) * u + gather(table, cell, stride, offset)
    return value, (p3 * (u * 3.0) + p2 * 2.0) * u + p1


@inner
def _refresh_gate(table: Any, at: int, place: Any, rows: Any, line: int) -> None:
    """The functions of a gate line: RANK currents with their derivatives, and the charge with its own."""
    (cell, u, out), (gate, fixed) = place, rows
    a, da = _cubic(table, cell, GATE_COLUMNS * 4, at, u)
    level = exp(a + da * out)
    for k in range(RANK):
        c, dc = _cubic(table, cell, GATE_COLUMNS * 4, at + 4 * (k + 1), u)
        store(gate, line * 2 * RANK + k, level * c)
        store(gate, line * 2 * RANK + RANK + k, level * (da * c + dc))
    q, dq = _cubic(table, cell, GATE_COLUMNS * 4, at + 4 * (RANK + 1), u)
    store(fixed, 2 * line, q + dq * out)
    store(fixed, 2 * line + 1, dq)


@inner
def _respond(s: Any, response: Any, line: int, cell: Any, u: Any) -> None:
    """How the currents of a gate line answer to what its devices drew."""
    table, at = s.response_table, s.response_at[s.gates[line, 2]]
    for k in range(RESPONSES):
        r, dr = _cubic(table, cell, RESPONSES * 4, at + 4 * k, u)
        store(response, line * 2 * RESPONSES + k, r)
        store(response, line * 2 * RESPONSES + RESPONSES + k, dr)


@inner
def _refresh_drain(table: Any, at: int, place: Any, rows: Any, line: int) -> None:
    """The functions of a drain line."""
    (cell, u, out), (drain, fixed) = place, rows
    for k in range(RANK):
        b, db = _cubic(table, cell, DRAIN_COLUMNS * 4, at + 4 * k, u)
        store(drain, line * 2 * RANK + k, b + db * out)
        store(drain, line * 2 * RANK + RANK + k, db)
    j, dj = _cubic(table, cell, DRAIN_COLUMNS * 4, at + 4 * RANK, u)
    store(fixed, 2 * line, j + dj * out)
    store(fixed, 2 * line + 1, dj)
