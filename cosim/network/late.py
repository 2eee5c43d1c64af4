"""A bit that is taken over, and values that come later: what software, circuits and their equations say alike."""

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T", bound=np.generic)
# Of its level, at which a cell that follows a bit is set and reset: off the middle, towards the 0, because a 1 arrives
# with the spread of some mirrors, and a 0 with that of leakage.
RISE, FALL = 0.55, 0.35


def later(values: NDArray[T], frames: int, first: ArrayLike) -> NDArray[T]:
    """Return a network's signals (n, time, ...) so many frames later; `first`, broadcastable, in front of them."""
    if not frames:
        return values
    front = np.broadcast_to(np.asarray(first, dtype=values.dtype), values[:, :frames].shape)
    return np.concatenate([front, values[:, :-frames]], axis=1)


def padded(values: NDArray[T], steps: int) -> NDArray[T]:
    """Return a network's signals in a shorter sample (time, ...), extended to `steps`; the padding is never counted."""
    return np.pad(values, ((0, steps - len(values)), (0, 0)))
