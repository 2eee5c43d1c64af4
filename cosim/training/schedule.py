"""Schedules of epsilon and the learning rate over iterations (seed paper arXiv 2605.11855, appendix D and F.8)."""

import math

HOLD_FRACTION = 0.05  # epsilon stays at 1
DECAY_FRACTION = 0.70  # then falls linearly to exactly 0; the rest of the training runs at 0
WARMUP_FRACTION = 0.01


def epsilon_at(iteration: int, total: int, epsilon: float | None) -> float:
    """Return the epsilon of iteration 0 .. total - 1; `epsilon` None anneals from 1 to 0, a number is constant."""
    if epsilon is not None:
        return epsilon
    hold, decay = HOLD_FRACTION * total, DECAY_FRACTION * total
    return min(max(1.0 - (iteration - hold) / decay, 0.0), 1.0)


def epsilon_is_final(iteration: int, total: int, epsilon: float | None) -> bool:
    """Tell whether epsilon no longer changes from this iteration on; only then is a checkpoint worth keeping."""
    return epsilon is not None or epsilon_at(iteration, total, None) == 0.0


def learning_rate_at(iteration: int, total: int, peak: float, floor: float = 1e-2) -> float:
    """Return the learning rate of an iteration.

    It rises linearly over 1 % of the iterations, then falls as a cosine to `floor` times the peak.
    """
    warmup = max(1, round(WARMUP_FRACTION * total))
    if iteration < warmup:
        return peak * (iteration + 1) / warmup
    progress = (iteration - warmup) / max(1, total - warmup)
    return peak * (floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress)))
