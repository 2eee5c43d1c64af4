"""cosim compile: a trained network to a netlist."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from cosim.circuit.dialects.table import DIALECTS, dialect_named
from cosim.cli.common import (
    Compiling,
    check_outputs,
    collecting,
    compile_options,
    data_option,
    load_design,
    network_argument,
    one_of,
    output_option,
    take_folder,
)
from cosim.cli.partitions import Cutting, Wanted, compile_backbone, cut_options
from cosim.cli.progress import say
from cosim.cli.settings import RunVerb
from cosim.errors import InputError
from cosim.quantities import format_quantity


@dataclass(frozen=True)
class Driving:
    """The simulator that it is written for, and the test sample that drives it."""

    dialect: str
    stimulus: int | None
    data: Path | None


@click.command(cls=RunVerb)
@network_argument
@click.option("--to", type=click.Choice(["netlist"]), default="netlist", expose_value=False, help="What to make.")
@output_option("netlist")
@one_of("--dialect", [dialect.name for dialect in DIALECTS], "Simulator that the files are for.", "ngspice")
@click.option("--stimulus", type=click.IntRange(0), metavar="N",
              help="Sample of the test set that drives the testbench [default: made up].")  # fmt: skip
@data_option
@compile_options
@cut_options(conversion=False)
@collecting(driving=Driving)
def command(*, network_file: Path, output: Path, driving: Driving, compiling: Compiling, cutting: Cutting) -> None:
    """Compile NETWORK (.pt or .npz) to a SPICE netlist with testbench and mapping report.

    The folder receives network.sp, devices.lib, testbench.sp, expected.csv, mapping.csv, mapping.json, design.json, and
    for the eye network.svg and report.html.
    Every learned parameter stands in the mapping with its circuit element, its target and its realised value; the
    states and currents that the testbench should show stand in expected.csv. With --dialect spectre the first three
    are network.scs, devices.scs and testbench.scs, with vacask network.inc, devices.inc and testbench.sim. With
    self-cascodes start.sp holds the operating point that testbench.sp begins at, where ngspice is there to find it.

    A backbone of cosim backbone is cut: its cells are compiled, a folder for each, and partitions.json says what stays
    software and what the converters between them are. --data is then the folder of its task.
    """
    from cosim.checkpoint.file import stays_software
    from cosim.circuit.waveforms import Timing
    from cosim.outputs import Exercise, summarize
    from cosim.report.design_page import write_design, write_design_page
    from cosim.report.kept_page import REPORT_FILE
    from cosim.tasks.testset import load_test_set

    data, stimulus = driving.data, driving.stimulus
    if stays_software(network_file):
        if stimulus is not None:
            raise InputError("--stimulus is for a network that compiles whole; leave it out for a backbone")
        compile_backbone(network_file, output, compiling, Wanted(cutting, data, dialect_named(driving.dialect)))
        return
    cutting.refuse()
    if data is not None and stimulus is None:
        raise InputError(f"--data {data}: test data are for a stimulus only; add --stimulus 0, or leave --data out")
    check_outputs("compile", output)
    design, condition = load_design(network_file, compiling)
    x = None if stimulus is None else load_test_set(design.network, data).inputs(stimulus)
    take_folder("compile", output)
    exercise = Exercise(Timing(t_step=compiling.t_step), condition, x)
    paths = write_design(design, output, exercise, dialect_named(driving.dialect), say)
    write_design_page(design, output, condition)
    _say_design(network_file, summarize(design, condition))
    written = f"  written           {', '.join(path.name for path in paths)} in {output}"
    click.echo(fill(written, 79, subsequent_indent=20 * " ", break_long_words=False, break_on_hyphens=False))
    click.echo(f"  report            {output / REPORT_FILE}")


def _say_design(network_file: Path, summary: dict[str, Any]) -> None:
    """The design in figures, and what was lost."""
    click.echo(f"{network_file}: {summary['task'] or 'network'} on {summary['technology']}")
    click.echo(f"  transistors       {summary['transistors']} ({summary['unit_devices']} unit devices)")
    gates, capacitors = summary["gate_area_um2"], summary["capacitor_area_um2"]
    click.echo(f"  area, estimated   {gates:.0f} um2 of gates, {capacitors:.0f} um2 of capacitors")
    click.echo(f"  bias pins         {summary['bias_pins']}")
    click.echo(f"  unit current      {format_quantity(summary['i_unit_a'], 'A')} per software 1.0")
    statuses = ", ".join(f"{count} {status}" for status, count in summary["statuses"].items())
    click.echo(f"  parameters        {summary['parameters']}: {statuses}")
    for parameter in summary["lost"][:20]:
        click.echo(f"    lost: {parameter} (see mapping.csv)")
    if len(summary["lost"]) > 20:
        click.echo(f"    and {len(summary['lost']) - 20} more")
