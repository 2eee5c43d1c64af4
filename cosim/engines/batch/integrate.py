"""From one moment to the next, for all instances of a tile: Newton's method on a sparse LU, BDF of order 1 and 2.

All lanes of a tile share the time steps, so the instance that moves fastest sets them. A step ends at every corner of a
source at the latest, and the first one behind a corner is implicit Euler's.
Source: K. E. Brenan, S. L. Campbell and L. R. Petzold, Numerical Solution of Initial-Value Problems in
Differential-Algebraic Equations (SIAM, 1996), chapter 5: variable-coefficient BDF and its error from the predictor.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.engines.batch.evaluate import CURRENTS, MATRIX, WHOLE, evaluate, float_current, tied_current
from cosim.engines.batch.lanes import LANES, absolute, inner, jit, largest, least, load, most, splat, store

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
DONE, FULL, STUCK = 0, 1, 2  # how `advance` ends: at the end, with no row left to save into, or no step converged
NEWTON_LIMIT = 10
_HOPELESS = 1.2  # error at which no further move is made
_LARGEST_MOVE = 0.6  # V in one Newton step
_FURTHEST = 0.2  # V that a prediction may be from the last solution
_SMALLEST_STEP = 1e-14  # s
_SAFETY = 0.75  # of the step that an error would allow
_LEAST_WEIGHT = 0.05
_GROWTH = 2.0  # of a step at most; BDF2 is stable up to 2.41


class Solver(NamedTuple):
    """The LU program, by place in the matrix: for pivot k, entries below it, and for each what it takes from the row.

    pivot (n,); below_at (n + 1,) into below; right_at (n + 1,) into right, the row of pivot k; target_at (below + 1,)
    into target: where each product lands. below_row, right_row: rows of the unknowns that these entries belong to.
    """

    pivot: Whole
    below_at: Whole
    below: Whole
    below_row: Whole
    right_at: Whole
    right: Whole
    right_row: Whole
    target: Whole
    target_at: Whole


class Saved(NamedTuple):
    """What is saved at each step: kind (n,) 0 a voltage, 1 a source, 2 a transistor; index (n,) net, or device;

    nets_at (n + 1,) into nets: those behind a source. time (rows,); values (rows, n, LANES).
    """

    kind: Whole
    index: Whole
    sign: Array
    nets_at: Whole
    nets: Whole
    time: Array
    values: Array


class March(NamedTuple):
    """Where a tile stands. clock: see CLOCK; corner (n,) s; sources (n, sources, LANES): values at the corners;

    x0, x1, x2: solutions now and before; q0, q1: charges; history, residual: rows of work; low, high: V by net; weight: see `_weigh`; hold: V, siemens by row;
    limits: Newton's V, error of a step V, largest step s, first step s, error of a step over the step's change, and Newton's V
    under which the matrix is not made again.
    """

    clock: Array
    corner: Array
    sources: Array
    x0: Array
    x1: Array
    x2: Array
    q0: Array
    q1: Array
    history: Array
    low: Array
    high: Array
    weight: Array
    inverse: Array
    residual: Array
    held: Array
    hold: Array
    limits: Array


# clock: now, end, the last two steps, the next, steps since a corner, index of the corner ahead, rows saved, counts
NOW, END, LAST, BEFORE, NEXT, SINCE, AHEAD, ROWS, STEPS, REFUSED, SOLVED = range(11)


@jit
def decompose(p: Solver, a: Any) -> None:
    """LU in place; a pivot's place then holds its reciprocal."""
    for k in range(p.pivot.size):
        inverse = splat(1.0) / load(a, p.pivot[k])
        store(a, p.pivot[k], inverse)
        first, width = p.right_at[k], p.right_at[k + 1] - p.right_at[k]
        for e in range(p.below_at[k], p.below_at[k + 1]):
            factor = load(a, p.below[e]) * inverse
            store(a, p.below[e], factor)
            at = p.target_at[e]
            for m in range(width):
                t = p.target[at + m]
                store(a, t, load(a, t) - factor * load(a, p.right[first + m]))


@jit
def substitute(p: Solver, a: Any, b: Any) -> None:
    """Solve for the right-hand side in place."""
    n = p.pivot.size
    for k in range(n):
        value = load(b, k)
        for e in range(p.below_at[k], p.below_at[k + 1]):
            row = p.below_row[e]
            store(b, row, load(b, row) - load(a, p.below[e]) * value)
    for k in range(n - 1, -1, -1):
        value = load(b, k)
        for e in range(p.right_at[k], p.right_at[k + 1]):
            value = value - load(a, p.right[e]) * load(b, p.right_row[e])
        store(b, k, value * load(a, p.pivot[k]))


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
    """What sources add to each net."""
    for k in range(s.offsets.shape[0]):
        store(v.offset, s.offsets[k, 0], splat(0.0))
    for k in range(s.offsets.shape[0]):
        net = s.offsets[k, 0]
        store(v.offset, net, load(v.offset, net) + load(v.source, s.offsets[k, 1]) * s.offset_sign[k])


@inner
def _extrapolation(m: Any, h: float) -> Any:
    """Factors of the last three solutions in the polynomial through those behind the corner, a step of h, s, on."""
    since, h1, h2 = m.clock[SINCE], m.clock[LAST], m.clock[BEFORE]
    if since < 1:
        return 1.0, 0.0, 0.0
    if since < 2:
        return 1.0 + h / h1, -h / h1, 0.0
    a1, a2 = -h * (h + h1 + h2) / (h1 * h2), h * (h + h1) / (h2 * (h1 + h2))
    return 1.0 - a1 - a2, a1, a2


@inner
def _guess(x0: Any, x1: Any, x2: Any, factors: Any) -> Any:
    """The extrapolation, not further than _FURTHEST from the last solution: an edge that is over does not go on."""
    change = x0 * (factors[0] - 1.0) + x1 * factors[1] + x2 * factors[2]
    return x0 + most(least(change, splat(_FURTHEST)), splat(-_FURTHEST))


@jit
def _error(v: Any, m: Any, h: float, n: int) -> float:
    """The step's error over what it may be, from the distance to the prediction; 0 behind a corner."""
    since, h1, h2 = m.clock[SINCE], m.clock[LAST], m.clock[BEFORE]
    if since < 1:
        return 0.0
    if since < 2:
        own, other = h * h / 2.0, h * (h + h1) / 2.0
    else:
        own, other = h * h * (h + h1) ** 2 / (6.0 * (2.0 * h + h1)), h * (h + h1) * (h + h1 + h2) / 6.0
    worst, share = splat(0.0), own / (own + other)
    a0, a1, a2 = _extrapolation(m, h)
    for k in range(n):
        x0, x = load(m.x0, k), load(v.x, k)
        guess = _guess(x0, load(m.x1, k), load(m.x2, k), (a0, a1, a2))
        allowed = absolute(x - x0) * m.limits[4] + m.limits[1]
        worst = most(worst, absolute(x - guess) * load(m.weight, k) * share / allowed)
    return largest(worst)


@jit
def newton(s: Any, p: Any, v: Any, m: Any, slope: float, varied: bool, h: float) -> int:
    """Solve for x; `history` is added to the currents. How often it solved; -NEWTON_LIMIT where it gave up.

    Negative, too, where a move already says that a step of h, s, errs too much; not looked at where h is 0.
    """
    n, size = p.pivot.size, np.inf
    for turn in range(1, NEWTON_LIMIT + 1):
        again = size < m.limits[5]
        evaluate(s, v, slope, varied, CURRENTS if again else MATRIX)
        _residual(s.row, (v.current, v.charge, m.history), slope, m.residual)
        _hold(p, v, m, again)
        if turn == 1 and h > 0.0:
            _weigh(p, v.matrix, m.weight, m.inverse)
        if not again:
            decompose(p, v.matrix)
        substitute(p, v.matrix, m.residual)
        before, size = size, _move(v.x, m.residual, n)
        if size < m.limits[0]:
            return turn
        if not size < 1e6:
            break
        if again and size > 0.5 * before:
            size = np.inf  # the old matrix will not do
        if h > 0.0 and turn < NEWTON_LIMIT and _error(v, m, h, n) > _HOPELESS:
            return -turn
    return -NEWTON_LIMIT


@jit
def _weigh(p: Any, matrix: Any, weight: Any, inverse: Any) -> None:
    """How much of an error at an unknown its neighbours see, between _LEAST_WEIGHT and 1, from the matrix itself.

    An unknown i follows j by A_ij / A_ii. What nobody follows, such as a comparator's output behind an open switch, may
    err: it is at the rail again before anybody looks.
    """
    for k in range(p.pivot.size):
        store(inverse, k, absolute(splat(1.0) / load(matrix, p.pivot[k])))
        store(weight, k, splat(_LEAST_WEIGHT))
    for k in range(p.pivot.size):
        own, worst = load(inverse, k), load(weight, k)
        for e in range(p.right_at[k], p.right_at[k + 1]):
            j = p.right_row[e]
            store(weight, j, most(load(weight, j), absolute(load(matrix, p.right[e])) * own))
        for e in range(p.below_at[k], p.below_at[k + 1]):
            worst = most(worst, absolute(load(matrix, p.below[e])) * load(inverse, p.below_row[e]))
        store(weight, k, most(worst, load(weight, k)))
    for k in range(p.pivot.size):
        store(weight, k, least(load(weight, k), splat(1.0)))


@jit
def _residual(row: Any, parts: Any, slope: float, residual: Any) -> None:
    """The sum of currents out of every unknown."""
    current, charge, history = parts
    for k in range(residual.shape[0]):
        store(residual, k, splat(0.0))
    for net in range(row.size):
        out = load(current, net) + load(charge, net) * slope + load(history, net)
        store(residual, row[net], load(residual, row[net]) + out)


@jit
def _hold(p: Any, v: Any, m: Any, again: bool) -> None:
    """Pull what is held to where it is held; again: the matrix is decomposed and knows."""
    for k in range(m.hold.shape[0]):
        row, pull = int(m.held[k, 0]), m.held[k, 1]
        store(m.residual, row, load(m.residual, row) + (load(v.x, row) - load(m.hold, k)) * pull)
        if not again:
            store(v.matrix, p.pivot[row], load(v.matrix, p.pivot[row]) + pull)


@jit
def _move(x: Any, step: Any, n: int) -> float:
    """Take Newton's step, within bounds; its largest part, V."""
    far = splat(0.0)
    for k in range(n):
        one = load(step, k)
        far = most(far, absolute(one))
        store(x, k, load(x, k) - most(least(one, splat(_LARGEST_MOVE)), splat(-_LARGEST_MOVE)))
    return largest(far)


@jit
def _copy(target: Any, source: Any) -> None:
    for k in range(source.shape[0]):
        store(target, k, load(source, k))


@jit
def _accept_charges(m: Any, v: Any) -> None:
    _copy(m.q1, m.q0)
    _copy(m.q0, v.charge)


@jit
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


@jit
def _predict(v: Any, m: Any, h: float, n: int) -> None:
    """x by the polynomial through the last solutions since the corner."""
    x, x0, x1, x2 = v.x, m.x0, m.x1, m.x2
    a0, a1, a2 = _extrapolation(m, h)
    for k in range(n):
        store(x, k, _guess(load(x0, k), load(x1, k), load(x2, k), (a0, a1, a2)))


@jit
def _history(s: Any, m: Any, h: float) -> float:
    """What earlier charges add to the currents, and the factor of the charges, 1/s."""
    second = m.clock[SINCE] >= 1
    ratio = h / m.clock[LAST] if second else 0.0
    a0 = (1.0 + 2.0 * ratio) / (1.0 + ratio) / h if second else 1.0 / h
    a1 = -(1.0 + ratio) / h if second else -1.0 / h
    a2 = ratio * ratio / (1.0 + ratio) / h if second else 0.0
    for net in range(s.row.size):
        store(m.history, net, load(m.q0, net) * a1 + load(m.q1, net) * a2)
    return a0


@jit
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
        error = np.inf if turns == -NEWTON_LIMIT else _error(v, m, h, n)
        if error > 1.0:
            clock[REFUSED] += 1
            clock[NEXT] = h * (0.125 if error == np.inf else max(0.2, _SAFETY / error ** (1.0 / (min(clock[SINCE], 2.0) + 1.0))))
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
            store(out, k, load(v.volt, saved.index[k]))
        elif saved.kind[k] == 1:
            total = splat(0.0)
            for at in range(saved.nets_at[k], saved.nets_at[k + 1]):
                net = saved.nets[at]
                total = total + load(v.current, net) + load(v.charge, net) * slope + load(m.history, net)
            store(out, k, total * saved.sign[k])
        elif saved.index[k] < s.tied_size.size:
            store(out, k, tied_current(s, v, saved.index[k]) * saved.sign[k])
        else:
            device = saved.index[k] - s.tied_size.size
            store(out, k, float_current(s, v, device) * saved.sign[k])
    m.clock[ROWS] += 1
