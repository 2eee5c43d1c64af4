"""`cosim train`: from a task to a checkpoint that a circuit can be compiled from."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.cli.common import FILE, collecting, one_of, pdk_root_option, technology_option
from cosim.cli.progress import progress_bar
from cosim.cli.stopping import StoppedError
from cosim.errors import InputError, MappingError, importing
from cosim.files.write import check_writable
from cosim.training.config import Architecture, TrainingConfig, check_config, state_path

if TYPE_CHECKING:
    from cosim.network.types import Network
    from cosim.tasks.task import Task
    from cosim.training.trainer import TrainingResult

EXTRA = "pip install 'cosim-analog[train]'"
_A, _C = Architecture(), TrainingConfig()


@dataclass(frozen=True)
class Files:
    """Where the samples come from and the checkpoint goes to, and whether what a stopped training left is used."""

    output: Path
    data: Path | None
    resume: bool


@dataclass(frozen=True)
class Devices:
    """What the chips of a training vary by."""

    variation: str
    technology: str
    pdk_root: Path | None
    area: float


class Epsilon(click.ParamType):
    """A number, or `anneal`, which is None."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        try:
            return None if value == "anneal" else float(str(value))
        except ValueError as error:
            raise InputError(f"--epsilon must be 'anneal' or a number in [-1, 1], not {value!r}") from error


def _none_for_zero(_context: click.Context, _option: click.Parameter, value: float) -> float | None:
    return value or None


@click.command(name="train")
@click.argument("task", metavar="TASK", required=False)
@click.option("-o", "--output", type=FILE, default=Path("model.pt"), help="Checkpoint file, .pt or .npz.")
@click.option("--data", type=FILE, help="Folder of the data set, or the file of the task npz.")
@click.option("--cells", default=_A.cells, help="Units in each recurrent layer.")
@click.option("--layers", default=_A.layers, help="Recurrent layers.")
@click.option("--hidden", default=_A.hidden, help="ReLU units before them, 0 for none.")
@one_of("--unit", ("first-quadrant", "signed"), "States 0 and alpha, or -alpha and alpha.", _A.unit)
@one_of("--beta", ("fixed", "input"), "Thresholds.", _A.beta)
@one_of("--cell", ("bmru", "cmru", "alphacmru"), "Recurrent unit; alphacmru compiles with --levels.", _A.cell)
@click.option(
    "--levels",
    type=int,
    default=_A.levels,
    callback=_none_for_zero,
    help="Levels of what alphacmru stores, 0: any value.",
)
@click.option("--epsilon", type=Epsilon(), default="anneal", help="'anneal' (1 to 0) or a number in [-1, 1].")
@click.option("--grid", default=_A.grid, callback=_none_for_zero, help="Step of the weights, 0 for continuous ones.")
@click.option(
    "--input-levels", default=_A.input_levels, callback=_none_for_zero, help="Steps of an input, 0: continuous."
)
@click.option("--taps", default=_A.taps, help="Frames before, whose input the first layer reads, too; of one bit.")
@click.option("--feedback", is_flag=True, help="Each layer also reads its own state of the frame before.")
@click.option("--noise", default=_C.noise, help="Relative parameter noise while training.")
@one_of("--variation", ("none", "local"), "local: every sample on another chip, with the technology's mismatch.")
@technology_option
@pdk_root_option
@click.option("--area", default=1.0, help="Gate areas over drawn ones, for mismatch alone.")
@click.option("--margin", default=_C.margin, help="Distance to keep from thresholds, in units.")
@click.option("--weight-cost", default=_C.weight_cost, help="Loss per unit of summed |weight|.")
@click.option("--range-max", default=_C.range_max, help="Largest range of a state, 0 for any.")
@click.option("--width-min", default=_A.width_min, help="Smallest hysteresis width, in units.")
@one_of("--pooling", ("last", "mean", "vote"), "How the readout is pooled over time.", _A.pooling)
@click.option("--ramp/--no-ramp", default=_A.ramp, help="A time ramp as one more input.")
@click.option("--skip/--no-skip", default=_A.skip, help="Skip connections.")
@click.option("--iterations", default=_C.iterations, help="Gradient steps.")
@click.option("--batch", default=_C.batch, help="Samples a step.")
@click.option("--lr", "learning_rate", default=_C.learning_rate, help="Peak learning rate.")
@click.option("--seed", type=click.IntRange(0), default=_C.seed, help="Seed of weights, batches and noise.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted training of the same settings.")
@collecting(files=Files, architecture=Architecture, config=TrainingConfig, devices=Devices)
def command(*, task: str | None, files: Files, config: TrainingConfig, devices: Devices) -> None:
    """Train a network for TASK and write it to a checkpoint.

    TASK is generated or comes with a package (digits, pixel-digits, copy-first, copy-first-quiet, copy-item, flip-flop,
    parity, parity-published), is read from --data (speech-commands, kws-*, fsdd, mnist*, cifar10*, pathfinder), or is
    npz for data of your own; docs/tasks.md has all. Inputs, weights and thresholds keep to what the circuit can
    realise.
    """
    from cosim.tasks.load import check_task, load_task

    name, config = check_task(task), complete_config(config, devices)
    check_config(config)
    total, output = config.iterations, files.output
    if output.suffix not in (".pt", ".npz"):
        raise InputError(f"--output must end in .pt or .npz, not {output.name!r}")
    check_writable(output)
    with stopping_truthfully(state_path(output)):
        with importing("training", EXTRA):
            from cosim.training.trainer import initial_network, train

        loaded = load_task(name, files.data)
        known = describe_obstacle(initial_network(config, loaded), output)
        _warn([*describe_constants(loaded), *known])
        with progress_bar("training") as progress:
            result = train(
                config, loaded, output, lambda done, values: progress(done, total, values), resume=files.resume
            )
    for line in format_result(result):
        click.echo(line)
    if not known:
        _warn(describe_obstacle(result.network, output))


@contextmanager
def stopping_truthfully(*kept: Path) -> Generator[None, None, None]:
    """A stop that leaves none of the files that --resume reads saves nothing, so the line must not promise it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if any(path.is_file() for path in kept):
            raise
        raise StoppedError(stop, None) from None


def complete_config(config: TrainingConfig, devices: Devices) -> TrainingConfig:
    """The configuration with what its options leave to others: the BMRU's epsilon, the mismatch of a technology."""
    from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
    from cosim.training.mismatch import derive_mismatch

    mismatch = None
    if devices.variation == "local":
        process = load_technology(devices.technology, devices.pdk_root)
        mismatch = derive_mismatch(process, config.architecture.grid, devices.area)
    elif devices.technology != DEFAULT_TECHNOLOGY or devices.area != 1:
        raise InputError("--technology and --area need --variation local: nominal training knows no devices")
    annealed = config.epsilon is None and config.architecture.cell != "bmru"
    return replace(config, mismatch=mismatch, epsilon=None if annealed else config.epsilon or 0.0)


def describe_constants(task: "Task") -> list[str]:
    """What must be said about features that never change."""
    from cosim.tasks.task import constant_features

    constant = constant_features(task)
    if not constant:
        return []
    named = ", ".join(f"{index} (always {value:g})" for index, value in constant.items())
    if len(constant) == task.x_train.shape[2]:
        return [f"{task.name}: no feature of x_train ever changes, so there is nothing to learn from: {named}"]
    return [f"{task.name}: features of x_train that never change tell nothing and cost their mirrors: {named}"]


def describe_obstacle(network: "Network", path: Path) -> list[str]:
    """Why a network has no circuit, in the compiler's words; nothing where it has one as far as that is known here."""
    from cosim.compiler.passes import check_mapping

    try:
        check_mapping(network, origin=str(path))
    except MappingError as error:
        return [f"this network cannot be compiled, only trained and inspected: {error}"]
    return []


def _warn(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"warning: {line}", err=True)


def format_result(result: "TrainingResult") -> list[str]:
    """What a user wants to know after a training, one line each."""
    figures = result.figures
    if "test_accuracy" in figures:
        score = f"balanced accuracy {figures['test_balanced_accuracy']:.1%}, accuracy {figures['test_accuracy']:.1%}"
    else:
        score = f"mean absolute error {figures['test_mae']:.4g}"
    near = figures["near_deciding_threshold"]
    return [
        f"test: {score} ({figures['test_samples']} samples)",
        *([_format_chips(figures["chips"])] if "chips" in figures else []),
        f"candidates within 0.02 of a threshold that decides: {near['0.02']:.2%}",
        f"weights and biases that are not zero: {figures['nonzero_weights']}",
        f"checkpoint: {result.path}",
    ]


def _format_chips(chips: dict[str, float]) -> str:
    if "test_accuracy" in chips:
        score = f"accuracy {chips['test_accuracy']:.1%} on average, {chips['test_accuracy_worst']:.1%} on the worst"
    else:
        score = f"mean absolute error {chips['test_mae']:.4g} on average, {chips['test_mae_worst']:.4g} on the worst"
    return f"{chips['count']} chips that vary: {score}"
