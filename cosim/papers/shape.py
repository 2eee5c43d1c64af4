"""Shape of a model of the seed paper's backbone. Free of torch."""

from dataclasses import dataclass
from typing import Literal

from cosim.base.bounds import EPSILON, Bounds
from cosim.base.errors import InputError
from cosim.base.text import shown
from cosim.network.layers import MOST_LEVELS, MOST_STATES
from cosim.training.config import check_bounds

CELLS = ("bmru", "cmru", "alphacmru", "lru", "mingru")
HYSTERESIS = ("bmru", "cmru", "alphacmru")
HYBRIDS = ("mingru+cmru", "mingru+alphacmru")
POOLINGS = ("last", "mean", "none")
Wiring = Literal["alternate", "parallel"]
SHAPE_BOUNDS = {
    "inputs": Bounds(1, 1 << 20),
    "outputs": Bounds(1, 1 << 20),
    "width": Bounds(1, 1 << 14),
    "state": Bounds(1, 1 << 14),
    "blocks": Bounds(1, 32),
    "dropout": Bounds(0, 1, open_high=True),
    "levels": Bounds(1, MOST_STATES - 1),
}


@dataclass(frozen=True)
class BackboneShape:
    """The shape of a backbone: `inputs` features, or that many `tokens`, to `outputs`; m = width, d = state, r =
    blocks.

    cell: one of CELLS, or two joined by "+", which alternate from block to block, or, with parallel wiring, are both in
    every block with state / 2 each. threshold: beta from the input as in eq. (3), or one fixed value for each unit.
    positions: sinusoidal, eq. (26). pooling: readout of the last valid step, of the mean of valid steps, or (none) of
    each step. start: states before the first update: zero, as published, or low, -alpha, as in a circuit. levels:
    number of levels of a state less one, None for no limit. A CMRU (epsilon 1) then stays from -levels / 2 to levels /
    2 steps of alpha; an alphaCMRU stores one of -1, -1 + 2 / levels ... 1.
    """

    inputs: int
    outputs: int
    cell: str = "cmru"
    width: int = 256
    state: int = 4
    blocks: int = 1
    tokens: bool = False
    threshold: Literal["input", "fixed"] = "input"
    wiring: Wiring = "alternate"
    positions: bool = True
    pooling: Literal["last", "mean", "none"] = "last"
    dropout: float = 0.0
    start: Literal["zero", "low"] = "zero"
    levels: int | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the kinds of cells that `cell` names, without the "+"."""
        return tuple(self.cell.split("+"))

    @property
    def anneals(self) -> bool:
        """Tell whether a cell of the backbone has an epsilon to anneal; a BMRU's is always 0."""
        return any(cell in ("cmru", "alphacmru") for cell in self.cells)

    def cells_of(self, block: int) -> tuple[str, ...]:
        """Return the kinds of cells in the backbone's block 0, 1, ..."""
        return self.cells if self.wiring == "parallel" else (self.cells[block % len(self.cells)],)


def check_shape(shape: BackboneShape, origin: str = "") -> BackboneShape:
    """Return the backbone's shape unchanged if all its values are usable.

    Raises InputError that names the option with a bad value, or its field in the file `origin`.
    """

    def fail(name: str, rest: str) -> InputError:
        return InputError(f"{origin}: {name} {rest}" if origin else f"--{name} {rest}")

    for name, bounds in SHAPE_BOUNDS.items():
        if (value := getattr(shape, name)) is not None and value not in bounds:
            raise fail(name, bounds.refuse(value))
    if any(cell not in CELLS for cell in shape.cells):
        raise fail("cell", f"must be one of {', '.join(CELLS + HYBRIDS)}, not {shown(shape.cell)}")
    if len(shape.cells) > 1 and shape.wiring == "alternate" and shape.blocks < len(shape.cells):
        raise fail(
            "cell", f"{shape.cell} alternates from block to block and needs --blocks 2; or take --wiring parallel"
        )
    if shape.wiring == "parallel" and (len(shape.cells) < 2 or shape.state % len(shape.cells)):
        raise fail(
            "wiring", f"parallel needs a cell of several kinds, such as {HYBRIDS[0]}, and a --state that they can share"
        )
    if shape.threshold == "fixed" and not any(cell in HYSTERESIS for cell in shape.cells):
        raise fail("threshold", f"fixed needs a cell with thresholds, not {shape.cell}: {', '.join(HYSTERESIS)}")
    if shape.start == "low" and not any(cell in ("bmru", "cmru") for cell in shape.cells):
        raise fail("start", f"low needs a cell with one level, bmru or cmru, not {shape.cell}")
    if shape.levels is not None:
        if not shape.anneals:
            raise fail("levels", f"is for a cell whose states they limit, cmru or alphacmru, not {shape.cell}")
        if "alphacmru" in shape.cells and (shape.levels > MOST_LEVELS or shape.levels % 2):
            raise fail(
                "levels",
                f"of an alphacmru must be even, so that 0 is one, and at most {MOST_LEVELS}, not {shape.levels}",
            )
        if "cmru" in shape.cells and "alphacmru" in shape.cells:
            raise fail("levels", "is for cmru or alphacmru, not both: those of one are a count, of the other values")
        if "cmru" in shape.cells and shape.start == "low" and shape.levels < 2:
            raise fail("levels", "must be at least 2 with --start low, which is a step below 0")
    return shape


def count_parameters(shape: BackboneShape) -> int:
    """Return the number of learned parameters of a backbone, by formula."""
    m, d = shape.width, shape.state
    mlp = 12 * m * m + 9 * m
    encoder = (shape.inputs if shape.tokens else shape.inputs + 1) * m + mlp
    positions = (2 * m + 1) * m if shape.positions else 0
    around = 3 * 2 * m + 2 * m + positions + (d + 1) * m + (m + 1) * m + mlp  # three norms, u1 and u2
    cells = sum(
        count_cell(cell, m, d // len(shape.cells_of(block)), shape.threshold)
        for block in range(shape.blocks)
        for cell in shape.cells_of(block)
    )
    return encoder + shape.blocks * around + cells + (m + 1) * m + mlp + (m + 1) * shape.outputs


def count_cell(cell: str, m: int, d: int, threshold: str = "input") -> int:
    """Return the number of learned parameters of a backbone's cell; m: features that it reads; d: size of its state."""
    linear = (m + 1) * d
    match cell:
        case "lru":
            return 2 * d + 2 * m * d + 2 * d * d + m * d
        case "mingru":
            return 2 * linear
        case _:
            beta = linear if threshold == "input" else d
            return linear + beta + (linear if cell == "alphacmru" else d)


_PAPER_ITERATIONS = {"mnist-": 30_000, "speech-commands": 35_000, "kws-": 35_000, "parity-": 35_000}  # of all others:
MOST_ITERATIONS = 100_000


def paper_iterations(task: str) -> int:
    """Return the iterations that the seed paper's Table 5 has for its backbone on a task of this name."""
    known = (count for beginning, count in _PAPER_ITERATIONS.items() if task.startswith(beginning))
    return next(known, MOST_ITERATIONS)


TRAINING_BOUNDS = {
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
    """The settings by which a backbone is trained.

    epsilon: a constant, or None to anneal it from 1 to 0. Every `validate_every` iterations the model is validated on
    `validations` batches of held-out samples; training ends after `patience` validations in a row at 100 %. shift:
    largest move of a sample in time, steps, either way. mixed: bfloat16 where autocast allows, never in a cell.
    """

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
    """Return the settings of a backbone's training; raises InputError that names the option without a usable value."""
    check_bounds(training, TRAINING_BOUNDS)
    return training
