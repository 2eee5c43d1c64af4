"""The page of a run of chips: how many work, why the others do not, and what was built."""

import re

from cosim.cells.blocks import OUTSIDE
from cosim.compiler.mapping import map_parameters
from cosim.design import Design
from cosim.quantities import format_quantity
from cosim.report.automaton_sheet import format_automaton
from cosim.report.chip_figures import (
    Spread,
    draw_blocks,
    draw_failure,
    draw_pairs,
    draw_shares,
    draw_spread,
    draw_yield_curve,
)
from cosim.report.chip_study import (
    BEHAVIORAL,
    POWER,
    TRANSISTORS,
    ChipStudy,
    Failure,
    figures_of,
    format_spec,
    scale_of,
    watts_of,
)
from cosim.report.figures import Figure, figure_bytes
from cosim.report.html import (
    Picture,
    escape,
    flat_rows,
    format_cards,
    format_figure,
    format_grid,
    format_page,
    format_table,
)
from cosim.report.schematics import schematics_of
from cosim.report.tables import format_bias, format_correlation, format_name, format_value, percent, within
from cosim.report.trust import trust_rows
from cosim.study.agreement import METRICS
from cosim.study.chips import ChipSummary
from cosim.technology.conditions import format_conditions
from cosim.version import __version__

NO_BREAK = "\N{NO-BREAK SPACE}"
VARIATION = {
    "none": "without any deviation",
    "local": "with mismatch of each transistor",
    "global": "with process, supply and temperature of their own",
    "all": "with mismatch of each transistor, and process, supply and temperature of their own",
}
MEANING = {
    "accuracy": "samples that a chip decides right",
    "task_agreement": "samples that a chip decides as the software does",
    "state_agreement": "states that equal the software's",
    POWER: "mean supply power",
}
_WIDTH = re.compile(rb'width="([\d.]+)')
_READABLE = 0.72  # pixels that a point of a schematic needs


def format_chip_report(study: ChipStudy) -> str:
    """The page."""
    summary, trust = study.summary, trust_rows(study.summary)
    sections = {
        "The automaton": format_automaton(study.design.network),
        "The chips": _spreads(study),
        "Yield": _yield_curve(study),
        "Both engines, chip by chip": _pairs(study),
        "How far the engine can be trusted": format_table(("", "found"), trust) if trust else "",
        "Where the spread comes from": _contributions(study),
        "The worst chip": _failure(study),
        "Table of figures": _figures(summary),
        "Power of the nominal circuit": _blocks(study),
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
        f"({format_conditions(study.technology)}). {summary.chips} chips {variation}, each on {summary.samples} "
        f"test samples. Engine: {summary.engine}."
    )
    found = summary.yield_
    low, high = found.interval
    answer = (
        f"Yield <b>{percent(found.value)}</b>, {percent(found.confidence, 0)} interval {percent(low)} to "
        f"{percent(high)}: {escape(_count(summary))} have {escape(format_spec(found.spec))}."
    )
    cards = [(percent(found.value), f"yield {within(found.interval)}")]
    for metric, statistic in summary.figures.items():
        beside = f"nominal {format_value(metric, summary.nominal[metric])}"
        if metric == "accuracy":
            beside += f", software {percent(summary.software_accuracy)}"
        name = f"median {format_name(metric)}; {beside}"
        cards.append((format_value(metric, statistic.quantiles["50"]), name))
    clipped = f"<p>{escape(summary.clipped)}.</p>" if summary.clipped else ""
    notes = f"{_unreset(summary)}{_failed(summary)}{clipped}"
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
        text += f" Without them the yield is {percent(without.value)} {within(without.interval)}."
    return f"<p>{escape(text)}</p>"


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
    for row in map_parameters(design):
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


def _spreads(study: ChipStudy) -> str:
    """Histograms over chips."""
    pictures = [_spread(study, metric) for metric in study.summary.figures]
    return format_grid(pictures) if pictures else ""


def _spread(study: ChipStudy, metric: str) -> Picture:
    summary, engine = study.summary, study.summary.engine
    values, passes = figures_of(study, metric, engine)
    factor, unit = scale_of(study, metric)
    marks = {"nominal": factor * summary.nominal[metric]}
    if metric != POWER:
        marks["software"] = factor * (summary.software_accuracy if metric == "accuracy" else 1.0)
    if metric in study.limits:
        marks["spec"] = factor * study.limits[metric]
    quantum = factor / summary.samples if metric in ("accuracy", "task_agreement") else 0.0
    spread = Spread(
        f"{format_name(metric)} ({unit})", factor * values[passes], factor * values[~passes], marks, quantum
    )
    found = summary.figures[metric]
    low, high = (format_value(metric, found.quantiles[q]) for q in ("5", "95"))
    caption = (
        f"{format_name(metric).capitalize()}: {MEANING[metric]}. Mean {format_value(metric, found.mean)}, sd "
        f"{format_value(metric, found.sd)}, 5 to 95 % of chips {low} to {high}."
    )
    return _svg(draw_spread(spread), f"Histogram of {format_name(metric)} over {len(values)} chips. {caption}", caption)


def _yield_curve(study: ChipStudy) -> str:
    """Yield against the accuracy limit."""
    curve, found = study.curve, study.summary.yield_
    others = [text for text in found.spec if not text.startswith("accuracy>=")]
    also = f", together with {format_spec(others)}" if others else ""
    caption = (
        f"Yield against the least accuracy that a chip must have{also}; band: its 95 % interval at each limit by "
        f"itself ({curve.method}). A chip whose simulation failed meets no limit."
    )
    alt = (
        f"Yield falls from {percent(curve.values[0])} at an accuracy limit of {percent(curve.limits[0])} to "
        f"{percent(curve.values[-1])} at {percent(curve.limits[-1])}; at the spec it is {percent(found.value)} "
        f"{within(found.interval)}."
    )
    return format_figure(_svg(draw_yield_curve(curve), alt, caption))


def _pairs(study: ChipStudy) -> str:
    """Both engines on the same chips; empty for a run of one."""
    paired, engine = study.summary.paired, study.summary.engine
    if not paired:
        return ""
    pictures, rows = [], []
    for metric, pair in paired.items():
        factor, unit = scale_of(study, metric)
        behavioral, other = (factor * figures_of(study, metric, one)[0] for one in ("behavioral", engine))
        bias, correlation = format_bias(metric, pair), format_correlation(pair) or "none: one engine sees no spread"
        caption = f"{format_name(metric).capitalize()}: correlation {correlation}, behavioral - {engine} {bias}."
        figure = draw_pairs(f"{format_name(metric)} ({unit})", behavioral, other, engine)
        pictures.append(_svg(figure, f"Behavioral against {engine}, {len(other)} chips. {caption}", caption))
        spread = format_value(metric, pair.difference_sd, 2)
        rows.append((format_name(metric), pair.chips, correlation, bias, spread))
    head = ("figure", "chips", "correlation [95 %]", f"behavioral - {engine} [95 %]", "sd of it")
    return format_grid(pictures) + format_table(head, rows, (1, 2, 3, 4))


def _contributions(study: ChipStudy) -> str:
    """Shares of the variance; empty where the store has none."""
    if not study.contributions:
        return ""
    pictures, few = [], []
    for metric, found in study.contributions.items():
        if needed := max(division.chips_needed for division in found.divisions.values()):
            few.append(f"{format_name(metric)} (about {needed})")
            continue
        texts = [
            f"{name}: "
            + ", ".join(f"{share.group} {percent(share.value)}" for share in division.shares)
            + f"; R2 {percent(division.r2)}"
            for name, division in found.divisions.items()
        ]
        caption = f"{format_name(metric).capitalize()}: share of each group, transistors in brackets."
        pictures.append(
            _svg(draw_shares(found.divisions), f"Shares of the variance by {'. By '.join(texts)}.", caption)
        )
    text = (
        "Share of the variance that a group's deviations explain alone, local mismatch only, behavioral model. R2 is "
        "the sum: what is left to 100 % is the interplay of groups, and the error of a small number of chips."
    )
    if few:
        text += f" Too few chips, with intervals wider than 0 to 100 %, and so not shown: {', '.join(few)}."
    return f"<p>{escape(text)}</p>{format_grid(pictures) if pictures else ''}"


def _failure(study: ChipStudy) -> str:
    """The worst chip on a sample that it decides wrong, or why that is not shown."""
    failure = study.failure
    if isinstance(failure, str):
        return f"<p>{escape(failure)}</p>"
    text, unit = _failure_text(failure), failure.labels.unit
    chosen = [failure.wanted, failure.decided[TRANSISTORS]]
    if chosen[0] == chosen[1]:
        chosen[1] = failure.decided[BEHAVIORAL]
    figure = draw_failure(failure.waves, failure.nominal, failure.labels, study.timing, list(dict.fromkeys(chosen)))
    own = ", solid those of this chip by the behavioral model" if failure.labels.own else ""
    caption = (
        f"Both simulated by ngspice, the chip solid and the nominal circuit dashed: candidate of {unit}, the unit "
        f"whose states differ most, dotted its thresholds as asked for{own}; its state; the readout of the right class "
        "and of the one that the chip decides; the supply power."
    )
    png = Picture("png", figure_bytes(figure, "png"), f"Waveforms of chip {failure.chip}. {text}", caption, 520)
    return f"<p>{escape(text)}</p>{format_figure(png)}"


def _failure_text(failure: Failure) -> str:
    labels, names = failure.labels, failure.labels.outputs
    decided = ", ".join(f"{whose} {names[k]}" for whose, k in failure.decided.items())
    metrics = ", ".join(f"{format_name(metric)} {format_value(metric, failure.figures[metric])}" for metric in METRICS)
    text = (
        f"Chip {failure.chip} has the lowest accuracy: {metrics}. Test sample {failure.sample} is of class "
        f"{names[failure.wanted]}; decided: {decided}."
    )
    if labels.own is None:
        return text
    asked, own = (
        " and ".join(format_quantity(current, "A") for current in currents)
        for currents in ((labels.i_rise, labels.i_fall), labels.own)
    )
    return f"{text} Thresholds of unit {labels.unit}: {asked} asked for, {own} on this chip."


def _blocks(study: ChipStudy) -> str:
    """Power of each block of the nominal circuit."""
    total = sum(study.blocks.values())
    factor, unit = watts_of(total)
    rows = [
        (name, format_quantity(power, "W"), percent(power / total if total else 0.0))
        for name, power in (*study.blocks.items(), ("total", total))
    ]
    shares = ", ".join(f"{name} {value}" for name, value, _ in rows)
    caption = "Mean supply power per block over all samples, behavioral equations, without deviations."
    figure = _svg(draw_blocks(study.blocks, factor, unit), f"Power per block: {shares}.", caption)
    outside = f"<p>Not in power, here and above: {escape(', '.join(OUTSIDE))}.</p>"
    return format_figure(figure) + format_table(("block", "power", "share"), rows, (1, 2)) + outside


def _svg(figure: Figure, alt: str, caption: str) -> Picture:
    return Picture("svg+xml", figure_bytes(figure, "svg"), alt, caption)
