"""The page of `cosim trim` and its picture, the yield against the number of bits of the converters."""

import numpy as np

from cosim.compiler.design import Design
from cosim.results.figures import BLUE, GREY, SINGLE, Figure, legend_above, picture_of, styled
from cosim.results.html import Picture
from cosim.results.metrics import percent, within
from cosim.results.page import Facts, Page, Section, Table
from cosim.units.table import unit_of
from cosim.verbs.montecarlo.figures import panel
from cosim.verbs.montecarlo.spec import format_spec
from cosim.verbs.provenance import circuit_section, origins, subject_of
from cosim.verbs.trim.run import TrimRow, TrimSummary
from cosim.verbs.trust import say_elsewhere

_NOTE = (
    "Intervals: 95 %. p: of McNemar's exact test that trimming changes no chip. Accuracy and states: means over chips."
)


def trim_page(design: Design, summary: TrimSummary, run: dict[str, str]) -> Page:
    """Return the page of a run of `cosim trim`. run: settings of the run, name in words -> value in words."""
    subject, technology = subject_of(design), design.technology.name
    before, *rows = summary.rows
    best = max(rows, key=lambda row: row.yield_.value)
    bounds = within(best.yield_.interval)
    verdict = f"yield {percent(before.yield_.value)} as fabricated, {percent(best.yield_.value)} with {best.bits} bits"
    spec = format_spec(summary.spec)
    return Page(
        verb="trim",
        subject=subject,
        title=f"{subject.name} on {technology}: {verdict} {bounds}",
        lead=f"{summary.chips} chips with mismatch of each transistor, {summary.failed} of them failed, each on "
        f"{summary.samples} test samples by the {summary.engine} engine. {_measured(design)}, and the converters "
        f"at the pins of thresholds and levels set; the same chips count before and after. A chip counts that has "
        f"{spec}.",
        cards=(
            (percent(before.yield_.value), f"yield as fabricated {within(before.yield_.interval)}"),
            (percent(best.yield_.value), f"yield with {best.bits} bits {bounds}"),
            (f"+{best.won}, -{best.lost}", "chips that trimming won and lost"),
        ),
        notes=() if summary.clipped is None else (f"{summary.clipped}.",),
        sections=(
            Section("Yield by the bits of the converters", (_picture(summary), _table(summary), _NOTE)),
            Section("Ranges of the converters", (Facts(_ranges(summary)),)),
            Section("Simulated elsewhere", say_elsewhere(summary.elsewhere)),
            circuit_section(design),
            Section("How it was run", (Facts(tuple(run.items())),), detail=True),
        ),
        provenance=origins(design),
    )


def _measured(design: Design) -> str:
    """Return how the thresholds and levels of a chip were found, as the beginning of a sentence."""
    compared = {unit_of(node).has_comparators for node in design.graph.memories}
    if compared == {False}:
        return "Their cells were measured"
    taken = "thresholds and levels behind comparators were taken from the equations"
    return taken.capitalize() if compared == {True} else f"Their 9T cells were measured, {taken}"


def _ranges(summary: TrimSummary) -> tuple[tuple[str, str], ...]:
    words = {"upper": "upper threshold", "lower": "lower threshold"}
    return tuple((f"{words.get(name, name)} currents", f"± {percent(span)}") for name, span in summary.ranges.items())


def _picture(summary: TrimSummary) -> Picture:
    caption = "Yield against the bits of the converters with its 95 % interval; dashed as fabricated."
    rows = ", ".join(f"{_bits(row)}: {percent(row.yield_.value)}" for row in summary.rows)
    return picture_of(draw_trim(summary), f"{caption} {rows}.", caption)


def _bits(row: TrimRow) -> str:
    return "none" if row.bits is None else str(row.bits)


def _table(summary: TrimSummary) -> Table:
    head = ("bits", "yield", "95 % interval", "won", "lost", "p", "accuracy", "states")
    return Table(head, tuple(map(_row, summary.rows)), tuple(range(len(head))))


def _row(row: TrimRow) -> tuple[str, ...]:
    figures = (percent(found.mean) if found else "" for found in (row.accuracy, row.state_agreement))
    found = row.yield_
    counts = (str(row.won), str(row.lost), f"{row.p:.2g}") if row.bits is not None else ("", "", "")
    return (_bits(row), percent(found.value), within(found.interval), *counts, *figures)


@styled
def draw_trim(summary: TrimSummary) -> Figure:
    """Draw the yield against the bits of the converters, with intervals; a dashed line and a band: no converters."""
    before, *rows = summary.rows
    figure, axis = panel((SINGLE, 2.9))
    bits = [row.bits or 0 for row in rows]
    values = 100 * np.array([row.yield_.value for row in rows])
    bounds = 100 * np.array([row.yield_.interval for row in rows])
    errors = np.abs(bounds.T - values)
    axis.errorbar(bits, values, errors, marker="o", ms=4, lw=1.2, capsize=3, color=BLUE, label="trimmed")
    low, high = (100 * value for value in before.yield_.interval)
    axis.axhspan(low, high, color=GREY, alpha=0.2, lw=0)
    axis.axhline(100 * before.yield_.value, color=GREY, ls="--", lw=1, label="as fabricated")
    axis.set_xticks(bits)
    axis.set_xlabel("bits of the converter at each bias pin")
    axis.set_ylabel(f"yield (%), {' and '.join(summary.spec)}")
    axis.set_ylim(0, 102)
    legend_above(figure, 2)
    return figure
