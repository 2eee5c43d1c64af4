"""Tell the sign of x[t - 9] x[t - 17] at each step: two lags must meet, which a line of delays does."""

import numpy as np

from cosim.base.errors import InputError
from cosim.tasks.task import StepTargets, StepTask

STEPS = 60
LAGS = (9, 17)


def generate_delayed_product(n: int, steps: int = STEPS, seed: int | np.random.Generator = 0) -> StepTargets:
    """Generate x (n, steps, 1) of fair -1 or 1, and y (n, steps), 1 where x[t - 9] x[t - 17] is positive, else 0.

    Counted are the steps from 17 on. A generator as `seed` gives new sequences at each call. Raises InputError for
    fewer steps than have a target.
    """
    if steps <= max(LAGS):
        raise InputError(f"the delayed product must have at least {max(LAGS) + 1} steps, not {steps}; give more")
    signs = 2 * np.random.default_rng(seed).integers(0, 2, (n, steps)) - 1
    near, far = LAGS
    y = np.zeros((n, steps), dtype=np.int64)
    y[:, far:] = signs[:, far - near : steps - near] * signs[:, : steps - far] > 0
    mask = np.broadcast_to(np.arange(steps) >= far, (n, steps)).copy()
    return StepTargets(signs[:, :, None].astype(np.float32), y, mask)


def generate_delayed_product_task(
    steps: int = STEPS, n_train: int = 4096, n_valid: int = 512, n_test: int = 1024, seed: int = 0
) -> StepTask:
    """Generate the data of the delayed product, sequences to train, validate and test with.

    They are drawn by `seed`; equal seeds give equal sequences.
    """
    rng = np.random.default_rng(seed)
    train, valid, test = (generate_delayed_product(n, steps, rng) for n in (n_train, n_valid, n_test))
    return StepTask("delayed-product", train, valid, test, ("-1", "1"))
