"""cosim compare: compare software, behavioral model and circuit simulator."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.errors import InputError
from cosim.cli.progress import progress_bar, say
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import NAMES_TYPE
from cosim.cli.verb import Result, group_of, one_of, option, switch, verb
from cosim.engines.table import BEHAVIORAL, engines, simulator_beside
from cosim.verbs.common import (
    RUNNING_GROUP,
    TECHNOLOGY_GROUP,
    Compiling,
    Running,
    audit_count,
    audit_option,
    bias_option,
    check_outputs,
    chosen_engine,
    describe_audit,
    describe_failed,
    engine_option,
    extracted_option,
    json_option,
    load_run,
    network_argument,
    noise_of,
    noise_option,
    output_option,
    probe_option,
    supplies_option,
    target_technology,
    temperatures_option,
    tolerance_option,
)
from cosim.verbs.partitions.command import bits_option, compare_backbone, conversion_option, refuse_converters

if TYPE_CHECKING:
    from cosim.technology.conditions import ConditionGrid
    from cosim.technology.types import Flicker, Technology
    from cosim.verbs.bias import Bias
    from cosim.verbs.compare.agreement import ComparisonSummary
    from cosim.verbs.compare.pvt import Sweep
    from cosim.verbs.montecarlo.spec import Specs


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Options of `cosim compare`."""

    network_file: Path = network_argument()
    output: Path = output_option("runs/compare")
    json_file: Path | None = json_option()
    pvt: bool = switch("Run every corner at every temperature and supply.")
    corners: tuple[tuple[str, ...], ...] = option(
        "Corners that --pvt runs, such as ss,ff [default: all].", NAMES_TYPE, None, TECHNOLOGY_GROUP, multiple=True
    )
    temps: tuple[tuple[float, ...], ...] = temperatures_option(
        "Temperatures that --pvt runs, celsius [default: 0,27,60]."
    )
    supplies: tuple[tuple[float, ...], ...] = supplies_option(
        "Supplies that --pvt runs, volt [default: 95, 100 and 105 % of the technology's]."
    )
    bias: "Bias" = bias_option()
    engine: str | None = engine_option(
        "Simulator of the transistors.", lambda: tuple(entry for entry in engines() if entry.name != BEHAVIORAL)
    )
    audit: int | None = audit_option()
    tolerance: float | None = tolerance_option()
    specs: tuple[str, ...] = option(
        "What must hold, as in cosim montecarlo, else exit status 1; repeatable.", flags=("--spec",), multiple=True
    )
    probe: tuple[str, ...] = probe_option()
    extracted: Path | None = extracted_option("simulated, too")
    noise: bool = noise_option()
    flicker: "Flicker" = one_of(
        ("typical", "worst"), "Of the noise; worst where the technology says it.", RUNNING_GROUP
    )
    compiling: Compiling = group_of(Compiling)
    running: Running = group_of(Running)
    bits: int | None = bits_option()
    conversion: float | None = conversion_option()


def run(options: CompareOptions, session: VerbSession) -> Result:
    """Compare NETWORK's software, behavioral and simulated results.

    The folder receives report.html, comparison.json, waveforms.png and confusion.png, with --pvt pvt.json and pvt.png.
    The same command continues an interrupted run.

    A backbone is cut as cosim compile cuts it, and whole traces go through its circuits (partitions.json). --data is
    then the folder of its task.
    """
    from cosim.engines.simulation.simulated import engine_named
    from cosim.network.software_only import stays_software
    from cosim.results.kept_page import read_page
    from cosim.verbs.bias import biased
    from cosim.verbs.simulate.waveforms import choose

    software = stays_software(options.network_file)
    _check_asked(options, software=software)
    if software:
        return compare_backbone(options, session)
    refuse_converters(options.bits, options.conversion)
    technology = target_technology(options.compiling)
    engine = chosen_engine(options.engine, technology)
    output, audit = options.output, audit_count(options.audit, engine, technology)
    check_outputs("compare", output, options.json_file)
    specs = _specs(options.specs)
    design, test_set, run = load_run(options.network_file, output, options.compiling, options.running, engine)
    test_set = test_set.tolerating(options.tolerance)
    watched = choose(design, options.probe)
    if options.extracted is not None:
        from cosim.mask.record import extracted

        design = extracted(design, options.extracted)
    if not options.pvt:
        there = run.standing(design).technology
        condition = biased(design, there, options.bias, simulator_beside(engine, there))
        run = replace(run, condition=condition)
    engine_named(engine).check()  # said before the work
    session.take_folder("compare", output)

    from cosim.verbs.compare.page import run_comparison
    from cosim.verbs.compare.pvt import run_pvt

    with progress_bar(engine) as progress:
        if options.pvt:
            grid = _grid(options, design.technology)
            summary = run_pvt(design, test_set, run, progress, grid, audit=audit, bias=options.bias, finished=say)
        else:
            noise = noise_of(design, options.running.seed, options.flicker) if options.noise else None
            run = replace(run, noise=noise)
            summary = run_comparison(design, test_set, run, progress, audit=audit, watched=watched)
    met, said = judge_specs(specs, summary, run.standing(design).technology)
    return Result(
        summary,
        read_page(output),
        said,
        report=f"report: {output / 'report.html'}",
        fault=describe_audit(summary.audit, output) or describe_failed(summary.failed, output) or (None if met else ""),
    )


def _grid(options: CompareOptions, technology: "Technology") -> "ConditionGrid":
    """Return the conditions of --pvt: each axis as it was typed, or by default."""
    from cosim.technology.conditions import ConditionGrid

    usual = ConditionGrid()
    supplies = tuple(volts / technology.supply for volts in sum(options.supplies, ()))
    return ConditionGrid(
        corners=sum(options.corners, ()) or usual.corners,
        celsius=sum(options.temps, ()) or usual.celsius,
        supplies=supplies or usual.supplies,
    )


def _specs(texts: tuple[str, ...]) -> "Specs":
    """Parse the specs of a comparison. Raises InputError for a spec on yield, which needs a Monte Carlo run."""
    from cosim.verbs.montecarlo.spec import read_specs, without_yield

    specs, of_all = without_yield(read_specs(texts))
    if of_all:
        raise InputError("--spec yield is of chips; give it to cosim montecarlo")
    return specs


def _check_asked(options: CompareOptions, *, software: bool) -> None:
    """Raise InputError for options that exclude each other. software: the network is a backbone, not a circuit."""
    place = options.compiling
    if options.probe and (options.pvt or software):
        raise InputError("--probe is for a network that compiles whole, without --pvt; leave it out")
    if options.pvt and any(value is not None for value in (place.corner, place.celsius, place.supply)):
        raise InputError(
            "--pvt runs a grid of conditions; choose them with --corners, --temps and --supplies, and leave --corner, "
            "--temp and --supply out"
        )
    if not options.pvt and (options.corners or options.temps or options.supplies):
        raise InputError(
            "--corners, --temps and --supplies are of --pvt; add it, or give one condition with --corner, --temp and "
            "--supply"
        )
    if options.flicker != "typical" and not options.noise:
        raise InputError(f"--flicker {options.flicker} is of the noise; add --noise, or leave it out")
    if options.noise and (options.pvt or software):
        raise InputError("--noise is for a network that compiles whole, without --pvt; leave it out")
    if options.pvt and software:
        raise InputError("--pvt is for a network that compiles whole; give a backbone one --corner at a time")


def judge_specs(specs: "Specs", summary: "ComparisonSummary | Sweep", there: "Technology") -> tuple[bool, list[str]]:
    """Tell whether all specs are met, for a sweep in every condition, and return lines of text that say so.
    there: technology in the condition of a single comparison."""
    from cosim.verbs.compare.pvt import Sweep
    from cosim.verbs.montecarlo.spec import format_verdicts, judge

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


command = verb(CompareOptions, run, KeepingVerb)
