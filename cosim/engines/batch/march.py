# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""From one moment to the next, for all instances of a tile: BDF of order 1 and 2.

All lanes of a tile share the time steps, so the instance that moves fastest sets them. A step ends at every corner of a
source at the latest, and the first one behind a corner is implicit Euler's.
Source: K. E. Brenan, S. L. Campbell and L. R. Petzold, Numerical Solution of Initial-Value Problems in
Differential-Algebraic Equations (SIAM, 1996), chapter 5: variable-coefficient BDF and its error from the predictor.
"""

from typing import Any

import numpy as np

from cosim.engines.batch.evaluate import evaluate
from cosim.engines.batch.floating import float_current
from cosim.engines.batch.lanes import jit, kept_jit, least, load, most, splat, store
from cosim.engines.batch.layout import (
    AHEAD,
    BEFORE,
    END,
    LAST,
    NEXT,
    NOW,
    REFUSED,
    ROWS,
    SINCE,
    SOLVED,
    STEPS,
    WHOLE,
)
from cosim.engines.batch.newton import NEWTON_LIMIT, extrapolation, newton, step_error
from cosim.engines.batch.tied import tied_current

DONE, FULL, STUCK = 0, 1, 2  # how `advance` ends: at the end, with no row left to save into, or no step converged
_SMALLEST_STEP = 1e-14  # s
_SAFETY = 0.75  # of the step that an error would allow
_GROWTH = 2.0  # of a step at most; BDF2 is stable up to 2.41


@kept_jit
def settle(s: Any, p: Any, v: Any, m: Any, varied: bool) -> int:
    """From x to where it rests with the sources of time 0: implicit Euler in ever longer steps.

    Steps taken; 0 where none converged any more.
    """
    h, steps = 1e-10, 0
    m.clock[AHEAD] = 1
    _sources(s, v, m, m.corner[0])
    evaluate(s, v, 0.0, varied, WHOLE)
    _accept_charges(m, v)
    _copy(m.x0, v.x)
    while h < 1e6:
        for net in range(s.row.size):
            store(m.history, net, load(m.q0, net) * (-1.0 / h))
        turns = newton(s, p, v, m, 1.0 / h, varied, 0.0)
        if turns < 0:
            _copy(v.x, m.x0)
            h *= 0.1
            if h < 1e-18:
                return 0
            continue
        evaluate(s, v, 0.0, varied, WHOLE)
        _accept_charges(m, v)
        _copy(m.x0, v.x)
        steps += 1
        if turns < 7:
            h *= 4.0 if turns < 4 else 2.0
        if steps > 3000:
            return 0
    return steps


@kept_jit
def advance(s: Any, p: Any, v: Any, m: Any, saved: Any, varied: bool) -> int:
    """March to the end, to the last row of `saved`, or to where no step converges; see DONE, FULL and STUCK."""
    n, clock = p.pivot.size, m.clock
    while clock[NOW] < clock[END]:
        if clock[ROWS] >= saved.time.size:
            return FULL
        left = m.corner[int(clock[AHEAD])] - clock[NOW]
        h = min(clock[NEXT], m.limits[2])
        at_corner = h >= left * (1 - 1e-9)
        if at_corner:
            h = left
        elif h > 0.5 * left:
            h = 0.5 * left
        _sources(s, v, m, clock[NOW] + h)
        _predict(v, m, h, n)
        slope = _history(s, m, h)
        turns = newton(s, p, v, m, slope, varied, h)
        clock[SOLVED] += abs(turns)
        error = np.inf if turns == -NEWTON_LIMIT else step_error(v, m, h, n)
        if error > 1.0:
            clock[REFUSED] += 1
            clock[NEXT] = h * (
                0.125 if error == np.inf else max(0.2, _SAFETY / error ** (1.0 / (min(clock[SINCE], 2.0) + 1.0)))
            )
            if clock[NEXT] < _SMALLEST_STEP:
                return STUCK
            continue
        evaluate(s, v, slope, varied, WHOLE)
        clock[NOW] = m.corner[int(clock[AHEAD])] if at_corner else clock[NOW] + h
        _save(s, v, m, saved, slope)
        _widen(m.low, m.high, v.volt)
        _accept_charges(m, v)
        _copy(m.x2, m.x1)
        _copy(m.x1, m.x0)
        _copy(m.x0, v.x)
        clock[STEPS] += 1
        clock[BEFORE], clock[LAST] = clock[LAST], h
        growth = _GROWTH if error < 1e-3 else min(_GROWTH, _SAFETY / error ** (1.0 / (min(clock[SINCE], 2.0) + 1.0)))
        clock[SINCE] += 1
        clock[NEXT] = h * max(growth, 0.3)
        if at_corner:
            clock[AHEAD] += 1
            clock[SINCE] = 0
            clock[NEXT] = m.limits[3]
    return DONE


@jit
def _sources(s: Any, v: Any, m: Any, time: float) -> None:
    """Sources and the nets' offsets at a time up to the corner ahead."""
    ahead = int(m.clock[AHEAD])
    begin, end = m.corner[ahead - 1], m.corner[ahead]
    part = min((time - begin) / (end - begin), 1.0)
    before, after, source = m.sources[ahead - 1], m.sources[ahead], v.source
    for k in range(source.shape[0]):
        first = load(before, k)
        store(source, k, first + (load(after, k) - first) * part)
    offsets(s, v)


@jit
def offsets(s: Any, v: Any) -> None:
    """What sources add_to to each net."""
    for k in range(s.offsets.shape[0]):
        store(v.offset, s.offsets[k, 0], splat(0.0))
    for k in range(s.offsets.shape[0]):
        net = s.offsets[k, 0]
        store(v.offset, net, load(v.offset, net) + load(v.source, s.offsets[k, 1]) * s.offset_sign[k])


@jit
def _predict(v: Any, m: Any, h: float, n: int) -> None:
    """x by the polynomial through the last solutions since the corner."""
    x, x0, x1, x2 = v.x, m.x0, m.x1, m.x2
    a0, a1, a2 = extrapolation(m, h)
    for k in range(n):
        store(x, k, load(x0, k) * a0 + load(x1, k) * a1 + load(x2, k) * a2)


@jit
def _history(s: Any, m: Any, h: float) -> float:
    """What earlier charges add_to to the currents, and the factor of the charges, 1/s."""
    second = m.clock[SINCE] >= 1
    ratio = h / m.clock[LAST] if second else 0.0
    a0 = (1.0 + 2.0 * ratio) / (1.0 + ratio) / h if second else 1.0 / h
    a1 = -(1.0 + ratio) / h if second else -1.0 / h
    a2 = ratio * ratio / (1.0 + ratio) / h if second else 0.0
    for net in range(s.row.size):
        store(m.history, net, load(m.q0, net) * a1 + load(m.q1, net) * a2)
    return a0


@jit
def _accept_charges(m: Any, v: Any) -> None:
    _copy(m.q1, m.q0)
    _copy(m.q0, v.charge)


@jit
def _copy(target: Any, source: Any) -> None:
    for k in range(source.shape[0]):
        store(target, k, load(source, k))


@jit
def _widen(low: Any, high: Any, volt: Any) -> None:
    for net in range(volt.shape[0]):
        store(low, net, least(load(low, net), load(volt, net)))
        store(high, net, most(load(high, net), load(volt, net)))


@jit
def _save(s: Any, v: Any, m: Any, saved: Any, slope: float) -> None:
    """A row of what is saved, from a whole evaluation."""
    row = int(m.clock[ROWS])
    saved.time[row] = m.clock[NOW]
    out = saved.values[row]
    for k in range(saved.kind.size):
        if saved.kind[k] == 0:
            store(out, k, load(v.volt, saved.which[k]))
        elif saved.kind[k] == 1:
            total = splat(0.0)
            for at in range(saved.nets_at[k], saved.nets_at[k + 1]):
                net = saved.nets[at]
                total = total + load(v.current, net) + load(v.charge, net) * slope + load(m.history, net)
            store(out, k, total * saved.sign[k])
        elif saved.which[k] < s.tied_size.size:
            store(out, k, tied_current(s, v, saved.which[k]) * saved.sign[k])
        else:
            device = saved.which[k] - s.tied_size.size
            store(out, k, float_current(s, v, device) * saved.sign[k])
    m.clock[ROWS] += 1
