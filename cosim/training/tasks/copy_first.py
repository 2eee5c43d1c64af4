"""Hold the first of many noisy values (seed paper arXiv 2605.11855, appendix G.2.3): pure memory, a regression.

The paper's network knows the first step by learned positions, which have no circuit; here a second input marks it.
"""

import numpy as np

from cosim.training.tasks.task import Task, full_lengths

STEPS = 100  # the shortest sequence in the seed paper


def generate_copy_first_task(steps: int = STEPS, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """x (n, steps, 2): a value uniform in [-1, 1], and 1 at the first step, else 0; y (n, 1) the value at that step.

    The same for the same seed.
    """
    x = np.zeros((n_train + n_test, steps, 2), dtype=np.float32)
    x[:, :, 0] = np.random.default_rng(seed).uniform(-1, 1, x.shape[:2])
    x[:, 0, 1] = 1.0
    y = x[:, 0, :1].copy()
    x_train, x_test = x[:n_train], x[n_train:]
    lengths = full_lengths(x_train), full_lengths(x_test)
    offset, scale = np.array([-1.0, 0.0]), np.array([2.0, 1.0])
    name = "copy-first" if steps == STEPS else f"copy-first-{steps}"
    return Task(name, x_train, y[:n_train], x_test, y[n_train:], *lengths, (), offset, scale)
