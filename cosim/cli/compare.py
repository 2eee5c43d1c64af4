"""cosim compare: software against behavioral against ngspice."""

from pathlib import Path
from typing import Any

import click

from cosim.cli.common import (
    compile_options,
    load_design,
    network_argument,
    output_option,
    progress_bar,
    run_options,
    write_json,
)


@click.command()
@network_argument
@output_option("runs/compare")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures to this file, too.")
@compile_options
@run_options
def command(
    network_file: Path,
    output: Path,
    json_file: Path | None,
    data: Path | None,
    samples: int,
    seed: int,
    jobs: int,
    t_step: float,
    timeout: float,
    **settings: Any,
) -> None:
    """Hold NETWORK's software, behavioral and ngspice results on the same test samples against each other.

    The folder receives comparison.json, waveforms.png, confusion.png and report.html. Finished samples are kept: the
    same command continues an interrupted run.
    """
    from cosim.analysis.tables import format_comparison
    from cosim.network.testset import load_test_set
    from cosim.pipeline import Run, run_comparison
    from cosim.simulation.testbench import Timing

    design = load_design(network_file, t_step=t_step, **settings)
    test_set = load_test_set(design.network, data).take(samples, seed)
    with progress_bar("ngspice") as progress:
        summary = run_comparison(design, test_set, Run(output, jobs, timeout, Timing(t_step=t_step)), progress)
    write_json(json_file, summary)
    click.echo("\n".join(format_comparison(summary)))
    click.echo(f"\nreport: {output / 'report.html'}")
    if summary["failed"]:
        click.echo(f"{summary['failed']} runs failed; their decks are in {output / 'failed'}", err=True)
        raise SystemExit(1)
