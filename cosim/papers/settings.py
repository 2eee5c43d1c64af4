"""Settings of a backbone's training; defaults are the seed paper's (arXiv 2605.11855, F.8). Free of torch."""

from dataclasses import dataclass
from typing import Literal

from cosim.base.bounds import EPSILON, Bounds
from cosim.training.config import check_bounds

_PAPER_ITERATIONS = {"mnist-": 30_000, "speech-commands": 35_000, "kws-": 35_000, "parity-": 35_000}  # of all others:
MOST_ITERATIONS = 100_000


def paper_iterations(task: str) -> int:
    """Return the iterations in the paper's Table 5 for a task of this name."""
    known = (count for beginning, count in _PAPER_ITERATIONS.items() if task.startswith(beginning))
    return next(known, MOST_ITERATIONS)


BOUNDS = {
    "iterations": Bounds(1, 10_000_000),
    "batch": Bounds(1, 65536),
    "learning_rate": Bounds(0, 1, open_low=True),
    "epsilon": EPSILON,
    "validate_every": Bounds(1, 10_000_000),
    "validations": Bounds(1, 10_000),
    "patience": Bounds(1, 10_000_000),
    "shift": Bounds(0, 65536),
}


@dataclass(frozen=True)
class Training:
    """epsilon None anneals from 1 to 0, a number is constant. Every `validate_every` iterations `validations` batches
    of held-out samples are looked at; `patience` looks at 100 % in a row end the training. shift: samples are
    moved by up to so many steps, either way. mixed: bfloat16 where autocast takes it, never in a cell."""

    iterations: int = MOST_ITERATIONS
    batch: int = 64
    learning_rate: float = 1e-3
    epsilon: float | None = None
    validate_every: int = 64
    validations: int = 20
    patience: int = 100
    shift: int = 0
    device: Literal["cpu", "cuda"] = "cpu"
    mixed: bool = False


def check_training(training: Training) -> Training:
    """Return the settings themselves; raises InputError that names the option without a usable value."""
    check_bounds(training, BOUNDS)
    return training
