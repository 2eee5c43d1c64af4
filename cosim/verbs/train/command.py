"""Command `cosim train`: train a network for a task, and write a checkpoint from which a circuit can be compiled."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from cosim.base.bounds import AREA, SEEDS
from cosim.base.errors import InputError, MappingError, importing, warn
from cosim.base.quantities import format_quantity
from cosim.base.resources import install_command
from cosim.base.text import shown_path
from cosim.cli.help import OptionGroup
from cosim.cli.option_names import spell_options
from cosim.cli.progress import progress_bar
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import EPSILON_TYPE, Integer, Number
from cosim.cli.verb import FILE, Declared, Result, argument, one_of, option, switch, verb
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
from cosim.verbs.common import pdk_root_option, technology_option

if TYPE_CHECKING:
    from cosim.network.types import Network
    from cosim.tasks.task import Task
    from cosim.technology.types import Technology
    from cosim.training.trainer import TrainingJob
    from cosim.variation.sigma import SigmaParts


EXTRA = install_command("train")
CHIPS, MOST_SAMPLES = 50, 500  # of the circuit, and test samples of each, that a training ends with
_OBSTACLE = "this network cannot be compiled, only trained and inspected: "
_A, _C = Architecture(), TrainingConfig()

NETWORK = OptionGroup("The network")
BOARD = OptionGroup("Elsewhere")
DESCENT = OptionGroup("How it is trained")


def _none_for_zero(_context: click.Context, _option: click.Parameter, value: float) -> float | None:
    return value or None


def _setting(field: str, text: str, group: OptionGroup | None = None, **more: Declared) -> Declared:
    """Declare the option for a field of the architecture or of the training, with the field's bounds and default."""
    bounds, defaults = (ARCHITECTURE_BOUNDS, _A) if field in ARCHITECTURE_BOUNDS else (TRAINING_BOUNDS, _C)
    default = getattr(defaults, field)
    kind = Number(bounds[field]) if isinstance(default, float) else Integer(bounds[field])
    callback = _none_for_zero if field in NONE_FOR_ZERO else None
    return option(text, kind, default, group, callback=callback, **more)


def board_option() -> Declared:
    """Declare the option for the folder to which the training curve is written for TensorBoard."""
    return option("Write the points of the curve for TensorBoard.", FILE, None, BOARD, metavar="DIR")


def values_for(record: type[Any], options: object) -> dict[str, Declared]:
    """Return the values of the options that are also fields of a record: name -> value."""
    return {one.name: getattr(options, one.name) for one in fields(record) if hasattr(options, one.name)}


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of `cosim train`: task, architecture of the network, and training."""

    task: str | None = argument("TASK", None, required=False)
    output: Path = option("Checkpoint file, .pt or .npz.", FILE, Path("model.pt"), flags=("-o", "--output"))
    data: Path | None = option("Folder of the data set, or the file of the task npz.", FILE)
    cells: int = _setting("cells", "Units a layer.")
    layers: int = _setting("layers", "Recurrent layers.")
    hidden: int = _setting("hidden", "ReLU units before them, 0 for none.", NETWORK)
    unit: str = one_of(
        ("first-quadrant", "signed", "mingru"),
        "States 0 and alpha, or -alpha and alpha; or an analog one that fades (minGRU).", default=_A.unit,
    )  # fmt: skip
    beta: Literal["fixed", "input"] = one_of(("fixed", "input"), "Thresholds.", NETWORK, _A.beta)
    gate: Literal["exponential", "ratio"] = one_of(
        ("exponential", "ratio"), "z of a minGRU: 1 - exp(-a), or with a that saturates.", NETWORK, _A.gate
    )
    cell: Literal["bmru", "cmru", "alphacmru"] = one_of(
        ("bmru", "cmru", "alphacmru"), "Recurrent unit; alphacmru compiles with --levels.", default=_A.cell
    )
    levels: int | None = _setting("levels", "Levels of what alphacmru stores, 0: any value.", NETWORK)
    epsilon: float | None = option("'anneal' (1 to 0) or a number in [-1, 1].", EPSILON_TYPE, "anneal", DESCENT)
    grid: float | None = _setting("grid", "Step of the weights, 0 for continuous ones.", NETWORK)
    input_levels: int | None = _setting("input_levels", "Steps of an input, 0: continuous.", NETWORK)
    taps: int = _setting("taps", "Frames before, whose input the first layer reads, too; of one bit.", NETWORK)
    lines: int = _setting("lines", "Dispersive delay lines of the input, which the first layer reads, too.", NETWORK)
    feedback: bool = switch("Each layer also reads its own state of the frame before.", NETWORK)
    noise: float = _setting("noise", "Relative parameter noise while training.", DESCENT)
    variation: Literal["none", "local"] = one_of(
        ("none", "local"), "local: every sample on another chip, with the technology's mismatch.", DESCENT
    )
    technology: str = technology_option()
    pdk_root: Path | None = pdk_root_option()
    area: float = option("Gate areas over drawn ones, for mismatch alone.", Number(AREA), 1.0, DESCENT)
    margin: float = _setting("margin", "Distance to keep from thresholds, in units.", DESCENT)
    margin_sigma: float = _setting("margin_sigma", "The same in sigma of each candidate; 0: off.", DESCENT)
    sigma_of: Literal["circuit", "chips"] = one_of(
        ("circuit", "chips"), "Noise and what calibration leaves; chips: mismatch, too.", DESCENT
    )
    device_noise: bool = switch("Decide with the noise of the devices.", DESCENT)
    weight_cost: float = _setting("weight_cost", "Loss per unit of summed |weight|.", DESCENT)
    power_cost: float = _setting(
        "power_cost", "Loss per unit of current, software 1.0, that the circuit draws.", DESCENT
    )
    range_max: float = _setting("range_max", "Largest range of a state, 0 for any.", DESCENT)
    width_min: float = _setting("width_min", "Smallest hysteresis width, in units.", NETWORK)
    pooling: Literal["last", "mean", "vote"] = one_of(
        ("last", "mean", "vote"), "How the readout is pooled over time.", NETWORK, _A.pooling
    )
    ramp: bool = option("A time ramp as one more input.", None, _A.ramp, NETWORK, flags=("--ramp/--no-ramp",))
    skip: bool = option("Skip connections.", None, _A.skip, NETWORK, flags=("--skip/--no-skip",))
    iterations: int = _setting("iterations", "Gradient steps.")
    batch: int = _setting("batch", "Samples a step.", DESCENT)
    learning_rate: float = _setting("learning_rate", "Peak learning rate.", DESCENT, flags=("--lr",))
    start: Path | None = option(
        "Network of cosim train to begin with, not random weights; its architecture and epsilon are kept, "
        "its readout only for as many classes.", FILE, None,
        DESCENT, flags=("--from",),
    )  # fmt: skip
    seed: int = _setting("seed", "Seed of weights, batches and noise.")
    seeds: int = option("How many, from --seed on; the best is kept.", Integer(SEEDS), 1)
    tensorboard: Path | None = board_option()

    @property
    def config(self) -> TrainingConfig:
        """Return the training configuration that the options give, without the mismatch of a technology."""
        return TrainingConfig(Architecture(**values_for(Architecture, self)), **values_for(TrainingConfig, self))


def run(options: TrainOptions, session: VerbSession) -> Result:
    """Train a network for TASK and write it to a checkpoint.

    TASK is generated or comes with a package (digits, pixel-digits, copy-first, copy-first-quiet, copy-item, flip-flop,
    parity, parity-published), is read from --data (speech-commands, kws-*, fsdd, mnist*, cifar10*, pathfinder), or is
    npz for data of your own; docs/reference/tasks.md has all. All that is learned keeps to what a circuit can realise.
    Of several seeds the network with the smallest held-out loss is kept. The same command goes on.
    """
    from cosim.tasks.load import check_task, load_task
    from cosim.verbs.train.beside import check_output, stopping_truthfully

    if options.data is None and (options.task or "").endswith(".npz"):
        options = replace(options, task="npz", data=Path(options.task or ""))
    options, start = begin_with(options)
    name, config = check_task(options.task), complete_config(options)
    check_config(config)
    output = options.output
    if output.suffix not in (".pt", ".npz"):
        raise InputError(f"--output must end in .pt or .npz, not {output.name!r}")
    check_output(output)
    if options.start is not None and output.exists() and output.samefile(options.start):
        raise InputError(f"--output {shown_path(output)} is the network of --from; choose another file with -o")
    check = circuit_check(options)
    seeds = range(config.seed, config.seed + options.seeds)
    kept = [output] if options.seeds == 1 else [seed_path(output, seed) for seed in seeds]
    with stopping_truthfully(*(kept if options.seeds > 1 else ()), *map(state_path, kept)):
        with importing("training", EXTRA):
            from cosim.training.history import writing_board
            from cosim.training.trainer import TrainingJob, describe_answers, initial_network

        loaded = load_task(name, options.data)
        job = TrainingJob(config, loaded, None, check, start)
        known = describe_obstacle(initial_network(job), output)
        answers = "" if start is None else describe_answers(start, loaded)
        for text in filter(None, (*describe_constants(loaded), *known, answers)):
            warn(text)
        with writing_board(options.tensorboard) as passing:
            best = _train(replace(job, passing=passing), seeds, output, session)
    figures = best.history["figures"]
    lines = format_seeds(best) if len(seeds) > 1 else []
    session.echo("\n".join([*lines, *format_result(best, output)]))
    if not known and "refused" in figures:
        warn(_OBSTACLE + figures["refused"])
    elif not known and (chips := count_chips(best, options, loaded)):
        session.echo(chips)
    return Result(figures)


def _train(job: "TrainingJob", seeds: range, output: Path, session: VerbSession) -> "Network":
    """Train with one seed or several; return the network that is kept, with curve and settings beside its file."""
    from cosim.training.trainer import run_job, train_seeds
    from cosim.verbs.train.beside import CalledProgress, write_beside

    total, resume = job.config.iterations, not session.fresh
    with progress_bar("training") as progress:
        heard = CalledProgress(progress)
        if len(seeds) > 1:
            best = train_seeds(job, seeds, output, heard, resume=resume)
        else:
            best = run_job(job, output, lambda done, values: heard(done, total, values), resume=resume)
    write_beside(output, best.history, session, trained=heard.something)
    return best


def describe_constants(task: "Task") -> list[str]:
    """Return a warning, as lines, about features of a task that never change; empty if all change."""
    from cosim.tasks.task import constant_features

    constant = constant_features(task)
    if not constant:
        return []
    named = ", ".join(f"{index} (always {value:g})" for index, value in constant.items())
    if len(constant) == task.x_train.shape[2]:
        return [f"{task.name}: no feature of x_train ever changes, so there is nothing to learn from: {named}"]
    return [f"{task.name}: features of x_train that never change tell nothing and cost their mirrors: {named}"]


def describe_obstacle(network: "Network", path: Path) -> list[str]:
    """Return the reason why a network cannot be compiled, as lines; empty if none is known."""
    from cosim.compiler.passes import check_mapping

    try:
        check_mapping(network, origin=str(path))
    except MappingError as error:
        return [f"{_OBSTACLE}{spell_options(str(error))}"]
    return []


def format_result(network: "Network", path: Path) -> list[str]:
    """Return the result of a training as lines of text; path: the network's file."""
    from cosim.compiler.passes import constant_cells
    from cosim.verbs.words import say_constant

    figures = network.history["figures"]
    if _classifies(network):
        score = f"balanced accuracy {figures['test_balanced_accuracy']:.1%}, accuracy {figures['test_accuracy']:.1%}"
    else:
        score = f"mean absolute error {figures['test_mae']:.4g}"
    said = say_constant(constant_cells(network))
    near = figures.get("near_deciding_threshold")  # an analog state has no threshold
    return [
        f"test: {score} ({figures['test_samples']} samples)",
        *([_format_chips(figures["chips"])] if "chips" in figures else []),
        *([f"candidates within 0.02 of a threshold that decides: {near['0.02']:.2%}"] if near else []),
        f"weights and biases that are not zero: {figures['nonzero_weights']}",
        *([f"{said}; cosim compile leaves them out"] if said else []),
        f"checkpoint: {path}",
    ]


def format_seeds(best: "Network") -> list[str]:
    """Return a table with a row for each seed of a training, and mean and range over all seeds, as lines of text.

    best: the network that was chosen among them.
    """
    from cosim.training.history import spread_over

    metric, name = ("test_accuracy", "accuracy") if _classifies(best) else ("test_mae", "mean absolute error")

    def shown(value: float) -> str:
        return f"{value:.1%}" if _classifies(best) else f"{value:.4g}"

    lines = [f"  seed  validation loss  test {name}"]
    seeds = {seed: best.history["seeds"][str(seed)] for seed in sorted(map(int, best.history["seeds"]))}
    for seed, figures in seeds.items():
        lines.append(f"{seed:6}  {figures['validation_loss']:15.4g}  {shown(figures[metric]):>{len(name) + 5}}")
    mean, low, high = map(shown, spread_over(seeds.values(), metric))
    return [*lines, f"test: {name} {mean} [{low}, {high}] over {len(seeds)} seeds; the best by validation:"]


def count_chips(network: "Network", options: TrainOptions, task: "Task") -> str:
    """Return a line on how many of CHIPS chips of a network's circuit would work, and at what power, by equations.

    Returns '' where this cannot be said: no calibration or mismatch is available, or targets are real numbers.
    """
    from cosim.compiler.passes import compile_network
    from cosim.tasks.testset import task_test_set
    from cosim.technology.catalog import load_technology
    from cosim.technology.scale import units_for
    from cosim.variation.draws import VariationPlan, check_coefficients
    from cosim.verbs.calibrate.find import known_calibration
    from cosim.verbs.montecarlo.run import default_spec
    from cosim.verbs.montecarlo.spec import passes_specs
    from cosim.verbs.montecarlo.trial import Trial, run_behavioral_chip

    process = load_technology(options.technology, options.pdk_root)
    calibration, plan = known_calibration(process, units_for(options.grid)), VariationPlan("local", 0, CHIPS)
    if calibration is None or not network.labels:
        return ""
    try:
        check_coefficients(process, plan)
        design = compile_network(network, process, calibration, origin=str(options.output))
    except InputError:  # no numbers for mismatch, or no circuit for a reason that a calibration shows
        return ""
    trial = Trial(design, task_test_set(task, network).take(MOST_SAMPLES, 0), plan)
    spec = default_spec(trial)
    chips = [run_behavioral_chip(trial, trial.chip(number)) for number in range(CHIPS)]
    passed = sum(passes_specs(chip, [spec]) for chip in chips)
    power = format_quantity(sum(chip.power for chip in chips) / CHIPS, "W")
    return (
        f"chips: {passed} of {CHIPS} that vary keep an accuracy of {spec.limit:.1%}, by the equations, and draw "
        f"{power} on average; more: cosim montecarlo {shown_path(options.output)}"
    )


def _classifies(network: "Network") -> bool:
    return "test_accuracy" in network.history["figures"]


def _format_chips(chips: dict[str, float]) -> str:
    if "test_accuracy" in chips:
        score = f"accuracy {chips['test_accuracy']:.1%} on average, {chips['test_accuracy_worst']:.1%} on the worst"
    else:
        score = f"mean absolute error {chips['test_mae']:.4g} on average, {chips['test_mae_worst']:.4g} on the worst"
    return f"{chips['count']} chips that vary: {score}"


def begin_with(options: TrainOptions) -> "tuple[TrainOptions, Network | None]":
    """Return the options with the architecture and the epsilon of the network that --from names, and this network.

    Raises InputError for a network that `cosim train` did not make, and for an option that is not at its default and
    asks for another architecture.
    """
    from cosim.exchange.checkpoint import load_network
    from cosim.training.config import read_settings

    if options.start is None:
        return options, None
    network = load_network(options.start)
    architecture, epsilon = read_settings(network, shown_path(options.start))
    for name, value in asdict(architecture).items():
        asked = getattr(options, name)
        if asked not in (value, getattr(_A, name)):
            word = f"--{'no-' if asked is False else ''}{name.replace('_', '-')}"
            raise InputError(
                f"{word} is {asked}, and {shown_path(options.start)} has {value}; --from keeps the architecture: leave "
                f"{word} out"
            )
    epsilon = epsilon if options.epsilon is None else options.epsilon
    return replace(options, **asdict(architecture), epsilon=epsilon), network


def complete_config(options: TrainOptions) -> TrainingConfig:
    """Return the configuration, completed with a BMRU's epsilon and the mismatch of a technology."""
    from cosim.technology.catalog import load_technology
    from cosim.variation.sigma import derive_mismatch

    config = options.config
    mismatch, spread, counted = None, None, config.margin_sigma > 0 or config.device_noise
    grid = config.architecture.grid
    if options.variation == "local" or counted:
        process = load_technology(options.technology, options.pdk_root)
        mismatch = derive_mismatch(process, grid, options.area) if options.variation == "local" else None
        spread = _spread(process, grid, chips=options.sigma_of == "chips") if counted else None
    elif options.area != 1:
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


def circuit_check(options: TrainOptions) -> "Callable[[Network], None]":
    """Return a function that raises MappingError for a network that `cosim compile` would refuse for this technology.

    If no calibration is kept, only what needs none is checked, because measuring one would take long.
    """
    from cosim.compiler.passes import check_mapping, check_sizes
    from cosim.technology.catalog import load_technology
    from cosim.technology.scale import units_for
    from cosim.verbs.calibrate.find import known_calibration

    technology = load_technology(options.technology, options.pdk_root)
    calibration = known_calibration(technology, units_for(options.grid))

    def check(network: "Network") -> None:
        try:
            if calibration is None:
                check_mapping(network, origin=str(options.output))
            else:
                check_sizes(network, technology, calibration, str(options.output))
        except MappingError as error:  # a training keeps its text
            raise error.reworded(spell_options(str(error))) from None

    return check


command = verb(TrainOptions, run, KeepingVerb)
