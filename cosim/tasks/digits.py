"""Handwritten digits of 8 by 8 pixels, by rows or by pixels (the UCI optical digits that come with scikit-learn)."""

from typing import Any

import numpy as np

from cosim.base.errors import importing
from cosim.tasks.task import Task, full_lengths, stratified_holdout

TEST_IMAGES = 360
GREY_LEVELS = 16.0


def load_digits_task(*, by_pixel: bool = False) -> Task:
    """Load 1437 training and 360 test images, x (n, 8, 8) with values 0 to 16; the split is fixed and stratified.

    With `by_pixel` x is (n, 64, 1), row after row.

    Raises MissingToolError without scikit-learn.
    """
    with importing("the digits task", "pip install scikit-learn"):
        from sklearn.datasets import load_digits
    bunch: Any = load_digits()
    x, y = bunch.images.astype(np.float32), bunch.target.astype(np.int64)
    x = x.reshape(len(x), -1, 1) if by_pixel else x
    test = stratified_holdout(y, TEST_IMAGES, seed=0)
    labels = tuple(str(digit) for digit in range(10))
    x_train, x_test = x[~test], x[test]
    offset, scale = np.zeros(x.shape[2]), np.full(x.shape[2], GREY_LEVELS)
    lengths = full_lengths(x_train), full_lengths(x_test)
    name = "pixel-digits" if by_pixel else "digits"
    return Task(name, x_train, y[~test], x_test, y[test], *lengths, labels, offset, scale)
