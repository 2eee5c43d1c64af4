# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Transients and operating points of all lanes of a tile, each lane with steps of its own, by BDF.

A Newton iteration is one update in all lanes. A lane whose step has converged accepts or refuses it and begins the next
one in the same iteration, whatever the others do: cells flip at different moments in different lanes, and steps that
all shared would follow whichever flips. Nothing of a lane depends on the others.

In all kernels s is the circuit (`arrays.CircuitArrays`), p the program of the LU (`arrays.LuProgram`), v the values of
the tile (`arrays.TileValues`), m the state of its transients (`arrays.TransientState`) and saved the probes
(`arrays.ProbeBuffer`). Formulas and step control: `step_control`.
"""

from typing import Any

from cosim.engines.batch.arrays import (
    ACCEPTED,
    ALPHA_0,
    ALPHA_1,
    BEGINS_STEP,
    FULL,
    NEXT_BREAKPOINT,
    NOW,
    ORDER,
    PREDICTOR,
    RUNNING,
    SAVED_ROWS,
    STATUS,
    STEP,
    TANGENT,
)
from cosim.engines.batch.compiled import cached_jit, jit
from cosim.engines.batch.evaluate import evaluate, four_terminal_current, three_terminal_current
from cosim.engines.batch.lanes import LANES, add_to, each_lane, load, maximum, minimum, splat, store, store_where
from cosim.engines.batch.newton import newton_update
from cosim.engines.batch.step_control import (
    accept_or_refuse_pseudo_step,
    accept_or_refuse_step,
    begin_pseudo_step,
    begin_step,
    set_coefficients,
)

_FURTHEST = 0.2  # V that a prediction may be from the last solution


@cached_jit
def solve_operating_points(s: Any, p: Any, v: Any, m: Any, has_deviations: bool) -> None:
    """Solve for the operating point v.x of every lane with the sources of time 0; a lane may end as FAILED.

    The method is pseudo-transient continuation, see `step_control`. m.charge[0] receives the charges at the operating
    point, C.
    """
    _set_net_offsets(s, v)
    evaluate(s, v, splat(0.0), has_deviations, FULL)
    _copy(m.charge[0], v.charge)
    _copy(m.x[0], v.x)
    while _running_lanes(m) > 0:
        for lane in each_lane():
            if m.step[BEGINS_STEP, lane] > 0.0:
                begin_pseudo_step(m, lane)
        _predict(v, m, p.pivot.size)
        newton_update(s, p, v, m, has_deviations)
        for lane in each_lane():
            accept_or_refuse_pseudo_step(m, lane)
        evaluate(s, v, splat(0.0), has_deviations, TANGENT)
        _accept_solution(v, m)
    _copy(v.x, m.x[0])


@cached_jit
def advance_transient(s: Any, p: Any, v: Any, m: Any, saved: Any, has_deviations: bool, waiting: bool) -> None:
    """Advance the simulated transients of all lanes until none may continue, see `may_continue`."""
    while may_continue(m, saved, waiting):
        for lane in each_lane():
            if m.step[BEGINS_STEP, lane] > 0.0:
                begin_step(m, lane)
                set_sources(s, v, m, lane)
        newton_iteration(s, p, v, m, saved, has_deviations)


@jit
def may_continue(m: Any, saved: Any, waiting: bool) -> bool:
    """Tell whether the transients may go on: every running lane has a row left to save into, and enough lanes run.

    One running lane is enough; all of them must run where another bench is `waiting` for a lane.
    """
    for lane in each_lane():
        if m.clock[STATUS, lane] == RUNNING and m.clock[SAVED_ROWS, lane] >= saved.time.shape[1]:
            return False
    return _running_lanes(m) > (LANES - 1 if waiting else 0)


@jit
def newton_iteration(s: Any, p: Any, v: Any, m: Any, saved: Any, has_deviations: bool) -> None:
    """Do one Newton update of the simulated transients in all lanes.

    In lanes that accept their step, the solution is saved and becomes the last one.
    """
    set_coefficients(m)
    _set_net_offsets(s, v)
    _predict(v, m, p.pivot.size)
    newton_update(s, p, v, m, has_deviations)
    accepted = 0
    for lane in each_lane():
        accepted += accept_or_refuse_step(m, lane)
    if accepted > 0:
        evaluate(s, v, load(m.step, ALPHA_0), has_deviations, TANGENT)
        _save_probes(s, v, m, saved)
        _update_extremes(m.low, m.high, v.voltage, load(m.step, ACCEPTED))
        _accept_solution(v, m)


@jit
def _running_lanes(m: Any) -> int:
    count = 0
    for lane in each_lane():
        if m.clock[STATUS, lane] == RUNNING:
            count += 1
    return count


@jit
def set_sources(s: Any, v: Any, m: Any, lane: int) -> None:
    """Set a simulated lane's sources to their values at the end of the step that the lane begins."""
    clock = m.clock
    ahead = int(clock[NEXT_BREAKPOINT, lane])
    begin, end = m.breakpoint[ahead - 1, lane], m.breakpoint[ahead, lane]
    part = min((clock[NOW, lane] + clock[STEP, lane] - begin) / (end - begin), 1.0)
    for k in range(v.source.shape[0]):
        before = m.source_values[ahead - 1, k, lane]
        v.source[k, lane] = before + (m.source_values[ahead, k, lane] - before) * part


@jit
def _set_net_offsets(s: Any, v: Any) -> None:
    """Set `v.offset` in all lanes: for each net, the voltage that its sources add, V."""
    for k in range(s.offsets.shape[0]):
        store(v.offset, s.offsets[k, 0], splat(0.0))
    for k in range(s.offsets.shape[0]):
        add_to(v.offset, s.offsets[k, 0], load(v.source, s.offsets[k, 1]) * s.offset_sign[k])


@jit
def _predict(v: Any, m: Any, n: int) -> None:
    """Predict x where steps begin, by the polynomial through the last solutions.

    It stays within _FURTHEST of the last one: behind an edge that polynomial means nothing.
    """
    begins, order, factor = load(m.step, BEGINS_STEP), int(m.limits[ORDER]), load(m.step, PREDICTOR) - 1.0
    for k in range(n):
        last = load(m.x[0], k)
        change = last * factor
        for before in range(1, order + 1):
            change = change + load(m.x[before], k) * load(m.step, PREDICTOR + before)
        found = last + maximum(minimum(change, splat(_FURTHEST)), splat(-_FURTHEST))
        store_where(m.predicted, k, begins, found)
        store_where(v.x, k, begins, found)


@jit
def _accept_solution(v: Any, m: Any) -> None:
    """Shift the history of charges and solutions by one step in the lanes that accept theirs."""
    accepted, order = load(m.step, ACCEPTED), int(m.limits[ORDER])
    for k in range(v.charge.shape[0]):
        for before in range(order - 1, 0, -1):
            store_where(m.charge[before], k, accepted, load(m.charge[before - 1], k))
        store_where(m.charge[0], k, accepted, load(v.charge, k))
    for k in range(v.x.shape[0]):
        for before in range(order, 0, -1):
            store_where(m.x[before], k, accepted, load(m.x[before - 1], k))
        store_where(m.x[0], k, accepted, load(v.x, k))


@jit
def _copy(target: Any, source: Any) -> None:
    for k in range(source.shape[0]):
        store(target, k, load(source, k))


@jit
def _update_extremes(low: Any, high: Any, voltage: Any, accepted: Any) -> None:
    """Keep the lowest and the highest voltage of each net so far, V, in the lanes that accept their step."""
    for net in range(voltage.shape[0]):
        one = load(voltage, net)
        store_where(low, net, accepted, minimum(load(low, net), one))
        store_where(high, net, accepted, maximum(load(high, net), one))


@jit
def _save_probes(s: Any, v: Any, m: Any, saved: Any) -> None:
    """Save time, s, and all probes as a row of each lane that accepts its step."""
    for k in range(saved.kind.size):
        store(saved.present, k, _probe_values(s, v, m, saved, k))
    for lane in each_lane():
        if m.step[ACCEPTED, lane] > 0.0:
            row = int(m.clock[SAVED_ROWS, lane])
            m.clock[SAVED_ROWS, lane] += 1
            saved.time[lane, row] = m.clock[NOW, lane]
            for k in range(saved.kind.size):
                saved.values[lane, row, k] = saved.present[k, lane]


@jit
def _probe_values(s: Any, v: Any, m: Any, saved: Any, k: int) -> Any:
    """Return probe k in all lanes: the voltage of a net, V, or the current of a source or a transistor, A."""
    which, sign = saved.which[k], saved.sign[k]
    if saved.kind[k] == 0:
        return load(v.voltage, which)
    if saved.kind[k] == 2:
        first = s.three_terminal_size.size
        return (
            three_terminal_current(s, v, which) if which < first else four_terminal_current(s, v, which - first)
        ) * sign
    alpha_0, total = load(m.step, ALPHA_0), splat(0.0)
    for at in range(saved.nets_start[k], saved.nets_start[k + 1]):
        net = saved.nets[at]
        total = total + load(v.current, net) + load(v.charge, net) * alpha_0
        for before in range(int(m.limits[ORDER])):
            total = total + load(m.charge[before], net) * load(m.step, ALPHA_1 + before)
    return total * sign
