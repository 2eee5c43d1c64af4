"""Scores where classes are unequal."""

import numpy as np
import pytest

from cosim.tasks.target import balanced_accuracy, is_unbalanced


def test_balanced_accuracy_weighs_classes_equally() -> None:
    y = np.array([0] * 7 + [1] * 3)
    decisions = np.array([0] * 7 + [1, 0, 0])
    assert balanced_accuracy(decisions, y) == pytest.approx((1 + 1 / 3) / 2)


@pytest.mark.parametrize(
    ("counts", "unbalanced"),
    [
        ((427, 60), True),  # "yes" among seven words
        ((26, 26), False),
        ((20, 10), False),  # chi-square 3.3 of at most 1 + 5 sqrt(2) = 8.07
        ((24, 6), True),  # 10.8
        ((10, 2, 4, 7, 6, 5, 8, 6, 5, 7), False),  # sixty digits drawn at random: 7.3 of at most 30.2
        ((30,), False),
    ],
)
def test_unequal_beyond_chance(counts: tuple[int, ...], unbalanced: bool) -> None:
    assert is_unbalanced(np.repeat(np.arange(len(counts)), counts)) == unbalanced
