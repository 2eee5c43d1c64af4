# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Backwards through a march: how a sum of currents at some steps answers to every device, from one solve a step.

Step n of the march has solved, for the currents out of every net and the charges on them,

    F_n = I(x_n) + a0_n Q(x_n) + a1_n Q(x_n-1) + a2_n Q(x_n-2) = 0        summed over the nets of each unknown,

and an objective is J = sum_n c_n . F_n over nets whose voltage a source fixes: what flows through that source; or, with
weights on devices in place of nets, the current of a device. With m_n = c_n + l_n, where the l_n are those that make
m . F stationary in every x,

    (I' + a0_n Q')^T l_n = -(I' + a0_n Q')^T c_n - Q'^T (a1_n+1 m_n+1 + a2_n+2 m_n+2)        all of it at x_n,
    dJ/dp = sum_n m_n . dI/dp + (a0_n m_n + a1_n+1 m_n+1 + a2_n+2 m_n+2) . dQ/dp.

At n = 0 the circuit rests: I(x_0) = 0. It is exact for the steps that the march took, not an equation of its own solved
on other ones.
Source: D. A. Hocevar, P. Yang, T. N. Trick and B. D. Epler, IEEE Trans. Comput.-Aided Des. 4 (1985) 609; the discrete
form: Y. Cao, S. Li, L. Petzold and R. Serban, SIAM J. Sci. Comput. 24 (2003) 1076.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.engines.batch.compiled import inner, jit, kept_jit
from cosim.engines.batch.evaluate import evaluate
from cosim.engines.batch.floating import FLOAT_KEPT
from cosim.engines.batch.lanes import load, splat, store
from cosim.engines.batch.layout import MATRIX, WHOLE
from cosim.engines.batch.lines import NOWHERE
from cosim.engines.batch.lu import decompose, substitute_transposed
from cosim.engines.batch.tables import RESPONSES

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
_REST = 1e-6  # 1/s: slope of the last steps to rest


class RecordedSteps(NamedTuple):
    """The steps that a transient took: the operating point at time 0, then every accepted step.

    volt (steps + 1, nets or more, LANES); factor (steps + 3, 3, LANES): a0, a1, a2 in 1/s, 0 at rest; a lane that has
    fewer steps than another stands still behind its end, where all weights are 0.
    seed_at (steps + 1,): where in `seeds` a step's c is, -1 where it is 0; seeds (n, objectives, nets, LANES);
    own_at (steps + 2,) into own (n, 2), objective and tied device, and own_weight (n, LANES) of its current;
    held (n, 2): rows and siemens that pulled at rest; last: the step to begin at, behind which all weights are 0.
    """

    volt: Array
    factor: Array
    seed_at: Whole
    seeds: Array
    own_at: Whole
    own: Whole
    own_weight: Array
    held: Array
    last: int


class AdjointGradient(NamedTuple):
    """dJ/dp, (objectives, n, LANES): of tied devices by the four that `Values.tied_drawn` has, of floating ones by the
    two of `float_drawn`, the factor's as that of its ln; of current sources, A/A."""

    tied: Array
    floating: Array
    source: Array


class Work(NamedTuple):
    """m of a step and of the two after it, each (objectives, nets, LANES); weights of charges (nets, LANES), and of
    tied devices (devices, LANES); right-hand side (rows + 1, LANES), whose last row is ground's; and what is found."""

    now: Array
    next: Array
    after: Array
    charge: Array
    own: Array
    side: Array
    found: AdjointGradient


@kept_jit
def go_back(s: Any, p: Any, v: Any, d: Any, w: Any) -> None:
    """From the last step to the rest; adds to what is found, which begins at 0 as `next` and `after` do."""
    for step in range(d.last, -1, -1):
        slope = load(d.factor[step], 0)
        _linearize(s, v, d.volt[step], slope if step else splat(_REST))
        for k in range(d.held.shape[0] if step == 0 else 0):
            at = p.pivot[int(d.held[k, 0])]
            store(v.matrix, at, load(v.matrix, at) + d.held[k, 1])
        decompose(p, v.matrix)
        for k in range(w.now.shape[0]):
            now = w.now[k]
            _seed(d, step, k, now)
            _charges(d, step, (now, w.next[k], w.after[k]), w.charge)
            _own(d, step, k, w.own)
            _pull(s, v, (now, w.charge, w.own), w.side)
            substitute_transposed(p, v.matrix, w.side)
            _add_solution(s.row, w.side, slope, now, w.charge)
            _tied(s, v, (now, w.own), w.found.tied[k])
            _floating(s, v, (now, w.charge), w.found.floating[k])
            _driven(s, now, w.found.source[k])
            for net in range(now.shape[0]):
                store(w.after[k], net, load(w.next[k], net))
                store(w.next[k], net, load(now, net))


@jit
def _linearize(s: Any, v: Any, volt: Any, slope: Any) -> None:
    """Evaluate all devices where they stood, not near it, with the matrix and the answers to deviations."""
    for row in range(v.x.shape[0]):
        store(v.x, row, splat(0.0))
    for net in range(v.offset.shape[0]):
        store(v.offset, net, load(volt, net))
    for line in range(v.gate_kept.shape[0]):
        store(v.gate_kept, line, splat(NOWHERE))
    for line in range(v.drain_kept.shape[0]):
        store(v.drain_kept, line, splat(NOWHERE))
    for device in range(s.floating.shape[0]):
        store(v.kept, device * FLOAT_KEPT, splat(NOWHERE))
    evaluate(s, v, slope, True, WHOLE)
    evaluate(s, v, slope, True, MATRIX)


@jit
def _seed(d: Any, step: int, objective: int, now: Any) -> None:
    """c of a step."""
    at = d.seed_at[step]
    for net in range(now.shape[0]):
        store(now, net, load(d.seeds[at, objective], net) if at >= 0 else splat(0.0))


@jit
def _own(d: Any, step: int, objective: int, own: Any) -> None:
    """Weights of the devices' own currents at a step."""
    for k in range(own.shape[0]):
        store(own, k, splat(0.0))
    for at in range(d.own_at[step], d.own_at[step + 1]):
        if d.own[at, 0] == objective:
            k = d.own[at, 1]
            store(own, k, load(own, k) + load(d.own_weight, at))


@jit
def _charges(d: Any, step: int, weights: Any, charge: Any) -> None:
    """Weights of the charges at a step, in this one and in the two after it."""
    now, following, after = weights
    a0, a1, a2 = load(d.factor[step], 0), load(d.factor[step + 1], 1), load(d.factor[step + 2], 2)
    for net in range(charge.shape[0]):
        store(charge, net, load(now, net) * a0 + load(following, net) * a1 + load(after, net) * a2)


@inner
def _between(weights: Any, a: int, b: int) -> Any:
    return load(weights, a) - load(weights, b)


@inner
def _subtract(rows: Any, row: int, value: Any) -> None:
    store(rows, row, load(rows, row) - value)


@jit
def _pull(s: Any, v: Any, weights: Any, side: Any) -> None:
    """Minus the derivative, by every unknown, of currents and charges so weighted."""
    row = s.row
    current, charge, own = weights
    for k in range(side.shape[0]):
        store(side, k, splat(0.0))
    for net in range(row.size):
        for k in range(s.capacitor_at[net], s.capacitor_at[net + 1]):
            _subtract(side, row[net], load(charge, s.capacitor_net[k]) * s.farad[k])
    for k in range(s.gates.shape[0]):
        a, b = s.gates[k, 0], s.gates[k, 1]
        _pair(side, row[a], row[b], _between(charge, a, b) * (load(v.gate_charge, 2 * k + 1) * s.gate_size[k]))
    for k in range(s.drains.shape[0]):
        a, b = s.drains[k, 0], s.drains[k, 1]
        _pair(side, row[a], row[b], _between(charge, a, b) * (load(v.drain_charge, 2 * k + 1) * s.drain_size[k]))
    for k in range(s.tied.shape[0]):
        gate, drain, source = s.gates[s.tied[k, 0], 0], s.tied[k, 2], s.tied[k, 3]
        weight = _between(current, drain, source) + load(own, k) * s.tied_sign[k]
        _pair(side, row[gate], row[source], weight * load(v.tied_kept, 3 * k + 1))
        _pair(side, row[drain], row[source], weight * load(v.tied_kept, 3 * k + 2))
    _pull_floating(s, v, current, charge, side)
    store(side, side.shape[0] - 1, splat(0.0))


@inner
def _pair(side: Any, a: int, b: int, value: Any) -> None:
    _subtract(side, a, value)
    _subtract(side, b, splat(0.0) - value)


@jit
def _pull_floating(s: Any, v: Any, current: Any, charge: Any, side: Any) -> None:
    kept = v.kept
    for k in range(s.floating.shape[0]):
        gate, drain, source, bulk = s.floating[k, 0], s.floating[k, 1], s.floating[k, 2], s.floating[k, 3]
        at = k * FLOAT_KEPT
        flow = _between(current, drain, source)
        by_gate, by_source, by_drain = (
            _between(charge, gate, bulk),
            _between(charge, source, bulk),
            _between(charge, drain, bulk),
        )
        for column in range(3):
            end = gate if column == 0 else (source if column == 1 else drain)
            total = flow * load(kept, at + 4 + column) + by_gate * load(kept, at + 8 + column)
            total = total + by_source * load(kept, at + 12 + column) + by_drain * load(kept, at + 16 + column)
            _subtract(side, s.row[end], total * s.float_size[k])


@jit
def _add_solution(row: Any, side: Any, slope: Any, now: Any, charge: Any) -> None:
    for net in range(row.size):
        own = load(side, row[net])
        store(now, net, load(now, net) + own)
        store(charge, net, load(charge, net) + own * slope)


@jit
def _tied(s: Any, v: Any, weights: Any, found: Any) -> None:
    """Add to `found` how each tied device's current answers to its deviations: V of the threshold, ln of beta."""
    now, own = weights
    for k in range(s.tied.shape[0]):
        weight = _between(now, s.tied[k, 2], s.tied[k, 3]) * s.tied_sign[k] + load(own, k)
        flow = weight * load(v.tied_kept, 3 * k)
        for part in range(2):
            at, by = s.tied[k, 0] * 2 * RESPONSES + 3 * part, 4 * k + 2 * part
            answer = load(v.response, at) + load(v.response, at + 1) * load(v.tied_drawn, by)
            store(found, by, load(found, by) + flow * answer)
            store(found, by + 1, load(found, by + 1) + flow * load(v.response, at + 2))


@jit
def _floating(s: Any, v: Any, weights: Any, found: Any) -> None:
    """A floating device's current and charges, by the shift of its gate; its current by its factor."""
    now, charge = weights
    kept = v.kept
    for k in range(s.floating.shape[0]):
        gate, drain, source, bulk = s.floating[k, 0], s.floating[k, 1], s.floating[k, 2], s.floating[k, 3]
        at, signed = k * FLOAT_KEPT, s.float_sign[k] * s.float_size[k]
        flow = _between(now, drain, source) * signed
        total = flow * load(kept, at + 4) + _between(charge, gate, bulk) * signed * load(kept, at + 8)
        total = total + _between(charge, source, bulk) * signed * load(kept, at + 12)
        total = total + _between(charge, drain, bulk) * signed * load(kept, at + 16)
        shift = s.float_axis[s.floating[k, 4], 10]
        store(found, 2 * k, load(found, 2 * k) - total * shift)
        store(found, 2 * k + 1, load(found, 2 * k + 1) + flow * load(kept, at + 3))


@jit
def _driven(s: Any, now: Any, found: Any) -> None:
    """Current sources."""
    for k in range(s.currents.shape[0]):
        store(found, k, load(found, k) + _between(now, s.currents[k, 0], s.currents[k, 1]))
