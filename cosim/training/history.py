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
    """One point of a training curve, after an iteration.

    loss: mean over the batches since the point before; validation_loss, validation_score: of the network at that moment
    on the held-out samples; epsilon, learning_rate: of the iteration.
    """

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
    """Tell whether a point of the training curve follows iteration 1, 2, ..., `iterations` of a training."""
    return iteration == iterations or iteration % _spacing(iterations) == 0


class Recorder:
    """A recorder of one training's curve; `rows` (points, fields of a `Point`) is its whole state."""

    def __init__(self, iterations: int, seed: int, passing: Passing | None = None) -> None:
        self._seed, self._passing = seed, passing
        self.every = _spacing(iterations)
        self.rows = torch.zeros(ceil(iterations / self.every), len(Point._fields), dtype=torch.float64)

    def add_loss(self, iteration: int, loss: float) -> None:
        """Record the loss of the batch of iteration 1, 2, ... Raises TrainingError where the loss is not finite."""
        check_loss(loss, iteration, f"seed {self._seed}: the loss")
        self.rows[self._place(iteration), 1] += loss

    def add_point(self, iteration: int, validation: tuple[float, float], epsilon: float, rate: float) -> None:
        """Add the point after an iteration; validation: loss and score of the held-out samples.

        Raises TrainingError where the loss is not finite.
        """
        check_loss(validation[0], iteration, f"seed {self._seed}: the loss of held-out samples")
        place = self._place(iteration)
        mean = float(self.rows[place, 1]) / (iteration - place * self.every)
        point = Point(iteration, mean, *validation, epsilon, rate)
        self.rows[place] = torch.tensor(point, dtype=torch.float64)
        if self._passing is not None:
            self._passing(self._seed, point)

    def columns(self, score: str) -> Columns:
        """Return the points of a training's curve so far as lists by column, with the seed as first column.

        score: name of the validation score, such as `accuracy`.
        """
        found = self.rows[self.rows[:, 0] > 0]
        names = [f"validation_{score}" if name == "validation_score" else name for name in Point._fields]
        columns: Columns = {name: found[:, k].tolist() for k, name in enumerate(names)}
        columns["iteration"] = [int(value) for value in columns["iteration"]]
        return {"seed": [self._seed] * len(found), **columns}

    def _place(self, iteration: int) -> int:
        return (iteration - 1) // self.every


def check_loss(loss: float, iteration: int, name: str) -> None:
    """Raise TrainingError where the loss of a training's iteration 1, 2, ... is infinite or not a number.

    After such a loss the weights mean nothing, and no checkpoint may hold them. name: of the loss, for the error.
    """
    if not isfinite(loss):
        raise TrainingError(
            f"{name} must be a finite number, not {loss:g}, as it is in iteration {iteration}; no checkpoint is "
            "written: take a smaller learning rate (--lr), a larger --margin, or targets and inputs of a smaller range"
        )


def spread_over(figures: Iterable[Mapping[str, Any]], name: str) -> tuple[float, float, float]:
    """Return the mean, smallest and largest value of a figure over the seeds of a training.

    figures: those of each seed's trained network; name: of the figure.
    """
    values = [float(one[name]) for one in figures]
    return float(np.mean(values)), min(values), max(values)


def history_of_seeds(
    history: Mapping[str, Any], figures: Mapping[int, Mapping[str, Any]], curves: Iterable[Columns]
) -> Mapping[str, Any]:
    """Return the training history of the network chosen among several seeds.

    It is the network's own history, with the figures and curves of all seeds.
    """
    joined: Columns = {}
    for curve in curves:
        for name, values in curve.items():
            joined.setdefault(name, []).extend(values)
    return {**history, "seeds": {str(seed): one for seed, one in figures.items()}, "curve": joined}


@contextmanager
def writing_board(folder: Path | None) -> Generator[Passing | None, None, None]:
    """Yield a function that writes a training's curves for TensorBoard while it iterates, one subfolder for each seed.

    It yields None if the folder is None. A resumed training adds its further points to the files, which contain times
    and are no results. Raises MissingToolError where tensorboard is not installed, InputError where the folder cannot
    be written.
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
