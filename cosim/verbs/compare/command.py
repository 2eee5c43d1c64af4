"""cosim compare: software against behavioral against a circuit simulator."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.errors import InputError
from cosim.cli.options import (
    FILE,
    RunningOption,
    bias_option,
    collecting,
    engine_option,
    network_argument,
    noise_option,
    one_of,
    probe_option,
    tolerance_option,
)
from cosim.cli.progress import progress_bar, say
from cosim.cli.settings import KeepingVerb
from cosim.engines.table import BEHAVIORAL, Entry, engines, simulator_beside
from cosim.verbs.audit import audit_count, audit_option, check_audit
from cosim.verbs.common import (
    Compiling,
    Destination,
    Running,
    check_outputs,
    compile_options,
    destination_options,
    load_run,
    noise_of,
    run_options,
    say_failed,
    take_folder,
    write_json,
)
from cosim.verbs.partitions.command import Cutting, PartitionCompareOptions, compare_backbone, cut_options

if TYPE_CHECKING:
    from cosim.compiler.design import Design
    from cosim.technology.types import Flicker, Technology
    from cosim.verbs.bias import Bias
    from cosim.verbs.compare.agreement import ComparisonSummary
    from cosim.verbs.compare.pvt import Sweep
    from cosim.verbs.montecarlo.spec_file import Specs


@dataclass(frozen=True)
class CompareOptions:
    """Under which conditions, with which bias currents, the simulator of the transistors, how many it audits; the error
    of a right answer; whether decisions have noise, and with which flicker; and the converters of a backbone."""

    pvt: bool
    bias: "Bias"
    engine: str
    audit: int | None
    tolerance: float | None
    specs: tuple[str, ...]
    probe: tuple[str, ...]
    extracted: Path | None
    noise: bool
    flicker: "Flicker"
    cutting: Cutting


def _compared() -> tuple[Entry, ...]:
    """Return the engines that the behavioral one is compared with."""
    return tuple(entry for entry in engines() if entry.name != BEHAVIORAL)


@click.command(cls=KeepingVerb)
@network_argument
@destination_options("runs/compare")
@click.option("--pvt", is_flag=True, help="Run every corner at 0, 27 and 60 C and at 95, 100 and 105 % supply.")
@bias_option
@engine_option("What stands for the transistors.", _compared)
@audit_option
@tolerance_option
@click.option(
    "--spec",
    "specs",
    multiple=True,
    help="What must hold, as in cosim montecarlo, else exit status 1; repeatable.",
)
@probe_option
@click.option(
    "--extracted", cls=RunningOption, type=FILE, help="Folder of cosim layout, whose wires are simulated, too."
)
@noise_option
@one_of("--flicker", ("typical", "worst"), "Of the noise; worst where the technology says it.", cls=RunningOption)
@compile_options
@run_options
@cut_options(conversion=True)
@collecting(how=CompareOptions)
def command(
    *, network_file: Path, to: Destination, how: CompareOptions, compiling: Compiling, running: Running
) -> None:
    """Compare NETWORK's software, behavioral and simulated results.

    The folder receives report.html, comparison.json, waveforms.png and confusion.png, with --pvt pvt.json and pvt.png.
    The same command continues an interrupted run.

    A backbone of cosim backbone is cut as cosim compile cuts it, and whole traces go through its circuits; the folder
    receives partitions.json. --data is then the folder of its task.
    """
    from cosim.engines.simulation.simulated import engine_named
    from cosim.exchange.checkpoint import stays_software
    from cosim.verbs.bias import biased
    from cosim.verbs.pipeline import Beside, Conditions, Listener, run_comparison, run_pvt
    from cosim.verbs.simulate.probing import choose
    from cosim.verbs.tables import format_comparison, format_pvt

    _check_asked(how, compiling, software=stays_software(network_file))
    if stays_software(network_file):
        compare_backbone(
            network_file, to, PartitionCompareOptions(how.bias, how.engine, how.audit, how.cutting), compiling, running
        )
        return
    how.cutting.refuse()
    output, audit = to.output, audit_count(how.audit, how.engine)
    check_outputs("compare", output, to.json_file)
    specs = _specs(how.specs)
    design, test_set, run = load_run(network_file, output, compiling, running, how.engine)
    test_set = test_set.tolerating(how.tolerance)
    watched, design = choose(design, how.probe), _with_wires(design, how.extracted)
    if not how.pvt:
        condition = biased(design, run.standing(design).technology, how.bias, simulator_beside(how.engine))
        run = replace(run, condition=condition)
    engine_named(how.engine).check()  # said before the work
    take_folder("compare", output)
    with progress_bar(how.engine) as progress:
        if how.pvt:
            listener, asked = Listener(progress, say), Conditions(how.bias, audit)
            lines = format_pvt(summary := run_pvt(design, test_set, run, listener, asked))
        else:
            noise = noise_of(design, running.seed, how.flicker) if how.noise else None
            summary = run_comparison(design, test_set, run, progress, Beside(audit, watched, noise))
            lines = format_comparison(summary)
    met, said = judge_specs(specs, summary, run.standing(design).technology)
    click.echo("\n".join(lines + said))
    write_json(to.json_file, summary)
    click.echo(f"\nreport: {output / 'report.html'}")
    check_audit(summary.audit, output)
    say_failed(summary.failed, output)
    if not met:
        raise SystemExit(1)


def _specs(texts: tuple[str, ...]) -> "Specs":
    """Parse the specs of a comparison. Raises InputError for a spec on yield, which only chips have."""
    from cosim.verbs.montecarlo.spec_file import read_specs, without_yield

    specs, of_all = without_yield(read_specs(texts))
    if of_all:
        raise InputError("--spec yield is of chips; give it to cosim montecarlo")
    return specs


def _check_asked(how: CompareOptions, compiling: Compiling, *, software: bool) -> None:
    """Raise InputError for options that exclude each other; software: the network is a backbone."""
    if how.probe and (how.pvt or software):
        raise InputError("--probe is for a network that compiles whole, without --pvt; leave it out")
    if how.pvt and any(value is not None for value in (compiling.corner, compiling.celsius, compiling.supply)):
        raise InputError("--pvt runs all conditions; leave --corner, --temp and --supply out")
    if how.flicker != "typical" and not how.noise:
        raise InputError(f"--flicker {how.flicker} is of the noise; add --noise, or leave it out")
    if how.noise and (how.pvt or software):
        raise InputError("--noise is for a network that compiles whole, without --pvt; leave it out")
    if how.pvt and software:
        raise InputError("--pvt is for a network that compiles whole; give a backbone one --corner at a time")


def _with_wires(design: "Design", folder: Path | None) -> "Design":
    """Return the design with the wires of its layout, where there is one."""
    from cosim.layout.backannotate import extracted

    return design if folder is None else extracted(design, folder)


def judge_specs(specs: "Specs", summary: "ComparisonSummary | Sweep", there: "Technology") -> tuple[bool, list[str]]:
    """Tell whether all specs are met, in every condition of a sweep, and return the lines that say so."""
    from cosim.verbs.compare.pvt import Sweep
    from cosim.verbs.montecarlo.spec_file import format_verdicts, judge

    if not isinstance(summary, Sweep):
        verdicts = judge(specs.at(there), summary.measured)
        return all(one.met for one in verdicts), format_verdicts(verdicts)
    met, lines = True, list[str]()
    for row in summary.conditions:
        own = specs.at(replace(there, corner=row.corner, celsius=row.celsius, supply=row.supply_v))
        missed = [one for one in judge(own, row.measured) if not one.met] if row.measured else []
        if own and (missed or not row.measured):
            met = False
            where = f"{row.corner} {row.celsius:g} C {row.supply_v:.4g} V"
            names = ", ".join(one.spec for one in missed) or "every simulation failed"
            lines.append(f"spec missed     {where}: {names}")
    if specs.all and met:
        lines.append(f"specs           met in all {len(summary.conditions)} conditions")
    return met, lines
