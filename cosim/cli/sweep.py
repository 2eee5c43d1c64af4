"""cosim sweep: a verb at every value of one or two of its options."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.cli.common import Destination, check_outputs, collecting, destination_options, take_folder, write_json
from cosim.cli.config import NO_SETTING, setting_name
from cosim.cli.progress import say
from cosim.cli.settings import RunVerb
from cosim.errors import CosimError, InputError
from cosim.version import __version__

if TYPE_CHECKING:
    from cosim.study.sweep import Axis, Figure, SweepSummary, SweptPoint, Value

Content = dict[str, object]  # of a verb's JSON file
RESULTS = {  # of a verb: the file that its figures are in, or where there is none that of a cut backbone
    "montecarlo": ("summary.json",),
    "compare": ("comparison.json", "partitions.json"),
    "power": ("power.json",),
    "compile": ("design.json", "partitions.json"),
    "trim": ("trim.json",),
}
_ONE_RUN = {
    "replay": "replays one chip; leave it out of a sweep",
    "pvt": "is a sweep of its own; sweep corner, temp and supply instead",
    "output": "is the sweep's own; give it before what goes to the verb",
}
_COMPLAINT = "some of its runs failed, or its audit refuses them; its folder has which"


@dataclass(frozen=True)
class Sweeping:
    """The verb with the rest of its command line, what is swept, which figures are shown, and worker processes."""

    verb: str
    rest: tuple[str, ...]
    over: tuple[str, ...]
    figures: tuple[str, ...]
    jobs: int


@dataclass(frozen=True)
class _Sweep:
    """A verb, its arguments but for the axes, the axes, the figures to show (none: the verb's own), and the folder."""

    name: str
    verb: click.Command
    rest: tuple[str, ...]
    axes: "tuple[Axis, ...]"
    asked: tuple[str, ...]
    output: Path
    jobs: int


@click.command(cls=RunVerb, context_settings={"ignore_unknown_options": True})
@click.argument("verb", type=click.Choice(list(RESULTS)), metavar="VERB")
@click.argument("rest", nargs=-1, required=True, type=click.UNPROCESSED, metavar="NETWORK [OPTION OF VERB]...")
@click.option(
    "--over",
    multiple=True,
    metavar="NAME=VALUES",
    help="An option of VERB without its dashes, and its values: a,b,c or first:last:count, at the end :log for equal "
    "factors; a flag's are no,yes. Once or twice.",
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="NAME",
    help="Figure to show, as VERB's JSON names it, such as power_w.behavioral; repeatable [default: the verb's main "
    "ones].",
)
@click.option("--jobs", "-j", type=click.IntRange(1), default=2, help="Worker processes of each run.")
@destination_options("runs/sweep")
@collecting(sweeping=Sweeping)
def command(*, to: Destination, sweeping: Sweeping) -> None:
    """Run VERB on NETWORK at every value of one or two of its options, and show what changes.

    VERB is montecarlo, compare, power, compile or trim. Every point is a run of it in a folder of its own, such as
    runs/sweep/area-0.5, with the same seed. The folder receives sweep.json, sweep.csv, sweep.png, sweep.svg and
    report.html. A point that cannot be run is a row with its reason, and the exit status is 1. The same command
    continues an interrupted sweep: every verb keeps what it has.
    """
    from cosim.cli.axes import read_axes
    from cosim.report.sweep_page import write_sweep
    from cosim.report.sweep_table import format_sweep

    name, output = sweeping.verb, to.output
    verb = import_module(f"cosim.cli.{name}").command
    axes = read_axes(sweeping.over, name, verb)
    sweep = _Sweep(name, verb, sweeping.rest, axes, sweeping.figures, output, sweeping.jobs)
    summary = _describe(sweep)
    check_outputs("sweep", output, to.json_file)
    take_folder("sweep", output)
    ran = list(_run_points(sweep))
    points = tuple(point for point, _ in ran)
    notes = _notes([content for _, content in ran])
    summary = replace(summary, points=points, figures=_shown(sweep, points), notes=notes)
    write_sweep(output, summary)
    click.echo("\n".join(format_sweep(summary)))
    write_json(to.json_file, summary)
    click.echo(f"\nreport: {output / 'report.html'}   picture: {output / 'sweep.png'}")
    troubled = sum(point.status != "ok" for point in points)
    if troubled:
        click.echo(f"cosim: {troubled} of {len(points)} points failed or are incomplete; the table says why", err=True)
        raise SystemExit(1)


def _describe(sweep: _Sweep) -> "SweepSummary":
    """What is swept, no point yet. Raises InputError for an option that is fixed and swept, or that is for one run."""
    from cosim.study.sweep import PAIRED, SweepSummary

    with _context(sweep, []) as context:
        asked = [one for one in sweep.verb.params if isinstance(one, click.Option) and _is_given(context, one)]
        given = {setting_name(one): context.params.get(one.name or "") for one in asked}
        network = context.params["network_file"]
    if both := next((axis.option for axis in sweep.axes if axis.option in given), None):
        raise InputError(f"--{both} is both fixed and swept with --over {both}; leave one of them out")
    if one := next((option for option in _ONE_RUN if given.get(option) is not None), None):
        raise InputError(f"--{one} {_ONE_RUN[one]}")
    fixed = {setting_name(one): _plain(given[setting_name(one)]) for one in asked if one.name not in NO_SETTING}
    swept = {axis.option for axis in sweep.axes}
    paired = "" if "seed" in swept else PAIRED.get(sweep.name, "")
    return SweepSummary(
        sweep.name, *_subject(network), network.name, fixed, sweep.axes, paired, (), (), (), {"cosim": __version__}
    )


def _subject(network_file: Path) -> tuple[str, str]:
    """What a page calls the network, and its hash; a backbone goes by its file."""
    from cosim.checkpoint.file import load_network, stays_software
    from cosim.files.seal import checksum
    from cosim.outputs import hash_network
    from cosim.report.words import network_name

    if stays_software(network_file):
        return network_file.stem, checksum(network_file.read_bytes())
    network = load_network(network_file)
    return network_name(network), hash_network(network)


def _is_given(context: click.Context, option: click.Option) -> bool:
    from click.core import ParameterSource

    return context.get_parameter_source(option.name or "") is not ParameterSource.DEFAULT


def _plain(value: object) -> object:
    """A value of the command line in JSON; of a file its name, not where it stands."""
    if isinstance(value, Path):
        return value.name
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _context(sweep: _Sweep, more: Sequence[str]) -> click.Context:
    """The verb's command line as if it had been typed; nothing that its context keeps is shared with another."""
    command = click.get_current_context().find_root().command
    above = click.Context(command, info_name="cosim", **command.context_settings)
    return sweep.verb.make_context(sweep.name, [*sweep.rest, *more], parent=above)


def _run_points(sweep: _Sweep) -> "Iterator[tuple[SweptPoint, Content]]":
    """Every point in order, the last axis fastest, with what its results hold."""
    grid = list(product(*(axis.values for axis in sweep.axes)))
    for k, values in enumerate(grid, start=1):
        named = ", ".join(f"{axis.option} {axis.label(value)}" for axis, value in zip(sweep.axes, values, strict=True))
        say(f"point {k} of {len(grid)}: {named}")
        yield _run_point(sweep, values)


def _run_point(sweep: _Sweep, values: "tuple[Value, ...]") -> "tuple[SweptPoint, Content]":
    from cosim.study.sweep import SweptPoint

    pairs = list(zip(sweep.axes, values, strict=True))
    name, content = "_".join(_folder_part(axis, value) for axis, value in pairs), Content()
    reason, folder = _call(sweep, values, sweep.output / name), sweep.output / name
    if reason in ("", _COMPLAINT):
        path = next((folder / file for file in RESULTS[sweep.name] if (folder / file).is_file()), None)
        content = Content() if path is None else _read(path)
    figures = _figures_of(sweep, content) if content else {}
    status = "failed" if not content else "incomplete" if reason else "ok"
    there = {axis.option: value for axis, value in pairs}
    return SweptPoint(name, there, status, figures, reason.replace(f"{sweep.output}/", "") or None), content


def _call(sweep: _Sweep, values: "tuple[Value, ...]", folder: Path) -> str:
    """Run the verb at a point as the command line would; what went wrong there, or ''."""
    from cosim.cli.axes import arguments

    more = [part for axis, value in zip(sweep.axes, values, strict=True) for part in arguments(axis, value, sweep.verb)]
    known = {param.name for param in sweep.verb.params}
    more += [text for name, text in (("resume", "--resume"), ("jobs", f"--jobs={sweep.jobs}")) if name in known]
    try:
        with _context(sweep, [*more, f"--output={folder}"]) as context, redirect_stdout(io.StringIO()):
            sweep.verb.invoke(context)
    except SystemExit as end:
        return _COMPLAINT if end.code else ""
    except CosimError as error:
        return str(error)
    except click.ClickException as error:
        return error.format_message()
    return ""


def _read(path: Path) -> Content:
    from cosim.reading.text import read_json

    found = read_json(path, "the same command writes it again")
    return found if isinstance(found, dict) else Content()


def _figures_of(sweep: _Sweep, content: Content) -> "dict[str, Figure | None]":
    """Those that are asked for, or of the verb's own those that are there. Raises InputError for one that is not."""
    from cosim.study.sweep import DEFAULTS, find_figures, pick_figure

    found = dict(find_figures(content))
    if sweep.asked:
        return {name: pick_figure(found, name) for name in sweep.asked}
    there = [name for name in DEFAULTS[sweep.name] if any(f"{key}.".startswith(f"{name}.") for key in found)]
    if not there:
        raise InputError(f"--figure must be given, because there is no {DEFAULTS[sweep.name][0]}: {', '.join(found)}")
    return {name: pick_figure(found, name) for name in there}


def _shown(sweep: _Sweep, points: "tuple[SweptPoint, ...]") -> tuple[str, ...]:
    """Names of the figures that some point has, in order; of those that were asked for all."""
    names = dict.fromkeys(name for point in points for name in point.figures)
    there = [name for name in names if any(point.figures.get(name) for point in points)]
    return sweep.asked or tuple(there)


def _notes(contents: Sequence[Content]) -> tuple[str, ...]:
    """What a reader has to know to hold points against each other."""
    specs = {str(found["spec"]) for content in contents if isinstance(found := content.get("yield"), dict)}
    if len(specs) > 1:
        return (f"chips are counted by another spec at every point: {', '.join(sorted(specs))}; give one with --spec",)
    return ()


def _folder_part(axis: "Axis", value: "Value") -> str:
    """Such as area-0.5 or supply-1.8V; of a path its last part."""
    label = axis.label(value).rstrip("/").rpartition("/")[2].replace(" ", "")
    return f"{axis.option}-{re.sub(r'[^A-Za-z0-9.+-]', '_', label)}"
