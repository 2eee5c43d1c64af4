"""A current over two voltages as a short sum of products, each entry as exact as it has to be."""

from dataclasses import dataclass

import numpy as np

from cosim.engines.batch.splines import resample
from cosim.engines.batch.tables import RANK, Array

_EXACT = 1e-3  # relative, at a high V_DS
_ONSET = 5e-3  # of the saturated current, at V_DS of 0 to 0.1 V
_REVERSED = 2e-2  # relative, beyond _ONSET
_LEAKING, _WORKING, _FROZEN = 2e-13, 2e-8, 2.5e-7  # A: less exact below, and above; the shape stays above
_LOOSEST = 30.0  # times less exact
_FREEZE_WIDTH = 2.0  # rows
_ROUNDS, _STEPS = 12, 4
_NORM = 8  # of the error: near the largest
_RIDGE = 1e-14


@dataclass(frozen=True, eq=False)
class Separated:
    """I(x, y) = reference(x) sum_k gate[k](x) drain[k](y); reference: the current at one high V_DS."""

    reference: Array
    gate: Array
    drain: Array


def separate(current: Array, y: Array, high: int) -> Separated:
    """current (x, y), A, over V_DS y; reference: y[high].

    Weighted alternating least squares: first with weights from what each entry must be exact to, then with more weight
    where the error is large, towards the smallest largest one; the best round counts. Beyond _FROZEN
    I(x, y) / I(x, y[high]) stays what it is there: a digital signal's device needs no more, and its late saturation
    would cost two products.
    """
    reference = np.maximum(current[:, high], 1e-19)
    shape = _freeze(current / reference[:, None], reference)
    tolerance = np.where(y > 0.1, _EXACT * np.abs(shape), np.where(y >= 0, _ONSET, _REVERSED * np.abs(shape) + _ONSET))
    looser = np.where(reference < _LEAKING, _LEAKING / reference, np.maximum(1.0, reference / _WORKING))
    first = 1 / (tolerance * np.minimum(looser, _LOOSEST)[:, None])
    weights, drain = first, _initial(shape, first)
    gate, best, least = _rows(shape, weights, drain), drain, np.inf
    for _ in range(_ROUNDS):
        drain = _alternated(shape, weights, drain, first.mean(axis=0))
        found = _rows(shape, weights, drain)
        error = np.abs(found @ drain - shape) * first
        if (worst := float(np.mean(error**_NORM) ** (1 / _NORM))) < least:
            gate, best, least = found, drain, worst
        emphasis = np.maximum(error / np.sqrt(np.mean(error**2)), 0.1) ** 0.3
        weights = np.minimum(weights * emphasis, 30 * first)
    return Separated(reference, gate.T, best)


def _alternated(shape: Array, weights: Array, drain: Array, scale: Array) -> Array:
    """Better functions of y, orthogonal but for `scale`, from fits of rows and columns in turn."""
    for _ in range(_STEPS):
        gate = np.linalg.qr(_rows(shape, weights, drain))[0]
        columns = _rows(shape.T, weights.T, gate.T)
        drain = np.linalg.qr(columns * scale[:, None])[0].T / scale
    return drain


def _freeze(shape: Array, reference: Array) -> Array:
    """The shape whose row stops changing, softly, where the reference exceeds _FROZEN."""
    if reference[-1] <= _FROZEN:
        return shape
    rows, top = np.arange(float(len(shape))), float(np.argmax(reference > _FROZEN))
    effective = top - _FREEZE_WIDTH * np.logaddexp(0.0, (top - rows) / _FREEZE_WIDTH)
    return resample(rows, shape, np.maximum(effective, 0.0))


def _initial(shape: Array, weights: Array) -> Array:
    """Functions of y from a singular value decomposition, whose weights are products of one for x and one for y."""
    over_x, over_y = weights.mean(axis=1), weights.mean(axis=0)
    return np.linalg.svd(over_x[:, None] * shape * over_y, full_matrices=False)[2][:RANK] / over_y


def _rows(shape: Array, weights: Array, drain: Array) -> Array:
    """(rows, RANK): each row of the shape as a sum of the drain functions with least weighted squares."""
    squares = weights**2
    matrices = (squares @ (drain[:, None] * drain[None]).reshape(RANK**2, -1).T).reshape(-1, RANK, RANK)
    sides = (squares * shape) @ drain.T
    ridge: Array = _RIDGE * np.einsum("rkk->r", matrices)[:, None, None] * np.eye(RANK)
    return np.linalg.solve(matrices + ridge, sides[..., None])[..., 0].astype(np.float64)
