"""Settings of a training, without its task. Free of torch, so that the command line can read the defaults."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from cosim.base.bounds import EPSILON, SEED, Bounds
from cosim.base.claim import work_folder, work_path
from cosim.base.errors import InputError
from cosim.base.text import shown, shown_name
from cosim.network.layers import MOST_LEVELS
from cosim.network.types import Network, Pooling
from cosim.technology.scale import I_UNIT, MIN_WIDTH
from cosim.variation.sigma import MismatchModel, SigmaParts

Beta = Literal["fixed", "input"]
CellKind = Literal["bmru", "cmru", "alphacmru"]
Gate = Literal["exponential", "ratio"]
Unit = Literal["first-quadrant", "signed", "mingru"]

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
    "width_min": Bounds(MIN_WIDTH / I_UNIT, 4, open_high=True),
}
TRAINING_BOUNDS = {
    "iterations": Bounds(1, 10_000_000),
    "batch": Bounds(1, 65536),
    "learning_rate": Bounds(0, 1, open_low=True),
    "epsilon": EPSILON,
    "noise": Bounds(0, 1, open_high=True),
    "margin": Bounds(1e-6, 1, open_high=True, zero="no margin"),
    "weight_cost": Bounds(0, 1, open_high=True),
    "power_cost": Bounds(0, 1, open_high=True),
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
    """The architecture of a network: recurrent layers of units, behind a ReLU layer if `hidden` is not 0.

    cells: units in each of `layers` recurrent layers; hidden: units of the ReLU layer; skip: recurrent layers after the
    first also read the input, and the readout reads all recurrent layers; beta: "input" makes the thresholds of signed
    units depend on the input; cell: bmru has epsilon 0 throughout, alphacmru an output level that depends on the input;
    ramp: adds an input that rises with time; grid: step of the weights, None for continuous ones; input_levels: levels
    of the inputs, None for continuous ones; with both, candidates lie on a lattice, and the compiler moves thresholds
    to the middle of its gaps; width_min: smallest hysteresis width, beta_hi - beta_lo or 2 beta, units; taps: number of
    earlier frames whose input the first layer also reads, bits that shift cells hold on the chip; lines: number of
    dispersive delays of the input that the first layer also reads, each with a row of weights of its own; feedback:
    each recurrent layer also reads its own state of the frame before, which costs no device; levels: K puts the stored
    value of an alphaCMRU on K + 1 levels, which a register on the chip holds; gate: "ratio" lets the rate of a minGRU
    saturate.
    """

    cells: int = 16
    layers: int = 2
    hidden: int = 0
    unit: Unit = "first-quadrant"  # the kind of a recurrent layer, cosim.exchange.checkpoint.layer_kinds
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

    epsilon: constant, or None to anneal it from 1 to 0; noise: relative standard deviation of weights and thresholds
    during training; margin: distance, units, that candidates should keep from thresholds, 0 for none; weight_cost: loss
    per unit of summed |weight|, because current, area and the error of a difference of mirrored currents grow with it;
    power_cost: loss per unit of supply current, see cosim.training.supply; range_max: largest minus smallest state that
    a unit should keep to, because each step between them needs a rung, 0 for no limit; mismatch: how the chips of the
    training vary, None for nominal devices; margin_sigma: distance that candidates should keep, in standard deviations
    as `spread` gives them, 0 for none; device_noise: every decision is made with the noise of `spread`.
    """

    architecture: Architecture = field(default_factory=Architecture)
    iterations: int = 6000
    batch: int = 128
    learning_rate: float = 2e-2
    epsilon: float | None = None
    noise: float = 0.05
    margin: float = 0.05
    weight_cost: float = 5e-5
    power_cost: float = 0.0
    range_max: float = 0.0
    seed: int = 0
    mismatch: MismatchModel | None = None
    margin_sigma: float = 0.0
    device_noise: bool = False
    spread: SigmaParts | None = None


def state_path(path: Path) -> Path:
    """Return the path of the state file, from which an interrupted training resumes, of a checkpoint."""
    return work_path(path, "state.pt")


def seed_path(path: Path, seed: int) -> Path:
    """Return the path that keeps the network or model of one seed until a training with several seeds is done."""
    return work_folder(path) / f"seed{seed}.pt"


def describe_config(config: TrainingConfig) -> dict[str, Any]:
    """Return a training's settings as plain values for files, without unused ones such as mismatch and taps."""
    settings = asdict(config)
    for option in ("taps", "lines", "feedback", "levels"):
        if not settings["architecture"][option]:
            del settings["architecture"][option]
    if settings["architecture"]["gate"] == "exponential":
        del settings["architecture"]["gate"]
    for option in ("power_cost", "mismatch", "margin_sigma", "device_noise", "spread"):
        if not settings[option]:
            del settings[option]
    return settings


def read_settings(network: Network, origin: str) -> tuple[Architecture, float | None]:
    """Return the architecture and the final epsilon, None for a minGRU, with which `cosim train` trained a network.

    origin: the network's file, for messages. Raises InputError for a network that has no settings of such a training,
    or settings that no training can have.
    """
    settings = network.history.get("settings", {})
    described = settings.get("architecture")
    if not isinstance(described, dict):
        raise InputError(
            f"{origin}: the network has no settings of cosim train, and without them its architecture is unknown; go "
            "on with load_ in a loop of your own (docs/how-to/own-training-loop.md)"
        )
    kinds = get_type_hints(Architecture)
    for name, value in described.items():
        if name not in kinds or not _is_of(value, kinds[name]):
            raise InputError(
                f"{origin}: settings.architecture.{shown_name(name)} is {shown(value)}, which no cosim train writes"
            )
    architecture, epsilon = Architecture(**described), settings.get("epsilon")
    _check_architecture(architecture)
    if epsilon is None:
        return architecture, None if architecture.unit == "mingru" else 0.0
    if not _is_of(epsilon, float):
        raise InputError(f"{origin}: settings.epsilon must be a number or null, not {shown(epsilon)}")
    EPSILON.check(f"{origin}: settings.epsilon", epsilon)
    return architecture, float(epsilon)


def _is_of(value: object, kind: Any) -> bool:  # noqa: ANN401
    """Tell whether a JSON value is one that a field of this type can have; kind: a class, a union or a Literal."""
    words = {word for one in (kind, *get_args(kind)) for word in get_args(one) if isinstance(word, str)}
    if words:
        return value in words if isinstance(value, str) else False
    allowed = get_args(kind) or (kind,)
    return type(value) in allowed or (float in allowed and type(value) is int)


def check_bounds(record: object, bounds: Mapping[str, Bounds]) -> None:
    """Raise InputError naming the training option of a record that is outside its bounds; None is never outside."""
    for name, bound in bounds.items():
        value, option = getattr(record, name), f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        if value == 0 and name in NONE_FOR_ZERO:
            raise InputError(f"{option} {bound.refuse(value)}; in Python None stands for {bound.zero}")
        if value is not None:
            bound.check(option, value, _REPAIRS.get(name, ""))


def check_config(config: TrainingConfig) -> None:
    """Raise InputError naming the training option whose value is unusable or does not go with another option."""
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
        ("--power-cost", config.power_cost > 0),
    ):
        if asked:
            _check_devices(config, option)
    if config.power_cost > 0 and config.architecture.taps:
        raise InputError("--power-cost does not know what shift cells draw: leave --taps out, or take --weight-cost")


def _check_devices(config: TrainingConfig, option: str) -> None:
    """Raise InputError for a training option that needs the transistors of cells for which they are not known.

    They are known only for units that become one 9T cell each, with thresholds from bias currents.
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
            f"{', and of comparators' if option == '--variation local' else ', not those of comparators'}"
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
