# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Devices whose source is not their bulk: a table of three voltages, evaluated for each lane on its own."""

from math import exp
from typing import Any

from cosim.engines.batch.compiled import inner, jit
from cosim.engines.batch.lanes import (
    LANES,
    absolute,
    add_to,
    but_lowest,
    flags,
    halves,
    load,
    load_at,
    lowest,
    most,
    not_below,
    pick,
    splat,
    where,
)
from cosim.engines.batch.layout import NEARBY
from cosim.engines.batch.tables import FLOAT_COLUMNS

FLOAT_KEPT = 19  # V_G, V_S, V_D where a floating device was evaluated; I, Q_G, Q_S, Q_D, each with three derivatives
NEAR_FLOAT = 1e-3  # V: the same as `lines.NEAR` for a floating device, a switch mostly; 7e-4
_OFF, _OFF_PART = 1e-13, 0.1  # A, under which a device is off, and only its charges bend
_LEVEL, _COMMON_PART = 5e-3, 0.15  # V, under which its ends are at one voltage: no current to speak of, that could bend


@jit
def add_floating(s: Any, v: Any, asked: int) -> None:
    """Add currents and charges of the floating devices; unless NEARBY is asked, those that moved are evaluated anew."""
    if asked != NEARBY:
        for device in range(s.floating.shape[0]):
            _renew(s, v, device)
    for device in range(s.floating.shape[0]):
        at, (vg, vs, vd) = device * FLOAT_KEPT, _voltages(s, v, device)
        _float_near(s, v, device, (vg - load(v.kept, at), vs - load(v.kept, at + 1), vd - load(v.kept, at + 2)))


@inner
def _renew(s: Any, v: Any, device: int) -> None:
    """Evaluate a device in the lanes where it is far from where it was evaluated."""
    kept, drawn, at, (vg, vs, vd) = v.kept, v.float_drawn, device * FLOAT_KEPT, _voltages(s, v, device)
    apart = vg - load(kept, at), vs - load(kept, at + 1), vd - load(kept, at + 2)
    moved = flags(not_below(_bent(kept, at, apart), splat(NEAR_FLOAT)))
    while moved != 0:
        lane = lowest(moved)
        moved = but_lowest(moved)
        kept[at, lane], kept[at + 1, lane], kept[at + 2, lane] = pick(vg, lane), pick(vs, lane), pick(vd, lane)
        shift, factor = drawn[2 * device, lane], drawn[2 * device + 1, lane]
        float_device(s.float_table, s.float_at, s.float_axis, s.floating[device, 4], shift, factor, kept, at, lane)


@inner
def _voltages(s: Any, v: Any, device: int) -> Any:
    """V_G, V_S and V_D over the bulk."""
    devices, volt, sign = s.floating, v.volt, s.float_sign[device]
    base = load(volt, devices[device, 3])
    return (
        (load(volt, devices[device, 0]) - base) * sign,
        (load(volt, devices[device, 2]) - base) * sign,
        (load(volt, devices[device, 1]) - base) * sign,
    )


@inner
def _bent(kept: Any, at: int, apart: Any) -> Any:
    """Return how far a device is from where it was evaluated, V: what bends its current counts whole, the rest a part.

    Off, all counts _OFF_PART; between ends at one voltage, what moves both of them counts _COMMON_PART.
    """
    far = most(absolute(apart[0]), most(absolute(apart[1]), absolute(apart[2])))
    between = most(absolute(apart[2] - apart[1]), far * _COMMON_PART)
    far = where(not_below(absolute(load(kept, at + 2) - load(kept, at + 1)), splat(_LEVEL)), far, between)
    return where(not_below(absolute(load(kept, at + 3)), splat(_OFF)), far, far * _OFF_PART)


@inner
def _float_near(s: Any, v: Any, device: int, apart: Any) -> None:
    """Current and charges of a floating device so near to where it was evaluated."""
    devices, kept, charge = s.floating, v.kept, v.charge
    signed, at = s.float_sign[device] * s.float_size[device], device * FLOAT_KEPT
    flow = load(kept, at + 3) + load(kept, at + 4) * apart[0]
    flow = (flow + load(kept, at + 5) * apart[1] + load(kept, at + 6) * apart[2]) * signed
    add_to(v.current, devices[device, 1], flow)
    add_to(v.current, devices[device, 2], splat(0.0) - flow)
    total = splat(0.0)
    for k in range(3):
        by = at + 7 + 4 * k
        own = load(kept, by) + load(kept, by + 1) * apart[0] + load(kept, by + 2) * apart[1]
        own = (own + load(kept, by + 3) * apart[2]) * signed
        add_to(charge, devices[device, 0] if k == 0 else devices[device, 3 - k], own)
        total = total + own
    add_to(charge, devices[device, 3], splat(0.0) - total)


@jit
def float_current(s: Any, v: Any, device: int) -> Any:
    """Current from drain to source of a floating n device where it was evaluated, A, of all that are parallel."""
    return load(v.kept, device * FLOAT_KEPT + 3) * s.float_size[device]


@inner
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
    rows = int(axis[table, 5]) + 2, int(axis[table, 8]) + 2
    first = begin[table] + (i * rows[0] + j) * rows[1] + k
    of_current, of_gate, of_lower, of_upper = columns(values, first, rows, (ti, tj, tk))
    rates, out = (ri, rj, rk), (oi, oj, ok)
    flow = _by_volt(of_current, rates, out)
    level, remains = factor * exp(flow[0]), exp(-gap / thermal)
    current = level * (1.0 - remains)
    by_gap = current * flow[3] + level * remains / thermal
    _keep(kept, at + 3, lane, (current, current * flow[1], current * flow[2], by_gap), forward)
    if not forward:
        for row in range(at + 3, at + 7):
            kept[row, lane] = -kept[row, lane]
    lower, upper = (11, 15) if forward else (15, 11)
    _keep(kept, at + 7, lane, _by_volt(of_gate, rates, out), forward)
    _keep(kept, at + lower, lane, _by_volt(of_lower, rates, out), forward)
    _keep(kept, at + upper, lane, _by_volt(of_upper, rates, out), forward)


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


@inner
def columns(values: Any, first: int, rows: Any, places: Any) -> Any:
    """The four columns of a table at a place, each with its three derivatives by place. rows: of the inner axes."""
    (wi, di), (wj, dj), (wk, dk) = _weights(places[0]), _weights(places[1]), _weights(places[2])
    f = fi = fj = fk = splat(0.0)
    low, high = halves(wk[0], wk[1]), halves(wk[2], 0.0)  # LANES numbers are the columns of two points
    d_low, d_high = halves(dk[0], dk[1]), halves(dk[2], 0.0)
    for a in range(3):
        g = gj = gk = splat(0.0)
        for b in range(3):
            row = FLOAT_COLUMNS * (first + (a * rows[0] + b) * rows[1])
            p, q = load_at(values, row), load_at(values, row + LANES)
            value = p * low + q * high
            g, gj = g + value * wj[b], gj + value * dj[b]
            gk = gk + (p * d_low + q * d_high) * wj[b]
        f, fi, fj, fk = f + g * wi[a], fi + g * di[a], fj + gj * wi[a], fk + gk * wi[a]
    return _column(f, fi, fj, fk, 0), _column(f, fi, fj, fk, 1), _column(f, fi, fj, fk, 2), _column(f, fi, fj, fk, 3)


@inner
def _column(f: Any, fi: Any, fj: Any, fk: Any, k: int) -> Any:
    """One of them, from the sums over both points."""
    by = k + FLOAT_COLUMNS
    return pick(f, k) + pick(f, by), pick(fi, k) + pick(fi, by), pick(fj, k) + pick(fj, by), pick(fk, k) + pick(fk, by)


@inner
def _by_volt(found: Any, rates: Any, out: Any) -> Any:
    """A column with its derivatives by volt, `out` V beyond the table's axes."""
    by_gate, by_low, by_gap = found[1] * rates[0], found[2] * rates[1], found[3] * rates[2]
    return found[0] + by_gate * out[0] + by_low * out[1] + by_gap * out[2], by_gate, by_low, by_gap


@inner
def _keep(kept: Any, row: int, lane: int, found: Any, forward: bool) -> None:
    """A value, its derivatives by V_G, V_S and V_D; `found` has those by V_G, the lower end, and the higher's more."""
    kept[row, lane], kept[row + 1, lane] = found[0], found[1]
    low, high = found[2] - found[3], found[3]
    kept[row + 2, lane] = low if forward else high
    kept[row + 3, lane] = high if forward else low
