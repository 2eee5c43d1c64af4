# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""One update of Newton's method in every lane: x <- x - J^-1 F(x), with the sparse LU of J that `circuit` has planned.

For a BDF formula on charges, of each unknown, summed over its nets,

    F = I(v_n) + alpha_0 Q(v_n) + alpha_1 Q(v_n-1) + alpha_2 Q(v_n-2) + ...,      J = dI/dv + alpha_0 dQ/dv.

Each lane has a step of its own, so alpha differs from lane to lane.
In all kernels s is the circuit (`arrays.CircuitArrays`), p the program of the LU (`arrays.LuProgram`), v the values of
the tile (`arrays.TileValues`) and m the state of its transients (`arrays.TransientState`).
"""

from typing import Any

from cosim.engines.batch.arrays import (
    ALPHA_0,
    ALPHA_1,
    ERROR_RATIO,
    ERROR_SHARE,
    HIGHEST_VOLTAGE,
    JACOBIAN,
    LTE_ABSOLUTE,
    LTE_RELATIVE,
    NEWTON_MOVE,
    ORDER,
    OVERRANGE,
    LuProgram,
)
from cosim.engines.batch.compiled import jit
from cosim.engines.batch.evaluate import evaluate
from cosim.engines.batch.lanes import absolute, in_precision_of, load, maximum, minimum, splat, store

_LARGEST_MOVE = 0.6  # V in one update
_LEAST_WEIGHT = 0.05


@jit
def newton_update(s: Any, p: Any, v: Any, m: Any, has_deviations: bool) -> None:
    """Move the simulated voltages v.x by one update of Newton's method in all lanes.

    Row NEWTON_MOVE of m.step receives the largest move, V, and row ERROR_RATIO the error of the step in course over
    what it may be.
    """
    alpha_0, n = load(m.step, ALPHA_0), p.pivot.size
    evaluate(s, v, alpha_0, has_deviations, JACOBIAN)
    _residual(s.row, v, m, alpha_0)
    _add_clamps(p, v, m)
    _weigh_errors(p, v.matrix, m.error_weight, m.inverse_diagonal)
    decompose(p, v.matrix)
    substitute(p, v.matrix, m.residual)
    _apply_update(v.x, m, n)


@jit
def _residual(row: Any, v: Any, m: Any, alpha_0: Any) -> None:
    """Compute F, the sum of currents out of the nets of every unknown, A."""
    current, charge, residual, order = v.current, v.charge, m.residual, int(m.limits[ORDER])
    for k in range(residual.shape[0]):
        store(residual, k, splat(0.0))
    for net in range(row.size):
        out = load(current, net) + load(charge, net) * alpha_0
        for k in range(order):
            out = out + load(m.charge[k], net) * load(m.step, ALPHA_1 + k)
        store(residual, row[net], load(residual, row[net]) + out)


@jit
def _add_clamps(p: Any, v: Any, m: Any) -> None:
    """Add the conductances that pull clamped unknowns to their voltages, on the way to an operating point."""
    for k in range(m.clamp_voltage.shape[0]):
        row, siemens = int(m.clamps[k, 0]), m.clamps[k, 1]
        store(m.residual, row, load(m.residual, row) + (load(v.x, row) - load(m.clamp_voltage, k)) * siemens)
        store(v.matrix, p.pivot[row], load(v.matrix, p.pivot[row]) + siemens)


@jit
def _weigh_errors(p: Any, matrix: Any, weight: Any, inverse_diagonal: Any) -> None:
    """Compute how much of an error at each unknown its neighbours see, _LEAST_WEIGHT to 1, from the Jacobian itself.

    An unknown i follows j by A_ij / A_ii. What nobody follows, such as a comparator's output behind an open switch, may
    err: it is at the rail again before anybody looks.
    """
    for k in range(p.pivot.size):
        store(inverse_diagonal, k, absolute(splat(1.0) / load(matrix, p.pivot[k])))
    for k in range(p.pivot.size):
        worst = splat(_LEAST_WEIGHT)
        for e in range(p.neighbour_start[k], p.neighbour_start[k + 1]):
            worst = maximum(
                worst, absolute(load(matrix, p.neighbour_entry[e])) * load(inverse_diagonal, p.neighbour_row[e])
            )
        store(weight, k, minimum(worst, splat(1.0)))


@jit
def _apply_update(x: Any, m: Any, n: int) -> None:
    """Subtract Newton's update from x, within bounds, and measure it and the step's local truncation error.

    The error is known by the distance of the solution to its prediction.
    """
    update, predicted, last, weight = m.residual, m.predicted, m.x[0], m.error_weight
    absolute_error, relative_error, highest = m.limits[LTE_ABSOLUTE], m.limits[LTE_RELATIVE], m.limits[HIGHEST_VOLTAGE]
    largest = worst = spoilt = splat(0.0)
    for k in range(n):
        one = load(update, k)
        largest, spoilt = maximum(largest, absolute(one)), spoilt + one * 0.0
        to = load(x, k) - maximum(minimum(one, splat(_LARGEST_MOVE)), splat(-_LARGEST_MOVE))
        to = maximum(minimum(to, splat(highest)), splat(-OVERRANGE))
        store(x, k, to)
        allowed = absolute(to - load(last, k)) * relative_error + absolute_error
        worst = maximum(worst, absolute(to - load(predicted, k)) * load(weight, k) / allowed)
    store(m.step, NEWTON_MOVE, largest + spoilt)  # the larger of a number and nan is the number
    store(m.step, ERROR_RATIO, worst * load(m.step, ERROR_SHARE))


@jit
def decompose(p: LuProgram, a: Any) -> None:
    """Replace the solver's matrix by its LU, in all lanes; a pivot's place then holds the pivot's reciprocal."""
    for k in range(p.pivot.size):
        inverse = splat(1.0) / load(a, p.pivot[k])
        store(a, p.pivot[k], inverse)
        first, width = p.right_start[k], p.right_start[k + 1] - p.right_start[k]
        for e in range(p.below_start[k], p.below_start[k + 1]):
            factor = in_precision_of(a, load(a, p.below[e]) * inverse)
            store(a, p.below[e], factor)
            at = p.target_start[e]
            for m in range(width):
                t = p.target[at + m]
                store(a, t, load(a, t) - factor * load(a, p.right[first + m]))


@jit
def substitute(p: LuProgram, a: Any, b: Any) -> None:
    """Replace the solver's right-hand side b by the solution of A x = b; a: the LU that `decompose` left."""
    n = p.pivot.size
    for k in range(n):
        value = load(b, k)
        for e in range(p.below_start[k], p.below_start[k + 1]):
            row = p.below_row[e]
            store(b, row, load(b, row) - load(a, p.below[e]) * value)
    for k in range(n - 1, -1, -1):
        value = load(b, k)
        for e in range(p.right_start[k], p.right_start[k + 1]):
            value = value - load(a, p.right[e]) * load(b, p.right_row[e])
        store(b, k, value * load(a, p.pivot[k]))


@jit
def substitute_transposed(p: LuProgram, a: Any, b: Any) -> None:
    """Replace the solver's right-hand side b by the solution of A^T x = b; a: the LU that `decompose` left."""
    n = p.pivot.size
    for k in range(n):
        value = load(b, k) * load(a, p.pivot[k])
        store(b, k, value)
        for e in range(p.right_start[k], p.right_start[k + 1]):
            row = p.right_row[e]
            store(b, row, load(b, row) - load(a, p.right[e]) * value)
    for k in range(n - 1, -1, -1):
        value = load(b, k)
        for e in range(p.below_start[k], p.below_start[k + 1]):
            value = value - load(a, p.below[e]) * load(b, p.below_row[e])
        store(b, k, value)
