"""cosim compare: software against behavioral against a circuit simulator."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.cli.audit import audit_count, audit_option, check_audit
from cosim.cli.common import (
    Compiling,
    Destination,
    Running,
    bias_option,
    check_outputs,
    collecting,
    compile_options,
    destination_options,
    engine_option,
    load_run,
    network_argument,
    run_options,
    say_failed,
    take_folder,
    write_json,
)
from cosim.cli.partitions import Cutting, Held, compare_backbone, cut_options
from cosim.cli.progress import progress_bar, say
from cosim.engines.table import BEHAVIORAL, Entry, engines, simulator_beside
from cosim.errors import InputError

if TYPE_CHECKING:
    from cosim.study.bias import Bias


@dataclass(frozen=True)
class Comparing:
    """Under which conditions, with which bias currents, the simulator of the transistors, how many it audits; and the
    converters of a backbone."""

    pvt: bool
    bias: "Bias"
    engine: str
    audit: int | None
    cutting: Cutting


def _compared() -> tuple[Entry, ...]:
    """All but the one that the others are held against."""
    return tuple(entry for entry in engines() if entry.name != BEHAVIORAL)


@click.command()
@network_argument
@destination_options("runs/compare")
@click.option("--pvt", is_flag=True, help="Run every corner at 0, 27 and 60 C and at 95, 100 and 105 % supply.")
@bias_option
@engine_option("What stands for the transistors.", _compared)
@audit_option
@compile_options
@run_options
@cut_options(conversion=True)
@collecting(how=Comparing)
def command(*, network_file: Path, to: Destination, how: Comparing, compiling: Compiling, running: Running) -> None:
    """Hold NETWORK's software, behavioral and simulated results on the same test samples against each other.

    The folder receives comparison.json, waveforms.png, confusion.png and report.html. Finished samples are kept: the
    same command continues an interrupted run. With --pvt it receives pvt.json and pvt.png.

    A backbone of cosim backbone is cut as cosim compile cuts it, and whole traces go through its circuits; the folder
    receives partitions.json. --data is then the folder of its task.
    """
    from cosim.checkpoint.file import stays_software
    from cosim.pipeline import Listener, run_comparison, run_pvt
    from cosim.report.tables import format_comparison, format_pvt
    from cosim.simulation.simulated import engine_named
    from cosim.study.bias import biased

    if how.pvt and any(value is not None for value in (compiling.corner, compiling.celsius, compiling.supply)):
        raise InputError("--pvt runs all conditions; leave --corner, --temp and --supply out")
    if stays_software(network_file):
        if how.pvt:
            raise InputError("--pvt is for a network that compiles whole; give a backbone one --corner at a time")
        compare_backbone(network_file, to, Held(how.bias, how.engine, how.audit, how.cutting), compiling, running)
        return
    how.cutting.refuse()
    output, audit = to.output, audit_count(how.audit, how.engine)
    check_outputs("compare", output, to.json_file)
    design, test_set, run = load_run(network_file, output, compiling, running, how.engine)
    if not how.pvt:
        there = run.standing(design).technology
        run = replace(run, condition=biased(design, there, how.bias, simulator_beside(how.engine)))
    engine_named(how.engine).check()  # said before the work
    take_folder("compare", output)
    with progress_bar(how.engine) as progress:
        if how.pvt:
            summary = run_pvt(design, test_set, run, Listener(progress, say), how.bias, audit)
            lines = format_pvt(summary)
        else:
            summary = run_comparison(design, test_set, run, progress, audit)
            lines = format_comparison(summary)
    click.echo("\n".join(lines))
    write_json(to.json_file, summary)
    click.echo(f"\nwritten: {output / 'pvt.json'}" if how.pvt else f"\nreport: {output / 'report.html'}")
    check_audit(summary.audit, output)
    say_failed(summary.failed, output)
