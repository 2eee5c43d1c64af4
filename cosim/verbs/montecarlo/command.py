"""cosim montecarlo: how many chips of a hundred work."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import AREA, CHIPS, NUMBER, SAMPLES, SEED, Bounds
from cosim.base.errors import InputError, MissingToolError
from cosim.cli.fresh import is_fresh
from cosim.cli.help import GroupedOption
from cosim.cli.options import (
    FILE,
    collecting,
    data_option,
    engine_option,
    jobs_option,
    network_argument,
    noise_option,
    one_of,
    timeout_option,
    tolerance_option,
)
from cosim.cli.progress import progress_bar, say
from cosim.cli.settings import KeepingVerb, keep_settings
from cosim.cli.types import Integer, Number, ShareType
from cosim.engines.table import BATCH, BEHAVIORAL, NGSPICE, engine_entry, engines, simulator_named
from cosim.verbs.audit import audit_count, audit_option, check_audit
from cosim.verbs.common import (
    Compiling,
    Destination,
    check_outputs,
    compile_options,
    destination_options,
    load_design,
    noise_of,
    write_json,
)
from cosim.verbs.montecarlo.replay import replay

if TYPE_CHECKING:
    from cosim.compiler.design import Design
    from cosim.engines.simulation.audit import Audit
    from cosim.engines.simulation.undecided import UndecidedChips
    from cosim.variation.draws import Kind, Sampling
    from cosim.variation.gradient import Gradient
    from cosim.verbs.montecarlo.chips import Contribution
    from cosim.verbs.montecarlo.run import Execute
    from cosim.verbs.montecarlo.store import Store
    from cosim.verbs.montecarlo.trial import Trial

SIMULATED_SAMPLES = 30


@dataclass(frozen=True)
class ChipOptions:
    """Options on the chips to draw, and on what they are tried with."""

    chips: int
    engine: str
    samples: int | None
    area: float
    data: Path | None
    seed: int
    tolerance: float | None = None
    noise: bool = False
    gradient: Path | None = None
    variation: "Kind" = "local"
    sampling: "Sampling" = "random"
    replicates: int = 1


@dataclass(frozen=True)
class Counting:
    """Options of a run of chips: the specs to meet, what to find out about the chips, and where they run."""

    specs: tuple[str, ...]
    contributions: bool
    replay: int | None
    stop_width: float | None
    dask: str | None
    shard: tuple[int, int] | None
    audit: int | None
    transistors: bool
    jobs: int
    timeout: float


class DrawingOption(GroupedOption):
    """Group of the options on how chips are drawn."""

    title = "How chips are drawn"


class StoreOption(GroupedOption):
    """Group of the options on the store of chips."""

    title = "The store of chips"


chip_engine_option = engine_option(
    "Any but the behavioral model runs beside it, on the same chips.", engines, BEHAVIORAL
)
spec_option = click.option(
    "--spec",
    "specs",
    multiple=True,
    help="What a chip must do, such as accuracy>=0.9 or power<=400nW, or a .toml file; repeatable [default: accuracy 5 "
    "points below nominal].",
)
chip_seed_option = click.option(
    "--seed", cls=DrawingOption, type=Integer(SEED), default=0, help="Seed of the chips and of the sample draw."
)
chip_samples_option = click.option(
    "--samples",
    cls=DrawingOption,
    type=Integer(SAMPLES),
    help=f"Test samples [default: all; in a simulator other than batch {SIMULATED_SAMPLES}].",
)
area_option = click.option(
    "--area", cls=DrawingOption, type=Number(AREA), default=1.0, help="Device area over drawn, for mismatch alone."
)


@click.command(cls=KeepingVerb)
@network_argument
@click.option("--chips", type=Integer(CHIPS), default=100, help="How many chips.")
@one_of(
    "--variation",
    ("none", "local", "global", "all"),
    "Mismatch of each transistor; process, supply and temperature of each chip; both.",
    "local",
)
@chip_engine_option
@click.option("--transistors", is_flag=True,
              help="Choose the engine: batch, audited, where its extra is installed, otherwise ngspice.")  # fmt: skip
@spec_option
@chip_samples_option
@one_of("--sampling", ("random", "lhs", "sobol"), "How chips are drawn.", cls=DrawingOption)
@click.option(
    "--replicates", cls=DrawingOption, type=Integer(CHIPS), default=1, help="Independent sets of lhs or sobol chips."
)
@area_option
@click.option("--stop-width", cls=DrawingOption, type=Number(Bounds(0, 1, open_low=True)),
              help="Stop early where the yield's interval is no wider.")  # fmt: skip
@click.option(
    "--contributions", cls=StoreOption, is_flag=True, help="Share of the spread per block and kind of transistor, too."
)
@click.option(
    "--replay",
    cls=StoreOption,
    type=Integer(NUMBER),
    metavar="CHIP",
    help="Write and run the decks of one chip, only.",
)
@click.option("--dask", cls=StoreOption, metavar="ADDRESS", help="Run on this dask scheduler, such as tcp://host:8786.")
@click.option(
    "--shard", cls=StoreOption, type=ShareType(), help="Only this part of the chips; cosim merge joins the parts."
)
@click.option("--gradient", cls=DrawingOption, type=FILE,
              help="Folder of cosim layout: mismatch grows with distance, too.")  # fmt: skip
@audit_option
@noise_option
@destination_options("runs/montecarlo")
@data_option
@tolerance_option
@chip_seed_option
@jobs_option
@timeout_option
@compile_options
@collecting(drawing=ChipOptions, counting=Counting)
def command(
    *, network_file: Path, to: Destination, drawing: ChipOptions, counting: Counting, compiling: Compiling
) -> None:
    """Draw chips of NETWORK's circuit and count how many still do their task.

    The folder is a store: every finished chip is kept with its draws (chips.jsonl), the same command goes on with them,
    and report.html is its page. Chip k is the same whatever the number of chips, processes or machines.
    """
    from cosim.base.store import write_results
    from cosim.results.metrics import Estimate
    from cosim.verbs.montecarlo import run
    from cosim.verbs.montecarlo.keep import keep_trial
    from cosim.verbs.montecarlo.spec_file import format_verdicts, judge, read_specs, without_yield
    from cosim.verbs.montecarlo.store import CHIPS_FILE, VERB, open_store
    from cosim.verbs.tables import format_summary

    if counting.transistors:
        drawing = replace(drawing, engine=_transistor_engine(drawing.engine))
    specs, of_all = without_yield(read_specs(counting.specs))
    output, audit = to.output, audit_count(counting.audit, drawing.engine)
    check_outputs(VERB, output, to.json_file)
    _check_shard(counting, to)
    trial = load_trial(network_file, drawing, compiling)
    if counting.contributions:
        run.check_contributions(trial)
    run.check_specs(trial, wanted := specs.at(trial.technology) or (run.default_spec(trial),))
    if counting.replay is not None:
        replay(trial, counting.replay, output)
        return
    with open_store(output, run.run_settings(trial), fresh=is_fresh()) as store:
        if store.damaged:
            say(f"{store.damaged} damaged lines of {output / CHIPS_FILE}: their chips run again")
        keep_trial(output, trial, asdict(compiling))
        keep_settings(output)
        if counting.shard is not None:
            _run_shard(trial, store, counting, counting.shard)
            return
        with progress_bar("chips") as progress, _executing(trial, counting) as execute:
            summary = run.run_montecarlo(trial, store, execute, wanted, counting.stop_width, progress)
        if audit:
            undecided, audited = _trust(trial, store, audit, counting)
            summary = replace(summary, undecided=undecided, audit=audited)
            write_results(output, {run.SUMMARY_FILE: summary})
        verdicts = judge(of_all, {"yield": Estimate(summary.yield_.value, *summary.yield_.interval)})
        click.echo("\n".join([*format_summary(summary, str(network_file)), *format_verdicts(verdicts)]))
        if counting.contributions:
            summary = replace(summary, contributions=_contribute(trial, output, counting.jobs))
    write_json(to.json_file, summary)
    _write_page(output, compiling.pdk_root)
    check_audit(summary.audit, output)
    if not all(one.met for one in verdicts):
        raise SystemExit(1)


def _write_page(output: Path, pdk_root: Path | None) -> None:
    """Write the page of a store, without simulating anything."""
    from cosim.results.kept_page import REPORT_FILE
    from cosim.verbs.montecarlo.keep import Places
    from cosim.verbs.montecarlo.write import write_report

    write_report(output, output / REPORT_FILE, Places(pdk_root), waveforms=False)
    click.echo(f"\nreport: {output / REPORT_FILE}; with the worst chip's waveforms: cosim report {output}")


def _run_shard(trial: "Trial", store: "Store", counting: Counting, shard: tuple[int, int]) -> None:
    """Run one part of the chips; it prints no figures, because those are of all chips."""
    from cosim.verbs.montecarlo.run import run_shard, shard_of

    numbers = shard_of(trial.plan.chips, *shard)
    with progress_bar("chips") as progress, _executing(trial, counting) as execute:
        run_shard(trial, store, execute, numbers, progress)
    parts = "with all parts: cosim merge FOLDER... -o FOLDER"
    click.echo(f"{len(numbers)} of {trial.plan.chips} chips in {store.folder}; {parts}")


def _check_shard(counting: Counting, to: Destination) -> None:
    """Raise InputError for what needs all chips, where there is only a part of them."""
    asked = {"--contributions": counting.contributions, "--stop-width": counting.stop_width, "--json": to.json_file}
    if counting.shard is not None and (found := [name for name, value in asked.items() if value]):
        raise InputError(
            f"{found[0]} needs all chips; give it to the command without --shard, on what cosim merge wrote"
        )


def _contribute(trial: "Trial", output: Path, jobs: int) -> "dict[str, Contribution]":
    """Compute where the spread comes from; write and print it."""
    from cosim.base.store import write_results
    from cosim.verbs.montecarlo import run
    from cosim.verbs.tables import format_contributions

    with progress_bar("contributions") as progress:
        found = run.run_contributions(trial, jobs, progress)
    write_results(output, {run.CONTRIBUTIONS_FILE: run.KeptContributions(trial.plan.chips, found)})
    click.echo("\n".join(format_contributions(found)))
    return found


def _transistor_engine(asked: str) -> str:
    """Choose the engine for chips at transistor level. Raises InputError where another one is asked for, too."""
    if asked != BEHAVIORAL:
        raise InputError(f"--transistors chooses the engine; leave out --engine {asked} or --transistors")
    try:
        simulator_named(BATCH).check()
    except MissingToolError as error:
        say(f"in ngspice: {error}")
        return NGSPICE
    return BATCH


def _trust(trial: "Trial", store: "Store", count: int, counting: Counting) -> "tuple[UndecidedChips | None, Audit]":
    """Run some of a store's samples on chips again with smaller steps, and some in ngspice."""
    from cosim.engines.engine import Run
    from cosim.verbs.montecarlo.audit import audit_chips, find_undecided_chips

    where = Run(store.folder, counting.jobs, counting.timeout)
    with progress_bar("undecided") as progress:
        undecided = find_undecided_chips(trial, store.records, where, progress)
    with progress_bar("audit") as progress:
        return undecided, audit_chips(trial, store.records, count, where, progress)


def load_trial(network_file: Path, drawing: ChipOptions, compiling: Compiling) -> "Trial":
    """Return the trial that the values of the command line describe. Raises InputError where they do not go
    together."""
    from cosim.circuit.waveforms import Timing
    from cosim.variation.draws import VariationPlan, check_coefficients, check_supply
    from cosim.verbs.loading import draw_samples
    from cosim.verbs.montecarlo.trial import Trial

    if drawing.noise and drawing.engine != BEHAVIORAL:
        raise InputError(f"--noise is of the behavioral model; leave out --engine {drawing.engine} or --noise")
    chips, sampling, replicates = drawing.chips, drawing.sampling, drawing.replicates
    if replicates > chips or (sampling == "random" and replicates > 1):
        raise InputError(
            f"--replicates must be at most --chips ({chips}), and 1 with --sampling random, not {replicates}"
        )
    if chips % replicates:
        raise InputError(f"--chips must be a multiple of --replicates ({replicates}), not {chips}")
    plan = VariationPlan(drawing.variation, drawing.seed, chips, sampling, replicates, drawing.area)
    design, condition = load_design(network_file, compiling)
    check_coefficients(condition.technology, plan)
    check_supply(condition.technology, plan)
    entry = engine_entry(drawing.engine)
    samples = drawing.samples or (SIMULATED_SAMPLES if entry.simulator and not entry.quick else None)
    test_set = draw_samples(design.network, drawing.data, samples, drawing.seed, say).tolerating(drawing.tolerance)
    noise = noise_of(design, drawing.seed) if drawing.noise else None
    gradient = None if drawing.gradient is None else _gradient(design, drawing.gradient)
    return Trial(design, test_set, plan, drawing.engine, Timing(t_step=compiling.t_step), condition, noise, gradient)


def _gradient(design: "Design", folder: Path) -> "Gradient":
    from cosim.layout.record import read_positions
    from cosim.variation.gradient import Gradient

    technology = design.technology
    if technology.drawing is None:
        raise InputError(
            f"--gradient {folder}: {technology.name} has no table [layout], so no drawing of it has places; take "
            "--technology gf180mcu and a folder that cosim layout wrote with it, or leave --gradient out"
        )
    return Gradient(*technology.drawing.gradient, read_positions(folder, design))


@contextmanager
def _executing(trial: "Trial", counting: Counting) -> "Generator[Execute, None, None]":
    """Yield a function that runs chips by their numbers: here, or on a dask cluster."""
    from cosim.verbs.montecarlo.execute import run_local, run_on

    timeout = counting.timeout * len(trial.test_set.y)  # the option is for one simulation, a chip takes one a sample
    if counting.dask is None:
        yield lambda numbers: run_local(trial, numbers, counting.jobs, timeout)
        return
    from cosim.verbs.montecarlo.cluster import dask_cluster

    with dask_cluster(counting.dask) as cluster:
        yield lambda numbers: run_on(cluster, trial, numbers, cluster.slots, timeout)
