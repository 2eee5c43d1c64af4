"""`compile` and `compare` of a backbone: its cells become circuits, the rest stays software."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import CONVERTER_BITS, Bounds
from cosim.base.errors import InputError
from cosim.base.quantities import format_quantity
from cosim.cli.help import GroupedOption
from cosim.cli.options import SAMPLES, Option, collecting, options
from cosim.cli.progress import progress_bar, say
from cosim.cli.types import Integer, Quantity
from cosim.engines.table import engine_entry, simulator_beside
from cosim.verbs.audit import audit_count, check_audit
from cosim.verbs.common import (
    Compiling,
    Destination,
    Running,
    check_outputs,
    say_failed,
    take_folder,
    write_json,
)

if TYPE_CHECKING:
    from cosim.circuit.dialects.dialect import Dialect
    from cosim.verbs.bias import Bias


class BackboneOption(GroupedOption):
    """Group of the options on a backbone's converters."""

    title, shared = "A backbone's converters", True


bits_option = click.option(
    "--bits", cls=BackboneOption, type=Integer(CONVERTER_BITS), help="Of a backbone's converters: 2 to 6.  [default: 2]"
)
conversion_option = click.option(
    "--conversion",
    cls=BackboneOption,
    type=Quantity(Bounds(0, 1000, "J", open_low=True)),
    help="Energy of a converter's conversion; of a backbone.",
)


@dataclass(frozen=True)
class Cutting:
    """Options on a backbone's converters; None for one that was not given."""

    bits: int | None
    conversion: float | None = None

    def refuse(self) -> None:
        """Raise InputError where one of these options is given for a network that compiles whole."""
        for option in ("bits", "conversion"):
            if getattr(self, option) is not None:
                raise InputError(
                    f"--{option} is for the converters of a backbone, and this network compiles whole; leave it out"
                )

    @property
    def width(self) -> int:
        """Return the bits of a converter."""
        from cosim.papers.converter import BITS

        return BITS if self.bits is None else self.bits


def cut_options(*, conversion: bool) -> Option:
    """Return --bits, and with `conversion` the option for the energy of one, as a `Cutting`."""
    return options(bits_option, *((conversion_option,) if conversion else ()), collecting(cutting=Cutting))


@dataclass(frozen=True)
class PartitionCompileOptions:
    """Options of `cosim compile` of a backbone: converters, data of the task, and the simulator that files are for."""

    cutting: Cutting
    data: Path | None
    dialect: "Dialect"


def compile_backbone(path: Path, folder: Path, compiling: Compiling, wanted: PartitionCompileOptions) -> None:
    """Run `cosim compile` on a backbone."""
    from cosim.circuit.waveforms import Timing
    from cosim.verbs.compile.outputs import Exercise
    from cosim.verbs.partitions.page import format_parts
    from cosim.verbs.partitions.run import PARTITIONS, open_cut, write_partitions

    _refuse(compiling)
    check_outputs("compile", folder)
    opened = open_cut(path, wanted.data, wanted.cutting.width)
    built = opened.compile(compiling.place, compiling.settings, say)
    take_folder("compile", folder)
    exercise = Exercise(Timing(t_step=compiling.t_step))
    rows = write_partitions(built, folder, exercise, wanted.dialect, say)
    click.echo(
        f"{path}: {opened.source.name} on {compiling.technology}, in {len(rows)} partition{'s' * (len(rows) > 1)}"
    )
    click.echo("\n".join(f"  {line}" for line in format_parts(opened.cut.parts())))
    for row in rows:
        power, rate = (format_quantity(float(str(row[key])), unit, 4)
                       for key, unit in (("power_behavioral_w", "W"), ("conversions_per_s", "/s")))  # fmt: skip
        click.echo(f"  {row['name']:18}{row['transistors']} transistors, {power}; {row['cells']} converters of "
                   f"{row['bits']} bits, {rate}")  # fmt: skip
    click.echo(f"  written           {PARTITIONS} and a folder for each partition in {folder}")


@dataclass(frozen=True)
class PartitionCompareOptions:
    """Options of `cosim compare` of a backbone: bias currents, engine, audit and converters."""

    bias: "Bias"
    engine: str
    audit: int | None
    cutting: Cutting


def compare_backbone(
    path: Path, to: Destination, how: PartitionCompareOptions, compiling: Compiling, running: Running
) -> None:
    """Run `cosim compare` on a backbone."""
    from cosim.circuit.waveforms import Timing
    from cosim.engines.engine import Run
    from cosim.engines.simulation.simulated import engine_named
    from cosim.verbs.bias import biased
    from cosim.verbs.partitions.page import format_deployed
    from cosim.verbs.partitions.run import PartitionReportOptions, open_cut, run_partitions

    _refuse(compiling)
    audit = audit_count(how.audit, how.engine)
    check_outputs("compare", to.output, to.json_file)
    opened = open_cut(path, running.data, how.cutting.width)
    count = running.samples or (None if engine_entry(how.engine).quick else SAMPLES)
    samples = opened.tests(count, running.seed, say)
    beside = simulator_beside(how.engine)
    built = opened.compile(compiling.place, compiling.settings, say)
    conditions = [
        biased(design, condition.technology, how.bias, beside)
        for design, condition in zip(built.designs, built.conditions, strict=True)
    ]
    built = replace(built, conditions=tuple(conditions))
    engine_named(how.engine).check()
    take_folder("compare", to.output)
    run = Run(to.output, running.jobs, running.timeout, Timing(t_step=compiling.t_step), how.engine)
    with progress_bar(how.engine) as progress:
        summary = run_partitions(built, samples, run, PartitionReportOptions(how.cutting.conversion, audit), progress)
    click.echo("\n".join(format_deployed(summary)))
    write_json(to.json_file, summary)
    click.echo(f"\nreport: {to.output / 'report.html'}")
    for one in summary.audits:
        check_audit(one, to.output)
    say_failed(summary.failed, to.output)


def _refuse(compiling: Compiling) -> None:
    if compiling.ranges_from is not None:
        raise InputError("--ranges-from is for ladders, and a backbone's cells are bits; leave it out")
