"""The page of a run of chips: how many work, why the others do not, and what was built."""

import re

from cosim import __version__
from cosim.design import Design
from cosim.quantities import format_quantity
from cosim.report.chip_sections import (
    format_blocks,
    format_contributions,
    format_failure,
    format_pairs,
    format_spreads,
    format_yield_curve,
)
from cosim.report.chip_study import POWER, ChipStudy, format_name, format_spec, format_value
from cosim.report.html import Picture, escape, flat_rows, format_cards, format_grid, format_page, format_table
from cosim.report.schematics import schematics_of
from cosim.report.tables import percent
from cosim.study.chips import ChipSummary
from cosim.technology.conditions import format_conditions

NO_BREAK = "\N{NO-BREAK SPACE}"
VARIATION = {
    "none": "without any deviation",
    "local": "with mismatch of each transistor",
    "global": "with process, supply and temperature of their own",
    "all": "with mismatch of each transistor, and process, supply and temperature of their own",
}
_WIDTH = re.compile(rb'width="([\d.]+)')
_READABLE = 0.72  # pixels that a point of a schematic needs


def format_chip_report(study: ChipStudy) -> str:
    """The page."""
    summary = study.summary
    sections = {
        "The chips": format_spreads(study),
        "Yield": format_yield_curve(study),
        "Both engines, chip by chip": format_pairs(study),
        "Where the spread comes from": format_contributions(study),
        "The worst chip": format_failure(study),
        "Table of figures": _figures(summary),
        "Power of the nominal circuit": format_blocks(study),
        "Every parameter and its transistor": _mapping(study.design),
        "Cells": _schematics(study.design),
        "Settings": _settings(study),
    }
    shown = {name: content for name, content in sections.items() if content}
    links = "".join(f'<a href="#s{k}">{escape(name)}</a> ' for k, name in enumerate(shown))
    own_sheet = ("The worst chip", "Every parameter and its transistor", "Cells", "Settings")
    sheets = {name: ' class="sheet"' if name in own_sheet else "" for name in shown}
    body = "".join(
        f'<section id="s{k}"{sheets[name]}><h2>{escape(name)}</h2>{content}</section>'
        for k, (name, content) in enumerate(shown.items())
    )
    title = f"{study.design.network.task or 'network'} on {summary.technology}: {_count(summary)}"
    return format_page(title, f"<header>{_head(study, title)}</header><nav>{links}</nav><main>{body}</main>")


def _count(summary: ChipSummary) -> str:
    return f"{summary.yield_.passed} of {summary.chips} chips"


def _head(study: ChipStudy, title: str) -> str:
    summary, design = study.summary, study.design
    widths = [layer.width for layer in design.network.recurrent_layers]
    d = str(widths[0]) if len({*widths}) == 1 else ", ".join(map(str, widths))
    layers = f"{len(widths)} recurrent layer{'s' if len(widths) > 1 else ''}"
    variation = VARIATION.get(summary.variation.kind, summary.variation.kind)
    lead = (
        f"d = {d} in {layers}, {design.assembly.transistors} transistors of {summary.technology} "
        f"({format_conditions(design.technology)}). {summary.chips} chips {variation}, each on {summary.samples} "
        f"test samples. Engine: {summary.engine}."
    )
    found = summary.yield_
    low, high = found.interval
    answer = (
        f"Yield <b>{percent(found.value)}</b>, {percent(found.confidence, 0)} interval {percent(low)} to "
        f"{percent(high)}: {escape(_count(summary))} have {escape(format_spec(found.spec))}."
    )
    cards = [(percent(found.value), f"yield [{percent(low)}, {percent(high)}]")]
    for metric, statistic in summary.figures.items():
        beside = f"nominal {format_value(metric, summary.nominal[metric])}"
        if metric == "accuracy":
            beside += f", software {percent(summary.software_accuracy)}"
        name = f"median {format_name(metric)}; {beside}"
        cards.append((format_value(metric, statistic.quantiles["50"]), name))
    notes = f"{_unreset(summary)}{_failed(summary)}{_clipped(summary)}"
    shown = f'<p class="answer">{answer}</p>{notes}{format_cards(cards)}'
    return f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{shown.replace(" %", NO_BREAK + "%")}'


def _unreset(summary: ChipSummary) -> str:
    found = summary.unreset
    if not found.chips:
        return ""
    cells = ", ".join(f"{cell} in {count}" for cell, count in found.cells.items())
    text = (
        f"{found.chips} chips have a cell that the reset does not turn off ({cells}); {found.meet_spec} of them "
        "meet the spec. Their figures are those of a chip on which such a cell has once been on, and none counts as "
        "working."
    )
    return f"<p>{escape(text)}</p>"


def _failed(summary: ChipSummary) -> str:
    if not summary.failed:
        return ""
    reasons = ", ".join(f"{count}: {reason}" for reason, count in summary.reasons.items())
    text = f"{summary.failed} simulations failed ({reasons}); such a chip counts as one that does not work."
    if without := summary.yield_.without_failed:
        low, high = without.interval
        text += f" Without them the yield is {percent(without.value)} [{percent(low)}, {percent(high)}]."
    return f"<p>{escape(text)}</p>"


def _clipped(summary: ChipSummary) -> str:
    return f"<p>{escape(summary.clipped)}.</p>" if summary.clipped else ""


def _figures(summary: ChipSummary) -> str:
    if not summary.figures:
        return ""
    quantiles = next(iter(summary.figures.values())).quantiles
    named = {"0": "lowest", "50": "median", "100": "highest"}
    head = ("", "software", "nominal", "mean, 95 %", "sd", *(named.get(q, f"{q} %") for q in quantiles))
    rows = []
    for metric, found in summary.figures.items():
        mean = format_value(metric, found.mean)
        if found.mean_interval is not None:
            mean += f" ± {format_value(metric, found.mean_interval.high - found.mean)}"
        software = {"accuracy": percent(summary.software_accuracy), POWER: ""}.get(metric, "100 %")
        spread = (format_value(metric, value) for value in (found.sd, *found.quantiles.values()))
        rows.append((format_name(metric), software, format_value(metric, summary.nominal[metric]), mean, *spread))
    note = "Nominal: the circuit without deviations, behavioral model. Quantiles over chips, failed ones left out."
    return format_table(head, rows, range(1, len(head))) + f"<p>{escape(note)}</p>"


def _mapping(design: Design) -> str:
    rows = []
    for row in design.mapping():
        numbers = (_number(value, row.unit) for value in (row.target, row.realised))
        rows.append((row.parameter, row.element, *numbers, row.status, row.note))
    head = ("parameter", "transistor or pin", "wanted", "built", "status", "note")
    text = (
        "A weight: wanted, and the ratio of unit devices that was built. A threshold or level: the current wanted at "
        "the cell, and the bias current on the pin that makes it."
    )
    return (
        f"<p>{escape(text)}</p><details open><summary>{len(rows)} parameters</summary>"
        f"{format_table(head, rows, (2, 3), tall=True)}</details>"
    )


def _schematics(design: Design) -> str:
    pictures = []
    for name, drawing in schematics_of(design.graph).items():
        found = _WIDTH.search(drawing)
        assert found is not None
        pictures.append(Picture("svg+xml", drawing, f"Schematic. {name}.", name, round(_READABLE * float(found[1]))))
    return format_grid(pictures)


def _settings(study: ChipStudy) -> str:
    """What the run depends on; the page's own version last."""
    rows = [*flat_rows(study.settings), ("page written by", f"cosim {__version__}")]
    return format_table(("setting", "value"), rows)


def _number(value: float, unit: str) -> str:
    return f"{value:.6g}" if unit == "1" else format_quantity(value, unit, 4)
