"""The page of a run of chips: how many work, why the others do not, and what was built."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim import __version__
from cosim.analysis.chip_figures import (
    Spread,
    Waves,
    YieldCurve,
    draw_blocks,
    draw_failure,
    draw_pairs,
    draw_shares,
    draw_spread,
    draw_yield_curve,
)
from cosim.analysis.figures import Figure, figure_bytes
from cosim.analysis.page import (
    Picture,
    escape,
    format_cards,
    format_figure,
    format_grid,
    format_page,
    format_table,
)
from cosim.analysis.schematics import schematics_of
from cosim.analysis.tables import percent
from cosim.design import Design
from cosim.simulation.testbench import Timing
from cosim.technology.conditions import format_conditions
from cosim.units import format_quantity

POWER = "power"
BEHAVIORAL, TRANSISTORS = "behavioral model", "chip on transistors"  # keys of Failure.decided
METRICS = ("accuracy", "task_agreement", "state_agreement", POWER)
MEANING = {
    "accuracy": "samples that a chip decides right",
    "task_agreement": "samples that a chip decides as the software does",
    "state_agreement": "states that equal the software's",
    POWER: "mean supply power",
}
VARIATION = {
    "none": "without any deviation",
    "local": "with mismatch of each transistor",
    "global": "with process, supply and temperature of their own",
    "all": "with mismatch of each transistor, and process, supply and temperature of their own",
}
_WIDTH = re.compile(rb'width="([\d.]+)')
_READABLE = 0.72  # pixels that a point of a schematic needs


@dataclass(frozen=True)
class Failure:
    """One sample that the worst chip decided wrong, on its transistors and on the nominal ones.

    sample: its index in the full test set; decided: what each of software, behavioral model, chip's transistors and
    nominal transistors decides; waves and labels as `record_waveforms` gives them.
    """

    chip: int
    figures: Mapping[str, Any]
    sample: int
    wanted: int
    decided: Mapping[str, int]
    waves: Waves
    nominal: Waves
    labels: dict[str, Any]


@dataclass(frozen=True)
class ChipStudy:
    """A run of chips with all that its page shows.

    summary, settings, kept, contributions: content of summary.json, run.json, trial.json and contributions.json (None
    without); records, passes: of the chips that the summary counts; limits: metric -> limit of the spec on it; states:
    number of states behind a state agreement; blocks: power of the nominal circuit, W; failure: a text says why none.
    """

    design: Design
    timing: Timing
    summary: dict[str, Any]
    settings: dict[str, Any]
    kept: dict[str, Any]
    records: tuple[dict[str, Any], ...]
    passes: tuple[bool, ...]
    limits: Mapping[str, float]
    curve: YieldCurve
    blocks: dict[str, float]
    contributions: dict[str, Any] | None
    failure: Failure | str


def format_chip_report(study: ChipStudy) -> str:
    """The page."""
    summary = study.summary
    sections = {
        "The chips": _spreads(study),
        "Yield": _yield_curve(study),
        "Both engines, chip by chip": _pairs(study),
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
    body = "".join(
        f'<section id="s{k}"{_sheet(name in own_sheet)}><h2>{escape(name)}</h2>{content}</section>'
        for k, (name, content) in enumerate(shown.items())
    )
    title = f"{study.design.network.task or 'network'} on {summary['technology']}: {_count(summary)}"
    return format_page(title, f"<header>{_head(study, title)}</header><nav>{links}</nav><main>{body}</main>")


def _sheet(own: bool) -> str:
    return ' class="sheet"' if own else ""


def _count(summary: dict[str, Any]) -> str:
    return f"{summary['yield']['passed']} of {summary['chips']} chips"


def _head(study: ChipStudy, title: str) -> str:
    summary, design = study.summary, study.design
    widths = [layer.width for layer in design.network.recurrent_layers]
    d = str(widths[0]) if len({*widths}) == 1 else ", ".join(map(str, widths))
    layers = f"{len(widths)} recurrent layer{'s' if len(widths) > 1 else ''}"
    variation = VARIATION.get(summary["variation"]["kind"], summary["variation"]["kind"])
    lead = (
        f"d = {d} in {layers}, {design.assembly.transistors} transistors of {summary['technology']} "
        f"({format_conditions(design.technology)}). {summary['chips']} chips {variation}, each on {summary['samples']} "
        f"test samples. Engine: {summary['engine']}."
    )
    found = summary["yield"]
    low, high = found["interval"]
    answer = (
        f"Yield <b>{percent(found['value'])}</b>, {percent(found['confidence'], 0)} interval {percent(low)} to "
        f"{percent(high)}: {escape(_count(summary))} have {escape(_spec(found['spec']))}."
    )
    cards = [(percent(found["value"]), f"yield [{percent(low)}, {percent(high)}]")]
    for metric in METRICS:
        if metric in summary:
            beside = f"nominal {_value(metric, summary['nominal'][metric])}"
            if metric == "accuracy":
                beside += f", software {percent(summary['software_accuracy'])}"
            name = f"median {_words(metric)}; {beside}"
            cards.append((_value(metric, summary[metric]["quantiles"]["50"]), name))
    return (
        f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p><p class="answer">{answer}</p>'
        f"{_failed(summary)}{format_cards(cards)}"
    )


def _failed(summary: dict[str, Any]) -> str:
    if not summary["failed"]:
        return ""
    reasons = ", ".join(f"{count}: {reason}" for reason, count in summary["reasons"].items())
    text = f"{summary['failed']} simulations failed ({reasons}); such a chip counts as one that does not work."
    if without := summary["yield"].get("without_failed"):
        low, high = without["interval"]
        text += f" Without them the yield is {percent(without['value'])} [{percent(low)}, {percent(high)}]."
    return f"<p>{escape(text)}</p>"


def _spreads(study: ChipStudy) -> str:
    pictures = [_spread(study, metric) for metric in METRICS if metric in study.summary]
    return format_grid(pictures) if pictures else ""


def _spread(study: ChipStudy, metric: str) -> Picture:
    summary, engine = study.summary, study.summary["engine"]
    values, passes = _of_engine(study, metric, engine)
    factor, unit = _scale(study, metric)
    marks = {"nominal": factor * summary["nominal"][metric]}
    if metric != POWER:
        marks["software"] = factor * (summary["software_accuracy"] if metric == "accuracy" else 1.0)
    if metric in study.limits:
        marks["spec"] = factor * study.limits[metric]
    quantum = factor / summary["samples"] if metric in ("accuracy", "task_agreement") else 0.0
    spread = Spread(f"{_words(metric)} ({unit})", factor * values[passes], factor * values[~passes], marks, quantum)
    found = summary[metric]
    low, high = (_value(metric, found["quantiles"][q]) for q in ("5", "95"))
    caption = (
        f"{_words(metric).capitalize()}: {MEANING[metric]}. Mean {_value(metric, found['mean'])}, sd "
        f"{_value(metric, found['sd'])}, 5 to 95 % of chips {low} to {high}."
    )
    return _svg(draw_spread(spread), f"Histogram of {_words(metric)} over {len(values)} chips. {caption}", caption)


def _yield_curve(study: ChipStudy) -> str:
    curve, found = study.curve, study.summary["yield"]
    others = [text for text in found["spec"] if not text.startswith("accuracy>=")]
    also = f", together with {_spec(others)}" if others else ""
    caption = (
        f"Yield against the least accuracy that a chip must have{also}; band: its 95 % interval at each limit by "
        f"itself ({curve.method}). A chip whose simulation failed meets no limit."
    )
    low, high = found["interval"]
    alt = (
        f"Yield falls from {percent(curve.values[0])} at an accuracy limit of {percent(curve.limits[0])} to "
        f"{percent(curve.values[-1])} at {percent(curve.limits[-1])}; at the spec it is {percent(found['value'])} "
        f"[{percent(low)}, {percent(high)}]."
    )
    return format_figure(_svg(draw_yield_curve(curve), alt, caption))


def _pairs(study: ChipStudy) -> str:
    paired = study.summary.get("paired")
    if not paired:
        return ""
    pictures, rows = [], []
    for metric, pair in paired.items():
        factor, unit = _scale(study, metric)
        behavioral, ngspice = (factor * _of_engine(study, metric, engine)[0] for engine in ("behavioral", "ngspice"))
        low, high = (_value(metric, value, 2) for value in pair["bias_interval"])
        bias = f"{_value(metric, pair['bias'], 2)} [{low}, {high}]"
        correlation = "none: one engine sees no spread"
        if pair["correlation"] is not None:
            bounds = pair["correlation_interval"]
            correlation = f"{pair['correlation']:.3f} [{bounds[0]:.3f}, {bounds[1]:.3f}]"
        caption = f"{_words(metric).capitalize()}: correlation {correlation}, behavioral - ngspice {bias}."
        figure = draw_pairs(f"{_words(metric)} ({unit})", behavioral, ngspice)
        pictures.append(_svg(figure, f"Behavioral against ngspice, {len(ngspice)} chips. {caption}", caption))
        spread = _value(metric, pair["difference_sd"], 2)
        rows.append((_words(metric), pair["chips"], correlation, bias, spread))
    head = ("figure", "chips", "correlation [95 %]", "behavioral - ngspice [95 %]", "sd of it")
    return format_grid(pictures) + format_table(head, rows, (1, 2, 3, 4))


def _contributions(study: ChipStudy) -> str:
    if not study.contributions:
        return ""
    pictures = []
    for metric, found in study.contributions.items():
        divisions = {name: value for name, value in found.items() if isinstance(value, dict) and "shares" in value}
        texts = [
            f"{name}: "
            + ", ".join(f"{share['group']} {percent(share['value'])}" for share in division["shares"])
            + f"; R2 {percent(division['r2'])}"
            for name, division in divisions.items()
        ]
        caption = f"{_words(metric).capitalize()}: share of each group, transistors in brackets."
        pictures.append(_svg(draw_shares(divisions), f"Shares of the variance by {'. By '.join(texts)}.", caption))
    text = (
        "Share of the variance that a group's deviations explain alone, local mismatch only, behavioral model. R2 is "
        "the sum: what is left to 100 % is the interplay of groups, and the error of a small number of chips."
    )
    return f"<p>{escape(text)}</p>{format_grid(pictures)}"


def _failure(study: ChipStudy) -> str:
    failure = study.failure
    if isinstance(failure, str):
        return f"<p>{escape(failure)}</p>"
    names = failure.labels["outputs"]
    decided = ", ".join(f"{whose} {names[k]}" for whose, k in failure.decided.items())
    metrics = ", ".join(f"{_words(metric)} {_value(metric, failure.figures[metric])}" for metric in METRICS)
    text = (
        f"Chip {failure.chip} has the lowest accuracy: {metrics}. Test sample {failure.sample} is of class "
        f"{names[failure.wanted]}; decided: {decided}."
    )
    chosen = [failure.wanted, failure.decided[TRANSISTORS]]
    if chosen[0] == chosen[1]:
        chosen[1] = failure.decided[BEHAVIORAL]
    figure = draw_failure(failure.waves, failure.nominal, failure.labels, study.timing, list(dict.fromkeys(chosen)))
    own = ", solid those of this chip by the behavioral model" if "chip" in failure.labels else ""
    caption = (
        f"Both simulated by ngspice, the chip solid and the nominal circuit dashed: candidate of "
        f"{failure.labels['unit']}, the unit whose states differ most, dotted its thresholds as asked for{own}; its "
        "state; the readout of the right class and of the one that the chip decides; the supply power."
    )
    png = Picture("png", figure_bytes(figure, "png"), f"Waveforms of chip {failure.chip}. {text}", caption, 520)
    return f"<p>{escape(text)}</p>{format_figure(png)}"


def _figures(summary: dict[str, Any]) -> str:
    quantiles = next((summary[metric]["quantiles"] for metric in METRICS if metric in summary), {})
    named = {"0": "lowest", "50": "median", "100": "highest"}
    head = ("", "software", "nominal", "mean, 95 %", "sd", *(named.get(q, f"{q} %") for q in quantiles))
    rows = []
    for metric in METRICS:
        if metric not in summary:
            continue
        found = summary[metric]
        mean = _value(metric, found["mean"])
        if found["mean_interval"] is not None:
            mean += f" ± {_value(metric, found['mean_interval'][1] - found['mean'])}"
        software = {"accuracy": percent(summary["software_accuracy"]), POWER: ""}.get(metric, "100 %")
        spread = (_value(metric, value) for value in (found["sd"], *found["quantiles"].values()))
        rows.append((_words(metric), software, _value(metric, summary["nominal"][metric]), mean, *spread))
    if not rows:
        return ""
    note = "Nominal: the circuit without deviations, behavioral model. Quantiles over chips, failed ones left out."
    return format_table(head, rows, range(1, len(head))) + f"<p>{escape(note)}</p>"


def _blocks(study: ChipStudy) -> str:
    total = sum(study.blocks.values())
    factor, unit = _watts(total)
    rows = [
        (name, format_quantity(power, "W"), percent(power / total if total else 0.0))
        for name, power in (*study.blocks.items(), ("total", total))
    ]
    shares = ", ".join(f"{name} {value}" for name, value, _ in rows)
    caption = "Mean supply power per block over all samples, behavioral equations, without deviations."
    figure = _svg(draw_blocks(study.blocks, factor, unit), f"Power per block: {shares}.", caption)
    return format_figure(figure) + format_table(("block", "power", "share"), rows, (1, 2))


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
    chips = study.summary["variation"]
    rows = list(_flat({**study.settings, "variation": chips, "devices": f"{len(study.settings['devices'])} vary"}))
    rows += _flat({key: study.kept[key] for key in ("technology", "pdk_root", "compile")})
    rows.append(("page written by", f"cosim {__version__}"))
    return format_table(("setting", "value"), rows)


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Rows of a nested object, its keys as words."""
    for name, value in values.items():
        words = above + name.replace("_", " ")
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{words}: ")
        else:
            yield words, value


def _of_engine(study: ChipStudy, metric: str, engine: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A figure of the chips that were simulated, and which of them meet the spec."""
    good = [(record, passed) for record, passed in zip(study.records, study.passes, strict=True) if engine_ran(record)]
    return np.array([record[engine][metric] for record, _ in good]), np.array([passed for _, passed in good], bool)


def engine_ran(record: Mapping[str, Any]) -> bool:
    """Whether a chip's record holds its figures."""
    return record["status"] == "ok"


def _scale(study: ChipStudy, metric: str) -> tuple[float, str]:
    """What makes a figure's values numbers for an axis, and their unit."""
    return _watts(study.summary[POWER]["mean"]) if metric == POWER else (100.0, "%")


def _watts(power: float) -> tuple[float, str]:
    for factor, unit in ((1e12, "pW"), (1e9, "nW"), (1e6, "uW")):
        if factor * power < 1000:
            return factor, unit
    return 1e3, "mW"


def _svg(figure: Figure, alt: str, caption: str) -> Picture:
    return Picture("svg+xml", figure_bytes(figure, "svg"), alt, caption)


def _number(value: float, unit: str) -> str:
    return f"{value:.6g}" if unit == "1" else format_quantity(value, unit, 4)


def _value(metric: str, value: float, digits: int | None = None) -> str:
    """A figure as text; a state agreement is often so near to 1 that one digit would hide what is missing."""
    if metric == POWER:
        return format_quantity(value, "W")
    return percent(value, digits or (2 if metric == "state_agreement" else 1))


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def _spec(texts: Sequence[str]) -> str:
    return " and ".join(text.replace("_", " ").replace(">=", " ≥ ").replace("<=", " ≤ ") for text in texts)
