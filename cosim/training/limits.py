"""Limits of a training, estimated before it begins: of the machine's memory, and of a readout. Free of torch."""

import numpy as np

from cosim.base.bounds import Bounds, check_memory
from cosim.base.errors import InputError
from cosim.tasks.task import Task
from cosim.training.config import W_MAX, Architecture, TrainingConfig

_FLOAT = 4  # byte
_COPIES = 5  # of a parameter: its value, its gradient, two moments of AdamW, the best one so far
_STATES = 4  # numbers that a unit keeps of each step for the gradient: candidate, state, distance, and the gradient
_LEVEL = 16.0  # the largest state of a unit that keeps no count


def count_weights(architecture: Architecture, inputs: int, outputs: int) -> int:
    """Return how many weights of signals a network of `inputs` currents and `outputs` has, biases not counted."""
    cells, read = architecture.cells, inputs * (1 + architecture.taps) + architecture.lines
    count, previous = architecture.lines * inputs, read
    if architecture.hidden:
        count, previous = count + read * architecture.hidden, architecture.hidden
    for layer in range(architecture.layers):
        skipped = inputs if architecture.skip and layer else 0
        count += cells * (previous + skipped + (cells if architecture.feedback else 0))
        previous = cells
    return count + outputs * _readout_width(architecture)


def least_memory(config: TrainingConfig, task: Task) -> float:
    """Return how many byte a training takes at least: its parameters, and what a batch leaves for the gradient."""
    architecture, steps = config.architecture, task.x_train.shape[1]
    inputs = task.x_train.shape[2] + architecture.ramp
    parameters = _COPIES * count_weights(architecture, inputs, task.outputs)
    width = inputs + architecture.hidden + _STATES * architecture.layers * architecture.cells
    return float(_FLOAT) * (parameters + config.batch * steps * width)


def check_limits(config: TrainingConfig, task: Task) -> None:
    """Raise OutOfMemoryError where a training needs more memory than there is, InputError that names the range for
    targets that no readout of this network could hold, and for tokens."""
    if task.tokens is not None:
        raise InputError(
            f"task {task.name} gives the index of one of {task.tokens} tokens at each step, which the hardware has no "
            "embedding for; take a model that stays software, or give one input a token (one-hot) as the task npz"
        )
    check_memory(least_memory(config, task), "training", "take smaller --cells, --layers, --hidden or --batch")
    if task.labels:
        return
    states, steps = _readout_width(config.architecture), task.x_train.shape[1]
    largest = max(_LEVEL, float(steps), W_MAX * (1 + task.x_train.shape[2]))
    most = W_MAX * (1 + states * largest)
    for key, y in (("y_train", task.y_train), ("y_test", task.y_test)):
        worst = float(y.flat[np.abs(y).argmax()])
        if worst not in Bounds(-most, most):
            raise InputError(
                f"{task.name}: {key} must lie in {-most:g} to {most:g}, which a readout of {states} states with "
                f"weights up to {W_MAX:g} can hold, not {worst:g}; scale the targets"
            )


def _readout_width(architecture: Architecture) -> int:
    """Return how many states the readout reads."""
    return architecture.cells * (architecture.layers if architecture.skip else 1)
