"""Activations of the recall network and their inverses, both in place: a shift is one, a peel is the other.

    tanh        undone as atanh of what is clamped to +-(1 - 1e-6); small float32 by their series (below)
    sigmoid     undone as ln(y / (1 - y)) of what is clamped to [1e-6, 1 - 1e-6]
    elu         e^x - 1 below 0, x above; undone as ln(1 + y) of what is clamped to -(1 - 1e-6) at least
    leaky       0.01 x below 0; its powers leave the range of a float behind some 20 shifts and are 0 from then on
    relu        nothing to undo: what was below 0 is lost, and so is what it says about the symbol
    identity    the linear line

Series: a line of L shifts adds up what each of them rounds, and a bias of a fraction of an ulp, which the float32 tanh
of a library may have, L times: with that of numpy 2.4 and AVX-512 the state is off by 6e-6 (mean square) behind 1e5
shifts, with the series, whose sum is rounded once, by 2e-9.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.floating[Any]]
CLAMP, SLOPE = 1e-6, 0.01
# (x^2 at most, coefficients of x^9 or x^5 down to x^3): beyond the terms kept lie less than 1e-9 of x
_TANH = ((2.0**-10, (2 / 15, -1 / 3)), (2.0**-6, (62 / 2835, -17 / 315, 2 / 15, -1 / 3)))
_ATANH = ((2.0**-10, (1 / 5, 1 / 3)), (2.0**-6, (1 / 9, 1 / 7, 1 / 5, 1 / 3)))
Series = tuple[tuple[float, tuple[float, ...]], ...]


@dataclass(frozen=True)
class Activation:
    """apply: x becomes s(x); undo: s(x) becomes x, as far as it can be found. Both change their argument."""

    apply: Callable[[Values], None]
    undo: Callable[[Values], None]


def _tanh(x: Values) -> None:
    if not _sum_series(x, _TANH):
        np.tanh(x, out=x)


def _undo_tanh(x: Values) -> None:
    if not _sum_series(x, _ATANH):
        np.clip(x, CLAMP - 1.0, 1.0 - CLAMP, out=x)
        np.arctanh(x, out=x)


def _sum_series(x: Values, series: Series) -> bool:
    """x + c x^3 + ... in place, where all of x is small and in float32; else False, and nothing happens."""
    if x.dtype != np.float32:
        return False
    square = x * x
    largest = square.max()
    for most, (first, *others) in series:
        if largest <= most:
            term = square * first
            for coefficient in others:
                term += coefficient
                term *= square
            term *= x
            x += term
            return True
    return False


def _sigmoid(x: Values) -> None:
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1.0
    np.reciprocal(x, out=x)


def _undo_sigmoid(x: Values) -> None:
    np.clip(x, CLAMP, 1.0 - CLAMP, out=x)
    x /= 1.0 - x
    np.log(x, out=x)


def _elu(x: Values) -> None:
    np.copyto(x, np.expm1(np.minimum(x, 0.0)), where=x < 0)


def _undo_elu(x: Values) -> None:
    np.copyto(x, np.log1p(np.clip(x, CLAMP - 1.0, 0.0)), where=x < 0)


def _leaky(x: Values) -> None:
    np.multiply(x, SLOPE, out=x, where=x < 0)


def _undo_leaky(x: Values) -> None:
    np.divide(x, SLOPE, out=x, where=x < 0)


def _relu(x: Values) -> None:
    np.maximum(x, 0.0, out=x)


def _nothing(x: Values) -> None:
    del x


ACTIVATIONS: Mapping[str, Activation] = {
    "tanh": Activation(_tanh, _undo_tanh),
    "relu": Activation(_relu, _nothing),
    "leaky": Activation(_leaky, _undo_leaky),
    "elu": Activation(_elu, _undo_elu),
    "sigmoid": Activation(_sigmoid, _undo_sigmoid),
    "identity": Activation(_nothing, _nothing),
}
