"""cosim compare: software against behavioral against a circuit simulator."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cosim.cli.common import (
    bias_option,
    check_outputs,
    compile_options,
    json_option,
    load_design,
    load_samples,
    network_argument,
    output_option,
    progress_bar,
    run_options,
    say,
    take_folder,
    write_json,
)
from cosim.engines.vacask.program import SIMULATOR_NAMES, SimulatorName, find_vacask
from cosim.errors import InputError

if TYPE_CHECKING:
    from cosim.study.bias import Bias


@click.command()
@network_argument
@output_option("runs/compare")
@json_option
@click.option("--pvt", is_flag=True, help="Run every corner at 0, 27 and 60 C and at 95, 100 and 105 % supply.")
@bias_option
@click.option(
    "--engine",
    type=click.Choice(SIMULATOR_NAMES),
    default="ngspice",
    show_default=True,
    help="Simulator of the transistors; vacask is a second one, of its own making.",
)
@compile_options
@run_options
def command(
    network_file: Path,
    output: Path,
    json_file: Path | None,
    pvt: bool,
    bias: "Bias",
    engine: SimulatorName,
    data: Path | None,
    samples: int,
    seed: int,
    jobs: int,
    t_step: float,
    timeout: float,
    **settings: Any,
) -> None:
    """Hold NETWORK's software, behavioral and simulated results on the same test samples against each other.

    The folder receives comparison.json, waveforms.png, confusion.png and report.html. Finished samples are kept: the
    same command continues an interrupted run. With --pvt it receives pvt.json and pvt.png.
    """
    from cosim.pipeline import Run, run_comparison, run_pvt
    from cosim.report.pvt_table import format_pvt
    from cosim.report.tables import format_comparison
    from cosim.simulation.testbench import Timing
    from cosim.study.bias import biased

    if pvt and any(settings[name] is not None for name in ("corner", "celsius", "supply")):
        raise InputError("--pvt runs all conditions; leave --corner, --temp and --supply out")
    check_outputs("compare", output, json_file)
    design = load_design(network_file, t_step=t_step, **settings)
    if not pvt:
        design = biased(design, design.technology, bias)
    test_set = load_samples(design.network, data, samples, seed)
    run = Run(output, jobs, timeout, Timing(t_step=t_step), engine)
    if engine == "vacask":
        find_vacask()  # said before the work
    take_folder("compare", output)
    with progress_bar(engine) as progress:
        summary = (
            run_pvt(design, test_set, run, progress, bias, say)
            if pvt
            else run_comparison(design, test_set, run, progress)
        )
    click.echo("\n".join(format_pvt(summary) if pvt else format_comparison(summary)))
    write_json(json_file, summary)
    click.echo(f"\nwritten: {output / 'pvt.json'}" if pvt else f"\nreport: {output / 'report.html'}")
    if summary["failed"]:
        click.echo(f"{summary['failed']} runs failed; their decks are in {output / 'failed'}", err=True)
        raise SystemExit(1)
