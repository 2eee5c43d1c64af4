"""Tell whether a binary sequence holds an even or odd number of ones (seed paper arXiv 2605.11855, appendix G.5.1)."""

import numpy as np

from cosim.tasks.task import Task


def generate_parity_task(steps: int = 50, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """x (n, steps, 1) fair bits, y the parity of the valid ones; the same for the same seed.

    Training lengths are uniform in 1 .. steps (short sequences teach what one bit does), test sequences are full.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n_train + n_test, steps, 1)).astype(np.float32)
    lengths = np.concatenate([rng.integers(1, steps + 1, n_train), np.full(n_test, steps)])
    x[np.arange(steps)[None, :] >= lengths[:, None]] = 0.0
    y = x.sum(axis=(1, 2)).astype(np.int64) % 2
    train, test = slice(n_train), slice(n_train, None)
    parts = x[train], y[train], x[test], y[test], lengths[train], lengths[test]
    return Task("parity", *parts, ("even", "odd"), np.zeros(1), np.ones(1))
