"""cosim power: supply power by block and by rail, ngspice beside the behavioral equations."""

from pathlib import Path
from typing import Any

import click

from cosim.cli.common import (
    check_outputs,
    compile_options,
    json_option,
    load_design,
    load_samples,
    network_argument,
    output_option,
    progress_bar,
    run_options,
    take_folder,
    write_json,
)
from cosim.errors import MissingToolError


@click.command()
@network_argument
@output_option("runs/power")
@json_option
@click.option("--behavioral", is_flag=True, help="Equations alone; needs no simulator.")
@compile_options
@run_options
def command(
    network_file: Path,
    output: Path,
    json_file: Path | None,
    behavioral: bool,
    data: Path | None,
    samples: int,
    seed: int,
    jobs: int,
    t_step: float,
    timeout: float,
    **settings: Any,
) -> None:
    """Measure NETWORK's supply power on test samples, block by block and rail by rail.

    ngspice measures the current of every block's own supply; the behavioral equations stand beside it. Static and
    dynamic power, energies per frame and per inference, areas. The folder receives power.json and power.png. Finished
    samples are kept: the same command continues an interrupted run. Without ngspice the behavioral side is written.
    """
    from cosim.pipeline import Run, run_power
    from cosim.report.power_tables import format_power
    from cosim.simulation.testbench import Timing

    check_outputs("power", output, json_file)
    design = load_design(network_file, t_step=t_step, **settings)
    test_set = load_samples(design.network, data, samples, seed)
    run = Run(output, jobs, timeout, Timing(t_step=t_step))
    missing: MissingToolError | None = None
    take_folder("power", output)
    with progress_bar("ngspice") as progress:
        try:
            summary = run_power(design, test_set, run, progress, simulate=not behavioral)
        except MissingToolError as error:
            missing, summary = error, run_power(design, test_set, run, progress, simulate=False)
    click.echo("\n".join(format_power(summary)))
    write_json(json_file, summary)
    click.echo(f"\nwritten: {output / 'power.json'}, {output / 'power.png'}")
    if missing is not None:
        raise MissingToolError(f"behavioral side only: {missing}")
    if summary["failed"]:
        click.echo(f"{summary['failed']} runs failed; their decks are in {output / 'failed'}", err=True)
        raise SystemExit(1)
