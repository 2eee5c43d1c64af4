"""Scores of decisions where some classes are rarer than others."""

import math

import numpy as np


def balanced_accuracy(decisions: np.ndarray, y: np.ndarray) -> float:
    """Return the mean over the classes present of the fraction of a network's decisions that are right."""
    return float(np.mean([(decisions[y == label] == label).mean() for label in np.unique(y)]))


def is_unbalanced(y: np.ndarray) -> bool:
    """Tell whether labels' classes are more unequal than draws of equally likely ones: accuracy alone then misleads.

    By Pearson's chi-square of the k classes present: five deviations above its mean of k - 1, with variance 2 (k - 1).
    """
    counts = np.unique(y, return_counts=True)[1]
    expected, free = counts.mean(), len(counts) - 1
    return bool(((counts - expected) ** 2 / expected).sum() > free + 5 * math.sqrt(2 * free))
