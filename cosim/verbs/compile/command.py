"""Command `cosim compile`: compile a trained network to a SPICE netlist."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Literal

from cosim.base.bounds import NUMBER
from cosim.base.errors import InputError
from cosim.circuit.dialects.dialect import Dialect
from cosim.circuit.dialects.table import DIALECTS, dialect_named
from cosim.cli.progress import say
from cosim.cli.session import VerbSession
from cosim.cli.settings import RunVerb
from cosim.cli.types import Integer
from cosim.cli.verb import Result, group_of, one_of, option, switch, verb
from cosim.verbs.common import (
    Compiling,
    check_outputs,
    data_option,
    load_design,
    network_argument,
    noise_of,
    output_option,
)
from cosim.verbs.partitions.command import bits_option, compile_backbone, refuse_converters

MARGINS_FILE = "margins.json"


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """Options of `cosim compile`: network, simulator of the files, stimulus of the testbench, and count of margins."""

    network_file: Path = network_argument()
    to: Literal["netlist", "xschem"] = one_of(("netlist", "xschem"), "Add schematics for xschem.")
    output: Path = output_option("netlist")
    dialect: str = one_of(
        [dialect.name for dialect in DIALECTS], "Simulator that the files are for.", default="ngspice"
    )
    models: Literal["cards", "foundry"] = one_of(
        ("cards", "foundry"),
        "What transistors are in the netlist: cards of numbers, or devices of the foundry's library.",
    )
    stimulus: int | None = option(
        "Sample of the test set that drives the testbench [default: made up].", Integer(NUMBER), metavar="N"
    )
    margins: bool = switch("Count how many sigma the test set's decisions are from thresholds.")
    data: Path | None = data_option()
    compiling: Compiling = group_of(Compiling)
    bits: int | None = bits_option()

    @property
    def written_dialect(self) -> Dialect:
        """Return the dialect of the files; raises InputError where it has no form for the foundry's devices."""
        return dialect_named(self.dialect, foundry=self.models == "foundry")


def run(options: CompileOptions, session: VerbSession) -> Result:
    """Compile NETWORK (.pt, .npz) to a netlist with testbench and mapping report.

    The folder receives network.sp, devices.lib, testbench.sp, expected.csv, mapping.csv, mapping.json, design.json, and
    for the eye network.svg and report.html.
    Every learned parameter stands in the mapping with its circuit element, target and realised value; expected.csv has
    the states and currents that the testbench should show. With --dialect spectre the first three are network.scs,
    devices.scs and testbench.scs, with vacask network.inc, devices.inc and testbench.sim. start.sp holds the operating
    point that ngspice begins at. With --to xschem the folder xschem has schematics: xschem network.sch shows them.

    A backbone of cosim backbone is cut: its cells are compiled, a folder for each, and partitions.json says what stays
    software, and which converters lie between. --data is then the folder of its task.
    """
    from cosim.network.software_only import stays_software

    data, stimulus = options.data, options.stimulus
    if stays_software(options.network_file):
        given = {
            "--stimulus": stimulus is not None,
            "--margins": options.margins,
            "--to xschem": options.to == "xschem",
        }
        if name := next((name for name, there in given.items() if there), None):
            raise InputError(f"{name} is for a network that compiles whole; leave it out for a backbone")
        return compile_backbone(options, session)
    refuse_converters(options.bits)
    if data is not None and stimulus is None and not options.margins:
        raise InputError(
            f"--data {data}: test data are for a stimulus or margins; add --stimulus 0 or --margins, or leave it out"
        )
    return _compile_whole(options, session)


def _compile_whole(options: CompileOptions, session: VerbSession) -> Result:
    """Compile a network that becomes a circuit as a whole, without software parts, and write its files."""
    from cosim.base.store import write_results
    from cosim.base.text import json_object
    from cosim.circuit.waveforms import Timing
    from cosim.results.kept_page import REPORT_FILE, write_page
    from cosim.results.page import WIDTH
    from cosim.tasks.testset import load_test_set
    from cosim.verbs.compile.margins import study_margins
    from cosim.verbs.compile.outputs import Exercise, describe_form, summarize
    from cosim.verbs.compile.page import design_page, write_design
    from cosim.verbs.compile.xschem.files import FOLDER, write_xschem
    from cosim.verbs.loading import teller

    output, stimulus = options.output, options.stimulus
    check_outputs("compile", output)
    dialect = options.written_dialect
    design, condition = load_design(options.network_file, options.compiling)
    needed = stimulus is not None or options.margins
    test_set = load_test_set(design.network, options.data) if needed else None
    x = None if stimulus is None or test_set is None else test_set.inputs(stimulus)
    margins = None
    if options.margins and test_set is not None:
        margins = study_margins(design, test_set, noise_of(design, 0), condition)
    session.take_folder("compile", output)
    exercise = Exercise(Timing(t_step=options.compiling.t_step), condition, x)
    tell = teller(design.network, say)
    tell("writing netlist, testbench and mapping report")
    names = [path.name for path in write_design(design, output, exercise, dialect, say)]
    if options.to == "xschem":
        tell("drawing the schematics")
        names += (f"{FOLDER}/{path.name}" for path in write_xschem(design, output, dialect)[:1])
    tell("writing the page")
    page = design_page(design, condition, margins)
    write_page(output, page)
    if margins is not None:
        write_results(output, {MARGINS_FILE: json_object(margins)})
        names.append(MARGINS_FILE)
    written = fill(f"written: {', '.join(names)} in {output}", WIDTH, break_long_words=False, break_on_hyphens=False)
    figures = {**summarize(design, condition), **describe_form(dialect)}
    return Result(figures, page, report=f"{written}\nreport: {output / REPORT_FILE}")


command = verb(CompileOptions, run, RunVerb)
