"""A loss that is not finite ends a training: from then on its weights mean nothing, and no checkpoint may hold them."""

import math

from cosim.base.errors import TrainingError


def check_loss(loss: float, iteration: int, name: str = "the loss") -> float:
    """Return the loss of an iteration, from 1. Raise TrainingError where it is infinite or no number."""
    if math.isfinite(loss):
        return loss
    raise TrainingError(
        f"{name} must be a finite number, not {loss:g}, as it is in iteration {iteration}; no checkpoint is written: "
        "take a smaller learning rate (--lr), a larger --margin, or targets and inputs of a smaller range"
    )
