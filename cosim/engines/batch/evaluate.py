"""Currents, charges and the Jacobian of all instances at their voltages: gate lines, drain lines, devices.

A gate line is a gate net with its source net and table: weights of one signal share it, so its functions are evaluated
once. A drain line is the same for drains. What a device then costs is a sum of RANK products and its derivatives.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.engines.batch.lanes import (
    LANES,
    absolute,
    exp,
    floor,
    gather,
    halves,
    inner,
    jit,
    largest,
    least,
    load,
    load_at,
    most,
    pick,
    splat,
    store,
)
from cosim.engines.batch.tables import DRAIN_COLUMNS, FLOAT_COLUMNS, GATE_COLUMNS, RANK, RESPONSES

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
FLOAT_KEPT = 19  # V_G, V_S, V_D where a floating device was evaluated; I, Q_G, Q_S, Q_D, each with three derivatives
NEAR_FLOAT = 1e-3  # V: the same for a floating device, a switch mostly; 7e-4
MATRIX, CURRENTS, WHOLE = 0, 1, 2  # what an evaluation is asked for
NEAR = 2e-4  # V: so near to where it was evaluated, a device is its tangent; (NEAR / U_T)^2 / 2 = 3e-5 of its current


class Structure(NamedTuple):
    """What all instances share. Nets are indices, rows of unknowns too; the last row stands for ground.

    row (nets,); offsets (n, 2) net and source, offset_sign; currents (n, 3) two nets and a source;
    capacitors (n, 2) two nets, farad; constant (entries,): farad in the matrix;
    gates, drains (n, 7): net, source net, table, four places; gate_sign, gate_size: n or p, and total multiplicity; gate_alone: its source's voltage is known;
    tied (n, 10): gate line, drain line, drain net, source net, six places; tied_sign, tied_size; in three groups that end
    at `groups`: only the drain is unknown; the source is unknown; neither is. floating (n, 14): nets of gate, drain,
    source and bulk, table, nine places;
    gate_table, drain_table, response_table, float_table: all tables in one; *_at: (tables, ...) where they begin.
    """

    row: Whole
    offsets: Whole
    offset_sign: Array
    currents: Whole
    capacitors: Whole
    farad: Array
    constant: Array
    gates: Whole
    gate_sign: Array
    gate_size: Array
    gate_alone: NDArray[np.bool_]
    drains: Whole
    drain_sign: Array
    drain_size: Array
    drain_alone: NDArray[np.bool_]
    tied: Whole
    tied_sign: Array
    tied_size: Array
    groups: Whole
    floating: Whole
    float_sign: Array
    float_size: Array
    gate_table: Array
    drain_table: Array
    response_table: Array
    gate_at: Whole
    gate_axis: Array
    drain_at: Whole
    drain_axis: Array
    response_at: Whole
    float_table: Array
    float_at: Whole
    float_axis: Array


class Values(NamedTuple):
    """Of a tile, each (rows, LANES): unknowns, net voltages, currents out of nets and charges on them, matrix.

    x has a row of zeros behind the unknowns; matrix has SPARE behind its entries, where those of ground fall.
    gate: RANK values and RANK derivatives a line; response: RESPONSES values and derivatives; drain as gate;
    *_kept: at which voltage a line was evaluated, *_apart: how far it is from there, *_charge: value and derivative;
    *_version: how often a line was evaluated, and at which of its two lines a device was;
    tied_kept: current and two conductances a device; kept: FLOAT_KEPT rows a floating device.
    tied_drawn (devices 4, LANES): V and ln of the current factor of the lower device, then of a cascode;
    float_drawn (devices 2, LANES): V and the factor.
    """

    x: Array
    offset: Array
    volt: Array
    current: Array
    charge: Array
    matrix: Array
    source: Array
    gate: Array
    response: Array
    drain: Array
    gate_kept: Array
    gate_apart: Array
    gate_charge: Array
    gate_version: Whole
    drain_kept: Array
    drain_apart: Array
    drain_charge: Array
    drain_version: Whole
    tied_kept: Array
    tied_version: Whole
    tied_drawn: Array
    float_drawn: Array
    kept: Array


@inner
def _zero(rows: Any) -> None:
    for row in range(rows.shape[0]):
        store(rows, row, splat(0.0))


@inner
def _add(rows: Any, row: Any, value: Any) -> None:
    store(rows, row, load(rows, row) + value)


@jit
def evaluate(s: Any, v: Any, slope: float, varied: bool, asked: int) -> None:
    """Fill current and charge, and where it is asked the matrix, from x, offset and source.

    slope: d(dQ/dt)/dQ, 1/s; varied: chips deviate; asked: MATRIX, CURRENTS of rows that are unknown, or WHOLE.
    """
    _begin(s.row, v.x, v.offset, v.volt)
    _zero(v.current)
    _zero(v.charge)
    _gate_lines(s, v, varied, asked)
    _drain_lines(s, v, asked)
    _refresh_all(s, v, s.groups[2] if asked == WHOLE else s.groups[1], varied)
    _tied(s, v, asked)
    _floating(s, v)
    _linear(s, v)
    if asked == MATRIX:
        _scaled(v.matrix, s.constant, slope)
        _conductances(s, v)
        _capacitances(s, v, slope)


@jit
def _begin(row: Any, x: Any, offset: Any, volt: Any) -> None:
    for net in range(row.size):
        store(volt, net, load(x, row[net]) + load(offset, net))


@jit
def _scaled(matrix: Any, constant: Any, slope: float) -> None:
    for row in range(constant.size):
        store(matrix, row, splat(constant[row] * slope))


@jit
def _linear(s: Any, v: Any) -> None:
    """Capacitors and current sources."""
    volt, current, charge, source = v.volt, v.current, v.charge, v.source
    capacitors, farad, currents = s.capacitors, s.farad, s.currents
    for k in range(farad.size):
        a, b = capacitors[k, 0], capacitors[k, 1]
        coulomb = (load(volt, a) - load(volt, b)) * farad[k]
        _add(charge, a, coulomb)
        _add(charge, b, splat(0.0) - coulomb)
    for k in range(currents.shape[0]):
        ampere = load(source, currents[k, 2])
        _add(current, currents[k, 0], ampere)
        _add(current, currents[k, 1], splat(0.0) - ampere)


@inner
def _line(matrix: Any, lines: Any, k: int, stamp: Any, alone: bool) -> None:
    """A conductance between a line's net and its source, at its four places; at the first where the source is known."""
    _add(matrix, lines[k, 3], stamp)
    if not alone:
        _add(matrix, lines[k, 4], splat(0.0) - stamp)
        _add(matrix, lines[k, 5], splat(0.0) - stamp)
        _add(matrix, lines[k, 6], stamp)


@inner
def _cubic(table: Any, cell: Any, stride: int, offset: int, u: Any) -> Any:
    """Value and derivative of a cubic at u from its cell's beginning."""
    p1 = gather(table, cell, stride, offset + 1)
    p2 = gather(table, cell, stride, offset + 2)
    p3 = gather(table, cell, stride, offset + 3)
    value = ((p3 * u + p2) * u + p1) * u + gather(table, cell, stride, offset)
    return value, (p3 * (u * 3.0) + p2 * 2.0) * u + p1


@inner
def _cell(x: Any, axis: Any, table: int) -> Any:
    """Cell of x on the axis (start, 1 / step, cells) of a table, the place in it, and how far outside the axis x is."""
    start, rate, cells = axis[table, 0], axis[table, 1], axis[table, 2]
    inside = most(least(x, splat(start + cells / rate)), splat(start))
    place = (inside - start) * rate
    cell = least(floor(place), splat(cells - 1.0))
    return cell, (place - cell) * (1.0 / rate), x - inside


@inner
def _moved(volt: Any, net: int, source: int, sign: float, kept: Any, line: int, fresh: bool) -> Any:
    """Voltage of a line, how far it is from where the line was evaluated, and whether that is too far."""
    x = (load(volt, net) - load(volt, source)) * sign
    apart = x - load(kept, line)
    return x, apart, fresh or not largest(absolute(apart)) < NEAR


@jit
def _gate_lines(s: Any, v: Any, varied: bool, asked: int) -> None:
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
            _refresh_gate(s.gate_table, s.gate_at[gates[line, 2]], (cell, u, out), v.gate, fixed, line)
            if varied:
                _respond(s, v.response, line, cell, u)
        store(apart, line, far)
        coulomb = (load(fixed, 2 * line) + load(fixed, 2 * line + 1) * far) * (sign[line] * size[line])
        _add(charge, net, coulomb)
        if asked == WHOLE or not alone[line]:
            _add(charge, source, splat(0.0) - coulomb)


@inner
def _refresh_gate(table: Any, at: int, place: Any, gate: Any, fixed: Any, line: int) -> None:
    """The functions of a gate line: RANK currents with their derivatives, and the charge with its own."""
    cell, u, out = place
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


@jit
def _drain_lines(s: Any, v: Any, asked: int) -> None:
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
            _refresh_drain(s.drain_table, s.drain_at[drains[line, 2]], place, v.drain, fixed, line)
        store(apart, line, far)
        coulomb = (load(fixed, 2 * line) + load(fixed, 2 * line + 1) * far) * (sign[line] * size[line])
        _add(charge, net, coulomb)
        if asked == WHOLE or not alone[line]:
            _add(charge, source, splat(0.0) - coulomb)


@inner
def _refresh_drain(table: Any, at: int, place: Any, drain: Any, fixed: Any, line: int) -> None:
    """The functions of a drain line."""
    cell, u, out = place
    for k in range(RANK):
        b, db = _cubic(table, cell, DRAIN_COLUMNS * 4, at + 4 * k, u)
        store(drain, line * 2 * RANK + k, b + db * out)
        store(drain, line * 2 * RANK + RANK + k, db)
    j, dj = _cubic(table, cell, DRAIN_COLUMNS * 4, at + 4 * RANK, u)
    store(fixed, 2 * line, j + dj * out)
    store(fixed, 2 * line + 1, dj)


@inner
def _products(gate: Any, at: int, drain: Any, by: int) -> Any:
    """Current, and its derivatives by V_GS and V_DS, of a device of size 1 as drawn."""
    f, b = load(gate, at), load(drain, by)
    current, gm, gd = f * b, load(gate, at + RANK) * b, f * load(drain, by + RANK)
    for k in range(1, RANK):
        f, b = load(gate, at + k), load(drain, by + k)
        current = current + f * b
        gm = gm + load(gate, at + RANK + k) * b
        gd = gd + f * load(drain, by + RANK + k)
    return current, gm, gd


@inner
def _answer(response: Any, at: int, drawn: Any, device: int) -> Any:
    """ln of how much more a deviating device carries, and its derivative by V_GS."""
    power = bend = splat(0.0)
    for part in range(2):
        volt, factor = load(drawn, 4 * device + 2 * part), load(drawn, 4 * device + 2 * part + 1)
        half, by = volt * volt * 0.5, at + 3 * part
        power = power + load(response, by) * volt + load(response, by + 1) * half + load(response, by + 2) * factor
        by += RESPONSES
        bend = bend + load(response, by) * volt + load(response, by + 1) * half + load(response, by + 2) * factor
    return power, bend


@jit
def _refresh_tied(s: Any, v: Any, device: int, varied: bool) -> None:
    """Current and conductances of a device where its lines were evaluated, of all that are parallel."""
    line, at = s.tied[device, 0], 3 * device
    current, gm, gd = _products(v.gate, line * 2 * RANK, v.drain, s.tied[device, 1] * 2 * RANK)
    size = splat(s.tied_size[device])
    if varied:
        power, bend = _answer(v.response, line * 2 * RESPONSES, v.tied_drawn, device)
        size = exp(power) * size
        gm = gm + current * bend
    store(v.tied_kept, at, current * size)
    store(v.tied_kept, at + 1, gm * size)
    store(v.tied_kept, at + 2, gd * size)


@jit
def _refresh_all(s: Any, v: Any, last: int, varied: bool) -> None:
    """The devices of which a line was evaluated since they were."""
    gate_version, drain_version, version, tied = v.gate_version, v.drain_version, v.tied_version, s.tied
    for device in range(last):
        now = gate_version[tied[device, 0]] + drain_version[tied[device, 1]]
        if now != version[device]:
            version[device] = now
            _refresh_tied(s, v, device, varied)


@inner
def _tangent(kept: Any, device: int, gate_apart: Any, line: int, drain_apart: Any, by: int) -> Any:
    """A device's current so near to where it was evaluated."""
    near = load(kept, 3 * device) + load(kept, 3 * device + 1) * load(gate_apart, line)
    return near + load(kept, 3 * device + 2) * load(drain_apart, by)


@jit
def tied_current(s: Any, v: Any, device: int) -> Any:
    """Current from drain to source of an n device, A, of all that are parallel, after a whole evaluation."""
    return _tangent(v.tied_kept, device, v.gate_apart, s.tied[device, 0], v.drain_apart, s.tied[device, 1])


@jit
def _tied(s: Any, v: Any, asked: int) -> None:
    """Currents of tied devices: out of drains that are unknown, and of sources where they are, or of all."""
    tied, sign, out, kept, gate, drain = s.tied, s.tied_sign, v.current, v.tied_kept, v.gate_apart, v.drain_apart
    last, both = (s.groups[2], 0) if asked == WHOLE else (s.groups[1], s.groups[0])
    for device in range(last):
        current = _tangent(kept, device, gate, tied[device, 0], drain, tied[device, 1]) * sign[device]
        _add(out, tied[device, 2], current)
        if device >= both:
            _add(out, tied[device, 3], splat(0.0) - current)


@jit
def _conductances(s: Any, v: Any) -> None:
    """Tied devices in the matrix."""
    tied, alone, last, matrix, kept = s.tied, s.groups[0], s.groups[1], v.matrix, v.tied_kept
    for device in range(last):
        gm, gd = load(kept, 3 * device + 1), load(kept, 3 * device + 2)
        _add(matrix, tied[device, 4], gm)
        _add(matrix, tied[device, 5], gd)
        if device >= alone:
            _add(matrix, tied[device, 6], splat(0.0) - gm - gd)
            _add(matrix, tied[device, 7], splat(0.0) - gm)
            _add(matrix, tied[device, 8], splat(0.0) - gd)
            _add(matrix, tied[device, 9], gm + gd)


@jit
def _capacitances(s: Any, v: Any, slope: float) -> None:
    """Charges of lines and floating devices in the matrix, and what those conduct."""
    matrix, gate, drain = v.matrix, v.gate_charge, v.drain_charge
    gates, drains, gate_size, drain_size = s.gates, s.drains, s.gate_size, s.drain_size
    gate_alone, drain_alone = s.gate_alone, s.drain_alone
    for line in range(gates.shape[0]):
        _line(matrix, gates, line, load(gate, 2 * line + 1) * (slope * gate_size[line]), gate_alone[line])
    for line in range(drains.shape[0]):
        _line(matrix, drains, line, load(drain, 2 * line + 1) * (slope * drain_size[line]), drain_alone[line])
    devices, kept, sizes = s.floating, v.kept, s.float_size
    for device in range(devices.shape[0]):
        at, size = device * FLOAT_KEPT, sizes[device]
        for k in range(3):
            flows = 0.0 if k == 0 else (-size if k == 1 else size)
            for column in range(3):
                stamp = load(kept, at + 4 + column) * flows + load(kept, at + 8 + 4 * k + column) * (slope * size)
                _add(matrix, devices[device, 5 + 3 * k + column], stamp)


@jit
def _floating(s: Any, v: Any) -> None:
    devices, kept, volt, drawn = s.floating, v.kept, v.volt, v.float_drawn
    for device in range(devices.shape[0]):
        sign, at = s.float_sign[device], device * FLOAT_KEPT
        gate, drain, source, bulk = devices[device, 0], devices[device, 1], devices[device, 2], devices[device, 3]
        base = load(volt, bulk)
        vg, vd, vs = (load(volt, gate) - base) * sign, (load(volt, drain) - base) * sign, (load(volt, source) - base) * sign
        far = most(absolute(vg - load(kept, at)), absolute(vs - load(kept, at + 1)))
        far = most(far, absolute(vd - load(kept, at + 2)))
        if not largest(far) < NEAR_FLOAT:
            for lane in range(LANES):
                if pick(far, lane) < NEAR_FLOAT:
                    continue
                kept[at, lane], kept[at + 1, lane], kept[at + 2, lane] = pick(vg, lane), pick(vs, lane), pick(vd, lane)
                shift, factor = drawn[2 * device, lane], drawn[2 * device + 1, lane]
                float_device(s.float_table, s.float_at, s.float_axis, devices[device, 4], shift, factor, kept, at, lane)
        apart = vg - load(kept, at), vs - load(kept, at + 1), vd - load(kept, at + 2)
        _float_near(s, v, device, apart)


@jit
def float_current(s: Any, v: Any, device: int) -> Any:
    """Current from drain to source of a floating n device where it was evaluated, A, of all that are parallel."""
    return load(v.kept, device * FLOAT_KEPT + 3) * s.float_size[device]


@inner
def _float_near(s: Any, v: Any, device: int, apart: Any) -> None:
    """Current and charges of a floating device so near to where it was evaluated."""
    devices, kept, charge = s.floating, v.kept, v.charge
    signed, at = s.float_sign[device] * s.float_size[device], device * FLOAT_KEPT
    flow = load(kept, at + 3) + load(kept, at + 4) * apart[0]
    flow = (flow + load(kept, at + 5) * apart[1] + load(kept, at + 6) * apart[2]) * signed
    _add(v.current, devices[device, 1], flow)
    _add(v.current, devices[device, 2], splat(0.0) - flow)
    total = splat(0.0)
    for k in range(3):
        by = at + 7 + 4 * k
        own = load(kept, by) + load(kept, by + 1) * apart[0] + load(kept, by + 2) * apart[1]
        own = (own + load(kept, by + 3) * apart[2]) * signed
        _add(charge, devices[device, 0] if k == 0 else devices[device, 3 - k], own)
        total = total + own
    _add(charge, devices[device, 3], splat(0.0) - total)


@inner
def _weights(place: float) -> Any:
    """Quadratic B-splines and their derivatives at a place in a cell."""
    r = 1.0 - place
    return (0.5 * r * r, 0.5 + place * r, 0.5 * place * place), (-r, 1.0 - 2.0 * place, place)


@inner
def _place(x: float, axis: Any, table: int, which: int) -> Any:
    """Cell, place in it between 0 and 1, 1 / step, and how far outside the axis x is."""
    rate, cells = axis[table, 3 * which + 1], axis[table, 3 * which + 2]
    at = (x - axis[table, 3 * which]) * rate
    place = min(max(at, 0.0), cells)
    cell = min(int(place), int(cells) - 1)
    return cell, place - cell, rate, (at - place) / rate


@jit
def float_device(
    values: Any, begin: Any, axis: Any, table: int, shift: float, factor: float, kept: Any, at: int, lane: int
) -> None:
    """Evaluate a floating device at the voltages in `kept`: I from drain to source; charges of gate, source, drain."""
    vg, vs, vd, thermal = kept[at, lane], kept[at + 1, lane], kept[at + 2, lane], axis[table, 9]
    forward = vd >= vs
    low, gap = min(vs, vd), abs(vd - vs)
    i, ti, ri, oi = _place(vg - axis[table, 10] * shift, axis, table, 0)
    j, tj, rj, oj = _place(low, axis, table, 1)
    k, tk, rk, ok = _place(gap, axis, table, 2)
    (wi, di), (wj, dj), (wk, dk) = _weights(ti), _weights(tj), _weights(tk)
    rows_j, rows_k = int(axis[table, 5]) + 2, int(axis[table, 8]) + 2
    f = fi = fj = fk = splat(0.0)
    first, rest = halves(wk[0], wk[1]), halves(wk[2], 0.0)  # LANES numbers are the columns of two points
    d_first, d_rest = halves(dk[0], dk[1]), halves(dk[2], 0.0)
    for a in range(3):
        g = gj = gk = splat(0.0)
        for b in range(3):
            row = FLOAT_COLUMNS * (begin[table] + ((i + a) * rows_j + j + b) * rows_k + k)
            p, q = load_at(values, row), load_at(values, row + LANES)
            value = p * first + q * rest
            g, gj = g + value * wj[b], gj + value * dj[b]
            gk = gk + (p * d_first + q * d_rest) * wj[b]
        f, fi, fj, fk = f + g * wi[a], fi + g * di[a], fj + gj * wi[a], fk + gk * wi[a]
    fi, fj, fk = fi * ri, fj * rj, fk * rk
    f = f + fi * oi + fj * oj + fk * ok
    flow, charge = _column(f, fi, fj, fk, 0), _column(f, fi, fj, fk, 1)
    level, remains = factor * np.exp(flow[0]), np.exp(-gap / thermal)
    current = level * (1.0 - remains)
    by_gap = current * flow[3] + level * remains / thermal
    _keep(kept, at + 3, lane, (current, current * flow[1], current * flow[2], by_gap), forward)
    if not forward:
        for row in range(at + 3, at + 7):
            kept[row, lane] = -kept[row, lane]
    lower, upper = (11, 15) if forward else (15, 11)
    _keep(kept, at + 7, lane, charge, forward)
    _keep(kept, at + lower, lane, _column(f, fi, fj, fk, 2), forward)
    _keep(kept, at + upper, lane, _column(f, fi, fj, fk, 3), forward)


@inner
def _column(f: Any, fi: Any, fj: Any, fk: Any, k: int) -> Any:
    """A column of the table with its three derivatives, from the sums over both points."""
    by = k + FLOAT_COLUMNS
    return pick(f, k) + pick(f, by), pick(fi, k) + pick(fi, by), pick(fj, k) + pick(fj, by), pick(fk, k) + pick(fk, by)


@inner
def _keep(kept: Any, row: int, lane: int, found: Any, forward: bool) -> None:
    """A value and its derivatives by V_G, V_S and V_D; `found` has them by V_G, the lower end, and the higher's more."""
    kept[row, lane], kept[row + 1, lane] = found[0], found[1]
    low, high = found[2] - found[3], found[3]
    kept[row + 2, lane] = low if forward else high
    kept[row + 3, lane] = high if forward else low
