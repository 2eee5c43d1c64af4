# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Evaluate all devices of a tile: currents out of nets, charges on them, and the Jacobian of the circuit's equations.

Modified nodal analysis in which voltage sources add no unknowns. For each unknown, the sum over its nets of

    F = I(v) + dQ(v)/dt,   with dQ/dt = alpha_0 Q + ...,   so that the matrix is dI/dv + alpha_0 dQ/dv.

A device is evaluated anew where its voltages have moved by more than some TANGENT_RANGE_* since its last evaluation,
and is its tangent in between; this is done lane by lane, so nothing in a lane depends on the others.
A gate line is a gate net with its source net and table: transistors that one signal drives share it, so its functions
are evaluated once. A drain line is the same for drain nets.

In all kernels s is the circuit (`arrays.CircuitArrays`) and v the values of its tile (`arrays.TileValues`).
`mode` is JACOBIAN, FULL or TANGENT, see `arrays`.
Source: C. W. Ho, A. E. Ruehli and P. A. Brennan, IEEE Trans. Circuits Syst. 22 (1975) 504 (nodal analysis).
"""

import math
from typing import Any

from cosim.engines.batch.arrays import FOUR_TERMINAL_ROWS, GROUND, JACOBIAN, TANGENT
from cosim.engines.batch.compiled import inlined_jit, jit
from cosim.engines.batch.device_tables import RANK, RESPONSES
from cosim.engines.batch.lanes import (
    absolute,
    add_to,
    count_evaluation,
    evaluation_count,
    exp,
    extract,
    first_lane,
    lane_mask,
    load,
    maximum,
    not_less,
    select,
    set_evaluation_count,
    splat,
    store,
    without_first_lane,
)
from cosim.engines.batch.table_lookup import evaluate_drain_line, evaluate_gate_line, spline_columns

TANGENT_RANGE = 5e-4  # V; the tangent errs by (TANGENT_RANGE / U_T)^2 / 2 = 2e-4 of the current
SATURATION = 0.2  # V of V_DS, beyond which currents bend e^-8 times as much
TANGENT_RANGE_SATURATED = 1e-2  # V of V_DS beyond SATURATION; 3e-5 of the current
TANGENT_RANGE_FOUR_TERMINAL = 1e-3  # V, mostly of a switch; 7e-4 of its current
_OFF, _OFF_PART = 1e-13, 0.1  # A, under which a device is off, and only its charges bend
_LEVEL, _COMMON_PART = 5e-3, 0.15  # V, under which its ends are at one voltage: no current to speak of, that could bend


@jit
def evaluate(s: Any, v: Any, alpha_0: Any, has_deviations: bool, mode: int) -> None:
    """Compute v.current, A, and v.charge, C, of all nets in the batched engine; in mode JACOBIAN also v.matrix.

    They follow from v.x, v.offset and v.source. alpha_0: d(dQ/dt)/dQ of each lane, 1/s; has_deviations: some
    transistors differ from the nominal ones.
    """
    _set_net_voltages(s.row, v.x, v.offset, v.voltage)
    _clear(v.current)
    _clear(v.charge)
    _update_gate_lines(s, v, has_deviations, mode)
    _update_drain_lines(s, v, mode)
    _update_three_terminal(s, v, mode, has_deviations)
    _add_three_terminal_currents(s, v, mode)
    _add_four_terminal(s, v, mode)
    _add_linear_elements(s, v)
    if mode == JACOBIAN:
        _set_linear_entries(v.matrix, s.capacitance_matrix, s.conductance_matrix, alpha_0)
        _stamp_three_terminal(s, v)
        _stamp_charges_and_four_terminal(s, v, alpha_0)


@jit
def _set_net_voltages(row: Any, x: Any, offset: Any, voltage: Any) -> None:
    for net in range(row.size):
        store(voltage, net, load(x, row[net]) + load(offset, net))


@inlined_jit
def _clear(rows: Any) -> None:
    for row in range(rows.shape[0]):
        store(rows, row, splat(0.0))


@jit
def _update_gate_lines(s: Any, v: Any, has_deviations: bool, mode: int) -> None:
    """Evaluate gate lines that moved out of their tangent's range, except in mode TANGENT; add the charges of all."""
    voltage, lines, sign, points, deltas = v.voltage, s.gate_lines, s.gate_sign, v.gate_point, v.gate_delta
    for line in range(lines.shape[0]):
        x = (load(voltage, lines[line, 0]) - load(voltage, lines[line, 1])) * sign[line]
        delta = x - load(points, line)
        if mode != TANGENT:
            moved = not_less(absolute(delta), splat(v.tangent_range[0]))
            todo = lane_mask(moved)
            if todo != 0:
                count_evaluation(v.gate_version, line)
                delta = select(moved, splat(0.0), delta)
                while todo != 0:
                    lane = first_lane(todo)
                    todo = without_first_lane(todo)
                    evaluate_gate_line(s, v, line, lane, extract(x, lane), has_deviations)
        store(deltas, line, delta)
    _add_line_charges(v.charge, lines, sign, s.gate_size, s.gate_source_known, deltas, v.gate_charge, mode)


@jit
def _update_drain_lines(s: Any, v: Any, mode: int) -> None:
    """Evaluate drain lines that moved out of their tangent's range, except in mode TANGENT; add the charges of all."""
    voltage, lines, sign, points, deltas = v.voltage, s.drain_lines, s.drain_sign, v.drain_point, v.drain_delta
    for line in range(lines.shape[0]):
        y, point = (load(voltage, lines[line, 0]) - load(voltage, lines[line, 1])) * sign[line], load(points, line)
        delta = y - point
        if mode != TANGENT:
            near, far = splat(v.tangent_range[0]), splat(v.tangent_range[1])
            near = select(not_less(point, splat(SATURATION)), far, near)
            moved = not_less(absolute(delta), near)
            todo = lane_mask(moved)
            if todo != 0:
                count_evaluation(v.drain_version, line)
                delta = select(moved, splat(0.0), delta)
                while todo != 0:
                    lane = first_lane(todo)
                    todo = without_first_lane(todo)
                    evaluate_drain_line(s, v, line, lane, extract(y, lane))
        store(deltas, line, delta)
    _add_line_charges(v.charge, lines, sign, s.drain_size, s.drain_source_known, deltas, v.drain_charge, mode)


@inlined_jit
def _add_line_charges(
    charge: Any, lines: Any, sign: Any, size: Any, source_known: Any, deltas: Any, tangents: Any, mode: int
) -> None:
    """Add the charges of gate or drain lines to their nets, and take them from their source nets.

    Sources of known voltage are left out in mode JACOBIAN. Lines of one source follow each other, so that their sum is
    kept in a register: a sum in memory would wait for the last one.
    """
    source_net, at_source = GROUND, splat(0.0)
    for line in range(lines.shape[0]):
        tangent = load(tangents, 2 * line) + load(tangents, 2 * line + 1) * load(deltas, line)
        coulomb = tangent * (sign[line] * size[line])
        add_to(charge, lines[line, 0], coulomb)
        if mode != JACOBIAN or not source_known[line]:
            if lines[line, 1] != source_net:
                add_to(charge, source_net, at_source)
                source_net, at_source = lines[line, 1], splat(0.0)
            at_source = at_source - coulomb
    add_to(charge, source_net, at_source)


@jit
def _update_three_terminal(s: Any, v: Any, mode: int, has_deviations: bool) -> None:
    """Compute the tangents of the three-terminal devices one of whose lines was evaluated since they were.

    Devices between nets of known voltage are left out in mode JACOBIAN, and are the only ones in mode TANGENT.
    """
    gate_version, drain_version, version, devices = (
        v.gate_version, v.drain_version, v.three_terminal_version, s.three_terminal
    )  # fmt: skip
    groups = s.three_terminal_groups
    first, last = groups[1] if mode == TANGENT else 0, groups[1] if mode == JACOBIAN else groups[2]
    for device in range(first, last):
        now = evaluation_count(gate_version, devices[device, 0]) + evaluation_count(drain_version, devices[device, 1])
        if now != evaluation_count(version, device):
            set_evaluation_count(version, device, now)
            _evaluate_three_terminal(s, v, device, has_deviations)


@jit
def _evaluate_three_terminal(s: Any, v: Any, device: int, has_deviations: bool) -> None:
    """Compute current, g_m and g_ds of a three-terminal device at its lines' points, of all that are parallel."""
    gate_line, at, tangents = s.three_terminal[device, 0], 3 * device, v.three_terminal_tangent
    drain_row = s.three_terminal[device, 1] * 2 * RANK
    current, gm, gd = _products(v.gate_functions, gate_line * 2 * RANK, v.drain_functions, drain_row)
    size = splat(s.three_terminal_size[device])
    if not has_deviations:
        _store_tangent(tangents, at, current, gm, gd, size)
        return
    responses, deviations, row = v.gate_responses, v.three_terminal_deviation, gate_line * 2 * RESPONSES
    power, bend = _log_factor(responses, row, deviations, 4 * device)
    if s.upper_share[device] > 0.0:
        more, bends = _log_factor(responses, row + 3, deviations, 4 * device + 2)
        power, bend = power + more, bend + bends
    _store_tangent(tangents, at, current, gm + current * bend, gd, exp(power) * size)


@inlined_jit
def _store_tangent(tangents: Any, at: int, current: Any, gm: Any, gd: Any, size: Any) -> None:
    store(tangents, at, current * size)
    store(tangents, at + 1, gm * size)
    store(tangents, at + 2, gd * size)


@inlined_jit
def _products(gate: Any, gate_row: int, drain: Any, drain_row: int) -> Any:
    """Return I = sum_k c_k(V_GS) b_k(V_DS) of a nominal device of size 1, and its derivatives by V_GS and V_DS."""
    f, b = load(gate, gate_row), load(drain, drain_row)
    current, gm, gd = f * b, load(gate, gate_row + RANK) * b, f * load(drain, drain_row + RANK)
    for k in range(1, RANK):
        f, b = load(gate, gate_row + k), load(drain, drain_row + k)
        current = current + f * b
        gm = gm + load(gate, gate_row + RANK + k) * b
        gd = gd + f * load(drain, drain_row + RANK + k)
    return current, gm, gd


@inlined_jit
def _log_factor(response: Any, row: int, deviation: Any, at: int) -> Any:
    """Return ln of a deviating device's current over the nominal one, and its derivative by V_GS.

    It is r dV + s dV^2 / 2 + e ln beta, with dV the threshold shift and r, s, e from `device_tables`; a cascode has two
    such terms.
    """
    shift, factor = load(deviation, at), load(deviation, at + 1)
    half, slopes = shift * shift * 0.5, row + RESPONSES
    power = load(response, row) * shift + load(response, row + 1) * half + load(response, row + 2) * factor
    bend = load(response, slopes) * shift + load(response, slopes + 1) * half + load(response, slopes + 2) * factor
    return power, bend


@inlined_jit
def _on_tangent(tangents: Any, device: int, dv_gs: Any, dv_ds: Any) -> Any:
    """Return a three-terminal device's current on its tangent, A, dv_gs and dv_ds V from where it was evaluated."""
    return load(tangents, 3 * device) + load(tangents, 3 * device + 1) * dv_gs + load(tangents, 3 * device + 2) * dv_ds


@jit
def three_terminal_current(s: Any, v: Any, device: int) -> Any:
    """Return a device's simulated drain current, A, as that of an n device and of all in parallel.

    The last evaluation must be in mode FULL or TANGENT.
    """
    dv_gs, dv_ds = load(v.gate_delta, s.three_terminal[device, 0]), load(v.drain_delta, s.three_terminal[device, 1])
    return _on_tangent(v.three_terminal_tangent, device, dv_gs, dv_ds)


@jit
def _add_three_terminal_currents(s: Any, v: Any, mode: int) -> None:
    """Add the currents of three-terminal devices: in mode JACOBIAN those out of nets that are unknown, else all.

    In mode TANGENT devices with their source on ground are left out: nothing needs the current of ground.
    """
    devices, groups, sign, out = s.three_terminal, s.three_terminal_groups, s.three_terminal_sign, v.current
    tangents, gate_deltas, drain_deltas = v.three_terminal_tangent, v.gate_delta, v.drain_delta
    first = groups[3] if mode == TANGENT else 0
    last, both = (groups[1], groups[0]) if mode == JACOBIAN else (groups[2], 0)
    at_drain = at_source = splat(0.0)  # devices of one net follow each other: a sum in memory would wait for the last
    drain_net, source_net = GROUND, GROUND
    for device in range(first, last):
        dv_gs, dv_ds = load(gate_deltas, devices[device, 0]), load(drain_deltas, devices[device, 1])
        current = _on_tangent(tangents, device, dv_gs, dv_ds) * sign[device]
        if devices[device, 2] != drain_net:
            add_to(out, drain_net, at_drain)
            drain_net, at_drain = devices[device, 2], splat(0.0)
        at_drain = at_drain + current
        if device >= both:
            if devices[device, 3] != source_net:
                add_to(out, source_net, at_source)
                source_net, at_source = devices[device, 3], splat(0.0)
            at_source = at_source - current
    add_to(out, drain_net, at_drain)
    add_to(out, source_net, at_source)


@jit
def _stamp_three_terminal(s: Any, v: Any) -> None:
    """Add g_m and g_ds of the three-terminal devices to the matrix."""
    devices, matrix, tangents = s.three_terminal, v.matrix, v.three_terminal_tangent
    source_known, last = s.three_terminal_groups[0], s.three_terminal_groups[1]
    for device in range(last):
        gm, gd = load(tangents, 3 * device + 1), load(tangents, 3 * device + 2)
        add_to(matrix, devices[device, 4], gm)
        add_to(matrix, devices[device, 5], gd)
        if device >= source_known:
            add_to(matrix, devices[device, 6], splat(0.0) - gm - gd)
            add_to(matrix, devices[device, 7], splat(0.0) - gm)
            add_to(matrix, devices[device, 8], splat(0.0) - gd)
            add_to(matrix, devices[device, 9], gm + gd)


@jit
def _add_four_terminal(s: Any, v: Any, mode: int) -> None:
    """Add currents and charges of the four-terminal devices; those that moved are evaluated anew except in TANGENT."""
    tangents = v.four_terminal_tangent
    if mode != TANGENT:
        for device in range(s.four_terminal.shape[0]):
            _update_four_terminal(s, v, device)
    for device in range(s.four_terminal.shape[0]):
        at, (vg, vs, vd) = device * FOUR_TERMINAL_ROWS, _bulk_voltages(s, v, device)
        delta = vg - load(tangents, at), vs - load(tangents, at + 1), vd - load(tangents, at + 2)
        _add_on_tangent(s, v, device, delta)


@inlined_jit
def _update_four_terminal(s: Any, v: Any, device: int) -> None:
    """Evaluate a four-terminal device in the lanes where it moved out of its tangent's range."""
    tangents, deviation, at = v.four_terminal_tangent, v.four_terminal_deviation, device * FOUR_TERMINAL_ROWS
    vg, vs, vd = _bulk_voltages(s, v, device)
    delta = vg - load(tangents, at), vs - load(tangents, at + 1), vd - load(tangents, at + 2)
    moved = lane_mask(not_less(_bending_distance(tangents, at, delta), splat(v.tangent_range[2])))
    while moved != 0:
        lane = first_lane(moved)
        moved = without_first_lane(moved)
        tangents[at, lane] = extract(vg, lane)
        tangents[at + 1, lane] = extract(vs, lane)
        tangents[at + 2, lane] = extract(vd, lane)
        shift, factor = deviation[2 * device, lane], deviation[2 * device + 1, lane]
        _evaluate_four_terminal(s, device, shift, factor, tangents, at, lane)


@inlined_jit
def _bulk_voltages(s: Any, v: Any, device: int) -> Any:
    """Return V_G, V_S and V_D of a four-terminal device over its bulk, V."""
    devices, voltage, sign = s.four_terminal, v.voltage, s.four_terminal_sign[device]
    base = load(voltage, devices[device, 3])
    return (
        (load(voltage, devices[device, 0]) - base) * sign,
        (load(voltage, devices[device, 2]) - base) * sign,
        (load(voltage, devices[device, 1]) - base) * sign,
    )


@inlined_jit
def _bending_distance(tangents: Any, at: int, delta: Any) -> Any:
    """Return how far a device moved from where it was evaluated, V; directions in which it hardly bends count in part.

    Off, all counts _OFF_PART; between ends at one voltage, what moves both of them counts _COMMON_PART.
    """
    far = maximum(absolute(delta[0]), maximum(absolute(delta[1]), absolute(delta[2])))
    between = maximum(absolute(delta[2] - delta[1]), far * _COMMON_PART)
    far = select(not_less(absolute(load(tangents, at + 2) - load(tangents, at + 1)), splat(_LEVEL)), far, between)
    return select(not_less(absolute(load(tangents, at + 3)), splat(_OFF)), far, far * _OFF_PART)


@inlined_jit
def _add_on_tangent(s: Any, v: Any, device: int, delta: Any) -> None:
    """Add current and charges of a four-terminal device on its tangent; delta: V_G, V_S, V_D from its point, V."""
    devices, tangents, charge = s.four_terminal, v.four_terminal_tangent, v.charge
    signed, at = s.four_terminal_sign[device] * s.four_terminal_size[device], device * FOUR_TERMINAL_ROWS
    flow = load(tangents, at + 3) + load(tangents, at + 4) * delta[0]
    flow = (flow + load(tangents, at + 5) * delta[1] + load(tangents, at + 6) * delta[2]) * signed
    add_to(v.current, devices[device, 1], flow)
    add_to(v.current, devices[device, 2], splat(0.0) - flow)
    total = splat(0.0)
    for k in range(3):
        row = at + 7 + 4 * k
        own = load(tangents, row) + load(tangents, row + 1) * delta[0] + load(tangents, row + 2) * delta[1]
        own = (own + load(tangents, row + 3) * delta[2]) * signed
        add_to(charge, devices[device, 0] if k == 0 else devices[device, 3 - k], own)
        total = total + own
    add_to(charge, devices[device, 3], splat(0.0) - total)


@jit
def four_terminal_current(s: Any, v: Any, device: int) -> Any:
    """Return the drain current of a four-terminal device at its last evaluation, of all in parallel, A, as if n."""
    return load(v.four_terminal_tangent, device * FOUR_TERMINAL_ROWS + 3) * s.four_terminal_size[device]


@inlined_jit
def _evaluate_four_terminal(
    s: Any, device: int, shift: float, factor: float, tangents: Any, at: int, lane: int
) -> None:
    """Evaluate a four-terminal device's table in one lane at the voltages in `tangents`; store values and derivatives.

    shift: of its threshold, V; factor: of its current. Values: I from drain to source, A; charges of gate, source and
    drain, C.
    """
    begin, axis, table = s.four_terminal_table_start, s.four_terminal_axis, s.four_terminal[device, 4]
    vg, vs, vd, thermal = tangents[at, lane], tangents[at + 1, lane], tangents[at + 2, lane], axis[table, 9]
    forward = vd >= vs
    low, gap = min(vs, vd), abs(vd - vs)
    i, ti, ri, oi = _axis_cell(vg - axis[table, 10] * shift, axis, table, 0)
    j, tj, rj, oj = _axis_cell(low, axis, table, 1)
    k, tk, rk, ok = _axis_cell(gap, axis, table, 2)
    rows = int(axis[table, 5]) + 2, int(axis[table, 8]) + 2
    first = begin[table] + (i * rows[0] + j) * rows[1] + k
    places, rates, out = (ti, tj, tk), (ri, rj, rk), (oi, oj, ok)
    flow, of_gate, of_lower, of_upper = spline_columns(s.four_terminal_table, first, rows, places, rates, out)
    level, remains = factor * math.exp(flow[0]), math.exp(-gap / thermal)
    current = level * (1.0 - remains)
    by_gap = current * flow[3] + level * remains / thermal
    _store_derivatives(tangents, at + 3, lane, (current, current * flow[1], current * flow[2], by_gap), forward)
    if not forward:
        for row in range(at + 3, at + 7):
            tangents[row, lane] = -tangents[row, lane]
    lower, upper = (11, 15) if forward else (15, 11)
    _store_derivatives(tangents, at + 7, lane, of_gate, forward)
    _store_derivatives(tangents, at + lower, lane, of_lower, forward)
    _store_derivatives(tangents, at + upper, lane, of_upper, forward)


@inlined_jit
def _axis_cell(x: float, axis: Any, table: int, which: int) -> Any:
    """Return the cell of x on one axis of a table, the place in it (0 to 1), 1 / step, and how far x is outside, V."""
    rate, cells = axis[table, 3 * which + 1], axis[table, 3 * which + 2]
    at = (x - axis[table, 3 * which]) * rate
    place = min(max(at, 0.0), cells)
    cell = min(int(place), int(cells) - 1)
    return cell, place - cell, rate, (at - place) / rate


@inlined_jit
def _store_derivatives(tangents: Any, row: int, lane: int, values: Any, forward: bool) -> None:
    """Store a value and its derivatives by V_G, V_S and V_D.

    `values` has the value and its derivatives by V_G, by the lower end, and by the higher end over the lower one.
    """
    tangents[row, lane], tangents[row + 1, lane] = values[0], values[1]
    low, high = values[2] - values[3], values[3]
    tangents[row + 2, lane] = low if forward else high
    tangents[row + 3, lane] = high if forward else low


@jit
def _add_linear_elements(s: Any, v: Any) -> None:
    """Add the charges of capacitors and the currents of resistors and current sources."""
    voltage, current, charge, source, sources = v.voltage, v.current, v.charge, v.source, s.current_sources
    begin, others, capacitance = s.capacitor_start, s.capacitor_net, s.capacitance
    for net in range(GROUND + 1, voltage.shape[0]):  # ground's is a sum of all nets, which nothing needs
        coulomb = load(charge, net)
        for k in range(begin[net], begin[net + 1]):
            coulomb = coulomb + load(voltage, others[k]) * capacitance[k]
        store(charge, net, coulomb)
    for k in range(s.conductance.size):
        a, b = s.resistors[k, 0], s.resistors[k, 1]
        ampere = (load(voltage, a) - load(voltage, b)) * s.conductance[k]
        add_to(current, a, ampere)
        add_to(current, b, splat(0.0) - ampere)
    for k in range(sources.shape[0]):
        ampere = load(source, sources[k, 2])
        add_to(current, sources[k, 0], ampere)
        add_to(current, sources[k, 1], splat(0.0) - ampere)


@jit
def _set_linear_entries(matrix: Any, capacitance_matrix: Any, conductance_matrix: Any, alpha_0: Any) -> None:
    for row in range(capacitance_matrix.size):
        store(matrix, row, alpha_0 * capacitance_matrix[row] + splat(conductance_matrix[row]))


@jit
def _stamp_charges_and_four_terminal(s: Any, v: Any, alpha_0: Any) -> None:
    """Add capacitances of gate and drain lines, and all derivatives of four-terminal devices, to the matrix."""
    matrix, gate_charge, drain_charge = v.matrix, v.gate_charge, v.drain_charge
    gates, drains, gate_size, drain_size = s.gate_lines, s.drain_lines, s.gate_size, s.drain_size
    gate_source_known, drain_source_known = s.gate_source_known, s.drain_source_known
    for line in range(gates.shape[0]):
        capacitance = load(gate_charge, 2 * line + 1) * (alpha_0 * gate_size[line])
        _stamp_line(matrix, gates, line, capacitance, gate_source_known[line])
    for line in range(drains.shape[0]):
        capacitance = load(drain_charge, 2 * line + 1) * (alpha_0 * drain_size[line])
        _stamp_line(matrix, drains, line, capacitance, drain_source_known[line])
    devices, tangents, sizes = s.four_terminal, v.four_terminal_tangent, s.four_terminal_size
    for device in range(devices.shape[0]):
        at, size = device * FOUR_TERMINAL_ROWS, sizes[device]
        for k in range(3):
            flows = 0.0 if k == 0 else (-size if k == 1 else size)
            for column in range(3):
                stamp = load(tangents, at + 4 + column) * flows
                stamp = stamp + load(tangents, at + 8 + 4 * k + column) * (alpha_0 * size)
                add_to(matrix, devices[device, 5 + 3 * k + column], stamp)


@inlined_jit
def _stamp_line(matrix: Any, lines: Any, k: int, conductance: Any, source_known: bool) -> None:
    """Add a conductance between a line's net and its source net to the matrix; its first entry where that is known."""
    add_to(matrix, lines[k, 3], conductance)
    if not source_known:
        add_to(matrix, lines[k, 4], splat(0.0) - conductance)
        add_to(matrix, lines[k, 5], splat(0.0) - conductance)
        add_to(matrix, lines[k, 6], conductance)
