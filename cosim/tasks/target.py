"""Targets of a network's answers, and what right and same mean: of classes, and of real numbers.

An answer is what the pooled readout says of a sample: the class of its largest output, or its outputs themselves. An
answer of real numbers is right where none of them is further from its target than a tolerance, and two are the same
where they are no further from each other. So accuracy, agreement and yield mean the same for both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.text import listed, shown

SHARE = 0.1  # of the range of the targets: the tolerance where none is given
Answers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Classes:
    """Targets (n,) are class indices."""

    def answers(self, pooled: NDArray[np.float64]) -> Answers:
        """Return what is compared with target classes: those (n,) with the largest of the outputs (n, outputs)."""
        return pooled.argmax(axis=1)

    def same(self, first: Answers, second: Answers) -> NDArray[np.bool_]:
        """Return (n,) booleans: two answers to a sample are the same target class, or an answer is right."""
        return np.array(first == second, dtype=np.bool_)


@dataclass(frozen=True)
class RealTargets:
    """Targets (n, outputs) are real numbers; `tolerance` in their unit."""

    tolerance: float

    def answers(self, pooled: NDArray[np.float64]) -> Answers:
        """Return what is compared with real targets: the outputs (n, outputs) themselves."""
        return pooled

    def same(self, first: Answers, second: Answers) -> NDArray[np.bool_]:
        """Return (n,) booleans: two answers to a sample are the same within the tolerance, or an answer is right."""
        return np.array((np.abs(first - second) <= self.tolerance).all(axis=1), dtype=np.bool_)


Target = Classes | RealTargets


def default_tolerance(y: NDArray[np.float64]) -> float:
    """Return SHARE of the range of all targets, or SHARE itself if all targets are equal."""
    return SHARE * (float(np.ptp(y)) or 1.0)


def check_tolerance(tolerance: float, where: str) -> float:
    """Return the tolerance of real targets of samples itself.

    Raises InputError where it is not positive and finite.
    """
    if not 0 < tolerance < np.inf:
        raise InputError(f"{where} must be positive and finite, in the unit of the targets, not {tolerance:g}")
    return tolerance


_MOST = 2**53  # beyond it not every whole number is a real one


def is_one_hot(y: NDArray[Any]) -> bool:
    """Tell whether labels y (n, classes) have a single 1 in every row and 0 elsewhere."""
    if y.ndim != 2 or y.shape[1] < 2 or y.dtype.kind not in "biuf":
        return False
    return bool(((y == 0) | (y == 1)).all() and (np.count_nonzero(y, axis=1) == 1).all())


def whole_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return class labels (n,) that are stored as real or truth values as integers; all others as they are."""
    if y.ndim == 1 and y.dtype.kind == "b":
        return y.astype(np.int64)
    if y.ndim != 1 or y.dtype.kind != "f" or not (np.abs(y) < _MOST).all() or not (y == np.floor(y)).all():
        return y
    return y.astype(np.int64)


def label_repair(y: NDArray[Any]) -> str:
    """Return advice on how to make labels or targets of y, the end of an error message; empty where nothing simple
    does."""
    if y.ndim == 2 and y.shape[1] == 1 and y.dtype.kind in "iub":
        return "; for classes save y[:, 0]"
    if y.ndim == 1 and y.dtype.kind == "f":
        return "; for classes save whole numbers, y.astype(int), for targets that are real numbers save y[:, None]"
    return "; of objects or bytes make texts: y.astype(str)" if y.dtype.kind in "OS" else ""


def class_indices(y: NDArray[Any], names: Sequence[str], where: str) -> NDArray[np.int64]:
    """Return (n,) class indices from integers (n,), from one-hot rows (n, classes), or from texts (n,) among `names`.

    Raises InputError that says what y is instead.
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
    """Return the mean over the target classes of the data of the fraction of samples that are decided right."""
    return float(np.mean([(decisions[y == label] == label).mean() for label in np.unique(y)]))


def is_unbalanced(y: np.ndarray) -> bool:
    """Tell whether labels' classes are more unequal than draws of equally likely ones: accuracy alone then misleads.

    By Pearson's chi-square of the k classes present: five deviations above its mean of k - 1, with variance 2 (k - 1).
    """
    counts = np.unique(y, return_counts=True)[1]
    expected, free = counts.mean(), len(counts) - 1
    return bool(((counts - expected) ** 2 / expected).sum() > free + 5 * math.sqrt(2 * free))
