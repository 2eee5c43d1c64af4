# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Step control of one lane: a step's length, the coefficients of its BDF formula, and whether its solution will do.

With a step h behind steps h1 and h2, r = h / h1, the variable-step BDF formula of order 2 is

    dQ/dt = alpha_0 Q_n + alpha_1 Q_n-1 + alpha_2 Q_n-2,
    alpha_0 = (1 + 2 r) / (1 + r) / h,   alpha_1 = -(1 + r) / h,   alpha_2 = r^2 / (1 + r) / h;

r = 0 makes it implicit Euler, which the first step behind each breakpoint is. The local truncation error is a share of
the distance between the solution and its prediction, by the polynomial through the last solutions. A breakpoint is a
corner of a source's waveform, where a step ends at the latest.
Operating points are found by pseudo-transient continuation: implicit Euler in ever longer steps with constant sources.

m is the state of a tile's transients (`arrays.TransientState`); these kernels write its column `lane`.
Source: K. E. Brenan, S. L. Campbell and L. R. Petzold, Numerical Solution of Initial-Value Problems in
Differential-Algebraic Equations (SIAM, 1996), chapter 5: variable-coefficient BDF and its error from the predictor.
"""

from typing import Any

from cosim.engines.batch.arrays import (
    ACCEPTED,
    ACCEPTED_STEPS,
    ALPHA_0,
    ALPHA_1,
    ALPHA_2,
    BEGINS_STEP,
    END,
    ENDS_AT_BREAKPOINT,
    ERROR_RATIO,
    ERROR_SHARE,
    FAILED,
    FINISHED,
    FIRST_STEP,
    ITERATION,
    ITERATIONS,
    LAST_STEP,
    LONGEST_STEP,
    NEWTON_MOVE,
    NEWTON_TOLERANCE,
    NEXT_BREAKPOINT,
    NEXT_STEP,
    NOW,
    PREDICTOR,
    REFUSED_STEPS,
    RUNNING,
    STATUS,
    STEP,
    STEP_BEFORE_LAST,
    STEPS_SINCE_BREAKPOINT,
)
from cosim.engines.batch.compiled import jit

_MOST_ITERATIONS = 10  # of Newton's method in a step
_HOPELESS = 1.2  # error over what it may be, at which a step is refused before it has converged
_SMALLEST_STEP = 1e-14  # s
_SAFETY = 0.6  # of the step that an error would allow
_GROWTH = 1.7  # of a step at most; BDF2 is stable up to 2.41
_STATIONARY = 1e6  # s: at a pseudo step so long the lane is at its operating point
_SHORTEST_PSEUDO_STEP, _MOST_PSEUDO_STEPS = 1e-18, 3000  # s, and steps on the way to an operating point


@jit
def begin_step(m: Any, lane: int) -> None:
    """Choose a simulated lane's next time step, at most to the next breakpoint, and compute its coefficients."""
    clock, step = m.clock, m.step
    left = m.breakpoint[int(clock[NEXT_BREAKPOINT, lane]), lane] - clock[NOW, lane]
    h = min(clock[NEXT_STEP, lane], m.limits[LONGEST_STEP])
    clock[ENDS_AT_BREAKPOINT, lane] = 1.0 if h >= left * (1 - 1e-9) else 0.0
    if clock[ENDS_AT_BREAKPOINT, lane] > 0.0:
        h = left
    elif h > 0.5 * left:
        h = 0.5 * left
    clock[STEP, lane], step[BEGINS_STEP, lane] = h, 1.0
    since, h1, h2 = clock[STEPS_SINCE_BREAKPOINT, lane], clock[LAST_STEP, lane], clock[STEP_BEFORE_LAST, lane]
    ratio = h / h1 if since >= 1 else 0.0
    step[ALPHA_0, lane] = (1.0 + 2.0 * ratio) / (1.0 + ratio) / h
    step[ALPHA_1, lane] = -(1.0 + ratio) / h
    step[ALPHA_2, lane] = ratio * ratio / (1.0 + ratio) / h
    a1 = a2 = share = 0.0
    if since >= 2:
        a1, a2 = -h * (h + h1 + h2) / (h1 * h2), h * (h + h1) / (h2 * (h1 + h2))
        own, other = h * h * (h + h1) ** 2 / (6.0 * (2.0 * h + h1)), h * (h + h1) * (h + h1 + h2) / 6.0
        share = own / (own + other)
    elif since >= 1:
        a1, share = -ratio, h / (2.0 * h + h1)
    step[PREDICTOR, lane], step[PREDICTOR + 1, lane], step[PREDICTOR + 2, lane] = 1.0 - a1 - a2, a1, a2
    step[ERROR_SHARE, lane] = share


@jit
def accept_or_refuse_step(m: Any, lane: int) -> int:
    """Accept or refuse a simulated lane's time step after an update, or iterate on; return 1 where accepted, else 0.

    The next step's length follows from the error, from its square or cube root by the formula's order.
    """
    clock, step = m.clock, m.step
    step[ACCEPTED, lane] = step[BEGINS_STEP, lane] = 0.0
    if clock[STATUS, lane] != RUNNING:
        return 0
    clock[ITERATIONS, lane] += 1
    clock[ITERATION, lane] += 1
    error, move = step[ERROR_RATIO, lane], step[NEWTON_MOVE, lane]
    order = min(clock[STEPS_SINCE_BREAKPOINT, lane], 2.0) + 1.0
    converged = move < m.limits[NEWTON_TOLERANCE]
    if not move < 1e6 or (not converged and clock[ITERATION, lane] >= _MOST_ITERATIONS):
        _refuse_step(m, lane, 0.125)
    elif error > (1.0 if converged else _HOPELESS):
        _refuse_step(m, lane, max(0.2, _SAFETY / error ** (1.0 / order)))
    elif converged:
        growth = _GROWTH if error < 1e-3 else min(_GROWTH, _SAFETY / error ** (1.0 / order))
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
    clock[STEP_BEFORE_LAST, lane], clock[LAST_STEP, lane] = clock[LAST_STEP, lane], h
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
    """Compute the solver's coefficients of a step towards an operating point: implicit Euler from the last solution."""
    step, alpha_0 = m.step, 1.0 / m.clock[NEXT_STEP, lane]
    step[ALPHA_0, lane], step[ALPHA_1, lane], step[ALPHA_2, lane] = alpha_0, -alpha_0, 0.0
    step[PREDICTOR, lane], step[PREDICTOR + 1, lane], step[PREDICTOR + 2, lane] = 1.0, 0.0, 0.0
    step[ERROR_SHARE, lane] = 0.0


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
