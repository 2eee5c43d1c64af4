"""In which order bands are piled: that with the shortest trunks, found by moving one band after another."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.layout.floorplan import RAILS, BlockRow

Pile = tuple[BlockRow, ...]
_URGENT = 20.0  # what a micrometre counts for of a net that should be short


def shortest(piles: Sequence[Pile], ports: Sequence[str], urgent: Collection[str] = ()) -> list[Pile]:
    """Return the rows of the layout's bands from bottom to top, in the order with the shortest trunks of metal.

    ports: nets that reach down to the lower edge; urgent: nets that should be short.
    """
    inside = [
        {one.net for row in pile for placed in row.placed for one in placed.tile.terminals} - {*RAILS} for pile in piles
    ]
    nets = sorted(set().union(*inside))
    there = np.array([[net in one for one in inside] for net in nets])
    pins = np.array([net in ports for net in nets])
    worth = np.where([net in urgent for net in nets], _URGENT, 1.0)
    highs = np.array([sum(row.top for row in pile) for pile in piles], dtype=float)
    order = list(range(len(piles)))
    best, found = np.inf, _length(order, there, highs, (pins, worth))
    while found < best:
        best = found
        for band in range(len(piles)):
            others = [one for one in order if one != band]
            tried = [[*others[:k], band, *others[k:]] for k in range(len(piles))]
            lengths = [_length(one, there, highs, (pins, worth)) for one in tried]
            if min(lengths) < found:
                found = min(lengths)
                order = tried[lengths.index(found)]
    return [piles[k] for k in order]


def _length(
    order: list[int],
    there: NDArray[np.bool_],
    highs: NDArray[np.float64],
    nets: tuple[NDArray[np.bool_], NDArray[np.float64]],
) -> float:
    """Return the length of all trunks, from the middle of their lowest band, or the edge, to that of their highest one.

    Each counts by its worth.
    """
    pins, worth = nets
    top = np.cumsum(highs[order])
    middle = top - highs[order] / 2
    mine = there[:, order]
    first = np.where(pins, 0.0, middle[mine.argmax(axis=1)])
    last = middle[mine.shape[1] - 1 - mine[:, ::-1].argmax(axis=1)]
    return float(((last - first) * worth).sum())
