"""Thresholds and levels of the cells of many chips, and which of them the chips' accuracy goes with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
QUANTITIES = ("upper threshold", "lower threshold", "level")
GROUPS = 5
_LEAST = 4  # chips of a group


@dataclass(frozen=True)
class CellSpread:
    """asked (cells, 3), measured (chips, cells, 3): QUANTITIES of each cell, ampere; the chips as the records are."""

    cells: tuple[str, ...]
    asked: Array
    measured: Array

    def deviations(self) -> Array:
        """Compute measured minus asked, (chips, cells, 3), in standard deviations over chips; 0 where nothing is
        spread."""
        sd = self.measured.std(axis=0, ddof=1) if len(self.measured) > 1 else np.zeros_like(self.asked)
        known = sd > 1e-9 * np.abs(self.asked)
        return np.where(known, (self.measured - self.asked) / np.where(known, sd, 1.0), 0.0)


@dataclass(frozen=True)
class Weak:
    """One threshold or level: the share of the variance of accuracy that it explains, its deviations (chips,) in
    standard deviations, and of each fifth of the chips the ends of its deviation and its mean accuracy.

    p: of accuracy being the same in all fifths, times the number of all thresholds and levels that were tried.
    """

    cell: str
    quantity: str
    share: float
    p: float
    deviations: Array
    edges: Array
    means: Array


def rank_weak(spread: CellSpread, accuracy: Array) -> tuple[Weak, ...]:
    """Rank all thresholds and levels by how much of the accuracy (chips,) goes with each, the strongest first; none
    with fewer chips than GROUPS groups need, or where all chips are equally accurate."""
    if len(accuracy) < GROUPS * _LEAST or np.ptp(accuracy) == 0:
        return ()
    found = spread.deviations()
    places = [(k, place) for k, place in np.ndindex(found.shape[1:]) if np.ptp(found[:, k, place]) > 0]
    weak = [
        _weigh(spread.cells[k], QUANTITIES[place], found[:, k, place], accuracy, len(places)) for k, place in places
    ]
    return tuple(sorted(weak, key=lambda one: -one.share))


def _weigh(cell: str, quantity: str, deviations: Array, accuracy: Array, tried: int) -> Weak:
    """Weigh how accuracy (chips,) goes with one quantity's deviations (chips,), by the test of W. H. Kruskal, W. A.
    Wallis, J. Am. Stat. Assoc. 47 (1952) 583, with Bonferroni's correction for `tried` tests."""
    from scipy.stats import kruskal

    groups = np.array_split(np.argsort(deviations, kind="stable"), GROUPS)
    edges = np.array([deviations[group].min() for group in groups] + [deviations.max()])
    means = np.array([accuracy[group].mean() for group in groups])
    p = min(tried * float(kruskal(*(accuracy[group] for group in groups)).pvalue), 1.0)
    return Weak(cell, quantity, explained_share(accuracy, groups), p, deviations, edges, means)


def explained_share(values: Array, groups: Sequence[NDArray[np.intp]]) -> float:
    """Compute epsilon squared, the share of the variance between groups without what chance gives them: T. L. Kelley,
    Proc. Natl. Acad. Sci. 21 (1935) 554. It is below 0 where groups differ less than by chance."""
    within = sum(float(((values[group] - values[group].mean()) ** 2).sum()) for group in groups)
    whole = float(((values - values.mean()) ** 2).sum())
    return 1 - (within / (len(values) - len(groups))) / (whole / (len(values) - 1))
