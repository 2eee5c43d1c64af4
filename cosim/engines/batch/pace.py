# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Steps of one lane: how long, whether its solution will do, and the factors of its formulas.

A step ends at every corner of a source at the latest, and the first one behind a corner is implicit Euler's.
Source: K. E. Brenan, S. L. Campbell and L. R. Petzold, Numerical Solution of Initial-Value Problems in
Differential-Algebraic Equations (SIAM, 1996), chapter 5: variable-coefficient BDF and its error from the predictor.
"""

from typing import Any

from cosim.engines.batch.compiled import jit
from cosim.engines.batch.layout import (
    ACCEPTED,
    AHEAD,
    BEFORE,
    BEGINS,
    CORNERED,
    DONE,
    END,
    ERROR,
    FAR,
    FIRST,
    GUESS,
    LAST,
    NEXT,
    NOW,
    REFUSED,
    RUNNING,
    SECOND,
    SHARE,
    SINCE,
    SLOPE,
    SOLVED,
    STANDS,
    STEP,
    STEPS,
    STUCK,
    TURN,
)

_NEWTON_LIMIT = 10
_HOPELESS = 1.2  # error of a step at which it is refused before it has converged
_SMALLEST_STEP = 1e-14  # s
_SAFETY = 0.6  # of the step that an error would allow
_GROWTH = 1.7  # of a step at most; BDF2 is stable up to 2.41
_RESTED = 1e6  # s: a step so long has come to rest
_SHORTEST_REST, _MOST_RESTS = 1e-18, 3000  # s, and steps on the way to rest


@jit
def begin_step(m: Any, lane: int) -> None:
    """The next step: its length, and what follows from it."""
    clock, pace = m.clock, m.pace
    left = m.corner[int(clock[AHEAD, lane]), lane] - clock[NOW, lane]
    h = min(clock[NEXT, lane], m.limits[2])
    clock[CORNERED, lane] = 1.0 if h >= left * (1 - 1e-9) else 0.0
    if clock[CORNERED, lane] > 0.0:
        h = left
    elif h > 0.5 * left:
        h = 0.5 * left
    clock[STEP, lane], pace[BEGINS, lane] = h, 1.0
    since, h1, h2 = clock[SINCE, lane], clock[LAST, lane], clock[BEFORE, lane]
    ratio = h / h1 if since >= 1 else 0.0
    pace[SLOPE, lane] = (1.0 + 2.0 * ratio) / (1.0 + ratio) / h
    pace[FIRST, lane] = -(1.0 + ratio) / h
    pace[SECOND, lane] = ratio * ratio / (1.0 + ratio) / h
    a1 = a2 = share = 0.0
    if since >= 2:
        a1, a2 = -h * (h + h1 + h2) / (h1 * h2), h * (h + h1) / (h2 * (h1 + h2))
        own, other = h * h * (h + h1) ** 2 / (6.0 * (2.0 * h + h1)), h * (h + h1) * (h + h1 + h2) / 6.0
        share = own / (own + other)
    elif since >= 1:
        a1, share = -ratio, h / (2.0 * h + h1)
    pace[GUESS, lane], pace[GUESS + 1, lane], pace[GUESS + 2, lane] = 1.0 - a1 - a2, a1, a2
    pace[SHARE, lane] = share


@jit
def judge(m: Any, lane: int) -> int:
    """Accept or refuse a lane's step after a solve, and set the next step's length; return 1 where it is accepted."""
    clock, pace = m.clock, m.pace
    pace[ACCEPTED, lane] = pace[BEGINS, lane] = 0.0
    if clock[STANDS, lane] != RUNNING:
        return 0
    clock[SOLVED, lane] += 1
    clock[TURN, lane] += 1
    error, far, order = pace[ERROR, lane], pace[FAR, lane], min(clock[SINCE, lane], 2.0) + 1.0
    converged = far < m.limits[0]
    if not far < 1e6 or (not converged and clock[TURN, lane] >= _NEWTON_LIMIT):
        _refuse(m, lane, 0.125)
    elif error > (1.0 if converged else _HOPELESS):
        _refuse(m, lane, max(0.2, _SAFETY / error ** (1.0 / order)))
    elif converged:
        growth = _GROWTH if error < 1e-3 else min(_GROWTH, _SAFETY / error ** (1.0 / order))
        _step_on(m, lane, max(growth, 0.3))
        return 1
    return 0


@jit
def _refuse(m: Any, lane: int, factor: float) -> None:
    clock = m.clock
    clock[REFUSED, lane] += 1
    clock[NEXT, lane] = clock[STEP, lane] * factor
    clock[TURN, lane] = 0.0
    m.pace[BEGINS, lane] = 1.0
    if clock[NEXT, lane] < _SMALLEST_STEP:
        clock[STANDS, lane], m.pace[BEGINS, lane] = STUCK, 0.0


@jit
def _step_on(m: Any, lane: int, growth: float) -> None:
    clock, h, ahead = m.clock, m.clock[STEP, lane], int(m.clock[AHEAD, lane])
    cornered = clock[CORNERED, lane] > 0.0
    clock[NOW, lane] = m.corner[ahead, lane] if cornered else clock[NOW, lane] + h
    clock[BEFORE, lane], clock[LAST, lane] = clock[LAST, lane], h
    clock[STEPS, lane] += 1
    clock[SINCE, lane] = 0.0 if cornered else clock[SINCE, lane] + 1
    clock[NEXT, lane] = m.limits[3] if cornered else h * growth
    clock[AHEAD, lane] += clock[CORNERED, lane]
    clock[TURN, lane] = 0.0
    m.pace[ACCEPTED, lane] = m.pace[BEGINS, lane] = 1.0
    if clock[NOW, lane] >= clock[END, lane]:
        clock[STANDS, lane], m.pace[BEGINS, lane] = DONE, 0.0


@jit
def begin_rest(m: Any, lane: int) -> None:
    """A step on the way to rest: implicit Euler from the last solution."""
    pace, slope = m.pace, 1.0 / m.clock[NEXT, lane]
    pace[SLOPE, lane], pace[FIRST, lane], pace[SECOND, lane] = slope, -slope, 0.0
    pace[GUESS, lane], pace[GUESS + 1, lane], pace[GUESS + 2, lane] = 1.0, 0.0, 0.0
    pace[SHARE, lane] = 0.0


@jit
def judge_rest(m: Any, lane: int) -> None:
    """Judge a solve on a lane's way to its operating point: the fewer iterations, the longer the next step."""
    clock, pace = m.clock, m.pace
    pace[ACCEPTED, lane] = pace[BEGINS, lane] = 0.0
    if clock[STANDS, lane] != RUNNING:
        return
    clock[TURN, lane] += 1
    turn, far = clock[TURN, lane], pace[FAR, lane]
    if far < m.limits[0]:
        clock[STEPS, lane] += 1
        clock[NEXT, lane] *= 4.0 if turn < 4 else (2.0 if turn < 7 else 1.0)
        pace[ACCEPTED, lane] = 1.0
    elif not far < 1e6 or turn >= _NEWTON_LIMIT:
        clock[NEXT, lane] *= 0.1
    else:
        return
    clock[TURN, lane], pace[BEGINS, lane] = 0.0, 1.0
    if clock[NEXT, lane] >= _RESTED:
        clock[STANDS, lane], pace[BEGINS, lane] = DONE, 0.0
    elif clock[NEXT, lane] < _SHORTEST_REST or clock[STEPS, lane] > _MOST_RESTS:
        clock[STANDS, lane], pace[BEGINS, lane] = STUCK, 0.0
