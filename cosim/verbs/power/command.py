"""cosim power: supply power by block and by rail, a simulator beside the behavioral equations."""

from dataclasses import dataclass, replace
from pathlib import Path

import click

from cosim.base.errors import InputError, MissingToolError
from cosim.cli.options import RunningOption, collecting, engine_option, network_argument
from cosim.cli.progress import progress_bar
from cosim.cli.settings import KeepingVerb
from cosim.verbs.common import (
    Compiling,
    Destination,
    Running,
    check_outputs,
    compile_options,
    destination_options,
    load_run,
    noise_of,
    run_options,
    say_failed,
    take_folder,
    write_json,
)


@dataclass(frozen=True)
class Metering:
    """Options of a power measurement: `behavioral` equations only, or which simulator as well; whether decisions have
    noise."""

    behavioral: bool
    engine: str
    noise: bool


@click.command(cls=KeepingVerb)
@network_argument
@destination_options("runs/power")
@click.option("--behavioral", is_flag=True, help="Equations alone; needs no simulator.")
@engine_option("Simulator of the transistors.")
@click.option("--noise", cls=RunningOption, is_flag=True, help="With device noise at every decision, in batch as well.")
@compile_options
@run_options
@collecting(how=Metering)
def command(*, network_file: Path, to: Destination, how: Metering, compiling: Compiling, running: Running) -> None:
    """Measure NETWORK's supply power on test samples, block by block and rail by rail.

    The simulator measures the current of every block's own supply; the behavioral equations stand beside it. Static and
    dynamic power, energies per frame and per inference, areas. The folder receives power.json, power.png and
    report.html. Finished samples are kept: the same command continues an interrupted run. Without it the behavioral
    side is written.
    """
    from cosim.engines.table import BATCH, engine_entry
    from cosim.verbs.pipeline import run_power
    from cosim.verbs.power.table import format_power

    if how.noise and not how.behavioral and engine_entry(how.engine).name != BATCH:
        raise InputError(f"--noise: {how.engine} has none of its transistors; add --engine batch, or --behavioral")
    output = to.output
    check_outputs("power", output, to.json_file)
    design, test_set, run = load_run(network_file, output, compiling, running, how.engine)
    if how.noise:
        run = replace(run, noise=noise_of(design, running.seed))
    missing: MissingToolError | None = None
    take_folder("power", output)
    with progress_bar(how.engine) as progress:
        try:
            summary = run_power(design, test_set, run, progress, simulate=not how.behavioral)
        except MissingToolError as error:
            missing, summary = error, run_power(design, test_set, run, progress, simulate=False)
    click.echo("\n".join(format_power(summary)))
    write_json(to.json_file, summary)
    click.echo(f"\nreport: {output / 'report.html'}")
    if missing is not None:
        raise MissingToolError(f"behavioral side only: {missing}")
    say_failed(summary.failed, output)
