"""Hold the first of many values (seed paper arXiv 2605.11855, appendix G.2): pure memory.

The paper's network knows the first step by learned positions, which have no circuit; here a second input marks it.
"""

import numpy as np

from cosim.tasks.task import Task, full_lengths

STEPS = 100  # the shortest sequence in the seed paper
ITEMS = 15


def generate_copy_first_task(
    steps: int = STEPS, n_train: int = 4096, n_test: int = 1024, seed: int = 0, *, noise: bool = True
) -> Task:
    """A regression (G.2.3). x (n, steps, 2): a value uniform in [-1, 1], and 1 at the first step, else 0; y (n, 1) the
    value at that step. Without `noise` the later values are 0 (G.2.2). The same for the same seed.
    """
    x = np.zeros((n_train + n_test, steps, 2), dtype=np.float32)
    x[:, :, 0] = np.random.default_rng(seed).uniform(-1, 1, x.shape[:2])
    x[:, 0, 1] = 1.0
    y = x[:, 0, :1].copy()
    if not noise:
        x[:, 1:, 0] = 0
    x_train, x_test = x[:n_train], x[n_train:]
    lengths = full_lengths(x_train), full_lengths(x_test)
    offset, scale = np.array([-1.0, 0.0]), np.array([2.0, 1.0])
    name = "copy-first" if noise else "copy-first-quiet"
    name = name if steps == STEPS else f"{name}-{steps}"
    return Task(name, x_train, y[:n_train], x_test, y[n_train:], *lengths, (), offset, scale)


def generate_copy_item_task(steps: int = STEPS, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """A classification (G.2.1). x (n, steps, 15): one of 15 inputs is 1 at the first step, all are 0 afterwards; y (n,)
    which. The same for the same seed.
    """
    y = np.random.default_rng(seed).integers(ITEMS, size=n_train + n_test)
    x = np.zeros((len(y), steps, ITEMS), dtype=np.float32)
    x[np.arange(len(y)), 0, y] = 1.0
    x_train, x_test = x[:n_train], x[n_train:]
    lengths = full_lengths(x_train), full_lengths(x_test)
    labels = tuple(str(item) for item in range(ITEMS))
    return Task(
        "copy-item", x_train, y[:n_train], x_test, y[n_train:], *lengths, labels, np.zeros(ITEMS), np.ones(ITEMS)
    )
