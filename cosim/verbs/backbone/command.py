"""`cosim backbone`: the seed paper's full backbone, which stays software."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cosim.base.bounds import SEED, SEEDS
from cosim.base.errors import InputError, importing
from cosim.base.text import shown_path
from cosim.cli.fresh import is_fresh
from cosim.cli.help import GroupedOption
from cosim.cli.options import FILE, collecting, one_of
from cosim.cli.progress import progress_bar
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Epsilon, Integer, Number
from cosim.papers.shape import (
    CELLS,
    HYBRIDS,
    POOLINGS,
    BackboneShape,
    Training,
    check_training,
    count_parameters,
    paper_iterations,
)
from cosim.papers.shape import SHAPE_BOUNDS as _OF_SHAPE
from cosim.papers.shape import TRAINING_BOUNDS as _OF_TRAINING
from cosim.training.config import seed_path, state_path
from cosim.verbs.train.beside import Heard, check_output, stopping_truthfully, write_beside
from cosim.verbs.train.command import (
    EXTRA,
    board_option,
)

if TYPE_CHECKING:
    from cosim.papers.train import SeedSelection

_S, _T = BackboneShape(1, 1), Training()


@dataclass(frozen=True)
class BackboneShapeOptions:
    """Options on the shape of a backbone."""

    cell: str
    width: int
    state: int
    blocks: int
    threshold: Literal["input", "fixed"]
    wiring: Literal["alternate", "parallel"]
    positions: bool
    pooling: Literal["last", "mean", "none"] | None
    dropout: float
    start: Literal["zero", "low"]


@dataclass(frozen=True)
class BackboneTrainingOptions:
    """Options on the training of a backbone."""

    epsilon: float | None
    iterations: int | None
    batch: int
    learning_rate: float
    device: Literal["cpu", "cuda"]
    mixed: bool
    shift: int


@dataclass(frozen=True)
class BackboneFiles:
    """Files of a training: where samples come from and the model goes to, its seeds, the folder for TensorBoard, and
    the model to start from."""

    data: Path | None
    output: Path
    seeds: int
    seed: int
    tensorboard: Path | None
    origin: Path | None


class ShapeOption(GroupedOption):
    """Group of the options on a backbone's shape."""

    title = "The backbone"


class FittingOption(GroupedOption):
    """Group of the options on a backbone's training."""

    title = "The training"


@click.command(cls=KeepingVerb, name="backbone")
@click.argument("task", metavar="TASK", required=False)
@click.option("-o", "--output", type=FILE, default=Path("backbone.pt"), help="Model file, .pt.")
@click.option("--data", type=FILE, help="Folder of the data set, or the file of the task npz.")
@one_of("--cell", CELLS + HYBRIDS, "Recurrent cell; two of them alternate.", _S.cell)
@click.option("--width", type=Integer(_OF_SHAPE["width"]), default=_S.width, help="Features between the parts.")
@click.option(
    "--state", cls=ShapeOption, type=Integer(_OF_SHAPE["state"]), default=_S.state, help="State of a block's cell."
)
@click.option(
    "--blocks", cls=ShapeOption, type=Integer(_OF_SHAPE["blocks"]), default=_S.blocks, help="Recurrent blocks."
)
@one_of("--threshold", ("input", "fixed"), "beta by the input, or one for each unit.", cls=ShapeOption)
@one_of("--start", ("zero", "low"), "State before the first update: low as in a circuit.", cls=ShapeOption)
@one_of("--wiring", ("alternate", "parallel"), "Two cells: by block, or both in every block.", cls=ShapeOption)
@click.option("--positions/--no-positions", cls=ShapeOption, default=_S.positions, help="Sinusoidal positions.")
@click.option(
    "--pooling",
    cls=ShapeOption,
    type=click.Choice(POOLINGS),
    help="Over time.  [default: last; none where each step has a target]",
)
@click.option(
    "--dropout", cls=ShapeOption, type=Number(_OF_SHAPE["dropout"]), default=_S.dropout, help="Rate in the perceptrons."
)
@click.option(
    "--shift", cls=FittingOption, type=Integer(_OF_TRAINING["shift"]), default=_T.shift,
    help="Steps by which samples are moved at random.",
)  # fmt: skip
@click.option(
    "--from", "origin", cls=FittingOption, type=FILE, help="Start from another backbone's weights, but the readout."
)
@click.option("--epsilon", type=Epsilon(), default="anneal", help="'anneal' (1 to 0) or a number in [-1, 1].")
@click.option("--iterations", type=Integer(_OF_TRAINING["iterations"]), help="Gradient steps.  [default: the paper's]")
@click.option("--batch", type=Integer(_OF_TRAINING["batch"]), default=_T.batch, help="Samples a step.")
@click.option(
    "--lr", "learning_rate", type=Number(_OF_TRAINING["learning_rate"]), default=_T.learning_rate,
    help="Peak learning rate.",
)  # fmt: skip
@click.option("--seeds", type=Integer(SEEDS), default=1, help="How many seeds.")
@click.option("--seed", type=Integer(SEED), default=0, help="The first of them.")
@one_of("--device", ("cpu", "cuda"), "Where it is trained.", _T.device)
@click.option("--mixed", is_flag=True, help="bfloat16 outside the cells.")
@board_option
@collecting(parts=BackboneShapeOptions, fitting=BackboneTrainingOptions, files=BackboneFiles)
def command(
    *, task: str | None, parts: BackboneShapeOptions, fitting: BackboneTrainingOptions, files: BackboneFiles
) -> None:
    """Train the seed paper's backbone for TASK: LayerNorm, gates, gated
    perceptrons and positions around a recurrent cell. It stays software.

    TASK is one of cosim train, or has a target at each step: lorenz,
    delayed-product, flip-flop-reads, characters. The bits of parity-published
    are drawn for every batch. The defaults are the paper's training; smaller
    options make it shorter. With several seeds the best one by validation is
    kept, and the figures of all. The curve stands beside the model, model_curve.csv
    and model_curve.svg. The same command goes on with a training that stopped.
    """
    from cosim.papers.sources import load_source

    if files.output.suffix != ".pt":
        raise InputError(f"--output must end in .pt, not {files.output.name!r}")
    check_output(files.output)
    training = complete_training(task, parts, fitting)
    seeds = tuple(range(files.seed, files.seed + files.seeds))
    kept = [seed_path(files.output, seed) for seed in seeds]
    with stopping_truthfully(*kept, *map(state_path, kept)):
        source = load_source(task, files.data)
        with importing("training", EXTRA):
            from cosim.papers.file import load_model
            from cosim.papers.train import Setup, train_backbone
            from cosim.training.board import writing_board
        parts = replace(parts, pooling=parts.pooling or ("none" if source.stepwise else _S.pooling))
        shape = BackboneShape(1, 1, **vars(parts))
        start = files.origin and load_model(files.origin)
        with writing_board(files.tensorboard) as passing, progress_bar("training") as progress:
            setup = Setup(shape, training, source, seeds, passing, start)
            heard = Heard(progress)
            trained = train_backbone(setup, files.output, heard, resume=not is_fresh())
    write_beside(files.output, trained.model.history, trained=heard.something)
    for line in format_trained(trained):
        click.echo(line)


def complete_training(task: str | None, parts: BackboneShapeOptions, fitting: BackboneTrainingOptions) -> Training:
    """Return the settings with what the options leave open: a BMRU's epsilon, the paper's iterations."""
    epsilon, iterations = fitting.epsilon, fitting.iterations
    if parts.cell == "bmru":
        if epsilon not in (None, 0):
            raise InputError(f"--cell bmru has epsilon 0 throughout, not {epsilon:g}; train --cell cmru")
        epsilon = 0.0
    if iterations is None:
        iterations = paper_iterations(task or "")
    return check_training(Training(**(vars(fitting) | {"epsilon": epsilon, "iterations": iterations})))


def format_trained(trained: "SeedSelection") -> list[str]:
    """Return lines with the size, a row for each seed, what they spread over, and the file."""
    model, metric = trained.model, trained.metric
    name, unit = ("accuracy", "%") if model.labels else ("mean absolute error", "")
    one = next(iter(trained.seeds.values()))
    lines = [
        f"{model.task}: {model.backbone.shape.cell}, {count_parameters(model.backbone.shape)} parameters, "
        f"{one['test_samples']:.0f} test samples",
        f"  seed  iterations  validation {name}  test {name}",
    ]
    for seed, figures in trained.seeds.items():
        held, test = (_shown(figures[metric.replace("test", part)], unit) for part in ("validation", "test"))
        lines.append(f"{seed:6d}{figures['iterations']:12.0f}{held:>{len(name) + 13}}{test:>{len(name) + 7}}")
    if len(trained.seeds) > 1:
        spread = trained.spread()
        mean, low, high = (_shown(value, unit) for value in (spread.mean, spread.low, spread.high))
        lines.append(f"test: {name} {mean} [{low}, {high}] over {len(trained.seeds)} seeds")
    return [*lines, f"model: {shown_path(trained.path)}, stays software"]


def _shown(value: float, unit: str) -> str:
    return f"{100 * value:.1f} %" if unit else f"{value:.4g}"
