"""Handwritten digits of 8 by 8 pixels, read row by row (the UCI optical digits that come with scikit-learn)."""

from typing import Any

import numpy as np

from cosim.errors import importing
from cosim.tasks.task import Task, full_lengths, stratified_holdout

TEST_IMAGES = 360
GREY_LEVELS = 16.0


def load_digits_task() -> Task:
    """1437 training and 360 test images, x (n, 8, 8) with values 0 to 16; the split is fixed and stratified.

    Raises MissingToolError without scikit-learn.
    """
    with importing("the digits task", "pip install scikit-learn"):
        from sklearn.datasets import load_digits
    bunch: Any = load_digits()
    x, y = bunch.images.astype(np.float32), bunch.target.astype(np.int64)
    test = stratified_holdout(y, TEST_IMAGES, seed=0)
    labels = tuple(str(digit) for digit in range(10))
    x_train, x_test = x[~test], x[test]
    offset, scale = np.zeros(8), np.full(8, GREY_LEVELS)
    lengths = full_lengths(x_train), full_lengths(x_test)
    return Task("digits", x_train, y[~test], x_test, y[test], *lengths, labels, offset, scale)
