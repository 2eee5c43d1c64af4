"""`cosim train`: from a task to a checkpoint that a circuit can be compiled from."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import AREA, SEEDS
from cosim.base.errors import InputError, MappingError, importing
from cosim.base.resources import install_command
from cosim.cli.fresh import is_fresh
from cosim.cli.help import GroupedOption
from cosim.cli.option_names import spell_options
from cosim.cli.options import FILE, Option, collecting, one_of, pdk_root_option, technology_option
from cosim.cli.progress import progress_bar
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Epsilon, Integer, Number
from cosim.training.config import (
    ARCHITECTURE_BOUNDS,
    NONE_FOR_ZERO,
    TRAINING_BOUNDS,
    Architecture,
    TrainingConfig,
    check_config,
    seed_path,
    state_path,
)
from cosim.verbs.train.beside import Heard, check_output, stopping_truthfully, write_beside

if TYPE_CHECKING:
    from cosim.network.types import Network
    from cosim.tasks.task import Task
    from cosim.technology.types import Technology
    from cosim.training.trainer import Seeds, TrainingJob, TrainingResult
    from cosim.variation.sigma import SigmaParts


EXTRA = install_command("train")
_OBSTACLE = "this network cannot be compiled, only trained and inspected: "
_A, _C = Architecture(), TrainingConfig()


@dataclass(frozen=True)
class DeviceOptions:
    """Mismatch of the chips in a training, and noise of its decisions."""

    variation: str
    sigma_of: str
    technology: str
    pdk_root: Path | None
    area: float


@dataclass(frozen=True)
class TrainingFiles:
    """Files of a training: where samples come from and the checkpoint goes to, for how many seeds, TensorBoard's
    folder."""

    output: Path
    data: Path | None
    seeds: int
    tensorboard: Path | None


class NetworkOption(GroupedOption):
    """Group of the options on a network's architecture."""

    title = "The network"


class BoardOption(GroupedOption):
    """Group of the options on where a training shows its points as well."""

    title = "Elsewhere"


class DescentOption(GroupedOption):
    """Group of the options on how a network is trained."""

    title = "How it is trained"


def _none_for_zero(_context: click.Context, _option: click.Parameter, value: float) -> float | None:
    return value or None


def _setting(name: str, text: str, cls: type[click.Option] = click.Option) -> Option:
    """Return the option of a field of the architecture or the training, with the field's bounds and default."""
    field = "learning_rate" if name == "--lr" else name.removeprefix("--").replace("-", "_")
    bounds, defaults = (ARCHITECTURE_BOUNDS, _A) if field in ARCHITECTURE_BOUNDS else (TRAINING_BOUNDS, _C)
    default = getattr(defaults, field)
    kind = Number(bounds[field]) if isinstance(default, float) else Integer(bounds[field])
    callback = _none_for_zero if field in NONE_FOR_ZERO else None
    return click.option(name, field, cls=cls, type=kind, default=default, callback=callback, help=text)


board_option = click.option(
    "--tensorboard", cls=BoardOption, type=FILE, metavar="DIR", help="Write the points of the curve for TensorBoard."
)


@click.command(cls=KeepingVerb, name="train")
@click.argument("task", metavar="TASK", required=False)
@click.option("-o", "--output", type=FILE, default=Path("model.pt"), help="Checkpoint file, .pt or .npz.")
@click.option("--data", type=FILE, help="Folder of the data set, or the file of the task npz.")
@_setting("--cells", "Units a layer.")
@_setting("--layers", "Recurrent layers.")
@_setting("--hidden", "ReLU units before them, 0 for none.", cls=NetworkOption)
@one_of(
    "--unit", ("first-quadrant", "signed", "mingru"),
    "States 0 and alpha, or -alpha and alpha; or an analog one that fades (minGRU).", _A.unit,
)  # fmt: skip
@one_of("--beta", ("fixed", "input"), "Thresholds.", _A.beta, cls=NetworkOption)
@one_of(
    "--gate", ("exponential", "ratio"), "z of a minGRU: 1 - exp(-a), or with a that saturates.", _A.gate,
    cls=NetworkOption,
)  # fmt: skip
@one_of("--cell", ("bmru", "cmru", "alphacmru"), "Recurrent unit; alphacmru compiles with --levels.", _A.cell)
@_setting("--levels", "Levels of what alphacmru stores, 0: any value.", cls=NetworkOption)
@click.option(
    "--epsilon", cls=DescentOption, type=Epsilon(), default="anneal", help="'anneal' (1 to 0) or a number in [-1, 1]."
)
@_setting("--grid", "Step of the weights, 0 for continuous ones.", cls=NetworkOption)
@_setting("--input-levels", "Steps of an input, 0: continuous.", cls=NetworkOption)
@_setting("--taps", "Frames before, whose input the first layer reads, too; of one bit.", cls=NetworkOption)
@_setting("--lines", "Dispersive delay lines of the input, which the first layer reads, too.", cls=NetworkOption)
@click.option(
    "--feedback", cls=NetworkOption, is_flag=True, help="Each layer also reads its own state of the frame before."
)
@_setting("--noise", "Relative parameter noise while training.", cls=DescentOption)
@one_of(
    "--variation", ("none", "local"), "local: every sample on another chip, with the technology's mismatch.",
    cls=DescentOption,
)  # fmt: skip
@technology_option
@pdk_root_option
@click.option(
    "--area", cls=DescentOption, type=Number(AREA), default=1.0, help="Gate areas over drawn ones, for mismatch alone."
)
@_setting("--margin", "Distance to keep from thresholds, in units.", cls=DescentOption)
@_setting("--margin-sigma", "The same in sigma of each candidate; 0: off.", cls=DescentOption)
@one_of(
    "--sigma-of", ("circuit", "chips"), "Noise and what calibration leaves; chips: mismatch, too.", cls=DescentOption
)
@click.option("--device-noise", cls=DescentOption, is_flag=True, help="Decide with the noise of the devices.")
@_setting("--weight-cost", "Loss per unit of summed |weight|.", cls=DescentOption)
@_setting("--range-max", "Largest range of a state, 0 for any.", cls=DescentOption)
@_setting("--width-min", "Smallest hysteresis width, in units.", cls=NetworkOption)
@one_of("--pooling", ("last", "mean", "vote"), "How the readout is pooled over time.", _A.pooling, cls=NetworkOption)
@click.option("--ramp/--no-ramp", cls=NetworkOption, default=_A.ramp, help="A time ramp as one more input.")
@click.option("--skip/--no-skip", cls=NetworkOption, default=_A.skip, help="Skip connections.")
@_setting("--iterations", "Gradient steps.")
@_setting("--batch", "Samples a step.", cls=DescentOption)
@_setting("--lr", "Peak learning rate.", cls=DescentOption)
@_setting("--seed", "Seed of weights, batches and noise.")
@click.option("--seeds", type=Integer(SEEDS), default=1, help="How many, from --seed on; the best is kept.")
@board_option
@collecting(files=TrainingFiles, architecture=Architecture, config=TrainingConfig, devices=DeviceOptions)
def command(*, task: str | None, files: TrainingFiles, config: TrainingConfig, devices: DeviceOptions) -> None:
    """Train a network for TASK and write it to a checkpoint.

    TASK is generated or comes with a package (digits, pixel-digits, copy-first, copy-first-quiet, copy-item, flip-flop,
    parity, parity-published), is read from --data (speech-commands, kws-*, fsdd, mnist*, cifar10*, pathfinder), or is
    npz for data of your own; docs/tasks.md has all. All that is learned keeps to what the circuit can realise. Several
    seeds keep the network with the smallest held-out loss. The same command goes on.
    """
    from cosim.tasks.load import check_task, load_task

    name, config = check_task(task), complete_config(config, devices)
    check_config(config)
    output = files.output
    if output.suffix not in (".pt", ".npz"):
        raise InputError(f"--output must end in .pt or .npz, not {output.name!r}")
    check_output(output)
    check = circuit_check(devices, config.architecture.grid, output)
    seeds = range(config.seed, config.seed + files.seeds)
    kept = [output] if files.seeds == 1 else [seed_path(output, seed) for seed in seeds]
    with stopping_truthfully(*(kept if files.seeds > 1 else ()), *map(state_path, kept)):
        with importing("training", EXTRA):
            from cosim.training.board import writing_board
            from cosim.training.trainer import TrainingJob, initial_network

        loaded = load_task(name, files.data)
        known = describe_obstacle(initial_network(config, loaded), output)
        _warn([*describe_constants(loaded), *known])
        with writing_board(files.tensorboard) as passing:
            best, lines = _train(TrainingJob(config, loaded, passing, check), seeds, output)
    for line in [*lines, *format_result(best)]:
        click.echo(line)
    if not known and "refused" in best.figures:
        _warn([_OBSTACLE + best.figures["refused"]])


def _train(job: "TrainingJob", seeds: range, output: Path) -> "tuple[TrainingResult, list[str]]":
    """Train by one seed or by several; return what is kept, with its curve and settings beside it, and what is said of
    several seeds."""
    from cosim.training.trainer import run_job, train_seeds

    total, resume, lines = job.config.iterations, not is_fresh(), list[str]()
    with progress_bar("training") as progress:
        heard = Heard(progress)
        if len(seeds) > 1:
            found = train_seeds(job, seeds, output, heard, resume=resume)
            best, lines = found.best, format_seeds(found)
        else:
            best = run_job(job, output, lambda done, values: heard(done, total, values), resume=resume)
    write_beside(output, best.network.history, trained=heard.something)
    return best, lines


def describe_constants(task: "Task") -> list[str]:
    """Return a warning about features that never change; nothing where all do."""
    from cosim.tasks.task import constant_features

    constant = constant_features(task)
    if not constant:
        return []
    named = ", ".join(f"{index} (always {value:g})" for index, value in constant.items())
    if len(constant) == task.x_train.shape[2]:
        return [f"{task.name}: no feature of x_train ever changes, so there is nothing to learn from: {named}"]
    return [f"{task.name}: features of x_train that never change tell nothing and cost their mirrors: {named}"]


def describe_obstacle(network: "Network", path: Path) -> list[str]:
    """Return why a network has no circuit, in the compiler's words; nothing where no obstacle is known."""
    from cosim.compiler.passes import check_mapping

    try:
        check_mapping(network, origin=str(path))
    except MappingError as error:
        return [f"{_OBSTACLE}{spell_options(str(error))}"]
    return []


def _warn(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"warning: {line}", err=True)


def format_result(result: "TrainingResult") -> list[str]:
    """Return the result of a training for a user, in lines."""
    from cosim.compiler.passes import constant_cells
    from cosim.verbs.words import say_constant

    figures = result.figures
    if _classifies(result):
        score = f"balanced accuracy {figures['test_balanced_accuracy']:.1%}, accuracy {figures['test_accuracy']:.1%}"
    else:
        score = f"mean absolute error {figures['test_mae']:.4g}"
    said = say_constant(constant_cells(result.network))
    near = figures.get("near_deciding_threshold")  # an analog state has no threshold
    return [
        f"test: {score} ({figures['test_samples']} samples)",
        *([_format_chips(figures["chips"])] if "chips" in figures else []),
        *([f"candidates within 0.02 of a threshold that decides: {near['0.02']:.2%}"] if near else []),
        f"weights and biases that are not zero: {figures['nonzero_weights']}",
        *([f"{said}; cosim compile leaves them out"] if said else []),
        f"checkpoint: {result.path}",
    ]


def format_seeds(found: "Seeds") -> list[str]:
    """Return a table with a row for each seed, and mean and range over them."""
    metric, name = ("test_accuracy", "accuracy") if _classifies(found.best) else ("test_mae", "mean absolute error")

    def shown(value: float) -> str:
        return f"{value:.1%}" if _classifies(found.best) else f"{value:.4g}"

    lines = [f"  seed  validation loss  test {name}"]
    for seed, figures in found.figures.items():
        lines.append(f"{seed:6}  {figures['validation_loss']:15.4g}  {shown(figures[metric]):>{len(name) + 5}}")
    mean, low, high = map(shown, found.spread(metric))
    return [*lines, f"test: {name} {mean} [{low}, {high}] over {len(found.figures)} seeds; the best by validation:"]


def _classifies(result: "TrainingResult") -> bool:
    return "test_accuracy" in result.figures


def _format_chips(chips: dict[str, float]) -> str:
    if "test_accuracy" in chips:
        score = f"accuracy {chips['test_accuracy']:.1%} on average, {chips['test_accuracy_worst']:.1%} on the worst"
    else:
        score = f"mean absolute error {chips['test_mae']:.4g} on average, {chips['test_mae_worst']:.4g} on the worst"
    return f"{chips['count']} chips that vary: {score}"


def complete_config(config: TrainingConfig, devices: DeviceOptions) -> TrainingConfig:
    """Return the configuration with what its options leave open: the BMRU's epsilon, the mismatch of a technology."""
    from cosim.technology.catalog import load_technology
    from cosim.variation.mismatch import derive_mismatch

    mismatch, spread, counted = None, None, config.margin_sigma > 0 or config.device_noise
    grid = config.architecture.grid
    if devices.variation == "local" or counted:
        process = load_technology(devices.technology, devices.pdk_root)
        mismatch = derive_mismatch(process, grid, devices.area) if devices.variation == "local" else None
        spread = _spread(process, grid, chips=devices.sigma_of == "chips") if counted else None
    elif devices.area != 1:
        raise InputError(
            "--area needs --variation local, --margin-sigma or --device-noise: nominal training knows no devices"
        )
    annealed = config.epsilon is None and config.architecture.cell != "bmru"
    epsilon = None if annealed else config.epsilon or 0.0
    return replace(config, mismatch=mismatch, spread=spread, epsilon=epsilon)


def _spread(technology: "Technology", grid: float | None, *, chips: bool) -> "SigmaParts":
    from cosim.engines.behavioral.sigma import devices_of
    from cosim.technology.scale import units_for
    from cosim.verbs.calibrate.noise import find_noise

    return devices_of(technology, find_noise(technology), units_for(grid), chips=chips)


def circuit_check(devices: DeviceOptions, grid: float | None, output: Path) -> "Callable[[Network], None]":
    """Return a check that raises MappingError for a network that plain `cosim compile` refuses for this technology.

    Without a calibration at hand, which would have to be measured, only what needs none is checked.
    """
    from cosim.compiler.passes import check_mapping, check_sizes
    from cosim.technology.catalog import load_technology
    from cosim.technology.scale import units_for
    from cosim.verbs.calibrate.find import known_calibration

    technology = load_technology(devices.technology, devices.pdk_root)
    calibration = known_calibration(technology, units_for(grid))

    def check(network: "Network") -> None:
        try:
            if calibration is None:
                check_mapping(network, origin=str(output))
            else:
                check_sizes(network, technology, calibration, str(output))
        except MappingError as error:  # a training keeps its text
            raise error.reworded(spell_options(str(error))) from None

    return check
