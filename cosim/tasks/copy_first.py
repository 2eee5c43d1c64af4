"""Hold the first of many values (seed paper arXiv 2605.11855, appendix G.2): pure memory.

The paper's network knows the first step by its positions, which have no circuit: copy-first marks it by a second input.
Copy-value is the task as published, without that mark.
"""

from dataclasses import replace

import numpy as np

from cosim.base.errors import InputError
from cosim.tasks.task import Task, full_lengths

STEPS, MOST_STEPS = 100, 10_000  # the shortest and the longest sequence in the seed paper
ITEMS = 15
SETS, PUBLISHED_SETS = (4096, 1024), (12_000, 2000)  # training, of which validation is held out, and test
MEMORY = 1 << 30  # bytes of inputs beyond which the sets shrink
MOST_MEMORY = 2 << 30
_BLOCK = 256  # sequences drawn at once, in double precision


def copy_sets(steps: int, features: int, *, published: bool = False) -> tuple[int, int]:
    """Return how many sequences to train with and to test, so many that they take at most 1 GiB: the longest are fewer.

    The seed paper's 10,000, 2,000 (validation) and 2,000 are never cut: InputError beyond 2 GiB, and for a length that
    is none.
    """
    if not 2 <= steps <= MOST_STEPS:
        raise InputError(f"a sequence to copy from must have 2 to {MOST_STEPS} steps, not {steps}; give another length")
    each = 4 * steps * features
    if published and each * sum(PUBLISHED_SETS) > MOST_MEMORY:
        raise InputError(
            f"{sum(PUBLISHED_SETS)} sequences of {steps} steps of {features} inputs would take "
            f"{each * sum(PUBLISHED_SETS) / 1e9:.3g} GB of memory; leave -published out, or take fewer steps"
        )
    share = 1.0 if published else min(1.0, MEMORY / (each * sum(SETS)))
    train, test = PUBLISHED_SETS if published else SETS
    return int(share * train), int(share * test)


def generate_copy_first_task(
    steps: int = STEPS, n_train: int = 4096, n_test: int = 1024, seed: int = 0, *, noise: bool = True
) -> Task:
    """Generate the regression of appendix G.2.3; without `noise` the later values are 0 (G.2.2).

    x (n, steps, 2): a value uniform in [-1, 1], and 1 at the first step, else 0; y (n, 1): the value at the first step.
    A seed determines the data.
    """
    x = np.zeros((n_train + n_test, steps, 2), dtype=np.float32)
    rng = np.random.default_rng(seed)
    for start in range(0, len(x), _BLOCK):
        part = x[start : start + _BLOCK, :, 0]
        part[:] = rng.uniform(-1, 1, part.shape)
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


def generate_copy_value_task(
    steps: int = STEPS, n_train: int = 4096, n_test: int = 1024, seed: int = 0, *, noise: bool = True
) -> Task:
    """Return the copy-first task without its mark, x (n, steps, 1): only positions tell which value was the first."""
    task = generate_copy_first_task(steps, n_train, n_test, seed, noise=noise)
    x_train, x_test = (np.ascontiguousarray(x[:, :, :1]) for x in (task.x_train, task.x_test))
    name = task.name.replace("copy-first", "copy-value")
    return replace(task, name=name, x_train=x_train, x_test=x_test, offset=task.offset[:1], scale=task.scale[:1])


def generate_copy_item_task(steps: int = STEPS, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate the classification of appendix G.2.1.

    x (n, steps, 15): one of 15 inputs is 1 at the first step, all are 0 afterwards; y (n,): which one. A seed
    determines the data.
    """
    y = np.random.default_rng(seed).integers(ITEMS, size=n_train + n_test)
    x = np.zeros((len(y), steps, ITEMS), dtype=np.float32)
    x[np.arange(len(y)), 0, y] = 1.0
    x_train, x_test = x[:n_train], x[n_train:]
    lengths = full_lengths(x_train), full_lengths(x_test)
    labels = tuple(str(item) for item in range(ITEMS))
    name = "copy-item" if steps == STEPS else f"copy-item-{steps}"
    return Task(name, x_train, y[:n_train], x_test, y[n_train:], *lengths, labels, np.zeros(ITEMS), np.ones(ITEMS))
