"""Tell whether a binary sequence holds an even or odd number of ones (seed paper arXiv 2605.11855, appendix G.5.1)."""

import numpy as np

from cosim.tasks.task import Task

PUBLISHED_TRAIN, PUBLISHED_TEST = (50, 400), (50, 1000)  # shortest and longest sequence


def generate_parity_task(steps: int = 50, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate x (n, steps, 1) of fair bits and y, the parity of the valid ones; a seed determines them.

    Training lengths are uniform in 1 .. steps (short sequences teach what one bit does), test sequences are full.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n_train + n_test, steps, 1)).astype(np.float32)
    lengths = np.concatenate([rng.integers(1, steps + 1, n_train), np.full(n_test, steps)])
    y = _pad_and_count(x, lengths)
    train, test = slice(n_train), slice(n_train, None)
    parts = x[train], y[train], x[test], y[test], lengths[train], lengths[test]
    return Task("parity", *parts, ("even", "odd"), np.zeros(1), np.ones(1))


def generate_published_parity_task(n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate the task with the seed paper's lengths, uniform in 50 .. 400 for training and 50 .. 1000 for the test.

    x_train (n, 400, 1) and x_test (n, 1000, 1), 0 beyond each length. The paper draws new sequences at every iteration.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for count, (shortest, longest) in ((n_train, PUBLISHED_TRAIN), (n_test, PUBLISHED_TEST)):
        x = rng.integers(0, 2, (count, longest, 1)).astype(np.float32)
        lengths = rng.integers(shortest, longest + 1, count)
        parts.append((x, _pad_and_count(x, lengths), lengths))
    (x_train, y_train, len_train), (x_test, y_test, len_test) = parts
    data = x_train, y_train, x_test, y_test, len_train, len_test
    return Task("parity-published", *data, ("even", "odd"), np.zeros(1), np.ones(1))


def _pad_and_count(x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Set the steps of x (n, time, 1) beyond its samples' lengths to 0, and return the parity (n,) of the others."""
    x[np.arange(x.shape[1])[None, :] >= lengths[:, None]] = 0.0
    return x.sum(axis=(1, 2)).astype(np.int64) % 2
