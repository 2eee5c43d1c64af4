"""A difference of two runs as one page, with a picture of what is paired."""

from collections.abc import Iterable, Iterator

import numpy as np

from cosim.base.version import __version__
from cosim.results.figures import BLUE, GREY, Figure, figure_bytes, plain
from cosim.results.html import Picture
from cosim.results.page import Block, Page, PageSubject, Section, Table
from cosim.verbs.diff.difference import Change, Difference, Scatter
from cosim.verbs.diff.table import (
    cells_of,
    name_units,
    say_cause,
    say_methods,
    say_pairing,
    say_verdict,
    title_of,
)
from cosim.verbs.montecarlo.chip_study import watts_of

VERB = "diff"
_MANY = 20  # figures
_HEAD = ("figure", "A", "B", "B - A", "95 % interval", "p", "pairs that moved")


def difference_page(difference: Difference, *, picture: bool = True) -> Page:
    """Return the page of a difference; its picture takes half a second, and a terminal does not show it."""
    verdict = say_verdict(difference)
    return Page(
        verb=VERB,
        subject=PageSubject(difference.verb),
        title=f"Two runs of cosim {difference.verb}: {verdict}",
        lead=f"A is {difference.a}, B is {difference.b}. Differences are B - A.",
        cards=tuple(_cards(difference.changes)),
        sections=tuple(_sections(difference, picture=picture)),
        provenance={"cosim": __version__},
        notes=(*map(say_pairing, difference.pairings), *difference.notes),
    )


def _cards(changes: Iterable[Change]) -> Iterator[tuple[str, str]]:
    """Yield the first figures that moved; of many conditions those that moved most surely."""
    moved = [change for change in changes if not change.contrast.same]
    if any(change.where for change in moved):
        moved.sort(key=lambda change: 1.0 if change.contrast.p is None else change.contrast.p)
    for change in moved[:4]:
        _, _, difference, interval, _, _ = cells_of(change)
        number, unit = difference.split(" ")
        value, unit = (number, "points of ") if unit == "points" else (difference, "")
        yield value, f"{unit}{title_of(change)} {interval}"


def _sections(difference: Difference, *, picture: bool) -> Iterator[Section]:
    if difference.settings:
        rows = tuple((one.name, one.a, one.b) for one in difference.settings)
        yield Section("What was set", (Table(("setting", "A", "B"), rows),))
    if difference.changes:
        yield Section("By how much", tuple(_figures(difference, picture=picture)))
    if difference.chips:
        rows = tuple(
            (str(one.chip), one.a, one.b, one.why, say_cause(one.cause) if one.cause else "")
            for one in difference.chips
        )
        yield Section(
            f"Chips that turned: {len(rows)}",
            (Table(("chip", "A", "B", "why it fails", "unit"), rows, tall=len(rows) > 12),),
        )
    yield from _samples(difference)
    if difference.units:
        rows = tuple((one.unit, str(one.count), str(one.of)) for one in difference.units)
        name = name_units(difference.units)
        of = "chips that turned" if "chips" in name else "frames"
        yield Section(
            f"{name[0].upper()}{name[1:]}: {len(rows)}", (Table(("unit", of, "of"), rows, (1, 2), tall=len(rows) > 12),)
        )
    for name, point in difference.points.items():
        yield Section(name, (f"{say_verdict(point)}.", *_settings_of(point), *_figures(point, picture=picture)))


def _settings_of(point: Difference) -> Iterator[Block]:
    if point.settings:
        yield Table(("setting", "A", "B"), tuple((one.name, one.a, one.b) for one in point.settings))


def _figures(difference: Difference, *, picture: bool) -> Iterator[Block]:
    """Yield the figures of both runs, of many those first that moved."""
    changes = difference.changes
    if len(changes) > _MANY:
        changes = sorted(changes, key=lambda change: change.contrast.same)
    rows = tuple((title_of(change), *cells_of(change)) for change in changes)
    yield Table(_HEAD, rows, (1, 2, 3, 4, 5), tall=len(rows) > _MANY)
    yield from (f"{text[0].upper()}{text[1:]}." for text in say_methods(difference.changes))
    if picture and difference.scatter is not None:
        yield _picture(difference.scatter)


def _samples(difference: Difference) -> Iterator[Section]:
    if difference.flips:
        rows = tuple((one.where, str(one.sample), str(one.y), str(one.a), str(one.b)) for one in difference.flips)
        head = ("condition", "sample", "class", "A", "B")
        if not any(row[0] for row in rows):
            head, rows = head[1:], tuple(row[1:] for row in rows)
        yield Section(f"Decisions that differ: {len(rows)}", (Table(head, rows, tall=len(rows) > 12),))
    if difference.chip_flips:
        chips = tuple(
            tuple(map(str, (one.sample, one.y, one.chips, one.right_a, one.right_b))) for one in difference.chip_flips
        )
        head = ("sample", "class", f"chips of {difference.chip_flips[0].of}", "right in A", "right in B")
        yield Section(
            f"Samples that chips decide otherwise: {len(chips)}", (Table(head, chips, (2, 3, 4), tall=len(chips) > 12),)
        )


def _picture(scatter: Scatter) -> Picture:
    a, b = np.array(scatter.a), np.array(scatter.b)
    figure = draw_runs(scatter)
    above = int((b > a).sum())
    text = (
        f"{scatter.name[0].upper()}{scatter.name[1:]}, B against A: {above} of {len(a)} {scatter.things} above the line"
    )
    return Picture("svg+xml", figure_bytes(figure, "svg"), f"{text}.", f"{text} of equal ones. The larger, the more.")


def draw_runs(scatter: Scatter) -> Figure:
    """Draw run B over run A of `cosim diff`: points above the line are larger in B; a point's area is their number."""
    factor, unit = (100.0, "%") if scatter.unit == "%" else watts_of(float(np.mean([scatter.a, scatter.b])))
    points, counts = np.unique(factor * np.array([scatter.a, scatter.b]).T, axis=0, return_counts=True)
    low, high = float(points.min()), float(points.max())
    margin = 0.06 * (high - low) or 0.02 * abs(high) or 1.0
    ends = low - margin, high + margin
    figure = Figure(figsize=(4.2, 3.9), layout="constrained")
    axis = figure.subplots()
    plain(axis)
    axis.plot(ends, ends, color=GREY, lw=1, ls="--", label="equal")
    axis.scatter(*points.T, s=24 * counts, color=BLUE, alpha=0.7, lw=0, label=scatter.things)
    axis.set_title(scatter.name, fontsize=9, loc="left")
    axis.set_xlabel(f"A ({unit})")
    axis.set_ylabel(f"B ({unit})")
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    axis.set_aspect("equal")
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure
