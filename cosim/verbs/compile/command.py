"""cosim compile: a trained network to a netlist."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from cosim.base.bounds import NUMBER
from cosim.base.errors import InputError
from cosim.circuit.dialects.table import DIALECTS, dialect_named
from cosim.cli.options import collecting, data_option, network_argument, one_of, output_option
from cosim.cli.progress import say
from cosim.cli.settings import RunVerb
from cosim.cli.types import Integer
from cosim.verbs.common import Compiling, check_outputs, compile_options, load_design, take_folder
from cosim.verbs.partitions.command import Cutting, PartitionCompileOptions, compile_backbone, cut_options

if TYPE_CHECKING:
    from cosim.compiler.design import Condition, Design
    from cosim.tasks.testset import TestSet
    from cosim.verbs.compile.margins import Margins

MARGINS_FILE = "margins.json"


@dataclass(frozen=True)
class Driving:
    """The simulator that it is written for, the test sample that drives it, and whether margins are counted."""

    dialect: str
    stimulus: int | None
    margins: bool
    data: Path | None


@click.command(cls=RunVerb)
@network_argument
@click.option("--to", type=click.Choice(["netlist"]), default="netlist", expose_value=False, help="What to make.")
@output_option("netlist")
@one_of("--dialect", [dialect.name for dialect in DIALECTS], "Simulator that the files are for.", "ngspice")
@click.option("--stimulus", type=Integer(NUMBER), metavar="N",
              help="Sample of the test set that drives the testbench [default: made up].")  # fmt: skip
@click.option("--margins", is_flag=True, help="Count how many sigma the test set's decisions are from thresholds.")
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
    are network.scs, devices.scs and testbench.scs, with vacask network.inc, devices.inc and testbench.sim. For ngspice
    start.sp holds the operating point that testbench.sp begins at, where ngspice is there to find it.

    A backbone of cosim backbone is cut: its cells are compiled, a folder for each, and partitions.json says what stays
    software and what the converters between them are. --data is then the folder of its task.
    """
    from cosim.circuit.waveforms import Timing
    from cosim.exchange.checkpoint import stays_software
    from cosim.results.kept_page import REPORT_FILE
    from cosim.tasks.testset import load_test_set
    from cosim.verbs.compile.outputs import Exercise, summarize
    from cosim.verbs.compile.page import write_design, write_design_page
    from cosim.verbs.loading import teller

    data, stimulus = driving.data, driving.stimulus
    if stays_software(network_file):
        if stimulus is not None or driving.margins:
            option = "--stimulus" if stimulus is not None else "--margins"
            raise InputError(f"{option} is for a network that compiles whole; leave it out for a backbone")
        compile_backbone(
            network_file, output, compiling, PartitionCompileOptions(cutting, data, dialect_named(driving.dialect))
        )
        return
    cutting.refuse()
    if data is not None and stimulus is None and not driving.margins:
        raise InputError(
            f"--data {data}: test data are for a stimulus or margins; add --stimulus 0 or --margins, or leave it out"
        )
    check_outputs("compile", output)
    design, condition = load_design(network_file, compiling)
    test_set = None if stimulus is None and not driving.margins else load_test_set(design.network, data)
    x = None if stimulus is None or test_set is None else test_set.inputs(stimulus)
    margins = count_margins(design, test_set, condition) if driving.margins and test_set is not None else None
    take_folder("compile", output)
    exercise = Exercise(Timing(t_step=compiling.t_step), condition, x)
    tell = teller(design.network, say)
    tell("writing netlist, testbench and mapping report")
    names = [path.name for path in write_design(design, output, exercise, dialect_named(driving.dialect), say)]
    tell("writing the page")
    write_design_page(design, output, condition, margins)
    _say_design(network_file, summarize(design, condition))
    if margins is not None:
        names.append(keep_margins(output, margins))
    written = f"  written           {', '.join(names)} in {output}"
    click.echo(fill(written, 79, subsequent_indent=20 * " ", break_long_words=False, break_on_hyphens=False))
    click.echo(f"  report            {output / REPORT_FILE}")


def count_margins(design: "Design", test_set: "TestSet", condition: "Condition | None") -> "Margins":
    """Measure the margins of all decisions on all samples of a test set."""
    from cosim.variation.noise import NoiseSimulation
    from cosim.verbs.calibrate.noise import find_noise
    from cosim.verbs.compile.margins import study_margins

    return study_margins(design, test_set, NoiseSimulation(find_noise(design.technology, say)), condition)


def keep_margins(output: Path, margins: "Margins") -> str:
    """Print them, and say the file that they are in."""
    from cosim.base.store import write_results
    from cosim.base.text import json_object
    from cosim.verbs.compile.margins_table import format_margins

    write_results(output, {MARGINS_FILE: json_object(margins)})
    click.echo("\n".join(format_margins(margins)))
    return MARGINS_FILE


def _say_design(network_file: Path, summary: dict[str, Any]) -> None:
    """Print the design in figures, and what was lost."""
    from cosim.verbs.tables import format_circuit

    first, *rest = format_circuit(summary)
    click.echo("\n".join([f"{network_file}: {first}", *rest]))
