"""Command `cosim power`: supply power by block and by rail, simulated and by the behavioral equations."""

from dataclasses import dataclass, replace
from pathlib import Path

from cosim.base.errors import InputError, MissingToolError
from cosim.cli.progress import progress_bar
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.verb import Result, group_of, switch, verb
from cosim.verbs.common import (
    RUNNING_GROUP,
    Compiling,
    Running,
    check_outputs,
    chosen_engine,
    describe_failed,
    engine_option,
    json_option,
    load_run,
    network_argument,
    noise_of,
    output_option,
    target_technology,
)


@dataclass(frozen=True, kw_only=True)
class PowerOptions:
    """Options of `cosim power`: network, samples, simulator, device noise, and folder."""

    network_file: Path = network_argument()
    output: Path = output_option("runs/power")
    json_file: Path | None = json_option()
    behavioral: bool = switch("Equations alone; needs no simulator.")
    engine: str | None = engine_option("Simulator of the transistors.")
    noise: bool = switch("With device noise at every decision, in batch as well.", RUNNING_GROUP)
    compiling: Compiling = group_of(Compiling)
    running: Running = group_of(Running)


def run(options: PowerOptions, session: VerbSession) -> Result:
    """Measure NETWORK's supply power on test samples, block by block and rail by rail.

    The simulator measures the current of every block's own supply; the behavioral equations are shown beside it. Static
    and dynamic power, energies per frame and per inference, areas. The folder receives power.json, power.png and
    report.html. Finished samples are kept: the same command continues an interrupted run. Without it the behavioral
    side is written.
    """
    from cosim.engines.table import BATCH, engine_entry
    from cosim.results.kept_page import read_page
    from cosim.verbs.power.study import run_power

    engine, output = chosen_engine(options.engine, target_technology(options.compiling)), options.output
    if options.noise and not options.behavioral and engine_entry(engine).name != BATCH:
        raise InputError(f"--noise: {engine} has none of its transistors; add --engine batch, or --behavioral")
    check_outputs("power", output, options.json_file)
    design, test_set, run = load_run(options.network_file, output, options.compiling, options.running, engine)
    if options.noise:
        run = replace(run, noise=noise_of(design, options.running.seed))
    missing: MissingToolError | None = None
    session.take_folder("power", output)
    with progress_bar(engine) as progress:
        try:
            summary = run_power(design, test_set, run, progress, simulate=not options.behavioral)
        except MissingToolError as error:
            missing = MissingToolError(f"behavioral side only: {error}")
            summary = run_power(design, test_set, run, progress, simulate=False)
    return Result(
        summary,
        read_page(output),
        report=f"report: {output / 'report.html'}",
        error=missing,
        fault=describe_failed(summary.failed, output),
    )


command = verb(PowerOptions, run, KeepingVerb)
