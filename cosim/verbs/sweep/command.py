"""cosim sweep: a verb at every value of one or two of its options."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import JOBS
from cosim.base.errors import InputError
from cosim.base.version import __version__
from cosim.cli.options import json_option, output_option
from cosim.cli.progress import say
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer
from cosim.cli.verb import Result, argument, option, verb
from cosim.verbs.common import check_outputs
from cosim.verbs.inner import SWEPT, Content, InnerVerb, describe_network, fixed_options, read_inner

if TYPE_CHECKING:
    from cosim.results.metrics import Estimate
    from cosim.verbs.sweep.study import SweepAxis, SweepSummary, SweptPoint, Value

_ONE_RUN = {
    "replay": "replays one chip; leave it out of a sweep",
    "pvt": "is a sweep of its own; sweep corner, temp and supply instead",
    "output": "is the sweep's own; give it before what goes to the verb",
}


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Options of a sweep: the verb with the rest of its command line, what is swept, and which figures are shown."""

    verb: str = argument("VERB", click.Choice(SWEPT))
    rest: tuple[str, ...] = argument("NETWORK [OPTION OF VERB]...", click.UNPROCESSED, nargs=-1, required=True)
    over: tuple[str, ...] = option(
        "An option of VERB without its dashes, and its values: a,b,c or first:last:count, at the end :log for equal "
        "factors; a flag's are no,yes. Once or twice.",
        multiple=True, metavar="NAME=VALUES",
    )  # fmt: skip
    figures: tuple[str, ...] = option(
        "Figure to show, as VERB's JSON names it, such as power_w.behavioral; repeatable [default: the verb's main "
        "ones].",
        flags=("--figure",), multiple=True, metavar="NAME",
    )  # fmt: skip
    jobs: int = option("Worker processes of each run.", Integer(JOBS), 2, flags=("--jobs", "-j"))
    output: Path = output_option("runs/sweep")
    json_file: Path | None = json_option()


@dataclass(frozen=True)
class _Sweep:
    """A verb with its options but for the axes, the axes, the figures to show (none: the verb's own), the folder."""

    inner: InnerVerb
    axes: "tuple[SweepAxis, ...]"
    asked: tuple[str, ...]
    output: Path


def run(options: SweepOptions, session: VerbSession) -> Result:
    """Run VERB on NETWORK at every value of one or two of its options, and show what changes.

    VERB is montecarlo, compare, power, compile or trim. Every point is a run of it in a folder of its own, such as
    runs/sweep/area-0.5, with the same seed. The folder receives sweep.json, sweep.csv, sweep.png, sweep.svg and
    report.html. A point that cannot be run is a row with its reason, and the exit status is 1. The same command
    continues an interrupted sweep: every verb keeps what it has.
    """
    from cosim.results.kept_page import page_lines
    from cosim.verbs.sweep.axes import read_axes
    from cosim.verbs.sweep.page import write_sweep

    inner, output = read_inner(options.verb, options.rest, jobs=options.jobs, fresh=session.fresh), options.output
    sweep = _Sweep(inner, read_axes(options.over, inner.name, inner.command), options.figures, output)
    summary = _describe(sweep)
    check_outputs("sweep", output, options.json_file)
    session.take_folder("sweep", output)
    ran = list(_run_points(sweep))
    points = tuple(point for point, _ in ran)
    notes = _notes([content for _, content in ran])
    summary = replace(summary, points=points, figures=_shown(sweep, points), notes=notes)
    write_sweep(output, summary)
    troubled = sum(point.status != "ok" for point in points)
    fault = f"cosim: {troubled} of {len(points)} points failed or are incomplete; the table says why"
    return Result(
        summary,
        page_lines(output),
        report=f"report: {output / 'report.html'}   picture: {output / 'sweep.png'}",
        fault=fault if troubled else None,
    )


def _describe(sweep: _Sweep) -> "SweepSummary":
    """Return the summary of a sweep that has no points yet.

    Raises InputError for an option that is both fixed and swept, or that is for one run only.
    """
    from cosim.verbs.sweep.study import PAIRED, SweepSummary

    inner = sweep.inner
    given, network = inner.given, inner.network
    if both := next((axis.option for axis in sweep.axes if axis.option in given), None):
        raise InputError(f"--{both} is both fixed and swept with --over {both}; leave one of them out")
    if one := next((option for option in _ONE_RUN if given.get(option) is not None), None):
        raise InputError(f"--{one} {_ONE_RUN[one]}")
    swept = {axis.option for axis in sweep.axes}
    paired = "" if "seed" in swept else PAIRED.get(inner.name, "")
    fixed, subject = fixed_options(inner.command, given), describe_network(network)
    return SweepSummary(
        inner.name, *subject, network.name, fixed, sweep.axes, paired, (), (), (), {"cosim": __version__}
    )


def _run_points(sweep: _Sweep) -> "Iterator[tuple[SweptPoint, Content]]":
    """Run every point in order, the last axis fastest; yield each with what its results hold."""
    grid = list(product(*(axis.values for axis in sweep.axes)))
    for k, values in enumerate(grid, start=1):
        named = ", ".join(f"{axis.option} {axis.label(value)}" for axis, value in zip(sweep.axes, values, strict=True))
        say(f"point {k} of {len(grid)}: {named}")
        yield _run_point(sweep, values)


def _run_point(sweep: _Sweep, values: "tuple[Value, ...]") -> "tuple[SweptPoint, Content]":
    from cosim.verbs.sweep.study import SweptPoint

    pairs = list(zip(sweep.axes, values, strict=True))
    name = "_".join(_folder_part(axis, value) for axis, value in pairs)
    there = {axis.option: value for axis, value in pairs}
    reason, content = sweep.inner.run(sweep.output / name, there)
    figures = _figures_of(sweep, content) if content else {}
    status = "failed" if not content else "incomplete" if reason else "ok"
    return SweptPoint(name, there, status, figures, reason.replace(f"{sweep.output}/", "") or None), content


def _figures_of(sweep: _Sweep, content: Content) -> "dict[str, Estimate | None]":
    """Return the figures of a point that are asked for, or of the verb's defaults those that are there.

    Raises InputError for one that is not there.
    """
    from cosim.verbs.sweep.study import DEFAULTS, find_figures, pick_figure

    found = dict(find_figures(content))
    if sweep.asked:
        return {name: pick_figure(found, name) for name in sweep.asked}
    there = [name for name in DEFAULTS[sweep.inner.name] if any(f"{key}.".startswith(f"{name}.") for key in found)]
    if not there:
        raise InputError(
            f"--figure must be given, because there is no {DEFAULTS[sweep.inner.name][0]}: {', '.join(found)}"
        )
    return {name: pick_figure(found, name) for name in there}


def _shown(sweep: _Sweep, points: "tuple[SweptPoint, ...]") -> tuple[str, ...]:
    """Return the names of the figures that were asked for, or else of those that some point has, in order."""
    names = dict.fromkeys(name for point in points for name in point.figures)
    there = [name for name in names if any(point.figures.get(name) for point in points)]
    return sweep.asked or tuple(there)


def _notes(contents: Sequence[Content]) -> tuple[str, ...]:
    """Return notes that a reader needs to compare points with each other."""
    specs = {str(found["spec"]) for content in contents if isinstance(found := content.get("yield"), dict)}
    if len(specs) > 1:
        return (f"chips are counted by another spec at every point: {', '.join(sorted(specs))}; give one with --spec",)
    return ()


def _folder_part(axis: "SweepAxis", value: "Value") -> str:
    """Return a value's part of a folder name, such as area-0.5 or supply-1.8V; of a path its last part."""
    label = axis.label(value).rstrip("/").rpartition("/")[2].replace(" ", "")
    return f"{axis.option}-{re.sub(r'[^A-Za-z0-9.+-]', '_', label)}"


command = verb(SweepOptions, run, KeepingVerb, context_settings={"ignore_unknown_options": True})
