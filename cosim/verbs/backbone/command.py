"""Command `cosim backbone`: train the seed paper's full backbone, which stays software."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cosim.base.bounds import SEED, SEEDS
from cosim.base.errors import InputError, importing
from cosim.base.text import shown_path
from cosim.cli.help import OptionGroup
from cosim.cli.progress import progress_bar
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import EPSILON_TYPE, Integer, Number
from cosim.cli.verb import FILE, Result, argument, one_of, option, switch, verb
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
from cosim.verbs.train.command import EXTRA, board_option, values_for

if TYPE_CHECKING:
    from cosim.papers.file import Model

_S, _T = BackboneShape(1, 1), Training()


SHAPE = OptionGroup("The backbone")
FITTING = OptionGroup("The training")


@dataclass(frozen=True, kw_only=True)
class BackboneOptions:
    """Options of `cosim backbone`: task, shape of the backbone, training, and file of the model."""

    task: str | None = argument("TASK", None, required=False)
    output: Path = option("Model file, .pt.", FILE, Path("backbone.pt"), flags=("-o", "--output"))
    data: Path | None = option("Folder of the data set, or the file of the task npz.", FILE)
    cell: str = one_of(CELLS + HYBRIDS, "Recurrent cell; two of them alternate.", default=_S.cell)
    width: int = option("Features between the parts.", Integer(_OF_SHAPE["width"]), _S.width)
    state: int = option("State of a block's cell.", Integer(_OF_SHAPE["state"]), _S.state, SHAPE)
    blocks: int = option("Recurrent blocks.", Integer(_OF_SHAPE["blocks"]), _S.blocks, SHAPE)
    threshold: Literal["input", "fixed"] = one_of(("input", "fixed"), "beta by the input, or one for each unit.", SHAPE)
    start: Literal["zero", "low"] = one_of(
        ("zero", "low"), "State before the first update: low as in a circuit.", SHAPE
    )
    wiring: Literal["alternate", "parallel"] = one_of(
        ("alternate", "parallel"), "Two cells: by block, or both in every block.", SHAPE
    )
    levels: int | None = option(
        "Steps between a state's ends, as of a circuit, 0 for any.  [default: 0]",
        Integer(replace(_OF_SHAPE["levels"], zero="any state")), None, SHAPE,
    )  # fmt: skip
    positions: bool = option("Sinusoidal positions.", None, _S.positions, SHAPE, flags=("--positions/--no-positions",))
    pooling: Literal["last", "mean", "none"] | None = option(
        "Over time.  [default: last; none where each step has a target]", click.Choice(POOLINGS), None, SHAPE
    )
    dropout: float = option("Rate in the perceptrons.", Number(_OF_SHAPE["dropout"]), _S.dropout, SHAPE)
    shift: int = option(
        "Steps by which samples are moved at random.", Integer(_OF_TRAINING["shift"]), _T.shift, FITTING
    )
    origin: Path | None = option(
        "Start from another backbone's weights, but the readout.", FILE, None, FITTING, flags=("--from",)
    )
    epsilon: float | None = option("'anneal' (1 to 0) or a number in [-1, 1].", EPSILON_TYPE, "anneal")
    iterations: int | None = option("Gradient steps.  [default: the paper's]", Integer(_OF_TRAINING["iterations"]))
    batch: int = option("Samples a step.", Integer(_OF_TRAINING["batch"]), _T.batch)
    learning_rate: float = option(
        "Peak learning rate.", Number(_OF_TRAINING["learning_rate"]), _T.learning_rate, flags=("--lr",)
    )
    seeds: int = option("How many seeds.", Integer(SEEDS), 1)
    seed: int = option("The first of them.", Integer(SEED), 0)
    device: Literal["cpu", "cuda"] = one_of(("cpu", "cuda"), "Where it is trained.", default=_T.device)
    mixed: bool = switch("bfloat16 outside the cells.")
    tensorboard: Path | None = board_option()


def run(options: BackboneOptions, session: VerbSession) -> Result:
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
    from cosim.verbs.train.beside import CalledProgress, check_output, stopping_truthfully, write_beside

    output = options.output
    if output.suffix != ".pt":
        raise InputError(f"--output must end in .pt, not {output.name!r}")
    check_output(output)
    training = complete_training(options)
    seeds = tuple(range(options.seed, options.seed + options.seeds))
    kept = [seed_path(output, seed) for seed in seeds]
    with stopping_truthfully(*kept, *map(state_path, kept)):
        source = load_source(options.task, options.data)
        with importing("training", EXTRA):
            from cosim.papers.file import load_model
            from cosim.papers.train import Setup, figures_of, train_backbone
            from cosim.training.history import writing_board
        parts = values_for(BackboneShape, options)
        parts["levels"] = options.levels or None
        parts["pooling"] = options.pooling or ("none" if source.stepwise else _S.pooling)
        shape = BackboneShape(1, 1, **parts)
        start = options.origin and load_model(options.origin)
        with writing_board(options.tensorboard) as passing, progress_bar("training") as progress:
            setup = Setup(shape, training, source, seeds, passing, start)
            heard = CalledProgress(progress)
            trained = train_backbone(setup, output, heard, resume=not session.fresh)
    write_beside(output, trained.history, session, trained=heard.something)
    return Result(figures_of(trained), lines=[*format_trained(trained), f"model: {shown_path(output)}, stays software"])


def complete_training(options: BackboneOptions) -> Training:
    """Return the training settings, completed with a BMRU's epsilon and the paper's number of iterations.
    Raises InputError for a BMRU with an epsilon other than 0."""
    epsilon, iterations = options.epsilon, options.iterations
    if options.cell == "bmru":
        if epsilon not in (None, 0):
            raise InputError(f"--cell bmru has epsilon 0 throughout, not {epsilon:g}; train --cell cmru")
        epsilon = 0.0
    if iterations is None:
        iterations = paper_iterations(options.task or "")
    values = values_for(Training, options) | {"epsilon": epsilon, "iterations": iterations}
    return check_training(Training(**values))


def format_trained(model: "Model") -> list[str]:
    """Return the result as lines of text: size of the backbone, a row for each seed, and their spread."""
    from cosim.papers.train import figures_of, metric_of
    from cosim.training.history import spread_over

    seeds, metric = figures_of(model), metric_of(model)
    name, unit = ("accuracy", "%") if model.labels else ("mean absolute error", "")
    one = next(iter(seeds.values()))
    lines = [
        f"{model.task}: {model.backbone.shape.cell}, {count_parameters(model.backbone.shape)} parameters, "
        f"{one['test_samples']:.0f} test samples",
        f"  seed  iterations  validation {name}  test {name}",
    ]
    for seed, figures in seeds.items():
        held, test = (_shown(figures[metric.replace("test", part)], unit) for part in ("validation", "test"))
        lines.append(f"{seed:6d}{figures['iterations']:12.0f}{held:>{len(name) + 13}}{test:>{len(name) + 7}}")
    if len(seeds) > 1:
        mean, low, high = (_shown(value, unit) for value in spread_over(seeds.values(), metric))
        lines.append(f"test: {name} {mean} [{low}, {high}] over {len(seeds)} seeds")
    return lines


def _shown(value: float, unit: str) -> str:
    return f"{100 * value:.1f} %" if unit else f"{value:.4g}"


command = verb(BackboneOptions, run, KeepingVerb)
