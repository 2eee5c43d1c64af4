"""Setup and result of a training of backbones, and what an earlier one has left in its file."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from cosim.base.bounds import SEED
from cosim.base.errors import InputError, MissingToolError
from cosim.base.text import shown_path, typed
from cosim.exchange.checkpoint import stays_software
from cosim.papers.file import Model, Plain, load_model
from cosim.papers.settings import Training, check_training
from cosim.papers.shape import BackboneShape, check_shape
from cosim.papers.sources import BackboneData
from cosim.papers.start import check_start, start_fingerprint
from cosim.training.history import Columns, Passing

Figures = dict[str, float]


@dataclass(frozen=True)
class History:
    """The figures and the curve in a model's history; seeds: the figures of all, where there were several."""

    figures: Figures
    curve: Columns
    seeds: dict[str, Figures] | None = None


@dataclass(frozen=True)
class SeedSpread:
    """Mean and range of one figure over the seeds."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class SeedSelection:
    """The model of the best seed by validation, the figures of every seed, and the file that holds the model."""

    model: Model
    seeds: dict[int, Figures]
    path: Path

    @property
    def metric(self) -> str:
        """Return the name of the figure that the task is judged by."""
        return "test_accuracy" if self.model.labels else "test_mae"

    def spread(self, figure: str | None = None) -> SeedSpread:
        """Return mean, smallest and largest of a figure, by default the task's own, over the seeds."""
        values = [figures[figure or self.metric] for figures in self.seeds.values()]
        return SeedSpread(float(np.mean(values)), min(values), max(values))


@dataclass(frozen=True)
class Setup:
    """A training to do, of one backbone for each seed. Inputs and outputs of the shape are those of the source.
    passing: hears the points of the curves. start: whose weights every seed begins with, but for the last Linear, and
    whose inputs are scaled as there."""

    shape: BackboneShape
    training: Training
    source: BackboneData
    seeds: tuple[int, ...] = (0,)
    passing: Passing | None = None
    start: Model | None = None

    def checked(self) -> "Setup":
        """Return the setup with its shape completed from the source.

        Raises InputError for what has no usable value, MissingToolError without the device.
        """
        source, training = self.source, check_training(self.training)
        shape = replace(self.shape, inputs=source.inputs, outputs=source.outputs, tokens=source.tokens)
        if len(set(self.seeds)) != len(self.seeds) or not self.seeds or any(seed not in SEED for seed in self.seeds):
            raise InputError(f"seeds must be different, at least one, from {SEED}, not {list(self.seeds)}")
        if source.stepwise != (shape.pooling == "none"):
            wanted = "none, it has a target at each step" if source.stepwise else "last or mean, it has one a sequence"
            raise InputError(f"--pooling of {source.name} must be {wanted}; it is {shape.pooling}")
        if training.device == "cuda" and not torch.cuda.is_available():
            raise MissingToolError("--device cuda needs a CUDA device and a torch built for it; take --device cpu")
        if self.start is not None:
            check_start(self.start, shape)
        return replace(self, shape=check_shape(shape))

    def described(self, seed: int) -> Plain:
        """Return what decides the training of a seed besides its data, as plain values."""
        begun: Plain = {} if self.start is None else {"from": start_fingerprint(self.start)}
        epsilon = self.training.epsilon if self.shape.anneals else 0.0  # which without a CMRU changes nothing
        return asdict(self.shape) | asdict(self.training) | {"epsilon": epsilon, "seed": seed} | begun

    def identity(self, seed: int) -> Plain:
        """Return what decides the training of a seed, its data included, as a model's history has it."""
        return self.described(seed) | {"data": self.source.fingerprint()}


def history_of(model: Model) -> History:
    """Return what a model's history holds. Raises InputError where it is no such history."""
    return typed(model.history, History, "history", "train it again")


def find_finished(setup: Setup, path: Path) -> SeedSelection | None:
    """Return what an earlier training of this checked setup has left in a file; None where that is of another one, or
    not there."""
    if not path.is_file() or not stays_software(path):
        return None
    model = load_model(path)
    if all(model.history.get("settings") != setup.identity(seed) for seed in setup.seeds):
        return None
    history = history_of(model)
    found = history.seeds or {str(setup.seeds[0]): history.figures}
    if set(found) != set(map(str, setup.seeds)):
        return None
    return SeedSelection(model, {seed: found[str(seed)] for seed in setup.seeds}, path)


def load_kept(setup: Setup, path: Path, seed: int) -> Model:
    """Return the model of a seed that is done. Raises InputError where it comes from other settings or data."""
    model = load_model(path)
    if model.history.get("settings") != setup.identity(seed):
        raise InputError(
            f"{shown_path(path)}: belongs to a training with other settings or data; go on with those of the first "
            "run, or begin anew with --fresh"
        )
    return model
