"""Settings of a training, without its task. Free of torch, so that the command line can read the defaults."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from cosim.base.bounds import EPSILON, SEED, Bounds
from cosim.base.claim import work_folder, work_path
from cosim.base.errors import InputError
from cosim.network.layers import MOST_LEVELS
from cosim.network.types import Pooling
from cosim.technology.scale import I_UNIT, limits_at
from cosim.variation.sigma import MismatchModel, SigmaParts

Beta = Literal["fixed", "input"]
CellKind = Literal["bmru", "cmru", "alphacmru"]
Gate = Literal["exponential", "ratio"]

W_MAX = 4.0  # largest weight magnitude; on a grid of 1/8 that is 32 unit devices in a mirror
ARCHITECTURE_BOUNDS = {
    "cells": Bounds(1, 16384),
    "layers": Bounds(1, 32),
    "hidden": Bounds(0, 16384),
    "levels": Bounds(1, MOST_LEVELS, zero="any value"),
    "grid": Bounds(1e-6, 1, zero="continuous weights"),
    "input_levels": Bounds(1, 4096, zero="continuous inputs"),
    "taps": Bounds(0, 64),
    "lines": Bounds(0, 64),
    "width_min": Bounds(limits_at(I_UNIT, 1).width, 4, open_high=True),
}
TRAINING_BOUNDS = {
    "iterations": Bounds(1, 10_000_000),
    "batch": Bounds(1, 65536),
    "learning_rate": Bounds(0, 1, open_low=True),
    "epsilon": EPSILON,
    "noise": Bounds(0, 1, open_high=True),
    "margin": Bounds(1e-6, 1, open_high=True, zero="no margin"),
    "weight_cost": Bounds(0, 1, open_high=True),
    "range_max": Bounds(2, 1000, zero="no limit"),
    "margin_sigma": Bounds(1e-3, 100, zero="no margin"),
    "seed": SEED,
}
NONE_FOR_ZERO = ("levels", "grid", "input_levels")  # 0 on the command line is None here
_OPTIONS = {"learning_rate": "lr"}  # where the option has another name than the field
_REPAIRS = {
    "epsilon": "leave it out to anneal it from 1 to 0",
    "learning_rate": "0.02 suits most tasks",
    "margin_sigma": "4 suits noise",
    "width_min": "a memory needs hysteresis",
}


@dataclass(frozen=True)
class Architecture:
    """Architecture of a network: `cells` units in each of `layers` recurrent layers, behind `hidden` ReLU units if any.

    With `skip` every recurrent layer after the first also reads the input, and the readout reads all recurrent layers.
    `beta` input makes the thresholds of signed units depend on the input. `cell`: bmru has epsilon 0 throughout,
    alphacmru an input-dependent output level. `ramp` adds a time ramp to the inputs. `grid` None leaves weights
    continuous, `input_levels` None the inputs; with both, candidates lie on a lattice and the compiler centres the
    thresholds in its gaps. `width_min` is the smallest hysteresis width, beta_hi - beta_lo or 2 beta, in units. `taps`:
    the first layer reads the input of so many frames before, too, bits that shift cells hold on the chip. `lines`: it
    reads so many dispersive delays of the input, too, each of a row of its own. `feedback`: each recurrent layer also
    reads its own state of the frame before, which costs no device. `levels` K puts what an alphaCMRU stores onto K + 1
    levels, which a register on the chip holds. `gate` ratio: a minGRU's rate saturates.
    """

    cells: int = 16
    layers: int = 2
    hidden: int = 0
    unit: str = "first-quadrant"  # the kind of a recurrent layer, cosim.exchange.checkpoint.layer_kinds
    beta: Beta = "fixed"
    cell: CellKind = "cmru"
    pooling: Pooling = "mean"
    ramp: bool = True
    skip: bool = True
    grid: float | None = 0.125
    input_levels: int | None = 16
    width_min: float = 0.2
    taps: int = 0
    lines: int = 0
    feedback: bool = False
    levels: int | None = None
    gate: Gate = "exponential"


@dataclass(frozen=True)
class TrainingConfig:
    """The settings of one training.

    epsilon: None anneals it from 1 to 0, a number is constant. noise: relative standard deviation of weights and
    thresholds during training. margin: distance, in units, that candidates should keep from thresholds, 0 for none.
    weight_cost: loss per unit of summed |weight|, because current, area and the error of a difference of mirrored
    currents all grow with it. range_max: largest minus smallest state that a unit should keep to, because a native unit
    needs a rung for every step of it, 0 for no limit. mismatch: what the chips of the training vary by, None for
    nominal devices. margin_sigma: distance that candidates should keep, in standard deviations of themselves, of
    `spread`, 0 for none; device_noise: every decision is made with the noise of `spread`.
    """

    architecture: Architecture = field(default_factory=Architecture)
    iterations: int = 6000
    batch: int = 128
    learning_rate: float = 2e-2
    epsilon: float | None = None
    noise: float = 0.05
    margin: float = 0.05
    weight_cost: float = 5e-5
    range_max: float = 0.0
    seed: int = 0
    mismatch: MismatchModel | None = None
    margin_sigma: float = 0.0
    device_noise: bool = False
    spread: SigmaParts | None = None


def state_path(path: Path) -> Path:
    """Return where the resume state of a checkpoint is kept while its training runs."""
    return work_path(path, "state.pt")


def seed_path(path: Path, seed: int) -> Path:
    """Return where a training over several seeds keeps the network or model of one until all are trained."""
    return work_folder(path) / f"seed{seed}.pt"


def describe_config(config: TrainingConfig) -> dict[str, Any]:
    """Return a training's settings as plain values, for files, without what is not used, such as mismatch and taps."""
    settings = asdict(config)
    for option in ("taps", "lines", "feedback", "levels"):
        if not settings["architecture"][option]:
            del settings["architecture"][option]
    if settings["architecture"]["gate"] == "exponential":
        del settings["architecture"]["gate"]
    for option in ("mismatch", "margin_sigma", "device_noise", "spread"):
        if not settings[option]:
            del settings[option]
    return settings


def check_bounds(record: object, bounds: Mapping[str, Bounds]) -> None:
    """Raise InputError naming the training option that lies outside its bounds; None is in them."""
    for name, bound in bounds.items():
        value, option = getattr(record, name), f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        if value == 0 and name in NONE_FOR_ZERO:
            raise InputError(f"{option} {bound.refuse(value)}; in Python None stands for {bound.zero}")
        if value is not None:
            bound.check(option, value, _REPAIRS.get(name, ""))


def check_config(config: TrainingConfig) -> None:
    """Raise InputError naming the training option with no usable value, or that does not go with another."""
    _check_architecture(config.architecture)
    check_bounds(config, TRAINING_BOUNDS)
    if config.architecture.unit == "mingru" and config.epsilon is not None:
        raise InputError("--epsilon and --cell are those of units with hysteresis; leave them out with --unit mingru")
    if config.architecture.cell == "bmru" and config.epsilon != 0:
        raise InputError("--cell bmru is the unit with epsilon 0 throughout; add --epsilon 0, or train --cell cmru")
    for option, asked in (
        ("--variation local", config.mismatch is not None),
        ("--margin-sigma", config.margin_sigma > 0),
        ("--device-noise", config.device_noise),
    ):
        if asked:
            _check_devices(config, option)


def _check_devices(config: TrainingConfig, option: str) -> None:
    """Refuse a training option that knows no transistors of the trained cells; raises InputError.

    Only what becomes one 9T cell per unit, with thresholds from bias currents, has known transistors here.
    """
    if config.architecture.beta == "input":
        raise InputError(
            f"{option} needs --beta fixed: the offset that a cell with input-dependent thresholds rides on is "
            "found by the compiler, from the trained weights"
        )
    if config.architecture.feedback:
        raise InputError(f"{option} and --feedback do not go together yet; train with --noise instead")
    if config.architecture.unit == "mingru":
        raise InputError(
            f"{option} needs --unit first-quadrant or signed: it knows the transistors of the 9T cell, not "
            "those of the minGRU's tau-cell"
        )
    if config.architecture.lines:
        raise InputError(f"{option} knows the transistors of the 9T cell, not those of delay lines: leave --lines out")
    if config.architecture.cell == "alphacmru":
        raise InputError(f"{option} knows no register yet: train --cell cmru or bmru")
    compared = option == "--variation local" and config.epsilon in (1, -1)
    if config.epsilon not in (None, 0) and not compared:
        known = "anneal, 0, 1 or -1" if option == "--variation local" else "anneal or 0"
        raise InputError(
            f"{option} needs --epsilon {known}, not {config.epsilon:g}: it knows the transistors of the 9T cell"
            f"{', and of comparators' if option == '--variation local' else ', not those of ladders and toggles'}"
        )


def _check_architecture(architecture: Architecture) -> None:
    check_bounds(architecture, ARCHITECTURE_BOUNDS)
    if architecture.unit == "first-quadrant" and architecture.beta == "input":
        raise InputError("--beta input needs --unit signed: first-quadrant thresholds are fixed bias currents")
    if architecture.unit == "mingru" and (architecture.beta == "input" or architecture.cell == "alphacmru"):
        raise InputError("--unit mingru compares nothing and has no levels: leave --beta and --cell out")
    if architecture.gate == "ratio" and architecture.unit != "mingru":
        raise InputError(f"--gate ratio needs --unit mingru: a {architecture.unit} unit has no rate; leave --gate out")
    if architecture.unit == "first-quadrant" and architecture.cell == "alphacmru":
        raise InputError("--cell alphacmru needs --unit signed: a first-quadrant unit has one fixed output level")
    if architecture.levels is not None and architecture.cell != "alphacmru":
        raise InputError("--levels needs --cell alphacmru: other units store a constant")
    if architecture.grid is not None and (W_MAX / architecture.grid) % 1:
        raise InputError(f"--grid must divide {W_MAX:g}, the largest weight, not {architecture.grid:g}; take 0.125")
    if architecture.taps and architecture.unit == "mingru":
        raise InputError("--taps and --unit mingru do not go together: a tau-cell goes on from no state of bits")
    if architecture.taps and architecture.input_levels != 1:
        raise InputError("--taps needs --input-levels 1: on the chip a shift cell holds one bit of an earlier input")
    if architecture.lines and architecture.feedback:
        raise InputError("--lines and --feedback do not go together: a line of tau-cells goes on from no state of bits")
    if architecture.feedback and architecture.unit not in ("first-quadrant", "signed"):
        raise InputError(f"--feedback needs --unit first-quadrant or signed, not {architecture.unit}")
