# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Newton's method for one step of time, for all instances of a tile; gives up early where the step will be refused."""

from typing import Any

import numpy as np

from cosim.engines.batch.evaluate import evaluate
from cosim.engines.batch.lanes import absolute, inner, jit, largest, least, load, most, splat, store
from cosim.engines.batch.layout import BEFORE, CURRENTS, LAST, MATRIX, SINCE
from cosim.engines.batch.lu import decompose, substitute

NEWTON_LIMIT = 10
_HOPELESS = 1.2  # error at which no further move is made
_LARGEST_MOVE = 0.6  # V in one Newton step
_LEAST_WEIGHT = 0.02


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
        if h > 0.0 and turn < NEWTON_LIMIT and step_error(v, m, h, n) > _HOPELESS:
            return -turn
    return -NEWTON_LIMIT


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
def _move(x: Any, step: Any, n: int) -> float:
    """Take Newton's step, within bounds; its largest part, V."""
    far = splat(0.0)
    for k in range(n):
        one = load(step, k)
        far = most(far, absolute(one))
        store(x, k, load(x, k) - most(least(one, splat(_LARGEST_MOVE)), splat(-_LARGEST_MOVE)))
    return largest(far)


@jit
def step_error(v: Any, m: Any, h: float, n: int) -> float:
    """The step's error over what it may be, from the distance to the prediction; 0 behind a corner."""
    since, h1, h2 = m.clock[SINCE], m.clock[LAST], m.clock[BEFORE]
    if since < 1:
        return 0.0
    if since < 2:
        own, other = h * h / 2.0, h * (h + h1) / 2.0
    else:
        own, other = h * h * (h + h1) ** 2 / (6.0 * (2.0 * h + h1)), h * (h + h1) * (h + h1 + h2) / 6.0
    worst, share = splat(0.0), own / (own + other)
    a0, a1, a2 = extrapolation(m, h)
    for k in range(n):
        x0, x = load(m.x0, k), load(v.x, k)
        guess = x0 * a0 + load(m.x1, k) * a1 + load(m.x2, k) * a2
        allowed = absolute(x - x0) * m.limits[4] + m.limits[1]
        worst = most(worst, absolute(x - guess) * load(m.weight, k) * share / allowed)
    return largest(worst)


@inner
def extrapolation(m: Any, h: float) -> Any:
    """Factors of the last three solutions in the polynomial through those behind the corner, a step of h, s, on."""
    since, h1, h2 = m.clock[SINCE], m.clock[LAST], m.clock[BEFORE]
    if since < 1:
        return 1.0, 0.0, 0.0
    if since < 2:
        return 1.0 + h / h1, -h / h1, 0.0
    a1, a2 = -h * (h + h1 + h2) / (h1 * h2), h * (h + h1) / (h2 * (h1 + h2))
    return 1.0 - a1 - a2, a1, a2
