"""Commands `cosim compile` and `cosim compare` for a backbone: its cells become circuits, the rest stays software."""

from dataclasses import replace
from typing import TYPE_CHECKING

from cosim.base.bounds import CONVERTER_BITS, Bounds
from cosim.base.errors import InputError
from cosim.cli.help import OptionGroup
from cosim.cli.progress import progress_bar, say
from cosim.cli.session import VerbSession
from cosim.cli.types import Integer, Quantity
from cosim.cli.verb import Declared, Result, option
from cosim.engines.table import engine_entry, simulator_beside
from cosim.verbs.common import (
    SAMPLES,
    Compiling,
    audit_count,
    check_outputs,
    chosen_engine,
    describe_audit,
    describe_failed,
    target_technology,
)

if TYPE_CHECKING:
    from cosim.verbs.compare.command import CompareOptions
    from cosim.verbs.compile.command import CompileOptions
    from cosim.verbs.partitions.study import CompiledPartition


BACKBONE = OptionGroup("A backbone's converters", shared=True)


def bits_option() -> Declared:
    """Declare the option for the number of bits of a backbone's converters."""
    return option("Of a backbone's converters: 2 to 6.  [default: 2]", Integer(CONVERTER_BITS), None, BACKBONE)


def conversion_option() -> Declared:
    """Declare the option for the energy of one conversion by a backbone's converters, J."""
    kind = Quantity(Bounds(0, 1000, "J", open_low=True))
    return option("Energy of a converter's conversion; of a backbone.", kind, None, BACKBONE)


def refuse_converters(bits: int | None, conversion: float | None = None) -> None:
    """Check that no option on converters is given; for networks that compile whole. Raises InputError."""
    for name, value in (("bits", bits), ("conversion", conversion)):
        if value is not None:
            raise InputError(
                f"--{name} is for the converters of a backbone, and this network compiles whole; leave it out"
            )


def compile_backbone(options: "CompileOptions", session: VerbSession) -> Result:
    """Run `cosim compile` on a backbone: cut it, and compile its cells, a folder for each partition."""
    from cosim.circuit.waveforms import Timing
    from cosim.results.kept_page import REPORT_FILE, read_page
    from cosim.verbs.compile.outputs import Exercise, check_readable
    from cosim.verbs.partitions.run import PARTITIONS, open_cut, write_partitions

    folder, compiling = options.output, options.compiling
    _refuse(compiling)
    check_outputs("compile", folder)
    dialect = options.written_dialect
    backbone = open_cut(options.network_file, options.data, options.bits)
    backbone = backbone.compile(compiling.place, compiling.settings, say)
    for one in backbone.compiled:
        check_readable(one.design, dialect)
    session.take_folder("compile", folder)
    exercise = Exercise(Timing(t_step=compiling.t_step))
    content = write_partitions(backbone, folder, exercise, dialect, say)
    written = f"written: {PARTITIONS} and a folder for each partition in {folder}"
    return Result(content, read_page(folder), report=f"{written}\nreport: {folder / REPORT_FILE}")


def compare_backbone(options: "CompareOptions", session: VerbSession) -> Result:
    """Run `cosim compare` on a backbone: cut it, simulate its cells' circuits, and compare decisions with software."""
    from cosim.circuit.waveforms import Timing
    from cosim.engines.engine import Run
    from cosim.engines.simulation.simulated import engine_named
    from cosim.results.kept_page import REPORT_FILE, read_page
    from cosim.verbs.bias import biased
    from cosim.verbs.partitions.run import open_cut, report_partitions, run_partitions

    output, compiling, running = options.output, options.compiling, options.running
    _refuse(compiling)
    technology = target_technology(compiling)
    engine = chosen_engine(options.engine, technology)
    audit = audit_count(options.audit, engine, technology)
    check_outputs("compare", output, options.json_file)
    backbone = open_cut(options.network_file, running.data, options.bits)
    count = running.samples or (None if engine_entry(engine).quick else SAMPLES)
    samples = backbone.tests(count, running.seed, say)
    backbone = backbone.compile(compiling.place, compiling.settings, say)
    compiled: list[CompiledPartition] = []
    for one in backbone.compiled:
        there = one.run.standing(one.design).technology
        condition = biased(one.design, there, options.bias, simulator_beside(engine, there))
        compiled.append(replace(one, run=replace(one.run, condition=condition)))
    backbone = replace(backbone, compiled=tuple(compiled))
    engine_named(engine).check()
    session.take_folder("compare", output)
    run = Run(output, running.jobs, running.timeout, Timing(t_step=compiling.t_step), engine)
    with progress_bar(engine) as progress:
        deployed = run_partitions(backbone, samples, run, progress)
        summary = report_partitions(backbone, deployed, output, options.conversion, audit)
    refused = (describe_audit(one, output) for one in summary.audits)
    return Result(
        summary,
        read_page(output),
        report=f"report: {output / REPORT_FILE}",
        fault=next(filter(None, refused), None) or describe_failed(summary.failed, output),
    )


def _refuse(compiling: Compiling) -> None:
    if compiling.ranges_from is not None:
        raise InputError(
            "--ranges-from is for networks of cosim train: a backbone's states are measured over its training data; "
            "leave it out"
        )
    for name, given in (("--overrides", compiling.overrides), ("--netlist", compiling.netlist)):
        if given is not None:
            raise InputError(f"{name} is for one circuit, and a backbone becomes several; leave it out")
