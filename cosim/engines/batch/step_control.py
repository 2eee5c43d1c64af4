# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Step control of one lane: a step's length, the coefficients of its BDF formula, and whether its solution will do.

A step of order k takes the derivative at its end of the polynomial through the charge there and the k before. With the
distances T_1, T_2, ... from the solutions before to the end of the step, the variable-step BDF formula is

    dQ/dt = alpha_0 Q_n + alpha_1 Q_n-1 + ... + alpha_k Q_n-k,
    alpha_0 = 1/T_1 + ... + 1/T_k,   alpha_j = -L_j / T_j,   L_j = product over the other i <= k of T_i / (T_i - T_j).

The first step after a breakpoint is implicit Euler's, and each later one is one order higher, up to the highest. A
breakpoint is a corner of a source's waveform, or the end; a step ends on each.

The prediction of order k is the polynomial through the last k + 1 solutions. With D, the solution's derivative of order
k + 1 over (k + 1)!, the prediction errs by D T_1 ... T_(k+1), and the formula of order k, to the other side, by
D T_1 ... T_k / alpha_0. So the local truncation error is the share 1 / (1 + alpha_0 T_(k+1)) of the distance between a
solution and its prediction. While only k solutions lie at or after the breakpoint, the prediction has order k - 1; then
the share of a formula of order k - 1 counts, which is 1 / (alpha_0 T_k). The first step has no error estimate.

Operating points are found by pseudo-transient continuation: implicit Euler in ever longer steps with constant sources.

m is the state of a tile's transients (`arrays.TransientState`); these kernels write its column `lane`, and
`set_coefficients` all columns.
Source: K. E. Brenan, S. L. Campbell and L. R. Petzold, Numerical Solution of Initial-Value Problems in
Differential-Algebraic Equations (SIAM, 1996), chapter 5: variable-coefficient BDF and its error from the predictor.
"""

from typing import Any

from cosim.engines.batch.arrays import (
    ACCEPTED,
    ACCEPTED_STEPS,
    AGE,
    ALPHA_0,
    ALPHA_1,
    BEGINS_STEP,
    END,
    ENDS_AT_BREAKPOINT,
    ERROR_RATIO,
    ERROR_SHARE,
    FAILED,
    FINISHED,
    FIRST_STEP,
    HIGHEST_ORDER,
    ITERATION,
    ITERATIONS,
    NEWTON_MOVE,
    NEWTON_TOLERANCE,
    NEXT_BREAKPOINT,
    NEXT_STEP,
    NOW,
    ORDER,
    PREDICTOR,
    REFUSED_STEPS,
    RUNNING,
    STATUS,
    STEP,
    STEPS_SINCE_BREAKPOINT,
)
from cosim.engines.batch.compiled import inlined_jit, jit
from cosim.engines.batch.lanes import load, minimum, not_less, select, splat, store

_MOST_ITERATIONS = 10  # of Newton's method in a step
_HOPELESS = 1.2  # error over what it may be, at which a step is refused before it has converged
_SMALLEST_STEP = 1e-14  # s
_SAFETY = 0.6  # of the step that an error would allow
# A step grows at most by this factor. At a constant growth, order 2 is stable up to 2.41, order 3 up to 1.61 and order
# 4 up to 1.28; above that the error estimate soon stops it.
_GROWTH = 1.7
_STATIONARY = 1e6  # s: at a pseudo step so long the lane is at its operating point
_SHORTEST_PSEUDO_STEP, _MOST_PSEUDO_STEPS = 1e-18, 3000  # s, and steps on the way to an operating point


@jit
def begin_step(m: Any, lane: int) -> None:
    """Choose the length of a simulated lane's next time step, at most to the next breakpoint.

    A step that would leave less than itself before the breakpoint goes half the way.
    """
    clock, step, ahead = m.clock, m.step, int(m.clock[NEXT_BREAKPOINT, lane])
    left = m.breakpoint[ahead, lane] - clock[NOW, lane]
    h = min(clock[NEXT_STEP, lane], m.longest_step[ahead, lane])
    clock[ENDS_AT_BREAKPOINT, lane] = 1.0 if h >= left * (1 - 1e-9) else 0.0
    if clock[ENDS_AT_BREAKPOINT, lane] > 0.0:
        h = left
    elif h > 0.5 * left:
        h = 0.5 * left
    clock[STEP, lane], step[BEGINS_STEP, lane] = h, 1.0


@jit
def set_coefficients(m: Any) -> None:
    """Compute formula, prediction and error share of the step in course in every lane of a simulated transient.

    While no more solutions lie at or after the breakpoint than the formula uses, the prediction is one order lower.
    """
    step, order = m.step, int(m.limits[ORDER])
    since = load(m.clock, STEPS_SINCE_BREAKPOINT)
    full, solutions = not_less(since, splat(float(order))), minimum(since + 1.0, splat(float(order)))
    oldest, furthest = _distance(m, order + 1), splat(0.0)
    alpha_0, oldest_weight = splat(0.0), splat(1.0)
    for j in range(1, order + 1):
        there, own, weight = not_less(solutions, splat(float(j))), _distance(m, j), splat(1.0)
        for i in range(1, order + 1):
            if i != j:
                other = _distance(m, i)
                used = not_less(solutions, splat(float(i)))
                weight = select(used, weight * (other / (other - own)), weight)
        weight, inverse = select(there, weight, splat(0.0)), select(there, 1.0 / own, splat(0.0))
        alpha_0, furthest = alpha_0 + inverse, select(there, own, furthest)
        store(step, ALPHA_1 + j - 1, splat(0.0) - weight * inverse)
        store(step, PREDICTOR + j - 1, select(full, weight * (oldest / (oldest - own)), weight))
        oldest_weight = oldest_weight * (own / (own - oldest))
    store(step, ALPHA_0, alpha_0)
    store(step, PREDICTOR + order, select(full, oldest_weight, splat(0.0)))
    lower = select(not_less(since, splat(1.0)), 1.0 / (alpha_0 * furthest), splat(0.0))
    store(step, ERROR_SHARE, select(full, 1.0 / (alpha_0 * oldest + 1.0), lower))


@inlined_jit
def _distance(m: Any, k: int) -> Any:
    """Return the time from the k-th last solution to the end of the step in course, s, in all lanes."""
    return load(m.clock, STEP) if k == 1 else load(m.clock, STEP) + load(m.clock, AGE + k - 2)


@jit
def accept_or_refuse_step(m: Any, lane: int) -> int:
    """Accept or refuse a simulated lane's time step after an update, or iterate on; return 1 where accepted, else 0.

    The next step's length follows from the error, which goes with the power k + 1 of a step whose prediction has the
    order k.
    """
    clock, step = m.clock, m.step
    step[ACCEPTED, lane] = step[BEGINS_STEP, lane] = 0.0
    if clock[STATUS, lane] != RUNNING:
        return 0
    clock[ITERATIONS, lane] += 1
    clock[ITERATION, lane] += 1
    error, move = step[ERROR_RATIO, lane], step[NEWTON_MOVE, lane]
    root = min(clock[STEPS_SINCE_BREAKPOINT, lane], m.limits[ORDER]) + 1.0
    converged = move < m.limits[NEWTON_TOLERANCE]
    if not move < 1e6 or (not converged and clock[ITERATION, lane] >= _MOST_ITERATIONS):
        _refuse_step(m, lane, 0.125)
    elif error > (1.0 if converged else _HOPELESS):
        _refuse_step(m, lane, max(0.2, _SAFETY / error ** (1.0 / root)))
    elif converged:
        growth = _GROWTH if error < 1e-3 else min(_GROWTH, _SAFETY / error ** (1.0 / root))
        _accept_step(m, lane, max(growth, 0.3))
        return 1
    return 0


@jit
def _refuse_step(m: Any, lane: int, factor: float) -> None:
    """Begin a lane's step again, `factor` times as long; the lane has FAILED where that is too short."""
    clock = m.clock
    clock[REFUSED_STEPS, lane] += 1
    clock[NEXT_STEP, lane] = clock[STEP, lane] * factor
    clock[ITERATION, lane] = 0.0
    m.step[BEGINS_STEP, lane] = 1.0
    if clock[NEXT_STEP, lane] < _SMALLEST_STEP:
        clock[STATUS, lane], m.step[BEGINS_STEP, lane] = FAILED, 0.0


@jit
def _accept_step(m: Any, lane: int, growth: float) -> None:
    """Advance a lane's clock by its step; the next is `growth` times as long, or the first behind a breakpoint."""
    clock, h, ahead = m.clock, m.clock[STEP, lane], int(m.clock[NEXT_BREAKPOINT, lane])
    at_breakpoint = clock[ENDS_AT_BREAKPOINT, lane] > 0.0
    clock[NOW, lane] = m.breakpoint[ahead, lane] if at_breakpoint else clock[NOW, lane] + h
    for k in range(AGE + HIGHEST_ORDER - 1, AGE, -1):
        clock[k, lane] = clock[k - 1, lane] + h
    clock[AGE, lane] = h
    clock[ACCEPTED_STEPS, lane] += 1
    clock[STEPS_SINCE_BREAKPOINT, lane] = 0.0 if at_breakpoint else clock[STEPS_SINCE_BREAKPOINT, lane] + 1
    clock[NEXT_STEP, lane] = m.limits[FIRST_STEP] if at_breakpoint else h * growth
    clock[NEXT_BREAKPOINT, lane] += clock[ENDS_AT_BREAKPOINT, lane]
    clock[ITERATION, lane] = 0.0
    m.step[ACCEPTED, lane] = m.step[BEGINS_STEP, lane] = 1.0
    if clock[NOW, lane] >= clock[END, lane]:
        clock[STATUS, lane], m.step[BEGINS_STEP, lane] = FINISHED, 0.0


@jit
def begin_pseudo_step(m: Any, lane: int) -> None:
    """Compute the solver's coefficients of a step towards an operating point: implicit Euler from the last solution.

    The other coefficients of m.step are 0 already.
    """
    step, alpha_0 = m.step, 1.0 / m.clock[NEXT_STEP, lane]
    step[ALPHA_0, lane], step[ALPHA_1, lane], step[PREDICTOR, lane] = alpha_0, -alpha_0, 1.0


@jit
def accept_or_refuse_pseudo_step(m: Any, lane: int) -> None:
    """Accept, refuse or iterate a lane's step towards an operating point: the fewer iterations, the longer the next."""
    clock, step = m.clock, m.step
    step[ACCEPTED, lane] = step[BEGINS_STEP, lane] = 0.0
    if clock[STATUS, lane] != RUNNING:
        return
    clock[ITERATION, lane] += 1
    iteration, move = clock[ITERATION, lane], step[NEWTON_MOVE, lane]
    if move < m.limits[NEWTON_TOLERANCE]:
        clock[ACCEPTED_STEPS, lane] += 1
        clock[NEXT_STEP, lane] *= 4.0 if iteration < 4 else (2.0 if iteration < 7 else 1.0)
        step[ACCEPTED, lane] = 1.0
    elif not move < 1e6 or iteration >= _MOST_ITERATIONS:
        clock[NEXT_STEP, lane] *= 0.1
    else:
        return
    clock[ITERATION, lane], step[BEGINS_STEP, lane] = 0.0, 1.0
    if clock[NEXT_STEP, lane] >= _STATIONARY:
        clock[STATUS, lane], step[BEGINS_STEP, lane] = FINISHED, 0.0
    elif clock[NEXT_STEP, lane] < _SHORTEST_PSEUDO_STEP or clock[ACCEPTED_STEPS, lane] > _MOST_PSEUDO_STEPS:
        clock[STATUS, lane], step[BEGINS_STEP, lane] = FAILED, 0.0
