"""cosim montecarlo: draw chips with mismatch and count how many work."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.bounds import AREA, CHIPS, NUMBER, SAMPLES, SEED, Bounds
from cosim.base.errors import InputError, MissingToolError
from cosim.cli.help import OptionGroup
from cosim.cli.progress import progress_bar, say
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer, Number, Text, read_share
from cosim.cli.verb import FILE, Declared, Result, group_of, one_of, option, switch, verb
from cosim.engines.table import (
    BATCH,
    BEHAVIORAL,
    check_models,
    engine_entry,
    engines,
    reference_simulator,
    simulator_named,
)
from cosim.verbs.common import (
    Compiling,
    audit_count,
    audit_option,
    check_outputs,
    data_option,
    describe_audit,
    engine_option,
    jobs_option,
    json_option,
    load_design,
    network_argument,
    noise_of,
    noise_option,
    output_option,
    supplies_option,
    target_technology,
    temperatures_option,
    timeout_option,
    tolerance_option,
)

if TYPE_CHECKING:
    from cosim.compiler.design import Design
    from cosim.variation.draws import Gradient, Kind, Sampling, VariationPlan
    from cosim.verbs.montecarlo.chips import ChipSummary
    from cosim.verbs.montecarlo.run import Execute
    from cosim.verbs.montecarlo.spec import Spec
    from cosim.verbs.montecarlo.store import ChipStore
    from cosim.verbs.montecarlo.trial import Trial

SIMULATED_SAMPLES = 30


DRAWING = OptionGroup("How chips are drawn")
STORE = OptionGroup("The store of chips")


def chip_engine_option() -> Declared:
    """Declare --engine of a Monte Carlo run, which may add a simulator to the behavioral model, on the same chips."""
    return engine_option("Any but the behavioral model runs beside it, on the same chips.", engines, BEHAVIORAL)


def spec_option() -> Declared:
    """Declare --spec, the limits that a chip must keep; the options' field is called `specs`."""
    text = (
        "What a chip must do, such as accuracy>=0.9 or power<=400nW, or a .toml file; repeatable [default: accuracy 5 "
        "points below nominal]."
    )
    return option(text, flags=("--spec",), multiple=True)


def chip_seed_option() -> Declared:
    """Declare --seed, which selects the chips and the test samples that are drawn."""
    return option("Seed of the chips and of the sample draw.", Integer(SEED), 0, DRAWING)


def chip_samples_option() -> Declared:
    """Declare --samples, the number of test samples that each chip runs."""
    text = f"Test samples [default: all; in a simulator other than batch {SIMULATED_SAMPLES}]."
    return option(text, Integer(SAMPLES), None, DRAWING)


def area_option() -> Declared:
    """Declare --area, the gate area of devices over the drawn area, which changes nothing but their mismatch."""
    return option("Device area over drawn, for mismatch alone.", Number(AREA), 1.0, DRAWING)


@dataclass(frozen=True, kw_only=True)
class MonteCarloOptions:
    """Options of a Monte Carlo run: how chips are drawn, what a chip must do, what is studied, where chips run."""

    network_file: Path = network_argument()
    chips: int = option("How many chips.", Integer(CHIPS), 100)
    variation: "Kind" = one_of(
        ("none", "local", "global", "all"),
        "Mismatch of each transistor; process, supply and temperature of each chip; both.",
        default="local",
    )
    temps: tuple[tuple[float, ...], ...] = temperatures_option(
        "Range of the chips' temperature, celsius, where it varies [default: 0,60]."
    )
    supplies: tuple[tuple[float, ...], ...] = supplies_option(
        "Range of the chips' supply, volt, where it varies [default: within 5 %]."
    )
    engine: str = chip_engine_option()
    transistors: bool = switch("Choose the engine: batch, audited, where its extra is installed, otherwise ngspice.")
    specs: tuple[str, ...] = spec_option()
    samples: int | None = chip_samples_option()
    sampling: "Sampling" = one_of(("random", "lhs", "sobol"), "How chips are drawn.", DRAWING)
    replicates: int = option("Independent sets of lhs or sobol chips.", Integer(CHIPS), 1, DRAWING)
    area: float = area_option()
    stop_width: float | None = option(
        "Stop early where the yield's interval is no wider.", Number(Bounds(0, 1, open_low=True)), None, DRAWING
    )
    contributions: bool = switch("Share of the spread per block and kind of transistor, too.", STORE)
    replay: int | None = option(
        "Write and run the decks of one chip, only.", Integer(NUMBER), None, STORE, metavar="CHIP"
    )
    dask: str | None = option(
        "Run on this dask scheduler, such as tcp://host:8786.", None, None, STORE, metavar="ADDRESS"
    )
    shard: tuple[int, int] | None = option(
        "Only this part of the chips; cosim merge joins the parts.", Text("i/n", read_share, tuple), None, STORE
    )
    gradient: Path | None = option("Folder of cosim layout: mismatch grows with distance, too.", FILE, None, DRAWING)
    audit: int | None = audit_option()
    noise: bool = noise_option()
    output: Path = output_option("runs/montecarlo")
    json_file: Path | None = json_option()
    data: Path | None = data_option()
    tolerance: float | None = tolerance_option()
    seed: int = chip_seed_option()
    jobs: int = jobs_option()
    timeout: float = timeout_option()
    compiling: Compiling = group_of(Compiling)


def run(options: MonteCarloOptions, session: VerbSession) -> Result:
    """Draw chips of NETWORK's circuit and count how many still do their task.

    The folder is a store: every finished chip is kept with its draws (chips.jsonl), the same command goes on with them,
    and report.html is its page. Chip k is the same whatever the number of chips, processes or machines.
    """
    from cosim.base.store import write_results
    from cosim.results.kept_page import REPORT_FILE
    from cosim.results.metrics import Estimate
    from cosim.verbs.montecarlo.keep import Places, keep_trial
    from cosim.verbs.montecarlo.page import write_report
    from cosim.verbs.montecarlo.run import (
        CONTRIBUTIONS_FILE,
        SUMMARY_FILE,
        KeptContributions,
        check_contributions,
        check_specs,
        default_spec,
        run_contributions,
        run_settings,
    )
    from cosim.verbs.montecarlo.spec import judge, read_specs, without_yield
    from cosim.verbs.montecarlo.store import VERB, open_store

    if options.transistors:
        options = replace(options, engine=_transistor_engine(options))
    specs, of_all = without_yield(read_specs(options.specs))
    technology = target_technology(options.compiling)
    output, audit = options.output, audit_count(options.audit, options.engine, technology)
    check_outputs(VERB, output, options.json_file)
    _check_shard(options)
    trial = load_trial(options)
    if options.contributions:
        check_contributions(trial)
    check_specs(trial, wanted := specs.at(trial.technology) or (default_spec(trial),))
    if options.replay is not None:
        return Result(lines=_replay(trial, options.replay, output))
    with open_store(output, run_settings(trial), fresh=session.fresh) as store:
        if store.damage:
            say(store.damage)
        keep_trial(output, trial, options.compiling.technology, options.compiling.pdk_root)
        session.keep_settings(output)
        if options.shard is not None:
            return _run_shard(trial, store, options, options.shard)
        summary = _run_chips(trial, store, options, wanted, audit)
        verdicts = judge(of_all, {"yield": Estimate(summary.yield_.value, *summary.yield_.interval)})
        if verdicts:
            summary = replace(summary, verdicts=verdicts)
            write_results(output, {SUMMARY_FILE: summary})
        if options.contributions:
            with progress_bar("contributions") as progress:
                found = run_contributions(trial, options.jobs, progress)
            write_results(output, {CONTRIBUTIONS_FILE: KeptContributions(trial.plan.chips, found)})
            summary = replace(summary, contributions=found)
    page = write_report(output, output / REPORT_FILE, Places(options.compiling.pdk_root), waveforms=False)
    report = f"report: {output / REPORT_FILE}; with the worst chip's waveforms: cosim report {output}"
    met = all(one.met for one in verdicts)
    fault = describe_audit(summary.audit, output) or (None if met else "")
    return Result(summary, page, report=report, fault=fault)


def _run_chips(
    trial: "Trial", store: "ChipStore", options: MonteCarloOptions, wanted: "tuple[Spec, ...]", audit: int
) -> "ChipSummary":
    """Run the chips that the store does not have yet, and write summary.json.
    audit: how many samples on these chips run in ngspice as well."""
    from cosim.base.store import write_results
    from cosim.engines.engine import Run
    from cosim.verbs.montecarlo.run import SUMMARY_FILE, audit_chips, find_undecided_chips, run_montecarlo

    with progress_bar("chips") as progress, _executing(trial, options) as execute:
        summary = run_montecarlo(trial, store, execute, wanted, options.stop_width, progress)
    if audit:
        where = Run(store.folder, options.jobs, options.timeout)
        with progress_bar("undecided") as progress:
            undecided = find_undecided_chips(trial, store.records, where, progress)
        with progress_bar("audit") as progress:
            audited = audit_chips(trial, store.records, audit, where, progress)
        summary = replace(summary, undecided=undecided, audit=audited)
        write_results(store.folder, {SUMMARY_FILE: summary})
    return summary


def _run_shard(trial: "Trial", store: "ChipStore", options: MonteCarloOptions, shard: tuple[int, int]) -> Result:
    """Run one part of the chips of a Monte Carlo run, without figures, because figures need all chips."""
    from cosim.verbs.montecarlo.run import run_shard, shard_of

    numbers = shard_of(trial.plan.chips, *shard)
    with progress_bar("chips") as progress, _executing(trial, options) as execute:
        run_shard(store, execute, numbers, progress)
    parts = "with all parts: cosim merge FOLDER... -o FOLDER"
    return Result(lines=[f"{len(numbers)} of {trial.plan.chips} chips in {store.folder}; {parts}"])


def _check_shard(options: MonteCarloOptions) -> None:
    """Raise InputError where --shard is given with an option that needs all chips, not only a part of them."""
    needing = {
        "--contributions": options.contributions,
        "--stop-width": options.stop_width,
        "--json": options.json_file,
    }
    if options.shard is not None and (found := [name for name, value in needing.items() if value]):
        raise InputError(
            f"{found[0]} needs all chips; give it to the command without --shard, on what cosim merge wrote"
        )


def _transistor_engine(options: MonteCarloOptions) -> str:
    """Return the engine for --transistors: batch where it is installed, otherwise the technology's reference simulator.

    Raises InputError where --engine is a simulator, because then both options choose the engine.
    """
    if options.engine != BEHAVIORAL:
        raise InputError(f"--transistors chooses the engine; leave out --engine {options.engine} or --transistors")
    try:
        simulator_named(BATCH).check()
    except MissingToolError as error:
        name = reference_simulator(target_technology(options.compiling))
        say(f"in {name}: {error}")
        return name
    return BATCH


def load_trial(options: MonteCarloOptions) -> "Trial":
    """Build the trial (compiled design, samples, plan of the chips) of a Monte Carlo run from its options.

    Raises InputError where two options exclude each other, or the technology cannot vary as the options say.
    """
    from cosim.circuit.waveforms import Timing
    from cosim.variation.draws import check_coefficients, check_environment
    from cosim.verbs.loading import draw_samples
    from cosim.verbs.montecarlo.trial import Trial

    if options.noise and options.engine not in (BEHAVIORAL, BATCH):
        raise InputError(
            f"--noise is of the behavioral model and of --engine {BATCH}, not of {options.engine}; choose one of "
            "these, or leave --noise out"
        )
    chips, sampling, replicates = options.chips, options.sampling, options.replicates
    if replicates > chips or (sampling == "random" and replicates > 1):
        raise InputError(
            f"--replicates must be at most --chips ({chips}), and 1 with --sampling random, not {replicates}"
        )
    if chips % replicates:
        raise InputError(f"--chips must be a multiple of --replicates ({replicates}), not {chips}")
    check_models(options.engine, target_technology(options.compiling))
    design, condition = load_design(options.network_file, options.compiling)
    plan = _plan(options, condition.technology.supply)
    check_coefficients(condition.technology, plan)
    check_environment(condition.technology, plan)
    entry = engine_entry(options.engine)
    samples = options.samples or (SIMULATED_SAMPLES if entry.simulator and not entry.quick else None)
    test_set = draw_samples(design.network, options.data, samples, options.seed, say).tolerating(options.tolerance)
    noise = noise_of(design, options.seed) if options.noise else None
    gradient = None if options.gradient is None else _gradient(design, options.gradient)
    return Trial(
        design, test_set, plan, options.engine, Timing(t_step=options.compiling.t_step), condition, noise, gradient
    )


def _plan(options: MonteCarloOptions, supply: float) -> "VariationPlan":
    """Return how the chips are drawn; supply: nominal one of the condition that they deviate from, V."""
    from cosim.variation.draws import VariationPlan

    plan = VariationPlan(
        options.variation, options.seed, options.chips, options.sampling, options.replicates, options.area
    )
    if not plan.common and (options.temps or options.supplies):
        raise InputError(
            "--temps and --supplies are of chips whose temperature and supply vary, not of --variation "
            f"{options.variation}; add --variation global or all, or give one --temp and one --supply"
        )
    if celsius := sum(options.temps, ()):
        plan = replace(plan, celsius=(min(celsius), max(celsius)))
    if volts := sum(options.supplies, ()):
        plan = replace(plan, supplies=(round(min(volts) / supply, 9), round(max(volts) / supply, 9)))
    return plan


def _gradient(design: "Design", folder: Path) -> "Gradient":
    from cosim.mask.record import read_positions
    from cosim.variation.draws import Gradient

    technology = design.technology
    if technology.drawing is None:
        raise InputError(
            f"--gradient {folder}: {technology.name} has no table [layout], so no drawing of it has places; take "
            "--technology gf180mcu and a folder that cosim layout wrote with it, or leave --gradient out"
        )
    return Gradient(*technology.drawing.gradient, read_positions(folder, design))


@contextmanager
def _executing(trial: "Trial", options: MonteCarloOptions) -> "Generator[Execute, None, None]":
    """Yield a function that runs the chips with the given numbers, in local processes or on a dask cluster."""
    from cosim.verbs.montecarlo.execute import run_local, run_on

    timeout = options.timeout * len(trial.test_set.y)  # the option is for one simulation, a chip takes one a sample
    if options.dask is None:
        yield lambda numbers: run_local(trial, numbers, options.jobs, timeout)
        return
    from cosim.verbs.montecarlo.execute import dask_cluster

    with dask_cluster(options.dask) as cluster:
        yield lambda numbers: run_on(cluster, trial, numbers, cluster.slots, timeout)


def _replay(trial: "Trial", number: int, store: Path) -> list[str]:
    """Simulate one chip of a finished run on transistors, and return lines that compare it with its record."""
    from cosim.base.store import check_settings
    from cosim.results.metrics import percent
    from cosim.verbs.montecarlo.run import replay_chip, run_settings
    from cosim.verbs.montecarlo.store import read_store

    if number >= trial.plan.chips:
        raise InputError(f"--replay must be below --chips ({trial.plan.chips}), not {number}")
    known, records = read_store(store)
    check_settings(store, known, run_settings(trial))
    folder = store / f"chip_{number}"
    record = replay_chip(trial, number, folder)
    simulator = reference_simulator(trial.technology) if trial.engine == BEHAVIORAL else trial.engine
    lines = [f"chip {number}: {record.status}{f' {record.detail}' if record.status != 'ok' else ''}"]
    for engine, figures in ((BEHAVIORAL, record.behavioral), (simulator, record.simulated)):
        if figures is not None:
            lines.append(f"{engine:12} accuracy {percent(figures.accuracy)}")
    if number in records and records[number].simulated is not None:
        same = records[number].simulated == record.simulated
        lines.append(f"the store says {'the same' if same else 'something else'} about its transistors")
    return [*lines, f"decks: {folder}"]


command = verb(MonteCarloOptions, run, KeepingVerb)
