"""Command `cosim sweep`: run a verb at every value of one or two of its options, read by the option's own type."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import JOBS
from cosim.base.errors import InputError
from cosim.base.version import __version__
from cosim.cli.progress import say
from cosim.cli.session import VerbSession
from cosim.cli.settings import NO_SETTING, KeepingVerb, setting_name
from cosim.cli.types import Integer
from cosim.cli.verb import Result, argument, option, verb
from cosim.verbs.common import check_outputs, json_option, output_option
from cosim.verbs.inner import (
    SWEPT,
    Content,
    InnerVerb,
    describe_network,
    fixed_options,
    read_inner,
    read_value,
    split_values,
)
from cosim.verbs.sweep.study import SweepAxis, Value, spaced

if TYPE_CHECKING:
    from cosim.results.metrics import Estimate
    from cosim.verbs.sweep.study import SweepSummary, SweptPoint

_ONE_RUN = {
    "replay": "replays one chip; leave it out of a sweep",
    "pvt": "is a sweep of its own; sweep corner, temp and supply instead",
    "output": "is the sweep's own; give it before what goes to the verb",
}
MOST_AXES, MOST_POINTS = 2, 1000
_FORM = "NAME=VALUES, such as area=0.25,0.5,1 or supply=1.6:2.0:5 or area=0.25:4:5:log"
_RANGE = re.compile(r"([^:]+):([^:]+):([^:]+)(?::([^:]+))?")


_NO_NETLIST = "a sweep is of trained networks; for netlists list the values in the sheet of cosim datasheet"


class SweptVerb(click.Choice):
    """Type of the verb that a sweep runs; for a netlist, which none of them reads, it names the verb that does."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "datasheet" or value.endswith(".sp"):
            self.fail(_NO_NETLIST, param, ctx)
        return super().convert(value, param, ctx)


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Options of `cosim sweep`: the verb with its command line, the swept options, and the figures to show."""

    verb: str = argument("VERB", SweptVerb(SWEPT))
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


def run(options: SweepOptions, session: VerbSession) -> Result:
    """Run VERB on NETWORK at every value of one or two of its options, and show what changes.

    VERB is montecarlo, compare, power, compile or trim. Every point is a run of it in a folder of its own, such as
    runs/sweep/area-0.5, with the same seed. The folder receives sweep.json, sweep.csv, sweep.png, sweep.svg and
    report.html. A point that cannot be run is a row with its reason, and the exit status is 1. The same command
    continues an interrupted sweep: every verb keeps what it has.
    """
    from cosim.results.kept_page import read_page
    from cosim.verbs.sweep.page import write_sweep

    inner, output = read_inner(options.verb, options.rest, jobs=options.jobs, fresh=session.fresh), options.output
    axes = read_axes(options.over, inner.name, inner.command)
    summary = _describe(inner, axes)
    check_outputs("sweep", output, options.json_file)
    session.take_folder("sweep", output)
    ran = list(_run_points(inner, axes, options.figures, output))
    points = tuple(point for point, _ in ran)
    notes = _notes([content for _, content in ran])
    summary = replace(summary, points=points, figures=_shown(options.figures, points), notes=notes)
    write_sweep(output, summary)
    troubled = sum(point.status != "ok" for point in points)
    fault = f"cosim: {troubled} of {len(points)} points failed or are incomplete; the table says why"
    return Result(
        summary,
        read_page(output),
        report=f"report: {output / 'report.html'}   picture: {output / 'sweep.png'}",
        fault=fault if troubled else None,
    )


def _describe(inner: InnerVerb, axes: tuple[SweepAxis, ...]) -> "SweepSummary":
    """Return the description of a sweep, without points.

    Raises InputError for an option that is both fixed and swept, or that makes sense only in a single run.
    """
    from cosim.verbs.sweep.study import PAIRED, SweepSummary

    given, network = inner.given, inner.network
    if both := next((axis.option for axis in axes if axis.option in given), None):
        raise InputError(f"--{both} is both fixed and swept with --over {both}; leave one of them out")
    if one := next((option for option in _ONE_RUN if given.get(option) is not None), None):
        raise InputError(f"--{one} {_ONE_RUN[one]}")
    swept = {axis.option for axis in axes}
    paired = "" if "seed" in swept else PAIRED.get(inner.name, "")
    fixed, subject = fixed_options(inner.command, given), describe_network(network)
    return SweepSummary(inner.name, *subject, network.name, fixed, axes, paired, (), (), (), {"cosim": __version__})


def _run_points(
    inner: InnerVerb, axes: tuple[SweepAxis, ...], asked: tuple[str, ...], output: Path
) -> "Iterator[tuple[SweptPoint, Content]]":
    """Run every point of a sweep, the last axis fastest; yield (point, content of the verb's JSON file)."""
    from cosim.verbs.sweep.study import SweptPoint

    grid = list(product(*(axis.values for axis in axes)))
    for k, values in enumerate(grid, start=1):
        pairs = list(zip(axes, values, strict=True))
        say(f"point {k} of {len(grid)}: {', '.join(f'{axis.option} {axis.label(value)}' for axis, value in pairs)}")
        name = "_".join(_folder_part(axis, value) for axis, value in pairs)
        there = {axis.option: value for axis, value in pairs}
        reason, content = inner.run(output / name, there)
        figures = _figures_of(inner.name, asked, content) if content else {}
        status = "failed" if not content else "incomplete" if reason else "ok"
        yield SweptPoint(name, there, status, figures, reason.replace(f"{output}/", "") or None), content


def _figures_of(verb: str, asked: tuple[str, ...], content: Content) -> "dict[str, Estimate | None]":
    """Return the figures of a point: those asked for, else those of the verb's defaults that the results have.

    Raises InputError for a figure that the results do not have.
    """
    from cosim.verbs.sweep.study import DEFAULTS, find_figures, pick_figure

    found = dict(find_figures(content))
    if asked:
        return {name: pick_figure(found, name) for name in asked}
    there = [name for name in DEFAULTS[verb] if any(f"{key}.".startswith(f"{name}.") for key in found)]
    if not there:
        raise InputError(f"--figure must be given, because there is no {DEFAULTS[verb][0]}: {', '.join(found)}")
    return {name: pick_figure(found, name) for name in there}


def _shown(asked: tuple[str, ...], points: "tuple[SweptPoint, ...]") -> tuple[str, ...]:
    """Return the names of the figures to show: those asked for, else those that at least one point has, in order."""
    names = dict.fromkeys(name for point in points for name in point.figures)
    there = [name for name in names if any(point.figures.get(name) for point in points)]
    return asked or tuple(there)


def _notes(contents: Sequence[Content]) -> tuple[str, ...]:
    """Return notes that a reader needs to compare the points: different specs at different points."""
    specs = {str(found["spec"]) for content in contents if isinstance(found := content.get("yield"), dict)}
    if len(specs) > 1:
        return (f"chips are counted by another spec at every point: {', '.join(sorted(specs))}; give one with --spec",)
    return ()


def _folder_part(axis: SweepAxis, value: Value) -> str:
    """Return a value's part of a point's folder name, such as area-0.5; of a path only the last part counts."""
    label = axis.label(value).rstrip("/").rpartition("/")[2].replace(" ", "")
    return f"{axis.option}-{re.sub(r'[^A-Za-z0-9.+-]', '_', label)}"


def read_axes(texts: Sequence[str], name: str, verb: click.Command) -> tuple[SweepAxis, ...]:
    """Read a sweep's axes from the values of --over; name, verb: the swept verb and its command.
    Raises InputError that says what the values must be."""
    if not 1 <= len(texts) <= MOST_AXES:
        raise InputError(f"--over must be given once or twice, {_FORM}; it is given {len(texts)} times")
    axes = tuple(_read_axis(text, name, verb) for text in texts)
    if len({axis.option for axis in axes}) < len(axes):
        raise InputError(f"--over {axes[0].option} is given twice; put its values into one --over, with commas")
    points = prod(len(axis.values) for axis in axes)
    if points > MOST_POINTS:
        raise InputError(f"--over must give at most {MOST_POINTS} points, not {points}; give fewer values")
    return axes


def option_named(option: str, name: str, verb: click.Command) -> click.Option:
    """Return an option of a verb by its long name.

    Raises InputError for an option that the verb does not have, or that changes no figure.
    """
    there = {setting_name(one): one for one in verb.params if isinstance(one, click.Option)}
    if option in there and there[option].name in NO_SETTING:
        raise InputError(f"--over {option}: --{option} changes no figure; sweep another option")
    if option not in there:
        near = get_close_matches(option, [name for name, one in there.items() if one.name not in NO_SETTING], n=1)
        meant = "".join(f"; did you mean {one}?" for one in near) or f"; see: cosim {name} --help"
        raise InputError(f"--over {option}: cosim {name} has no option --{option}{meant}")
    return there[option]


def _read_axis(text: str, name: str, verb: click.Command) -> SweepAxis:
    option, values = split_values(text, "--over", _FORM)
    param = option_named(option, name, verb)
    words = [word.strip() for word in values.split(",")]
    if not all(words):
        raise InputError(f"--over {option} has an empty value; give values with commas between them, {_FORM}")
    match = _RANGE.fullmatch(values)
    if match is None and ":" in values and "," not in values:
        raise InputError(
            f"--over {option}: a range is first:last:count, :log at its end for equal factors, not {values}"
        )
    found = (
        [read_value(word, param, f"--over {option}") for word in words]
        if match is None
        else _range(match, param, option)
    )
    twice = next((value for k, value in enumerate(found) if value in found[:k]), None)
    if twice is not None:
        raise InputError(f"--over {option} has {twice} twice; give each value once")
    return SweepAxis(option, getattr(param.type, "unit", ""), tuple(found))


def _range(match: re.Match[str], param: click.Option, option: str) -> list[Value]:
    """Return the values of a range first:last:count or first:last:count:log; raises InputError if it is invalid."""
    first, last = (_as_number(read_value(word, param, f"--over {option}"), option) for word in match.group(1, 2))
    count, spacing = match.group(3), match.group(4)
    if not count.isascii() or not count.isdigit() or not 2 <= int(count) <= MOST_POINTS:
        raise InputError(f"--over {option}: a range is first:last:count, count from 2 to {MOST_POINTS}, not {count!r}")
    if spacing not in (None, "log"):
        raise InputError(f"--over {option}: a range may end with :log for equal factors, not with :{spacing}")
    if spacing and min(first, last) <= 0:
        raise InputError(f"--over {option}: a range with :log must have positive ends, not {match.group()}")
    found = spaced(first, last, int(count), log=bool(spacing))
    if len(found) < int(count):
        raise InputError(f"--over {option}: a range must end elsewhere than it begins; {match.group()} is empty")
    if not all(isinstance(end, int) for end in (first, last)):
        return [read_value(repr(value), param, f"--over {option}") for value in found]
    if any(value != round(value) for value in found):
        raise InputError(f"--over {option}: {match.group()} gives {found[1]:g}, which is no whole number; list them")
    return [read_value(str(round(value)), param, f"--over {option}") for value in found]


def _as_number(value: Value, option: str) -> float:
    """Return an end of a range as a number; a text must be a whole number. Raises InputError for other words."""
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        raise InputError(f"--over {option}: takes words, so it has no ranges; list them with commas") from None


command = verb(SweepOptions, run, KeepingVerb, context_settings={"ignore_unknown_options": True})
