"""The files of a sweep's folder: sweep.json, sweep.csv, the picture, and its page."""

from pathlib import Path

from cosim.base.seal import seal_json
from cosim.base.write import write_together
from cosim.results.figures import Figure, figure_bytes
from cosim.results.html import Picture, show
from cosim.results.kept_page import REPORT_FILE, write_page
from cosim.results.page import Facts, Links, Page, PageSubject, Section, Table
from cosim.verbs.sweep.figures import draw_sweep
from cosim.verbs.sweep.study import SweepSummary, SweptPoint, extremes
from cosim.verbs.sweep.table import (
    format_figure_of,
    format_one,
    format_sweep_csv,
    labels,
    name_axis,
    name_figure,
    remarks,
)

_READABLE = 88  # pixels an inch under which a picture's words cannot be read


def write_sweep(folder: Path, summary: SweepSummary) -> None:
    """Write all of it. A sweep without any figure has no picture. Raises InputError when it cannot be written."""
    files = {"sweep.json": seal_json(summary), "sweep.csv": format_sweep_csv(summary)}
    figure = draw_sweep(summary) if summary.figures else None
    if figure is not None:
        files |= {f"sweep.{kind}": figure_bytes(figure, kind) for kind in ("svg", "png")}
    write_together({folder / name: content for name, content in files.items()})
    pages = [point.folder for point in summary.points if (folder / point.folder / REPORT_FILE).is_file()]
    write_page(folder, sweep_page(summary, figure, Links(tuple((name, f"{name}/{REPORT_FILE}") for name in pages))))


def sweep_page(summary: SweepSummary, figure: Figure | None, links: Links) -> Page:
    """Return the page of a sweep. links: to the pages of the points."""
    over = " and ".join(map(name_axis, summary.axes))
    answer, troubled = _answer(summary), sum(point.status != "ok" for point in summary.points)
    caption = f"{', '.join(map(name_figure, summary.figures))} over {over}.".capitalize()
    drawn = () if figure is None else (_picture(figure, f"{caption} {answer}.", caption),)
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


def _picture(figure: Figure, alt: str, caption: str) -> Picture:
    return Picture("svg+xml", figure_bytes(figure, "svg"), alt, caption, round(_READABLE * figure.get_figwidth()))


def _answer(summary: SweepSummary) -> str:
    """Say the least and largest value of the first figure, and where they are."""
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
    """Return a point's values in words, such as area 0.5, seed 1."""
    pairs = zip(summary.axes, labels(summary, point), strict=True)
    return ", ".join(f"{name_axis(axis)} {text}" for axis, text in pairs)


def _table(summary: SweepSummary) -> Table:
    head = (*map(name_axis, summary.axes), *map(name_figure, summary.figures), "status")
    return Table(head, tuple(_row(summary, point) for point in summary.points), tuple(range(len(head) - 1)))


def _row(summary: SweepSummary, point: SweptPoint) -> tuple[str, ...]:
    figures = (format_figure_of(name, point.figures.get(name)) for name in summary.figures)
    status = point.status if point.reason is None else f"{point.status}: {point.reason}"
    return (*labels(summary, point), *figures, status)
