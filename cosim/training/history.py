"""The curve of a training in 200 points, which its checkpoint keeps."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from math import ceil, isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from cosim.base.errors import TrainingError, importing
from cosim.base.resources import install_command
from cosim.base.write import writing_into

POINTS = 200  # over the whole run
Columns = dict[str, list[float]]


class Point(NamedTuple):
    """State of a training after an iteration. loss: mean over the batches since the point before; validation_loss and
    validation_score on the held-out samples, as the network is then; the rate and epsilon of the iteration."""

    iteration: float
    loss: float
    validation_loss: float
    validation_score: float
    epsilon: float
    learning_rate: float


Passing = Callable[[int, Point], None]  # hears the seed of a training, and each point as it is reached


def _spacing(iterations: int) -> int:
    return max(1, iterations // POINTS)


def is_point(iteration: int, iterations: int) -> bool:
    """Tell whether a point of the training curve follows iteration 1, 2, ... of so many."""
    return iteration == iterations or iteration % _spacing(iterations) == 0


class Recorder:
    """Collects the points of one training; `rows` (points, fields of a `Point`) is all of its state."""

    def __init__(self, iterations: int, seed: int, passing: Passing | None = None) -> None:
        self._seed, self._passing = seed, passing
        self.every = _spacing(iterations)
        self.rows = torch.zeros(ceil(iterations / self.every), len(Point._fields), dtype=torch.float64)

    def add_loss(self, iteration: int, loss: float) -> None:
        """Count the loss of an iteration's batch, from 1. Raise TrainingError where it is not finite."""
        check_loss(loss, iteration, f"seed {self._seed}: the loss")
        self.rows[self._place(iteration), 1] += loss

    def add_point(self, iteration: int, validation: tuple[float, float], epsilon: float, rate: float) -> None:
        """Add the point after an iteration, with loss and score of the held-out samples.

        Raises TrainingError for a loss that is not finite.
        """
        check_loss(validation[0], iteration, f"seed {self._seed}: the loss of held-out samples")
        place = self._place(iteration)
        mean = float(self.rows[place, 1]) / (iteration - place * self.every)
        point = Point(iteration, mean, *validation, epsilon, rate)
        self.rows[place] = torch.tensor(point, dtype=torch.float64)
        if self._passing is not None:
            self._passing(self._seed, point)

    def columns(self, score: str) -> Columns:
        """Return a training's points so far as lists by column, the seed first; score: the name of the validation
        score."""
        found = self.rows[self.rows[:, 0] > 0]
        names = [f"validation_{score}" if name == "validation_score" else name for name in Point._fields]
        columns: Columns = {name: found[:, k].tolist() for k, name in enumerate(names)}
        columns["iteration"] = [int(value) for value in columns["iteration"]]
        return {"seed": [self._seed] * len(found), **columns}

    def _place(self, iteration: int) -> int:
        return (iteration - 1) // self.every


def check_loss(loss: float, iteration: int, name: str) -> None:
    """Raise TrainingError where the loss of a training's iteration, from 1, is infinite or no number.

    From then on the weights mean nothing, and no checkpoint may hold them.
    """
    if not isfinite(loss):
        raise TrainingError(
            f"{name} must be a finite number, not {loss:g}, as it is in iteration {iteration}; no checkpoint is "
            "written: take a smaller learning rate (--lr), a larger --margin, or targets and inputs of a smaller range"
        )


class SeedSpread(NamedTuple):
    """Mean, smallest and largest of one figure over the seeds of a training."""

    mean: float
    low: float
    high: float


def spread_over(figures: Iterable[Mapping[str, Any]], name: str) -> SeedSpread:
    """Return the spread of a trained network's figure over seeds; figures: those of each seed."""
    values = [float(one[name]) for one in figures]
    return SeedSpread(float(np.mean(values)), min(values), max(values))


def history_of_seeds(
    history: Mapping[str, Any], figures: Mapping[int, Mapping[str, Any]], curves: Iterable[Columns]
) -> Mapping[str, Any]:
    """Return the training history of the network that is kept of several seeds: its own, with figures and curves of
    all."""
    joined: Columns = {}
    for curve in curves:
        for name, values in curve.items():
            joined.setdefault(name, []).extend(values)
    return {**history, "seeds": {str(seed): one for seed, one in figures.items()}, "curve": joined}


@contextmanager
def writing_board(folder: Path | None) -> Generator[Passing | None, None, None]:
    """Yield a function that writes a training's curves while it iterates, for TensorBoard, a subfolder per seed.

    It is None for None. A training that is resumed adds the points from there on. The files hold times and are no
    results. Raises MissingToolError where tensorboard is not installed, InputError where the folder cannot be written.
    """
    if folder is None:
        yield None
        return
    with importing("--tensorboard", install_command("tensorboard")):
        from torch.utils.tensorboard import SummaryWriter
    with writing_into(folder):
        writers: dict[int, SummaryWriter] = {}

        def write(seed: int, point: Point) -> None:
            if seed not in writers:
                writers[seed] = SummaryWriter(str(folder / f"seed{seed}"))
            for name, value in point._asdict().items():
                if name != "iteration":
                    writers[seed].add_scalar(name, value, int(point.iteration))

        try:
            yield write
        finally:
            for writer in writers.values():
                writer.close()
