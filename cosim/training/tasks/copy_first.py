"""Remember the first of many noisy values (seed paper arXiv 2605.11855, appendix G.2.3): pure memory, a regression."""

import numpy as np

from cosim.training.tasks.task import Task, full_lengths


def generate_copy_first_task(steps: int = 32, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """x (n, steps, 1) uniform in [-1, 1], target the value at the first step, (n, 1); the same for the same seed."""
    x = np.random.default_rng(seed).uniform(-1, 1, (n_train + n_test, steps, 1)).astype(np.float32)
    y = x[:, 0].copy()
    x_train, x_test = x[:n_train], x[n_train:]
    lengths = full_lengths(x_train), full_lengths(x_test)
    offset, scale = np.full(1, -1.0), np.full(1, 2.0)
    return Task("copy-first", x_train, y[:n_train], x_test, y[n_train:], *lengths, (), offset, scale)
