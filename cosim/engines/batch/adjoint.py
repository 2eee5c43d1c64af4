# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Adjoint of a transient: the derivatives of a sum of currents at some steps by every device, from one solve a step.

Step n of the transient has solved, for the currents out of every net and the charges on them,

    F_n = I(x_n) + a0_n Q(x_n) + a1_n Q(x_n-1) + a2_n Q(x_n-2) = 0        summed over the nets of each unknown,

and an objective is J = sum_n c_n . F_n over nets whose voltage a source fixes: the current through that source; or,
with weights on devices in place of nets, the current of a device. With m_n = c_n + l_n, where the l_n are those that
make m . F stationary in every x,

    (I' + a0_n Q')^T l_n = -(I' + a0_n Q')^T c_n - Q'^T (a1_n+1 m_n+1 + a2_n+2 m_n+2)        all of it at x_n,
    dJ/dp = sum_n m_n . dI/dp + (a0_n m_n + a1_n+1 m_n+1 + a2_n+2 m_n+2) . dQ/dp.

At n = 0 the circuit is at its operating point: I(x_0) = 0. The derivatives are exact for the steps that the transient
took, not those of a continuous adjoint equation solved on steps of its own.

In all kernels s is the circuit (`arrays.CircuitArrays`), p the program of the LU (`arrays.LuProgram`), v the values of
the tile (`arrays.TileValues`), d the recorded steps (`RecordedSteps`) and w room for work (`AdjointWorkspace`).
Source: D. A. Hocevar, P. Yang, T. N. Trick and B. D. Epler, IEEE Trans. Comput.-Aided Des. 4 (1985) 609; the discrete
form: Y. Cao, S. Li, L. Petzold and R. Serban, SIAM J. Sci. Comput. 24 (2003) 1076.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.engines.batch.arrays import FOUR_TERMINAL_ROWS, FULL, JACOBIAN, NOT_EVALUATED
from cosim.engines.batch.compiled import cached_jit, inlined_jit, jit
from cosim.engines.batch.device_tables import RESPONSES
from cosim.engines.batch.evaluate import evaluate
from cosim.engines.batch.lanes import load, splat, store
from cosim.engines.batch.newton import decompose, substitute_transposed

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
_STATIONARY_ALPHA = 1e-6  # 1/s: alpha_0 of the last pseudo steps to the operating point


class RecordedSteps(NamedTuple):
    """The steps that a transient of the batched engine took: operating point at time 0, then every accepted step.

    voltage (steps + 1, nets or more, LANES), V; alpha (steps + 3, 3, LANES): a0, a1, a2 in 1/s, 0 at the operating
    point; a lane that has fewer steps than another stays where it ended, where all weights are 0.
    net_weight_index (steps + 1,): where in net_weights (n, objectives, nets, LANES) the c of a step is, -1 where it is
    0; device_start (steps + 2,) into device (n, 2), objective and three-terminal device, and device_weight (n, LANES)
    of its current; clamps (n, 2): unknowns and conductances, S, at the operating point; last: the step to begin at,
    behind which all weights are 0.
    """

    voltage: Array
    alpha: Array
    net_weight_index: Whole
    net_weights: Array
    device_start: Whole
    device: Whole
    device_weight: Array
    clamps: Array
    last: int


class AdjointWorkspace(NamedTuple):
    """Arrays for the way back through a transient of the batched engine, and the derivatives dJ/dp that it leaves.

    now, next, after (objectives, nets, LANES): m of a step and of the two behind it; charge (nets, LANES): weights of
    charges; device (devices, LANES): weights of three-terminal devices' currents; side (rows + 1, LANES): right-hand
    side, whose last row is ground's.
    three_terminal, four_terminal (objectives, n, LANES): derivatives by the deviations of devices, A/V and A, by a
    factor as by its ln, in the rows of `arrays.TileValues`; source: by current sources, A/A.
    """

    now: Array
    next: Array
    after: Array
    charge: Array
    device: Array
    side: Array
    three_terminal: Array
    four_terminal: Array
    source: Array


@cached_jit
def adjoint_transient(s: Any, p: Any, v: Any, d: Any, w: Any) -> None:
    """Add dJ/dp of a batched transient to w.gradient, from the last step back to the operating point.

    w: must hold zeros at first.
    """
    for step in range(d.last, -1, -1):
        alpha_0 = load(d.alpha[step], 0)
        _linearize(s, v, d.voltage[step], alpha_0 if step else splat(_STATIONARY_ALPHA))
        for k in range(d.clamps.shape[0] if step == 0 else 0):
            at = p.pivot[int(d.clamps[k, 0])]
            store(v.matrix, at, load(v.matrix, at) + d.clamps[k, 1])
        decompose(p, v.matrix)
        for k in range(w.now.shape[0]):
            now = w.now[k]
            _set_net_weights(d, step, k, now)
            _set_charge_weights(d, step, now, w.next[k], w.after[k], w.charge)
            _set_device_weights(d, step, k, w.device)
            _right_hand_side(s, v, now, w.charge, w.device, w.side)
            substitute_transposed(p, v.matrix, w.side)
            _add_solution(s.row, w.side, alpha_0, now, w.charge)
            _add_three_terminal(s, v, now, w.device, w.three_terminal[k])
            _add_gate_charges(s, v, w.charge, w.three_terminal[k])
            _add_four_terminal(s, v, now, w.charge, w.four_terminal[k])
            _add_current_sources(s, now, w.source[k])
            for net in range(now.shape[0]):
                store(w.after[k], net, load(w.next[k], net))
                store(w.next[k], net, load(now, net))


@jit
def _linearize(s: Any, v: Any, voltage: Any, alpha_0: Any) -> None:
    """Evaluate all devices at the voltages of a step, not on their tangents, with the Jacobian and the responses."""
    for row in range(v.x.shape[0]):
        store(v.x, row, splat(0.0))
    for net in range(v.offset.shape[0]):
        store(v.offset, net, load(voltage, net))
    for line in range(v.gate_point.shape[0]):
        store(v.gate_point, line, splat(NOT_EVALUATED))
    for line in range(v.drain_point.shape[0]):
        store(v.drain_point, line, splat(NOT_EVALUATED))
    for device in range(s.four_terminal.shape[0]):
        store(v.four_terminal_tangent, device * FOUR_TERMINAL_ROWS, splat(NOT_EVALUATED))
    evaluate(s, v, alpha_0, True, FULL)
    evaluate(s, v, alpha_0, True, JACOBIAN)


@jit
def _set_net_weights(d: Any, step: int, objective: int, now: Any) -> None:
    """Set `now` to c of a step: the weights of nets in an objective."""
    at = d.net_weight_index[step]
    for net in range(now.shape[0]):
        store(now, net, load(d.net_weights[at, objective], net) if at >= 0 else splat(0.0))


@jit
def _set_device_weights(d: Any, step: int, objective: int, device: Any) -> None:
    """Set `device` to the weights of three-terminal devices' own currents in an objective at a step."""
    for k in range(device.shape[0]):
        store(device, k, splat(0.0))
    for at in range(d.device_start[step], d.device_start[step + 1]):
        if d.device[at, 0] == objective:
            k = d.device[at, 1]
            store(device, k, load(device, k) + load(d.device_weight, at))


@jit
def _set_charge_weights(d: Any, step: int, now: Any, following: Any, after: Any, charge: Any) -> None:
    """Set `charge` to the weights of a step's charges, in this step and in the two behind it."""
    a0, a1, a2 = load(d.alpha[step], 0), load(d.alpha[step + 1], 1), load(d.alpha[step + 2], 2)
    for net in range(charge.shape[0]):
        store(charge, net, load(now, net) * a0 + load(following, net) * a1 + load(after, net) * a2)


@inlined_jit
def _difference(weights: Any, a: int, b: int) -> Any:
    """Return by how much net a weighs more than net b."""
    return load(weights, a) - load(weights, b)


@inlined_jit
def _subtract(rows: Any, row: int, value: Any) -> None:
    store(rows, row, load(rows, row) - value)


@jit
def _right_hand_side(s: Any, v: Any, current: Any, charge: Any, device_weight: Any, side: Any) -> None:
    """Set `side` to minus the derivative, by every unknown, of currents and charges with these weights."""
    row = s.row
    for k in range(side.shape[0]):
        store(side, k, splat(0.0))
    for net in range(row.size):
        for k in range(s.capacitor_start[net], s.capacitor_start[net + 1]):
            _subtract(side, row[net], load(charge, s.capacitor_net[k]) * s.capacitance[k])
    for k in range(s.conductance.size):
        a, b = s.resistors[k, 0], s.resistors[k, 1]
        _subtract_pair(side, row[a], row[b], _difference(current, a, b) * s.conductance[k])
    for k in range(s.gate_lines.shape[0]):
        a, b = s.gate_lines[k, 0], s.gate_lines[k, 1]
        weighted = _difference(charge, a, b) * (load(v.gate_charge, 2 * k + 1) * s.gate_size[k])
        _subtract_pair(side, row[a], row[b], weighted)
    for k in range(s.drain_lines.shape[0]):
        a, b = s.drain_lines[k, 0], s.drain_lines[k, 1]
        weighted = _difference(charge, a, b) * (load(v.drain_charge, 2 * k + 1) * s.drain_size[k])
        _subtract_pair(side, row[a], row[b], weighted)
    for k in range(s.three_terminal.shape[0]):
        gate, drain, source = s.gate_lines[s.three_terminal[k, 0], 0], s.three_terminal[k, 2], s.three_terminal[k, 3]
        weight = _difference(current, drain, source) + load(device_weight, k) * s.three_terminal_sign[k]
        _subtract_pair(side, row[gate], row[source], weight * load(v.three_terminal_tangent, 3 * k + 1))
        _subtract_pair(side, row[drain], row[source], weight * load(v.three_terminal_tangent, 3 * k + 2))
    _subtract_four_terminal(s, v, current, charge, side)
    store(side, side.shape[0] - 1, splat(0.0))


@inlined_jit
def _subtract_pair(side: Any, a: int, b: int, value: Any) -> None:
    _subtract(side, a, value)
    _subtract(side, b, splat(0.0) - value)


@jit
def _subtract_four_terminal(s: Any, v: Any, current: Any, charge: Any, side: Any) -> None:
    """Subtract the derivatives of the four-terminal devices' weighted currents and charges from the right-hand side."""
    devices, tangents = s.four_terminal, v.four_terminal_tangent
    for k in range(devices.shape[0]):
        gate, drain, source, bulk = devices[k, 0], devices[k, 1], devices[k, 2], devices[k, 3]
        at = k * FOUR_TERMINAL_ROWS
        flow = _difference(current, drain, source)
        by_gate, by_source = _difference(charge, gate, bulk), _difference(charge, source, bulk)
        by_drain = _difference(charge, drain, bulk)
        for column in range(3):
            end = gate if column == 0 else (source if column == 1 else drain)
            total = flow * load(tangents, at + 4 + column) + by_gate * load(tangents, at + 8 + column)
            total = total + by_source * load(tangents, at + 12 + column) + by_drain * load(tangents, at + 16 + column)
            _subtract(side, s.row[end], total * s.four_terminal_size[k])


@jit
def _add_solution(row: Any, side: Any, alpha_0: Any, now: Any, charge: Any) -> None:
    """Add the solution l of a step to the weights m of its currents, and to those of its charges."""
    for net in range(row.size):
        own = load(side, row[net])
        store(now, net, load(now, net) + own)
        store(charge, net, load(charge, net) + own * alpha_0)


@jit
def _add_three_terminal(s: Any, v: Any, now: Any, device_weight: Any, gradient: Any) -> None:
    """Add the derivatives by the deviations of three-terminal devices: threshold, V, and ln of the current factor."""
    devices, responses, deviations = s.three_terminal, v.gate_responses, v.three_terminal_deviation
    for k in range(devices.shape[0]):
        weight = _difference(now, devices[k, 2], devices[k, 3]) * s.three_terminal_sign[k] + load(device_weight, k)
        flow = weight * load(v.three_terminal_tangent, 3 * k)
        for part in range(2):
            at, row = devices[k, 0] * 2 * RESPONSES + 3 * part, 4 * k + 2 * part
            response = load(responses, at) + load(responses, at + 1) * load(deviations, row)
            store(gradient, row, load(gradient, row) + flow * response)
            store(gradient, row + 1, load(gradient, row + 1) + flow * load(responses, at + 2))


@jit
def _add_gate_charges(s: Any, v: Any, charge: Any, gradient: Any) -> None:
    """Add the derivatives by threshold shifts that the charges of gate lines have, which shift by their mean."""
    devices = s.three_terminal
    for k in range(devices.shape[0]):
        line = devices[k, 0]
        weighted = _difference(charge, s.gate_lines[line, 0], s.gate_lines[line, 1]) * s.three_terminal_sign[k]
        weighted = weighted * load(v.gate_charge, 2 * line + 1) * s.three_terminal_size[k]
        store(gradient, 4 * k, load(gradient, 4 * k) - weighted)
        store(gradient, 4 * k + 2, load(gradient, 4 * k + 2) - weighted * s.upper_share[k])


@jit
def _add_four_terminal(s: Any, v: Any, now: Any, charge: Any, gradient: Any) -> None:
    """Add the derivatives by the deviations of four-terminal devices: threshold, V, and ln of the current factor."""
    devices, tangents = s.four_terminal, v.four_terminal_tangent
    for k in range(devices.shape[0]):
        gate, drain, source, bulk = devices[k, 0], devices[k, 1], devices[k, 2], devices[k, 3]
        at, signed = k * FOUR_TERMINAL_ROWS, s.four_terminal_sign[k] * s.four_terminal_size[k]
        flow = _difference(now, drain, source) * signed
        total = flow * load(tangents, at + 4) + _difference(charge, gate, bulk) * signed * load(tangents, at + 8)
        total = total + _difference(charge, source, bulk) * signed * load(tangents, at + 12)
        total = total + _difference(charge, drain, bulk) * signed * load(tangents, at + 16)
        shift = s.four_terminal_axis[devices[k, 4], 10]
        store(gradient, 2 * k, load(gradient, 2 * k) - total * shift)
        store(gradient, 2 * k + 1, load(gradient, 2 * k + 1) + flow * load(tangents, at + 3))


@jit
def _add_current_sources(s: Any, now: Any, gradient: Any) -> None:
    """Add the derivatives by current sources, A/A."""
    for k in range(s.current_sources.shape[0]):
        weight = _difference(now, s.current_sources[k, 0], s.current_sources[k, 1])
        store(gradient, k, load(gradient, k) + weight)
