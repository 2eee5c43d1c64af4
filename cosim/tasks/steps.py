"""Tasks whose target is asked for at many steps of one sequence, not once behind it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class StepTargets:
    """Sequences with a target at each step.

    x: (n, time, features) float32. y: (n, time) int64 class indices, or (n, time, outputs) float32 for regression.
    mask: (n, time) bool, the steps whose target counts; y is 0 elsewhere.
    """

    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray


@dataclass(frozen=True)
class StepTask:
    """Three sets of sequences. labels: the classes' names, none for regression.

    tokens: how many there are, where x (n, time, 1) is the index of one at each step; None for values.
    """

    name: str
    train: StepTargets
    valid: StepTargets
    test: StepTargets
    labels: tuple[str, ...]
    tokens: int | None = None

    @property
    def outputs(self) -> int:
        """Readout outputs: one per class, or per regression target."""
        return len(self.labels) or self.train.y.shape[2]
