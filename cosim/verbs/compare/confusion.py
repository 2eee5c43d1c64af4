"""Confusion of a comparison: how the software decides each class, and what every other engine changes of it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.verbs.compare.agreement import Comparison

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Confusion:
    """counts (classes, classes): samples of a class, in rows, that the software decides so, in columns.

    changes: engine -> its counts minus those; decided: engine -> samples that it decides otherwise than the software,
    which may cancel out in its changes.
    """

    counts: Counts
    changes: Mapping[str, Counts]
    decided: Mapping[str, int]


def find_confusion(comparison: Comparison, classes: int) -> Confusion:
    """Count the confusion of all engines, of so many classes."""
    decisions = {name: engine.decisions.astype(np.int64) for name, engine in comparison.engines.items()}
    counts = {name: count_decisions(comparison.y.astype(np.int64), found, classes) for name, found in decisions.items()}
    software = decisions["software"]
    others = [name for name in counts if name != "software"]
    return Confusion(
        counts=counts["software"],
        changes={name: counts[name] - counts["software"] for name in others},
        decided={name: int((decisions[name] != software).sum()) for name in others},
    )


def count_decisions(y: NDArray[np.int64], decisions: NDArray[np.int64], classes: int) -> Counts:
    """Count samples by class and decision, (classes, classes)."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(counts, (y, decisions), 1)
    return counts
