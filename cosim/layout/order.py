"""In which order bands are piled: that with the shortest trunks, found by moving one band after another."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.layout.floorplan import RAILS, Row

Pile = tuple[Row, ...]


def shortest(piles: Sequence[Pile], ports: Sequence[str]) -> list[Pile]:
    """The bands' rows from bottom to top; ports: nets that reach down to the lower edge."""
    inside = [
        {one.net for row in pile for placed in row.placed for one in placed.tile.terminals} - {*RAILS} for pile in piles
    ]
    nets = sorted(set().union(*inside))
    there = np.array([[net in one for one in inside] for net in nets])
    pins = np.array([net in ports for net in nets])
    highs = np.array([sum(row.top for row in pile) for pile in piles], dtype=float)
    order = list(range(len(piles)))
    best, found = np.inf, _length(order, there, pins, highs)
    while found < best:
        best = found
        for band in range(len(piles)):
            others = [one for one in order if one != band]
            tried = [[*others[:k], band, *others[k:]] for k in range(len(piles))]
            lengths = [_length(one, there, pins, highs) for one in tried]
            if min(lengths) < found:
                found = min(lengths)
                order = tried[lengths.index(found)]
    return [piles[k] for k in order]


def _length(order: list[int], there: NDArray[np.bool_], pins: NDArray[np.bool_], highs: NDArray[np.float64]) -> float:
    """Of all trunks, from the middle of their lowest band, or from the edge, to that of their highest one."""
    top = np.cumsum(highs[order])
    middle = top - highs[order] / 2
    mine = there[:, order]
    first = np.where(pins, 0.0, middle[mine.argmax(axis=1)])
    last = middle[mine.shape[1] - 1 - mine[:, ::-1].argmax(axis=1)]
    return float((last - first).sum())
