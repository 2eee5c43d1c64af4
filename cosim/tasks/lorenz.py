"""Predict one coordinate of the Lorenz system one step ahead from that coordinate alone, with noise.

    x' = 10 (y - x)    y' = x (28 - z) - y    z' = x y - 8/3 z        (E. N. Lorenz, 1963)

The network never sees the other two coordinates. Whether it has found them is measured in two ways: by a linear readout
of its hidden states, and by the share of a state's nearest neighbours that are neighbours in hidden states, too.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.tasks.task import StepTargets, StepTask

TRAJECTORIES, STEPS, INTERVAL = 2000, 200, 0.05
NOISE = 0.05  # of the standard deviation
NEIGHBOURS = 20
_SUBSTEPS = 10  # of the fourth-order Runge-Kutta method in an interval
_TRANSIENT = 200  # intervals that are dropped: by then a trajectory is on the attractor
# Long-run mean and standard deviation of x, y, z on the attractor; x and y are symmetric about 0.
MEAN, SPREAD = np.array([0.0, 0.0, 23.55]), np.array([7.92, 9.01, 8.62])


@dataclass(frozen=True)
class Lorenz:
    """Trajectories of the Lorenz system, and the task of predicting their next step.

    states: (n, steps + 1, 3), x, y and z without noise; steps.x: (n, steps, 1), x with noise; steps.y: (n, steps, 1),
    the next x without noise. All are standardised.
    """

    steps: StepTargets
    states: NDArray[np.float32]

    def select(self, part: slice) -> "Lorenz":
        """Return a part of the Lorenz data's trajectories, such as those for training."""
        return Lorenz(StepTargets(self.steps.x[part], self.steps.y[part], self.steps.mask[part]), self.states[part])


def generate_lorenz(
    n: int = TRAJECTORIES, steps: int = STEPS, seed: int | np.random.Generator = 0, *, noise: float = NOISE
) -> Lorenz:
    """Generate n trajectories of the Lorenz system, each from its own random start, with INTERVAL between steps.

    noise: standard deviation of the noise on the input, over that of the signal. Equal seeds give equal data. Raises
    InputError for sizes below 1 and negative noise.
    """
    if n < 1 or steps < 1 or not 0 <= noise < np.inf:
        raise InputError(
            f"the Lorenz task must have trajectories and steps from 1 and noise from 0, not {n}, {steps} and {noise}"
        )
    rng = np.random.default_rng(seed)
    point = rng.uniform(-10, 10, (n, 3)) + MEAN
    path = np.empty((n, steps + 1, 3))
    for t in range(-_TRANSIENT, steps + 1):
        if t >= 0:
            path[:, t] = point
        point = advance(point)
    states = ((path - MEAN) / SPREAD).astype(np.float32)
    x = states[:, :-1, :1] + rng.normal(0.0, noise, (n, steps, 1)).astype(np.float32)
    return Lorenz(StepTargets(x, states[:, 1:, :1].copy(), np.ones((n, steps), dtype=bool)), states)


def generate_lorenz_task(n: int = TRAJECTORIES, steps: int = STEPS, seed: int = 0) -> StepTask:
    """Generate the Lorenz task: 80 % of n trajectories for training, 10 % for validation, 10 % for the test."""
    lorenz = generate_lorenz(n, steps, seed)
    first, second = n * 8 // 10, n * 9 // 10
    train, valid, test = (lorenz.select(part).steps for part in (slice(first), slice(first, second), slice(second, n)))
    return StepTask("lorenz", train, valid, test, ())


def advance(point: NDArray[np.float64]) -> NDArray[np.float64]:
    """Advance states (..., 3) of the Lorenz system by one INTERVAL, by the fourth-order Runge-Kutta method."""
    h = INTERVAL / _SUBSTEPS
    for _ in range(_SUBSTEPS):
        k1 = _rate(point)
        k2 = _rate(point + h / 2 * k1)
        k3 = _rate(point + h / 2 * k2)
        k4 = _rate(point + h * k3)
        point = point + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return point


def _rate(point: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y, z = np.moveaxis(point, -1, 0)
    return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], axis=-1)


def mase(predicted: NDArray, target: NDArray, before: NDArray) -> float:
    """Return the mean absolute scaled error of predictions; 1 is as good as predicting that the value does not change.

    predicted, target, before (the value one step earlier): of one shape. Raises InputError for shapes that differ, and
    for a target that never changes.
    """
    if not predicted.shape == target.shape == before.shape:
        raise InputError(
            f"predicted, target and before must have one shape, not {predicted.shape}, {target.shape}, {before.shape}"
        )
    naive = float(np.abs(target - before).mean())
    if not naive > 0:
        raise InputError("the target never differs from the value before it, so no error can be scaled; give others")
    return float(np.abs(predicted - target).mean()) / naive


def neighbour_overlap(states: NDArray, hidden: NDArray, count: int = NEIGHBOURS) -> float:
    """Return the share of nearest neighbours in the Lorenz states that are nearest neighbours in hidden states, too.

    states: (n, d); hidden: hidden state at each, (n, h); count: neighbours of each point, by Euclidean distance,
    without the point itself. Chance gives count / (n - 1). Raises InputError for arrays of other shapes or with too few
    points.
    """
    if states.ndim != 2 or hidden.ndim != 2 or len(states) != len(hidden):
        raise InputError(f"states and hidden must be (n, d) and (n, h), not {states.shape} and {hidden.shape}")
    if not 1 <= count < len(states):
        raise InputError(f"{count} neighbours must be 1 to {len(states) - 1}, the other points; give more points")
    shared = 0
    for start in range(0, len(states), 256):
        rows = np.arange(start, min(start + 256, len(states)))
        near = [_nearest(points.astype(np.float64), rows, count) for points in (states, hidden)]
        shared += int((near[0] & near[1]).sum())
    return shared / (count * len(states))


def _nearest(points: NDArray[np.float64], rows: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """Return (rows, n) booleans: whether a point of the Lorenz data is among the `count` nearest of a row's point."""
    far = np.zeros((len(rows), len(points)))
    for column in points.T:
        far += (column[rows, None] - column) ** 2
    far[np.arange(len(rows)), rows] = np.inf
    found = np.zeros(far.shape, dtype=bool)
    np.put_along_axis(found, np.argsort(far, axis=1, kind="stable")[:, :count], True, axis=1)  # noqa: FBT003
    return found
