"""What decides a training besides the task. Free of torch, so that the command line can read the defaults."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from cosim.errors import InputError
from cosim.files.claim import work_folder, work_path
from cosim.network.layers import MOST_LEVELS
from cosim.network.types import Pooling
from cosim.technology.scale import I_UNIT
from cosim.units.limits import limits_at
from cosim.variation.mismatch import MismatchModel
from cosim.variation.sigma import Spread

Beta = Literal["fixed", "input"]
CellKind = Literal["bmru", "cmru", "alphacmru"]
Gate = Literal["exponential", "ratio"]

MOST_TAPS = 64
MOST_LINES = 64
MOST_SIGMA = 100.0
W_MAX = 4.0  # largest weight magnitude; on a grid of 1/8 that is 32 unit devices in a mirror


@dataclass(frozen=True)
class Architecture:
    """What is built: `cells` units in each of `layers` recurrent layers, behind `hidden` ReLU units if not 0.

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
    unit: str = "first-quadrant"  # the kind of a recurrent layer, cosim.units.table.recurrent_kinds
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
    """epsilon None anneals from 1 to 0, a number is constant. noise: relative standard deviation of weights and
    thresholds during training. margin: distance, in units, that candidates should keep from thresholds, 0 for none.
    weight_cost: loss per unit of summed |weight|, because current, area and the error of a difference of mirrored
    currents all grow with it. range_max: largest minus smallest state that a unit should keep to, because a native unit
    needs a rung for every step of it, 0 for no limit. mismatch: what the chips of the training vary by, None for
    nominal devices. margin_sigma: distance that candidates should keep, in standard deviations of themselves, of
    `spread`, 0 for none; device_noise: every decision is made with the noise of `spread`."""

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
    spread: Spread | None = None


def state_path(path: Path) -> Path:
    """Return where the resume state of a checkpoint is kept while its training runs."""
    return work_path(path, "state.pt")


def seed_path(path: Path, seed: int) -> Path:
    """Return where the finished network or model of one seed is kept until all are."""
    return work_folder(path) / f"seed{seed}.pt"


def describe_config(config: TrainingConfig) -> dict[str, Any]:
    """The settings as plain values, for files; without mismatch, taps and the like they do not mention them."""
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


def check_config(config: TrainingConfig) -> None:
    """Raises InputError naming the option that has no usable value or does not go with another."""
    _check_architecture(config.architecture)
    for option, value in (("iterations", config.iterations), ("batch", config.batch)):
        if value < 1:
            raise InputError(f"--{option} must be at least 1, not {value}")
    if not 0 < config.learning_rate <= 1:
        raise InputError(f"--lr must lie in (0, 1], not {config.learning_rate:g}; 0.02 suits most tasks")
    if config.epsilon is not None and not -1 <= config.epsilon <= 1:
        raise InputError(f"--epsilon must be 'anneal' or a number in [-1, 1], not {config.epsilon:g}")
    if config.architecture.unit == "mingru" and config.epsilon is not None:
        raise InputError("--epsilon and --cell are those of units with hysteresis; leave them out with --unit mingru")
    if config.architecture.cell == "bmru" and config.epsilon != 0:
        raise InputError("--cell bmru is the unit with epsilon 0 throughout; add --epsilon 0, or train --cell cmru")
    for option, value in (("noise", config.noise), ("margin", config.margin), ("weight-cost", config.weight_cost)):
        if not 0 <= value < 1:
            raise InputError(f"--{option} must lie in [0, 1), not {value:g}")
    if config.range_max != 0 and not config.range_max >= 2:
        raise InputError(f"--range-max must be at least 2, or 0 for no limit, not {config.range_max:g}")
    if not 0 <= config.margin_sigma <= MOST_SIGMA:
        raise InputError(f"--margin-sigma must lie in 0 to {MOST_SIGMA:g}, not {config.margin_sigma:g}; 4 suits noise")
    for option, asked in (
        ("--variation local", config.mismatch is not None),
        ("--margin-sigma", config.margin_sigma > 0),
        ("--device-noise", config.device_noise),
    ):
        if asked:
            _check_devices(config, option)


def _check_devices(config: TrainingConfig, option: str) -> None:
    """Only what becomes one 9T cell per unit, with thresholds from bias currents, has known transistors here."""
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
    if config.epsilon not in (None, 0):
        raise InputError(
            f"{option} needs --epsilon anneal or 0, not {config.epsilon:g}: it knows the transistors of the "
            "9T cell, not those of ladders and toggles"
        )


def _check_architecture(architecture: Architecture) -> None:
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
    if architecture.levels is not None and not 1 <= architecture.levels <= MOST_LEVELS:
        raise InputError(f"--levels must lie in 1 to {MOST_LEVELS}, or 0 for any value, not {architecture.levels}")
    least = (("cells", architecture.cells, 1), ("layers", architecture.layers, 1), ("hidden", architecture.hidden, 0))
    for option, value, bound in least:
        if value < bound:
            raise InputError(f"--{option} must be at least {bound}, not {value}")
    if architecture.grid is not None and not 0 < architecture.grid <= 1:
        raise InputError(f"--grid must lie in (0, 1], or 0 for continuous weights, not {architecture.grid:g}")
    if architecture.grid is not None and (W_MAX / architecture.grid) % 1:
        raise InputError(f"--grid must divide {W_MAX:g}, the largest weight, not {architecture.grid:g}; take 0.125")
    if architecture.input_levels is not None and architecture.input_levels < 1:
        raise InputError(f"--input-levels must be at least 1, or 0 for continuous, not {architecture.input_levels}")
    if not 0 <= architecture.taps <= MOST_TAPS:
        raise InputError(f"--taps must lie in 0 to {MOST_TAPS}, not {architecture.taps}")
    if architecture.taps and architecture.unit == "mingru":
        raise InputError("--taps and --unit mingru do not go together: a tau-cell goes on from no state of bits")
    if architecture.taps and architecture.input_levels != 1:
        raise InputError("--taps needs --input-levels 1: on the chip a shift cell holds one bit of an earlier input")
    if not 0 <= architecture.lines <= MOST_LINES:
        raise InputError(f"--lines must lie in 0 to {MOST_LINES}, not {architecture.lines}")
    if architecture.lines and architecture.feedback:
        raise InputError("--lines and --feedback do not go together: a line of tau-cells goes on from no state of bits")
    if architecture.feedback and architecture.unit not in ("first-quadrant", "signed"):
        raise InputError(f"--feedback needs --unit first-quadrant or signed, not {architecture.unit}")
    least = limits_at(I_UNIT, 1).width
    if not least <= architecture.width_min < 4:
        raise InputError(
            f"--width-min must lie in [{least:g}, 4), not {architecture.width_min:g}; a memory needs hysteresis"
        )
