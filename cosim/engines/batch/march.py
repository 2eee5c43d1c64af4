# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""From one moment to the next: every lane of a tile at its own pace, by BDF of order 1 and 2.

A beat is one solve of Newton's method in all lanes. A lane whose step has converged accepts or refuses it and begins
the next one in the same beat, whatever the others do: cells flip at different moments in different lanes, and steps
that all shared would follow whichever flips. Nothing of a lane depends on the others.
"""

from typing import Any

from cosim.engines.batch.compiled import jit, kept_jit
from cosim.engines.batch.evaluate import evaluate
from cosim.engines.batch.floating import float_current
from cosim.engines.batch.lanes import LANES, lanes, least, load, most, splat, store, store_where
from cosim.engines.batch.layout import (
    ACCEPTED,
    AHEAD,
    BEGINS,
    FIRST,
    GUESS,
    NEARBY,
    NOW,
    ROWS,
    RUNNING,
    SECOND,
    SLOPE,
    STANDS,
    STEP,
    WHOLE,
)
from cosim.engines.batch.newton import solve
from cosim.engines.batch.pace import begin_rest, begin_step, judge, judge_rest
from cosim.engines.batch.tied import tied_current

_FURTHEST = 0.2  # V that a prediction may be from the last solution


@kept_jit
def settle(s: Any, p: Any, v: Any, m: Any, varied: bool) -> None:
    """From x to where every lane rests with the sources of time 0, or is STUCK: implicit Euler in ever longer steps."""
    for lane in lanes():
        _offset(s, v, lane)
    evaluate(s, v, splat(0.0), varied, WHOLE)
    _copy(m.q0, v.charge)
    _copy(m.x0, v.x)
    while _running(m) > 0:
        for lane in lanes():
            if m.pace[BEGINS, lane] > 0.0:
                begin_rest(m, lane)
        _begin(v, m, p.pivot.size)
        solve(s, p, v, m, varied)
        for lane in lanes():
            judge_rest(m, lane)
        evaluate(s, v, splat(0.0), varied, NEARBY)
        _accept(v, m)
    _copy(v.x, m.x0)


@kept_jit
def advance(s: Any, p: Any, v: Any, m: Any, saved: Any, varied: bool, waiting: bool) -> None:
    """March all lanes to their ends, or to where no step converges.

    Earlier where one has no row left to save into, or where another bench waits for a lane.
    """
    while goes_on(m, saved, waiting):
        for lane in lanes():
            if m.pace[BEGINS, lane] > 0.0:
                begin_step(m, lane)
                drive(s, v, m, lane)
        beat(s, p, v, m, saved, varied)


@jit
def goes_on(m: Any, saved: Any, waiting: bool) -> bool:
    """Tell whether no lane's record is full and enough lanes run: one, or with `waiting` all of them."""
    for lane in lanes():
        if m.clock[STANDS, lane] == RUNNING and m.clock[ROWS, lane] >= saved.time.shape[1]:
            return False
    return _running(m) > (LANES - 1 if waiting else 0)


@jit
def beat(s: Any, p: Any, v: Any, m: Any, saved: Any, varied: bool) -> None:
    """One solve in all lanes; what a step that has converged leaves is saved and taken over."""
    _begin(v, m, p.pivot.size)
    solve(s, p, v, m, varied)
    accepted = 0
    for lane in lanes():
        accepted += judge(m, lane)
    if accepted > 0:
        evaluate(s, v, load(m.pace, SLOPE), varied, NEARBY)
        _save(s, v, m, saved)
        _widen(m.low, m.high, v.volt, load(m.pace, ACCEPTED))
        _accept(v, m)


@jit
def _running(m: Any) -> int:
    count = 0
    for lane in lanes():
        if m.clock[STANDS, lane] == RUNNING:
            count += 1
    return count


@jit
def drive(s: Any, v: Any, m: Any, lane: int) -> None:
    """Sources of a lane, and its nets' offsets, at the end of the step that it begins."""
    clock = m.clock
    ahead = int(clock[AHEAD, lane])
    begin, end = m.corner[ahead - 1, lane], m.corner[ahead, lane]
    part = min((clock[NOW, lane] + clock[STEP, lane] - begin) / (end - begin), 1.0)
    for k in range(v.source.shape[0]):
        before = m.sources[ahead - 1, k, lane]
        v.source[k, lane] = before + (m.sources[ahead, k, lane] - before) * part
    _offset(s, v, lane)


@jit
def _offset(s: Any, v: Any, lane: int) -> None:
    """Set `v.offset` of one lane: for each net, the voltage that its sources add, V."""
    for k in range(s.offsets.shape[0]):
        v.offset[s.offsets[k, 0], lane] = 0.0
    for k in range(s.offsets.shape[0]):
        v.offset[s.offsets[k, 0], lane] += v.source[s.offsets[k, 1], lane] * s.offset_sign[k]


@jit
def _begin(v: Any, m: Any, n: int) -> None:
    """Set x where steps begin, by the polynomial through the last solutions: not far from the last, an edge may be
    over."""
    x, x0, x1, x2, guess, begins = v.x, m.x0, m.x1, m.x2, m.guess, load(m.pace, BEGINS)
    a0, a1, a2 = load(m.pace, GUESS), load(m.pace, GUESS + 1), load(m.pace, GUESS + 2)
    for k in range(n):
        last = load(x0, k)
        change = last * (a0 - 1.0) + load(x1, k) * a1 + load(x2, k) * a2
        found = last + most(least(change, splat(_FURTHEST)), splat(-_FURTHEST))
        store_where(guess, k, begins, found)
        store_where(x, k, begins, found)


@jit
def _accept(v: Any, m: Any) -> None:
    """The lanes that accept their step: what was now is before."""
    accepted = load(m.pace, ACCEPTED)
    for k in range(m.q0.shape[0]):
        store_where(m.q1, k, accepted, load(m.q0, k))
        store_where(m.q0, k, accepted, load(v.charge, k))
    for k in range(v.x.shape[0]):
        store_where(m.x2, k, accepted, load(m.x1, k))
        store_where(m.x1, k, accepted, load(m.x0, k))
        store_where(m.x0, k, accepted, load(v.x, k))


@jit
def _copy(target: Any, source: Any) -> None:
    for k in range(source.shape[0]):
        store(target, k, load(source, k))


@jit
def _widen(low: Any, high: Any, volt: Any, accepted: Any) -> None:
    for net in range(volt.shape[0]):
        one = load(volt, net)
        store_where(low, net, accepted, least(load(low, net), one))
        store_where(high, net, accepted, most(load(high, net), one))


@jit
def _save(s: Any, v: Any, m: Any, saved: Any) -> None:
    """A row of what is saved for each lane that accepts its step."""
    for k in range(saved.kind.size):
        store(saved.found, k, _probe(s, v, m, saved, k))
    for lane in lanes():
        if m.pace[ACCEPTED, lane] > 0.0:
            row = int(m.clock[ROWS, lane])
            m.clock[ROWS, lane] += 1
            saved.time[lane, row] = m.clock[NOW, lane]
            for k in range(saved.kind.size):
                saved.values[lane, row, k] = saved.found[k, lane]


@jit
def _probe(s: Any, v: Any, m: Any, saved: Any, k: int) -> Any:
    """One of what is saved, of all lanes."""
    which, sign = saved.which[k], saved.sign[k]
    if saved.kind[k] == 0:
        return load(v.volt, which)
    if saved.kind[k] == 2:
        tied = s.tied_size.size
        return (tied_current(s, v, which) if which < tied else float_current(s, v, which - tied)) * sign
    slope, first, second = load(m.pace, SLOPE), load(m.pace, FIRST), load(m.pace, SECOND)
    total = splat(0.0)
    for at in range(saved.nets_at[k], saved.nets_at[k + 1]):
        net = saved.nets[at]
        total = total + load(v.current, net) + load(v.charge, net) * slope
        total = total + load(m.q0, net) * first + load(m.q1, net) * second
    return total * sign
