"""A task as data, and the hold-out for validation that all tasks share."""

from dataclasses import dataclass

import numpy as np

from cosim.base.errors import InputError
from cosim.network.reference import valid_steps
from cosim.network.types import InputEncoding


@dataclass(frozen=True)
class Task:
    """A task: training and test samples, and how their inputs are encoded.

    x: (n, time, features) float32, raw; y: (n,) int64 class indices, or (n, outputs) float32 targets when `labels` is
    empty (regression); len: valid steps, (n,) int64; offset, scale: of the encoding (x - offset) / scale to [0, 1],
    (features,); groups_train: (n,) int64, all samples of one group (copies of a recording, or a speaker) are for
    fitting, or all for validation; tokens: number of tokens where x (n, time, 1) is the index of a token at each step,
    None where x holds values.
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    len_train: np.ndarray
    len_test: np.ndarray
    labels: tuple[str, ...]
    offset: np.ndarray
    scale: np.ndarray
    groups_train: np.ndarray | None = None
    tokens: int | None = None

    @property
    def outputs(self) -> int:
        """Return the number of readout outputs that a task asks for: one per class, or per regression target."""
        return len(self.labels) or self.y_train.shape[1]

    def encoding(self, *, ramp: bool, levels: int | None) -> InputEncoding:
        """Return the input encoding, with a time ramp over the longest sequence if `ramp`.

        levels: steps of an input's amplitude; None for a continuous input.
        """
        steps = self.x_train.shape[1] if ramp else None
        return InputEncoding(self.offset.astype(np.float64), self.scale.astype(np.float64), steps, levels)


Samples = tuple[np.ndarray, np.ndarray] | tuple[np.ndarray, np.ndarray, np.ndarray]


def make_task(
    name: str, train: Samples, test: Samples, labels: tuple[str, ...], encoding: tuple[np.ndarray, np.ndarray]
) -> Task:
    """Return the task of given training and test samples, each x, y and lengths; without lengths all steps are valid.

    encoding: offset and scale, (features,) each. The arrays have the shapes of a `Task`.
    """
    (x_train, y_train, *_), (x_test, y_test, *_) = train, test
    len_train, len_test = (one[2] if len(one) == 3 else full_lengths(one[0]) for one in (train, test))
    return Task(name, x_train, y_train, x_test, y_test, len_train, len_test, labels, *encoding)


def constant_features(task: Task) -> dict[int, float]:
    """Return index -> value of every feature that is constant over all valid steps of all training samples."""
    valid = task.x_train[valid_steps(task.len_train, task.x_train.shape[1])]
    first = valid[0]
    return {int(j): float(first[j]) for j in np.flatnonzero((valid == first).all(axis=0))}


def full_lengths(x: np.ndarray) -> np.ndarray:
    """Return the lengths, (n,) int64, of samples x (n, time, features) whose steps are all valid."""
    return np.full(len(x), x.shape[1], dtype=np.int64)


def percentile_range(x: np.ndarray, low: float = 1.0, high: float = 99.0) -> tuple[np.ndarray, np.ndarray]:
    """Return offset and scale, (features,) each, that map the two percentiles of x (..., features) to 0 and 1.

    low, high: the percentiles of a feature, in %. The scale of a constant feature is 1.
    """
    flat = x.reshape(-1, x.shape[-1])
    bottom, top = np.percentile(flat, [low, high], axis=0)
    spread = top - bottom
    return bottom, np.where(spread > 0, spread, 1.0)


HELD = 0.1  # of the training samples, for validation


def hold_out(task: Task, seed: int, count: int | None = None) -> np.ndarray:
    """Return a mask (n,) of the training samples that are held out for validation: about `count`, a tenth for None.

    They are drawn by the seed: as whole groups where the task has groups, else from each class in proportion. Raises
    InputError when fewer than two samples are left.
    """
    count = max(1, round(HELD * len(task.y_train))) if count is None else count
    if task.groups_train is None:
        return stratified_holdout(task.y_train, count, seed)
    return grouped_holdout(task.groups_train, count, seed)


def stratified_holdout(y: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return a boolean mask (n,) of about `count` samples, drawn by the seed from each class in proportion.

    y: classes (n,), or regression targets (n, outputs), which count as one class. Raises InputError when fewer than two
    samples are left.
    """
    if not 0 < count < len(y) - 1:
        raise InputError(f"the task must have more than {count + 1} samples to hold {count} out, not {len(y)}")
    classes = y if y.ndim == 1 else np.zeros(len(y), dtype=np.int64)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    # Rank within the class, as a fraction of the class: the lowest `count` fractions are an even share of each class.
    rank = np.empty(len(y))
    for label in np.unique(classes):
        members = order[classes[order] == label]
        rank[members] = (np.arange(len(members)) + rng.random()) / len(members)
    mask = np.zeros(len(y), dtype=bool)
    mask[np.argsort(rank, kind="stable")[:count]] = True
    return mask


def grouped_holdout(groups: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return a boolean mask (n,) of whole groups, drawn by the seed until at least `count` samples are selected."""
    kinds, members = np.unique(groups, return_inverse=True)
    sizes = np.bincount(members)
    order = np.random.default_rng(seed).permutation(len(kinds))
    chosen = order[: int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1]
    return np.isin(members, chosen)


@dataclass(frozen=True)
class StepTargets:
    """Sequences with a target at each step.

    x: (n, time, features) float32. y: (n, time) int64 class indices, or (n, time, outputs) float32 for regression.
    mask: (n, time) bool, the steps whose target counts; y is 0 elsewhere.
    """

    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray


@dataclass(frozen=True)
class StepTask:
    """A task with a target at each step: sequences for training, validation and test.

    labels: the classes' names, empty for regression; tokens: number of tokens where x (n, time, 1) is the index of a
    token at each step, None where x holds values.
    """

    name: str
    train: StepTargets
    valid: StepTargets
    test: StepTargets
    labels: tuple[str, ...]
    tokens: int | None = None

    @property
    def outputs(self) -> int:
        """Return the number of readout outputs that a task asks for: one per class, or per regression target."""
        return len(self.labels) or self.train.y.shape[2]
