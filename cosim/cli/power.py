"""cosim power: supply power by block and by rail, ngspice beside the behavioral equations."""

from pathlib import Path

import click

from cosim.cli.common import (
    Compiling,
    Destination,
    Running,
    check_outputs,
    compile_options,
    destination_options,
    load_run,
    network_argument,
    run_options,
    say_failed,
    take_folder,
    write_json,
)
from cosim.cli.progress import progress_bar
from cosim.errors import MissingToolError


@click.command()
@network_argument
@destination_options("runs/power")
@click.option("--behavioral", is_flag=True, help="Equations alone; needs no simulator.")
@compile_options
@run_options
def command(*, network_file: Path, to: Destination, behavioral: bool, compiling: Compiling, running: Running) -> None:
    """Measure NETWORK's supply power on test samples, block by block and rail by rail.

    ngspice measures the current of every block's own supply; the behavioral equations stand beside it. Static and
    dynamic power, energies per frame and per inference, areas. The folder receives power.json and power.png. Finished
    samples are kept: the same command continues an interrupted run. Without ngspice the behavioral side is written.
    """
    from cosim.pipeline import run_power
    from cosim.report.tables import format_power

    output = to.output
    check_outputs("power", output, to.json_file)
    design, test_set, run = load_run(network_file, output, compiling, running)
    missing: MissingToolError | None = None
    take_folder("power", output)
    with progress_bar("ngspice") as progress:
        try:
            summary = run_power(design, test_set, run, progress, simulate=not behavioral)
        except MissingToolError as error:
            missing, summary = error, run_power(design, test_set, run, progress, simulate=False)
    click.echo("\n".join(format_power(summary)))
    write_json(to.json_file, summary)
    click.echo(f"\nwritten: {output / 'power.json'}, {output / 'power.png'}")
    if missing is not None:
        raise MissingToolError(f"behavioral side only: {missing}")
    say_failed(summary.failed, output)
