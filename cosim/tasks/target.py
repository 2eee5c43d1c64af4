"""Targets of a network's answers, classes or real numbers, and when an answer is right.

An answer is what the pooled readout gives for a sample: the class of its largest output, or the outputs themselves. Two
answers of real numbers are the same if none of their numbers differ by more than a tolerance; an answer is right if it
is the same as the target. So accuracy, agreement and yield mean the same for classes and for real numbers.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.text import listed, shown

SHARE = 0.1  # of the range of the targets: the tolerance where none is given
Answers = NDArray[np.int64] | NDArray[np.float64]


def same_answers(first: Answers, second: Answers, tolerance: float | None) -> NDArray[np.bool_]:
    """Return (n,) booleans: whether two answers, or an answer and its target, are the same.

    tolerance: by how much real numbers may differ, None for classes.
    """
    if tolerance is None:
        return np.array(first == second, dtype=np.bool_)
    return np.array((np.abs(first - second) <= tolerance).all(axis=1), dtype=np.bool_)


def default_tolerance(y: NDArray[np.float64]) -> float:
    """Return the default tolerance of targets y: SHARE of their range, or SHARE itself if all are equal."""
    return SHARE * (float(np.ptp(y)) or 1.0)


def check_tolerance(tolerance: float, where: str) -> float:
    """Return the tolerance of real targets unchanged.

    Raises InputError, naming `where`, if it is not positive and finite.
    """
    if not 0 < tolerance < np.inf:
        raise InputError(f"{where} must be positive and finite, in the unit of the targets, not {tolerance:g}")
    return tolerance


_MOST = 2**53  # beyond it not every whole number is a real one


def is_one_hot(y: NDArray[Any]) -> bool:
    """Tell whether labels y are one-hot rows (n, classes): a single 1 in every row and 0 elsewhere."""
    if y.ndim != 2 or y.shape[1] < 2 or y.dtype.kind not in "biuf":
        return False
    return bool(((y == 0) | (y == 1)).all() and (np.count_nonzero(y, axis=1) == 1).all())


def whole_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Convert class labels (n,) from whole real numbers or booleans to integers; return other y unchanged."""
    if y.ndim == 1 and y.dtype.kind == "b":
        return y.astype(np.int64)
    if y.ndim != 1 or y.dtype.kind != "f" or not (np.abs(y) < _MOST).all() or not (y == np.floor(y)).all():
        return y
    return y.astype(np.int64)


def label_repair(y: NDArray[Any]) -> str:
    """Return advice on how to turn y into labels or targets, the end of an error message; empty without any."""
    if y.ndim == 2 and y.shape[1] == 1 and y.dtype.kind in "iub":
        return "; for classes give y[:, 0]"
    if y.ndim == 1 and y.dtype.kind == "f":
        return "; for classes give whole numbers, y.astype(int), for targets that are real numbers y[:, None]"
    return "; of objects or bytes make texts: y.astype(str)" if y.dtype.kind in "OS" else ""


def class_indices(y: NDArray[Any], names: Sequence[str], where: str) -> NDArray[np.int64]:
    """Return class indices (n,) of labels y: integers (n,), one-hot rows (n, classes), or texts (n,) among `names`.

    Raises InputError, naming `where`, that says what y is instead.
    """
    y = whole_classes(y)
    if is_one_hot(y):
        return y.argmax(axis=1).astype(np.int64)
    if y.ndim == 1 and y.dtype.kind == "U":
        places = {name: i for i, name in enumerate(names)}
        strange = next((text for text in y.tolist() if text not in places), None)
        if strange is not None:
            raise InputError(
                f"{where} holds the label {shown(strange)}, but the classes are {listed(names)}; rename it"
            )
        return np.array([places[text] for text in y.tolist()], dtype=np.int64)
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise InputError(
            f"{where} must hold class indices (samples,), one-hot rows (samples, classes) or the names of the classes, "
            f"not {y.dtype} {y.shape}{label_repair(y)}"
        )
    return y.astype(np.int64)


def balanced_accuracy(decisions: np.ndarray, y: np.ndarray) -> float:
    """Return the mean over the target classes y of the share of samples whose decision is right."""
    return float(np.mean([(decisions[y == label] == label).mean() for label in np.unique(y)]))


def is_unbalanced(y: np.ndarray) -> bool:
    """Tell whether labels' classes are more unequal than random draws would make them: accuracy then misleads.

    The test is Pearson's chi-square of the k classes present: it must exceed its mean, k - 1, by five standard
    deviations, with variance 2 (k - 1).
    """
    counts = np.unique(y, return_counts=True)[1]
    expected, free = counts.mean(), len(counts) - 1
    return bool(((counts - expected) ** 2 / expected).sum() > free + 5 * math.sqrt(2 * free))
