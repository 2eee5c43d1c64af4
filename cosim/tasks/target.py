"""Targets of a network's answers, and what right and same mean: of classes, and of real numbers.

An answer is what the pooled readout says of a sample: the class of its largest output, or its outputs themselves. An
answer of real numbers is right where none of them is further from its target than a tolerance, and two are the same
where they are no further from each other. So accuracy, agreement and yield mean the same for both.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError

SHARE = 0.1  # of the range of the targets: the tolerance where none is given
Answers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Classes:
    """Targets (n,) are class indices."""

    def answers(self, pooled: NDArray[np.float64]) -> Answers:
        """Return the classes (n,) with the largest of the outputs (n, outputs)."""
        return pooled.argmax(axis=1)

    def same(self, first: Answers, second: Answers) -> NDArray[np.bool_]:
        """Return (n,) booleans: two answers to a sample are the same, or an answer is right."""
        return np.array(first == second, dtype=np.bool_)


@dataclass(frozen=True)
class RealTargets:
    """Targets (n, outputs) are real numbers; `tolerance` in their unit."""

    tolerance: float

    def answers(self, pooled: NDArray[np.float64]) -> Answers:
        """Return the outputs (n, outputs) themselves."""
        return pooled

    def same(self, first: Answers, second: Answers) -> NDArray[np.bool_]:
        """Return (n,) booleans: two answers to a sample are the same within the tolerance, or an answer is right."""
        return np.array((np.abs(first - second) <= self.tolerance).all(axis=1), dtype=np.bool_)


Target = Classes | RealTargets


def default_tolerance(y: NDArray[np.float64]) -> float:
    """Return SHARE of the range of all targets, or SHARE itself if all targets are equal."""
    return SHARE * (float(np.ptp(y)) or 1.0)


def check_tolerance(tolerance: float, where: str) -> float:
    """Return the tolerance itself; raises InputError where it is not positive and finite."""
    if not 0 < tolerance < np.inf:
        raise InputError(f"{where} must be positive and finite, in the unit of the targets, not {tolerance:g}")
    return tolerance
