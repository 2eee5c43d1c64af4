"""cosim report: a Monte Carlo run as one page."""

from pathlib import Path

import click

from cosim.cli.common import FILE, pdk_root_option
from cosim.cli.progress import say


@click.command()
@click.argument("run", metavar="RUN", type=FILE)
@click.option("-o", "--output", type=FILE, help="HTML file.  [default: RUN/report.html]")
@pdk_root_option
@click.option("--technology", type=FILE, help="Where the run's own .toml stands now.")
@click.option("--no-waveforms", is_flag=True, help="Leave the worst chip's waveforms out; nothing is simulated.")
def command(
    *, run: Path, output: Path | None, pdk_root: Path | None, technology: Path | None, no_waveforms: bool
) -> None:
    """Write the page of the Monte Carlo run in the folder RUN.

    One self-contained HTML file: yield with its interval, histograms over chips, yield curve, both engines chip by
    chip, contributions, the worst chip's waveforms, the mapping of parameters to transistors, power, schematics of the
    cells, settings. The worst chip is simulated once more; without ngspice the page says so instead.
    """
    from cosim.montecarlo.keep import Places
    from cosim.montecarlo.page import REPORT_FILE, write_report

    output = run / REPORT_FILE if output is None else output
    write_report(run, output, Places(pdk_root, technology), waveforms=not no_waveforms, say=say)
    click.echo(f"report: {output}")
