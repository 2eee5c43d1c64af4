"""Sources of a backbone's samples: a task's fixed arrays, or a generator that draws every batch anew."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.random import Generator, default_rng

from cosim.base.errors import InputError
from cosim.network.reference import valid_steps
from cosim.tasks.load import STEP_TASKS, check_task, is_published_copy, load_step_task, load_task
from cosim.tasks.memory import PUBLISHED_TEST, PUBLISHED_TRAIN
from cosim.tasks.task import StepTask, Task, full_lengths, hold_out

COPIES_HELD, MNIST_HELD = 2_000, 10_000  # of a copy task as published, 12,000, and of MNIST, as in the paper
PARITY = "parity-published"


@dataclass(frozen=True)
class Samples:
    """Samples of a paper's task.

    x: (n, time, features) numbers or (n, time) tokens; lengths: (n,) valid steps. y: (n,) classes or (n, outputs)
    targets; with a mask, (n, time) of the steps that count, (n, time) classes or (n, time, outputs) targets.
    """

    x: np.ndarray
    y: np.ndarray
    lengths: np.ndarray
    mask: np.ndarray | None = None

    def take(self, chosen: np.ndarray) -> "Samples":
        """Return the samples with these indices."""
        mask = None if self.mask is None else self.mask[chosen]
        return Samples(self.x[chosen], self.y[chosen], self.lengths[chosen], mask)


def shifted(samples: Samples, most: int, rng: Generator) -> Samples:
    """Return the samples, each moved in time by a random number of steps from -most to most; gaps repeat the end step.

    Steps beyond a sample's length do not move. Raises InputError for tokens, and for targets at each step.
    """
    if samples.x.ndim == 2 or samples.mask is not None:
        raise InputError("--shift is for sequences of numbers with one target each; leave it out")
    steps = np.arange(samples.x.shape[1])
    moves, ends = rng.integers(-most, most + 1, len(samples.x))[:, None], samples.lengths[:, None]
    places = np.where(steps < ends, np.clip(steps - moves, 0, ends - 1), steps)
    return replace(samples, x=np.take_along_axis(samples.x, places[:, :, None], axis=1))


class BackboneData(Protocol):
    """A source of the samples that train, validate and test a backbone.

    offset, scale: (inputs,), inputs become (x - offset) / scale; labels: names of the outputs, empty for a regression;
    stepwise: whether each step has a target.
    """

    name: str
    inputs: int
    outputs: int
    tokens: bool
    stepwise: bool
    labels: tuple[str, ...]
    offset: np.ndarray
    scale: np.ndarray

    def batch(self, rng: Generator, count: int) -> Samples:
        """Draw `count` training samples."""
        ...

    def validation(self, count: int, seed: int) -> Samples:
        """Return at most `count` validation samples, the same for the same seed."""
        ...

    def test(self) -> Samples:
        """Return the test samples, which are always the same."""
        ...

    def fingerprint(self) -> str:
        """Return a text that identifies the source: sources that draw other batches have another text."""
        ...


class ArraySource:
    """Fixed samples of a backbone: `fit` to train with, `held` for validation, and those of the test.

    offset, scale as of a hardware network, whose inputs are 0 to 1; values on both sides of 0 alike become -1 to 1.
    """

    def __init__(self, task: Task | StepTask, fit: Samples, held: Samples, test: Samples) -> None:
        self.name, self.labels, self.outputs = task.name, task.labels, task.outputs
        self.tokens, self.stepwise = task.tokens is not None, isinstance(task, StepTask)
        self.inputs = task.tokens or fit.x.shape[2]
        offset, scale = np.zeros(self.inputs), np.ones(self.inputs)
        if isinstance(task, Task):
            signed = task.scale == -2 * task.offset
            offset, scale = np.where(signed, 0.0, task.offset), np.where(signed, task.scale / 2, task.scale)
        self.offset, self.scale = offset, scale
        self._fit, self._held, self._test = fit, held, test

    def batch(self, rng: Generator, count: int) -> Samples:
        """Draw a backbone's training samples with replacement, every one equally likely."""
        return self._fit.take(rng.integers(len(self._fit.y), size=count))

    def validation(self, count: int, seed: int) -> Samples:
        """Return a backbone's held-out samples, all of them if there are fewer than `count`."""
        return self._held.take(default_rng(seed).permutation(len(self._held.y))[:count])

    def test(self) -> Samples:
        """Return the task's own test samples for a backbone."""
        return self._test

    def fingerprint(self) -> str:
        """Return a hash of the samples that a backbone is trained and validated with."""
        digest = hashlib.sha256(self.name.encode())
        for part in (self._fit, self._held):
            for array in (part.x, part.y, part.lengths if part.mask is None else part.mask):
                digest.update(repr((array.shape, array.dtype.str)).encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def task_source(task: Task, held: int | None = None) -> ArraySource:
    """Return a task's arrays as the source of a backbone's data.

    `held` training samples, a tenth by default, are for validation and always the same.
    """
    mask = hold_out(task, 0, held)
    whole = Samples(_values(task.x_train, task.tokens), task.y_train, task.len_train)
    test = Samples(_values(task.x_test, task.tokens), task.y_test, task.len_test)
    return ArraySource(task, whole.take(~mask), whole.take(mask), test)


def step_source(task: StepTask) -> ArraySource:
    """Return the three sets of a task with a target at each step as the source of a backbone's data."""
    sets = (
        Samples(_values(part.x, task.tokens), part.y, full_lengths(part.x), part.mask)
        for part in (task.train, task.valid, task.test)
    )
    return ArraySource(task, *sets)


@dataclass
class ParitySource:
    """Parity as published (appendix G.5.1): fair bits, drawn anew for every batch, lengths uniform in a range; test
    strings go on to longer ones."""

    shortest: int = PUBLISHED_TRAIN[0]
    longest: int = PUBLISHED_TRAIN[1]
    test_longest: int = PUBLISHED_TEST[1]
    tests: int = 2000
    name: str = PARITY
    inputs: int = 1
    outputs: int = 2
    tokens: bool = False
    stepwise: bool = False
    labels: tuple[str, ...] = ("even", "odd")
    offset = np.zeros(1)
    scale = np.ones(1)

    def batch(self, rng: Generator, count: int) -> Samples:
        """Draw samples of parity of the training lengths for a backbone."""
        return self._draw(rng, count, self.longest)

    def validation(self, count: int, seed: int) -> Samples:
        """Draw samples of parity of the training lengths for a backbone, equal ones for the same seed."""
        return self._draw(default_rng([1, seed]), count, self.longest)

    def test(self) -> Samples:
        """Draw a backbone's test samples of parity, of all lengths."""
        return self._draw(default_rng([2, 0]), self.tests, self.test_longest)

    def fingerprint(self) -> str:
        """Return the source's name and lengths."""
        return f"{self.name} {self.shortest} {self.longest}"

    def _draw(self, rng: Generator, count: int, longest: int) -> Samples:
        lengths = rng.integers(self.shortest, longest + 1, count)
        x = rng.integers(0, 2, (count, int(lengths.max()), 1)).astype(np.float32)
        x[~valid_steps(lengths, x.shape[1])] = 0.0
        return Samples(x, x.sum(axis=(1, 2)).astype(np.int64) % 2, lengths)


def load_source(name: str | None, data: Path | None = None) -> BackboneData:
    """Return the source of a backbone's data called `name`, of one of the tasks of `cosim.tasks.load`; `data` as for
    these.

    Parity as published is drawn anew for every batch. Raises InputError for an unknown name, and for data that are
    missing or not asked for.
    """
    name = check_task(name, steps=True)
    if name in STEP_TASKS:
        return step_source(load_step_task(name, data))
    if name == PARITY and data is None:
        return ParitySource()
    task = load_task(name, data)
    if is_published_copy(name):
        return task_source(task, COPIES_HELD)
    whole = name.startswith("mnist-") and len(task.y_train) > 2 * MNIST_HELD
    return task_source(task, MNIST_HELD if whole else None)


def _values(x: np.ndarray, tokens: int | None) -> np.ndarray:
    """Return the input as a backbone reads it: (n, time, features), or (n, time) tokens."""
    return x if tokens is None else x[:, :, 0]
