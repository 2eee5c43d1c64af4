"""Where the samples of a backbone come from: a task's fixed arrays, or a generator that draws every batch anew."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.random import Generator, default_rng

from cosim.errors import InputError
from cosim.tasks.copy_first import STEPS, generate_copy_first_task, generate_copy_item_task
from cosim.tasks.digits import GREY_LEVELS, load_digits_task
from cosim.tasks.load import check_task, is_task, load_task
from cosim.tasks.task import Task, full_lengths, grouped_holdout, stratified_holdout

HELD = 0.1  # of the training samples, for validation
COPIES, COPIES_HELD, COPIES_TEST = 12_000, 2_000, 2_000  # of a copy task: 10,000 are left to train with


@dataclass(frozen=True)
class Samples:
    """x: (n, time, features) numbers or (n, time) tokens; y: (n,) classes, (n, time) classes of every step, or
    (n, outputs) targets; lengths: (n,) valid steps."""

    x: np.ndarray
    y: np.ndarray
    lengths: np.ndarray

    def take(self, chosen: np.ndarray) -> "Samples":
        """Some of the samples."""
        return Samples(self.x[chosen], self.y[chosen], self.lengths[chosen])


class Source(Protocol):
    """What a backbone is trained, validated and tested with. offset, scale: (inputs,), its inputs are
    (x - offset) / scale. labels: of the outputs, empty for a regression."""

    name: str
    inputs: int
    outputs: int
    tokens: bool
    labels: tuple[str, ...]
    offset: np.ndarray
    scale: np.ndarray

    def batch(self, rng: Generator, count: int) -> Samples:
        """Samples to train with."""
        ...

    def validation(self, count: int, seed: int) -> Samples:
        """At most `count` samples, the same for the same seed, none of which is trained with but by chance."""
        ...

    def test(self) -> Samples:
        """The test samples, always the same."""
        ...

    def fingerprint(self) -> str:
        """Differs where another source draws other batches."""
        ...


class TaskSource:
    """A task's arrays; `held` training samples, a tenth by default, are for validation and always the same."""

    def __init__(self, task: Task, held: int | None = None) -> None:
        self.name, self.labels, self.outputs = task.name, task.labels, task.outputs
        self.tokens = task.x_train.ndim == 2
        self.inputs = 1 + max(int(task.x_train.max()), int(task.x_test.max())) if self.tokens else task.x_train.shape[2]
        self.offset, self.scale = task.offset, task.scale
        count = max(1, round(HELD * len(task.y_train))) if held is None else held
        by_class = task.y_train if task.y_train.ndim == 1 else np.zeros(len(task.y_train), dtype=np.int64)
        groups = task.groups_train
        mask = stratified_holdout(by_class, count, 0) if groups is None else grouped_holdout(groups, count, 0)
        whole = Samples(task.x_train, task.y_train, task.len_train)
        self._fit, self._held = whole.take(~mask), whole.take(mask)
        self._test = Samples(task.x_test, task.y_test, task.len_test)

    def batch(self, rng: Generator, count: int) -> Samples:
        """Drawn with replacement, every sample equally likely."""
        return self._fit.take(rng.integers(len(self._fit.y), size=count))

    def validation(self, count: int, seed: int) -> Samples:
        """Held-out samples, all if there are no more."""
        return self._held.take(default_rng(seed).permutation(len(self._held.y))[:count])

    def test(self) -> Samples:
        """The task's own."""
        return self._test

    def fingerprint(self) -> str:
        """Hash of what is trained and validated with."""
        digest = hashlib.sha256(self.name.encode())
        for part in (self._fit, self._held):
            for array in (part.x, part.y, part.lengths):
                digest.update(repr((array.shape, array.dtype.str)).encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


@dataclass
class ParitySource:
    """Parity as published (appendix G.5.1): fair bits, drawn anew for every batch, lengths uniform in a range; test
    strings go on to longer ones."""

    shortest: int = 50
    longest: int = 400
    test_longest: int = 1000
    tests: int = 2000
    name: str = "parity-long"
    inputs: int = 1
    outputs: int = 2
    tokens: bool = False
    labels: tuple[str, ...] = ("even", "odd")
    offset = np.zeros(1)
    scale = np.ones(1)

    def batch(self, rng: Generator, count: int) -> Samples:
        """Of the training lengths."""
        return self._draw(rng, count, self.longest)

    def validation(self, count: int, seed: int) -> Samples:
        """Of the training lengths."""
        return self._draw(default_rng([1, seed]), count, self.longest)

    def test(self) -> Samples:
        """Of all lengths."""
        return self._draw(default_rng([2, 0]), self.tests, self.test_longest)

    def fingerprint(self) -> str:
        """Its own lengths."""
        return f"{self.name} {self.shortest} {self.longest}"

    def _draw(self, rng: Generator, count: int, longest: int) -> Samples:
        lengths = rng.integers(self.shortest, longest + 1, count)
        x = rng.integers(0, 2, (count, int(lengths.max()), 1)).astype(np.float32)
        x[np.arange(x.shape[1])[None, :] >= lengths[:, None]] = 0.0
        return Samples(x, x.sum(axis=(1, 2)).astype(np.int64) % 2, lengths)


def copy_value_task(steps: int = STEPS, *, noise: bool = True) -> Task:
    """Copy-first as published: no input marks the first step, positions tell it."""
    task = generate_copy_first_task(steps, COPIES, COPIES_TEST, noise=noise)
    name = task.name.replace("copy-first", "copy-value")
    parts = {part: getattr(task, part)[:, :, :1] for part in ("x_train", "x_test")}
    return replace(task, name=name, **parts, offset=np.zeros(1), scale=np.ones(1))


def digit_pixels_task() -> Task:
    """The digits of scikit-learn pixel by pixel, row after row: (n, 64, 1), a stand-in for sequential MNIST."""
    task = load_digits_task()
    parts = {part: getattr(task, part).reshape(-1, 64, 1) for part in ("x_train", "x_test")}
    lengths = full_lengths(parts["x_train"]), full_lengths(parts["x_test"])
    scale = np.full(1, GREY_LEVELS)
    return replace(
        task, name="digit-pixels", **parts, len_train=lengths[0], len_test=lengths[1], offset=np.zeros(1), scale=scale
    )


_COPIES = {
    "copy-item": lambda steps: generate_copy_item_task(steps, COPIES, COPIES_TEST),
    "copy-value": copy_value_task,
    "copy-value-quiet": lambda steps: copy_value_task(steps, noise=False),
}
OWN = ("copy-item", "copy-value", "copy-value-quiet", "digit-pixels", "parity-long")


def load_source(name: str | None, data: Path | None = None, steps: int | None = None) -> Source:
    """The source called `name`; `data` as for `load_task`; steps: of a copy task.

    Raises InputError for an unknown name, and for data or steps that are missing or not asked for.
    """
    if name is None or not (name in OWN or is_task(name)):
        try:
            check_task(name)
        except InputError as error:
            first = "TASK must be one of "
            raise InputError(str(error).replace(first, f"{first}{', '.join(OWN)}, ", 1)) from error
    assert name is not None
    if steps is not None and name not in _COPIES:
        raise InputError(f"--steps is the length of {', '.join(_COPIES)}; leave it out for {name}")
    if data is not None and name in OWN:
        raise InputError(f"task {name} brings its own data; leave --data out, or use the task npz")
    if name in _COPIES:
        if steps is not None and steps < 1:
            raise InputError(f"--steps must be at least 1, not {steps}")
        return TaskSource(_COPIES[name](steps or STEPS), COPIES_HELD)
    if name == "digit-pixels":
        return TaskSource(digit_pixels_task())
    return ParitySource() if name == "parity-long" else TaskSource(load_task(name, data))
