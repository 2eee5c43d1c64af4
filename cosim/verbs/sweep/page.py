"""The files of a sweep's folder: sweep.json, sweep.csv, the picture and the page.

The picture has a panel for each figure: curves with error bars over one axis, or a map over two axes.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from cosim.base.seal import seal_json
from cosim.base.write import write_together
from cosim.results.figures import CYCLE, RED, Axes, Figure, figure_bytes, log_axis, picture_of, plain, styled
from cosim.results.html import show
from cosim.results.kept_page import REPORT_FILE, write_page
from cosim.results.metrics import PERCENT, Estimate
from cosim.results.page import Facts, Links, Page, PageSubject, Section, Table
from cosim.verbs.sweep.study import (
    SweepAxis,
    SweepSummary,
    SweptPoint,
    extremes,
    format_figure_of,
    format_one,
    format_sweep_csv,
    labels,
    name_axis,
    name_figure,
    remarks,
    scale_of,
)

_READABLE = 88  # pixels an inch under which a picture's words cannot be read
_MOST_PANELS, _MOST_CURVES, _MOST_TICKS = 4, 4, 9
_PANEL = (3.5, 3.0)
_DARK = 0.45  # of the colours, from below: where numbers are white
_SMALL = 7
_LEAST_SPAN = 0.05  # of the colours, relative
_APART = 0.012  # of the axis, between curves
_DECADE = 10.0
_ABOVE = 0.04  # of what is below 100 %


def write_sweep(folder: Path, summary: SweepSummary) -> None:
    """Write all files of a sweep; without any figure there is no picture. Raises InputError when it cannot write."""
    files = {"sweep.json": seal_json(summary), "sweep.csv": format_sweep_csv(summary)}
    figure = draw_sweep(summary) if summary.figures else None
    pages = [point.folder for point in summary.points if (folder / point.folder / REPORT_FILE).is_file()]
    page = sweep_page(summary, figure, Links(tuple((name, f"{name}/{REPORT_FILE}") for name in pages)))
    if figure is not None:
        files |= {"sweep.svg": page.pictures[0].content, "sweep.png": figure_bytes(figure, "png")}
    write_together({folder / name: content for name, content in files.items()})
    write_page(folder, page)


def sweep_page(summary: SweepSummary, figure: Figure | None, links: Links) -> Page:
    """Return the page of a sweep; links: to the pages of its points."""
    over = " and ".join(map(name_axis, summary.axes))
    answer, troubled = _answer(summary), sum(point.status != "ok" for point in summary.points)
    caption = f"{', '.join(map(name_figure, summary.figures))} over {over}.".capitalize()
    drawn = () if figure is None else (picture_of(figure, f"{caption} {answer}.", caption, width_of_words(figure)),)
    options = tuple((name.replace("-", " "), show(value)) for name, value in summary.options.items())
    return Page(
        verb="sweep",
        subject=PageSubject(summary.network, summary.network_hash),
        title=f"{summary.network}, {summary.verb} over {over}: {answer[:1].lower()}{answer[1:]}",
        lead=f"{len(summary.points)} points, each a run of cosim {summary.verb} of its own"
        + (f"; {troubled} of them failed or are incomplete." if troubled else "."),
        cards=(),
        answer=f"{answer}.",
        notes=tuple(f"{note[:1].upper()}{note[1:]}." for note in remarks(summary)),
        sections=(
            Section("What changes", (*drawn, _table(summary))),
            Section("The points' own pages", (links,) if links.rows else ()),
            Section("How it was run", (Facts(options),) if options else (), detail=True),
        ),
        provenance={"network": summary.network_hash, "file": summary.file, **summary.made_with},
    )


def width_of_words(figure: Figure) -> int:
    """Return the width in pixels at which the words in a figure can be read."""
    return round(_READABLE * figure.get_figwidth())


def _answer(summary: SweepSummary) -> str:
    """Return a sentence on the least and the largest value of the sweep's first figure, with their points."""
    name = summary.figures[0] if summary.figures else ""
    found = extremes(summary.points, name)
    if not found:
        return "No point could be run"
    first, last = (format_one(name, value) for _, value in found)
    if first == last:
        return f"{name_figure(name).capitalize()} {first} at every point"
    ends = [f"{text} at {_place(summary, point)}" for text, (point, _) in zip((first, last), found, strict=True)]
    return f"{name_figure(name).capitalize()} from {' to '.join(ends)}"


def _place(summary: SweepSummary, point: SweptPoint) -> str:
    """Return a point's axis values in words, such as "area 0.5, seed 1"."""
    pairs = zip(summary.axes, labels(summary, point), strict=True)
    return ", ".join(f"{name_axis(axis)} {text}" for axis, text in pairs)


def _table(summary: SweepSummary) -> Table:
    head = (*map(name_axis, summary.axes), *map(name_figure, summary.figures), "status")
    return Table(head, tuple(_row(summary, point) for point in summary.points), tuple(range(len(head) - 1)))


def _row(summary: SweepSummary, point: SweptPoint) -> tuple[str, ...]:
    figures = (format_figure_of(name, point.figures.get(name)) for name in summary.figures)
    status = point.status if point.reason is None else f"{point.status}: {point.reason}"
    return (*labels(summary, point), *figures, status)


@styled
def draw_sweep(summary: SweepSummary) -> Figure:
    """Draw up to four figures of a sweep over its axes.

    One axis gives a curve. Two axes give a curve for each value of the second if it has at most four, else a map.
    """
    names = summary.figures[:_MOST_PANELS]
    curves = len(summary.axes) == 1 or _draws_curves(*summary.axes)
    columns = len(names) if len(names) < _MOST_PANELS else 2
    rows = -(-len(names) // columns)
    wide = _PANEL[0] if curves else max(_PANEL[0], 1.4 + 0.75 * len(summary.axes[0].values))
    figure = Figure(figsize=(max(columns * wide, 4.2), rows * _PANEL[1]), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, name in zip(panels, names, strict=True):
        if curves:
            _draw_curves(axis, summary, name)
        else:
            _draw_map(axis, summary, name)
    handles, words = panels[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, words, loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    return figure


def _draws_curves(first: SweepAxis, second: SweepAxis) -> bool:
    return first.numbers is not None and len(second.values) <= _MOST_CURVES < len(first.values) + 2


def _draw_curves(panel: Axes, summary: SweepSummary, name: str) -> None:
    first, *others = summary.axes
    numbers = first.numbers or tuple(float(k) for k in range(len(first.values)))
    place = dict(zip(first.values, numbers, strict=True))
    factor, unit = scale_of(name, _largest(summary.points, name))
    groups = others[0].values if others else (None,)
    for k, value in enumerate(groups):
        there = [
            (point.values[first.option], figure)
            for point in summary.points
            if (figure := point.figures.get(name)) is not None
            and (value is None or point.values[others[0].option] == value)
        ]
        if there:
            moved = _moved(place, (k - (len(groups) - 1) / 2) * _APART, log=first.geometric)
            label = None if value is None else f"{name_axis(others[0])} {others[0].label(value)}"
            x, figures = [moved[at] for at, _ in there], [figure for _, figure in there]
            _draw_bars(panel, x, figures, factor, (CYCLE[k], label))
    failed = [place[point.values[first.option]] for point in summary.points if point.figures.get(name) is None]
    if failed:
        transform = panel.get_xaxis_transform()
        panel.plot(failed, len(failed) * [0.03], "x", color=RED, ms=6, transform=transform, label="no figure")
    _finish(panel, first, numbers, f"{name_figure(name)}{f' ({unit})' if unit else ''}")
    _scale(panel, summary.points, name)


def _moved(place: dict[float | str, float], share: float, *, log: bool) -> dict[float | str, float]:
    """Return the places of values on an axis, shifted by a share of their span, so that error bars do not overlap."""
    low, high = min(place.values()), max(place.values())
    if log:
        return {value: x * (high / low) ** share for value, x in place.items()}
    return {value: x + (high - low) * share for value, x in place.items()}


def _draw_bars(
    panel: Axes, x: Sequence[float], figures: Sequence[Estimate], factor: float, style: tuple[str, str | None]
) -> None:
    """Draw a curve with error bars; factor: from the figures' unit to the axis'; style: (colour, label)."""
    color, label = style
    y = np.array([factor * found.value for found in figures])
    ends = [(found.value if end is None else end) for found in figures for end in (found.low, found.high)]
    bounds = factor * np.array(ends).reshape(-1, 2).T
    errors = np.maximum(np.array([y - bounds[0], bounds[1] - y]), 0)
    panel.errorbar(x, y, errors if errors.any() else None, marker="o", ms=3.5, lw=1.3, capsize=2.5, color=color,
                   label=label)  # fmt: skip


def _finish(panel: Axes, axis: SweepAxis, numbers: Sequence[float], label: str) -> None:
    if axis.numbers is not None and axis.geometric:
        panel.set_xscale("log")
    every = -(-len(numbers) // _MOST_TICKS)
    words = [axis.label(value) for value in axis.values][::every]
    slant = {"rotation": 35, "ha": "right"} if sum(map(len, words)) > 36 else {}
    panel.set_xticks(numbers[::every], words, **slant)
    panel.minorticks_off()
    panel.set_xlabel(name_axis(axis), fontsize=9)
    panel.set_title(label, fontsize=9)
    panel.grid(lw=0.3)
    plain(panel)


def _scale(panel: Axes, points: Sequence[SweptPoint], name: str) -> None:
    """Scale the vertical axis of a figure: a fraction's ends near 100 %, others are logarithmic or begin at 0.

    Logarithmic: positive values that span a decade. From 0: other values of which none is negative.
    """
    values = [found.value for point in points if (found := point.figures.get(name)) is not None]
    low, high = panel.get_ylim()
    if scale_of(name, 1.0)[1] == PERCENT:
        panel.set_ylim(top=min(high, 100 + _ABOVE * (100 - low)))
    elif values and min(values) > 0 and max(values) >= _DECADE * min(values):
        log_axis(panel, "y", min(values), max(values))
    elif values and min(values) >= 0:
        panel.set_ylim(bottom=0, top=high if any(values) else 1)


def _largest(points: Sequence[SweptPoint], name: str) -> float:
    return max((abs(found.value) for point in points if (found := point.figures.get(name)) is not None), default=0.0)


def _draw_map(panel: Axes, summary: SweepSummary, name: str) -> None:
    """Draw a figure as a map of colours and numbers, with the first axis horizontal and the second vertical."""
    first, second = summary.axes
    by_place = {(point.values[first.option], point.values[second.option]): point for point in summary.points}
    values = np.full((len(second.values), len(first.values)), np.nan)
    for (y, above), (x, right) in product(enumerate(second.values), enumerate(first.values)):
        found = by_place[right, above].figures.get(name)
        values[y, x] = np.nan if found is None else found.value
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    wider = max(_LEAST_SPAN * max(abs(low), abs(high)) - (high - low), 0.0) / 2  # what hardly differs looks alike
    low, high = low - wider, high + wider
    panel.imshow(values, cmap="viridis", vmin=low, vmax=high, origin="lower", aspect="auto")
    for (y, x), value in np.ndenumerate(values):
        dark = value < low + _DARK * (high - low)
        text = format_one(name, float(value)) if np.isfinite(value) else "none"
        panel.text(x, y, text, ha="center", va="center", fontsize=_SMALL, color="white" if dark else "black")
    panel.set_xticks(range(len(first.values)), [first.label(value) for value in first.values])
    panel.set_yticks(range(len(second.values)), [second.label(value) for value in second.values])
    panel.set_xlabel(name_axis(first), fontsize=9)
    panel.set_ylabel(name_axis(second), fontsize=9)
    panel.set_title(name_figure(name), fontsize=9)
    panel.tick_params(labelsize=_SMALL, length=0)
