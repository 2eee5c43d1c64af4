"""The samples of a training: which are held out of it, and how often each is drawn."""

import numpy as np
import torch
from torch import Tensor

from cosim.tasks.task import Task, grouped_holdout, stratified_holdout

VALIDATION_FRACTION = 0.1
Samples = tuple[Tensor, Tensor, Tensor]  # x, y, lengths


def held_out(task: Task, seed: int) -> np.ndarray:
    """Return which training samples choose the network, (n,): drawn by the seed, whole groups where a task has any."""
    count = max(1, round(VALIDATION_FRACTION * len(task.y_train)))
    if task.groups_train is None:
        return stratified_holdout(task.y_train, count, seed)
    return grouped_holdout(task.groups_train, count, seed)


def samples_of(task: Task, mask: np.ndarray) -> Samples:
    """Return the training samples of a mask (n,)."""
    parts = task.x_train[mask], task.y_train[mask], task.len_train[mask]
    return torch.from_numpy(parts[0]), torch.from_numpy(parts[1]), torch.from_numpy(parts[2])


def sampling_weights(y: np.ndarray) -> Tensor:
    """Return the chance of each sample to be drawn, (n,): every class equally likely, a rare one as well."""
    if y.ndim != 1:
        return torch.ones(len(y))
    counts = np.bincount(y)
    return torch.from_numpy(1.0 / counts[y])
