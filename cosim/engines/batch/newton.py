# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""One solve of Newton's method in every lane, each at a step and a turn of its own."""

from typing import Any

from cosim.engines.batch.compiled import jit
from cosim.engines.batch.evaluate import evaluate
from cosim.engines.batch.lanes import absolute, least, load, most, splat, store
from cosim.engines.batch.layout import BEYOND, ERROR, FAR, FIRST, MATRIX, SECOND, SHARE, SLOPE
from cosim.engines.batch.lu import decompose, substitute

_LARGEST_MOVE = 0.6  # V in one Newton step
_LEAST_WEIGHT = 0.05


@jit
def solve(s: Any, p: Any, v: Any, m: Any, varied: bool) -> None:
    """Move x by one solve; leaves in `pace` how far, and how much the steps in course err so far."""
    slope, n = load(m.pace, SLOPE), p.pivot.size
    evaluate(s, v, slope, varied, MATRIX)
    _residual(s.row, v, m, slope)
    _hold(p, v, m)
    _weigh(p, v.matrix, m.weight, m.inverse)
    decompose(p, v.matrix)
    substitute(p, v.matrix, m.residual)
    _move(v.x, m, n)


@jit
def _residual(row: Any, v: Any, m: Any, slope: Any) -> None:
    """The sum of currents out of every unknown."""
    current, charge, q0, q1, residual = v.current, v.charge, m.q0, m.q1, m.residual
    first, second = load(m.pace, FIRST), load(m.pace, SECOND)
    for k in range(residual.shape[0]):
        store(residual, k, splat(0.0))
    for net in range(row.size):
        out = load(current, net) + load(charge, net) * slope + load(q0, net) * first + load(q1, net) * second
        store(residual, row[net], load(residual, row[net]) + out)


@jit
def _hold(p: Any, v: Any, m: Any) -> None:
    """Pull what is held to where it is held."""
    for k in range(m.hold.shape[0]):
        row, pull = int(m.held[k, 0]), m.held[k, 1]
        store(m.residual, row, load(m.residual, row) + (load(v.x, row) - load(m.hold, k)) * pull)
        store(v.matrix, p.pivot[row], load(v.matrix, p.pivot[row]) + pull)


@jit
def _weigh(p: Any, matrix: Any, weight: Any, inverse: Any) -> None:
    """Set how much of an error at an unknown its neighbours see, between _LEAST_WEIGHT and 1, from the matrix itself.

    An unknown i follows j by A_ij / A_ii. What nobody follows, such as a comparator's output behind an open switch, may
    err: it is at the rail again before anybody looks.
    """
    for k in range(p.pivot.size):
        store(inverse, k, absolute(splat(1.0) / load(matrix, p.pivot[k])))
    for k in range(p.pivot.size):
        worst = splat(_LEAST_WEIGHT)
        for e in range(p.seen_at[k], p.seen_at[k + 1]):
            worst = most(worst, absolute(load(matrix, p.seen[e])) * load(inverse, p.seen_row[e]))
        store(weight, k, least(worst, splat(1.0)))


@jit
def _move(x: Any, m: Any, n: int) -> None:
    """Take Newton's step, within bounds, and measure it; a step's error is known by its distance to the prediction."""
    step, guess, x0, weight = m.residual, m.guess, m.x0, m.weight
    absolute_error, relative_error, highest = m.limits[1], m.limits[4], m.limits[5]
    far = worst = spoilt = splat(0.0)
    for k in range(n):
        one = load(step, k)
        far, spoilt = most(far, absolute(one)), spoilt + one * 0.0
        to = load(x, k) - most(least(one, splat(_LARGEST_MOVE)), splat(-_LARGEST_MOVE))
        to = most(least(to, splat(highest)), splat(-BEYOND))
        store(x, k, to)
        allowed = absolute(to - load(x0, k)) * relative_error + absolute_error
        worst = most(worst, absolute(to - load(guess, k)) * load(weight, k) / allowed)
    store(m.pace, FAR, far + spoilt)  # the larger of a number and nan is the number
    store(m.pace, ERROR, worst * load(m.pace, SHARE))
