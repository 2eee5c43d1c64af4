"""Tell whether a bit meets an earlier one whose delay the input has chosen: a lag detector that is told its lag."""

import numpy as np

from cosim.base.errors import InputError
from cosim.tasks.steps import StepTargets

STEPS = 30
COMMANDS = 0.2  # share of steps with a new command


def generate_chosen_lag(
    n: int, lags: tuple[int, ...], steps: int = STEPS, seed: int | np.random.Generator = 0
) -> StepTargets:
    """Generate x (n, steps, 1 + commands): a fair bit, and a bit for each of `lags`, one on where it is chosen.

    A lag is chosen at step 0 in any case.

    A bit that is on arrives so many steps later as was chosen last when it came; y (n, steps) is 1 where a bit that is
    on meets one that arrives, else 0. All steps count. A generator as `seed` gives new sequences at each call.
    """
    if not lags or min(lags) < 1 or len(set(lags)) < len(lags):
        raise InputError(f"lags must be one or more, each 1 at least and none twice, not {lags}; give others")
    rng = np.random.default_rng(seed)
    bits, choice = rng.integers(0, 2, (n, steps)), rng.integers(0, len(lags), (n, steps))
    told = rng.random((n, steps)) < COMMANDS
    told[:, 0] = True
    x = np.concatenate([bits[..., None], np.eye(len(lags))[choice] * told[..., None]], axis=2).astype(np.float32)
    arrives = np.zeros((n, steps + max(lags)), dtype=bool)
    y, lag = np.zeros((n, steps), dtype=np.int64), np.zeros(n, dtype=np.int64)
    for t in range(steps):
        lag = np.where(told[:, t], np.array(lags)[choice[:, t]], lag)
        y[:, t] = bits[:, t] & arrives[:, t]
        arrives[np.arange(n), t + lag] |= bits[:, t] == 1
    return StepTargets(x, y, np.ones((n, steps), dtype=bool))
