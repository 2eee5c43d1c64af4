"""Sections of the page of a run of chips that hold pictures, as HTML."""

from cosim.cells.blocks import OUTSIDE
from cosim.quantities import format_quantity
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
    format_name,
    format_spec,
    format_value,
    scale_of,
    watts_of,
)
from cosim.report.figures import Figure, figure_bytes
from cosim.report.html import Picture, escape, format_figure, format_grid, format_table
from cosim.report.tables import percent
from cosim.study.agreement import METRICS

MEANING = {
    "accuracy": "samples that a chip decides right",
    "task_agreement": "samples that a chip decides as the software does",
    "state_agreement": "states that equal the software's",
    POWER: "mean supply power",
}


def format_spreads(study: ChipStudy) -> str:
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


def format_yield_curve(study: ChipStudy) -> str:
    """Yield against the accuracy limit."""
    curve, found = study.curve, study.summary.yield_
    others = [text for text in found.spec if not text.startswith("accuracy>=")]
    also = f", together with {format_spec(others)}" if others else ""
    caption = (
        f"Yield against the least accuracy that a chip must have{also}; band: its 95 % interval at each limit by "
        f"itself ({curve.method}). A chip whose simulation failed meets no limit."
    )
    low, high = found.interval
    alt = (
        f"Yield falls from {percent(curve.values[0])} at an accuracy limit of {percent(curve.limits[0])} to "
        f"{percent(curve.values[-1])} at {percent(curve.limits[-1])}; at the spec it is {percent(found.value)} "
        f"[{percent(low)}, {percent(high)}]."
    )
    return format_figure(_svg(draw_yield_curve(curve), alt, caption))


def format_pairs(study: ChipStudy) -> str:
    """Both engines on the same chips; empty for a run of one."""
    paired = study.summary.paired
    if not paired:
        return ""
    pictures, rows = [], []
    for metric, pair in paired.items():
        factor, unit = scale_of(study, metric)
        behavioral, ngspice = (factor * figures_of(study, metric, engine)[0] for engine in ("behavioral", "ngspice"))
        low, high = (format_value(metric, value, 2) for value in pair.bias_interval)
        bias = f"{format_value(metric, pair.bias, 2)} [{low}, {high}]"
        correlation = "none: one engine sees no spread"
        if pair.correlation is not None and (bounds := pair.correlation_interval):
            correlation = f"{pair.correlation:.3f} [{bounds.low:.3f}, {bounds.high:.3f}]"
        caption = f"{format_name(metric).capitalize()}: correlation {correlation}, behavioral - ngspice {bias}."
        figure = draw_pairs(f"{format_name(metric)} ({unit})", behavioral, ngspice)
        pictures.append(_svg(figure, f"Behavioral against ngspice, {len(ngspice)} chips. {caption}", caption))
        spread = format_value(metric, pair.difference_sd, 2)
        rows.append((format_name(metric), pair.chips, correlation, bias, spread))
    head = ("figure", "chips", "correlation [95 %]", "behavioral - ngspice [95 %]", "sd of it")
    return format_grid(pictures) + format_table(head, rows, (1, 2, 3, 4))


def format_contributions(study: ChipStudy) -> str:
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


def format_failure(study: ChipStudy) -> str:
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
    labels = failure.labels
    names = labels.outputs
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


def format_blocks(study: ChipStudy) -> str:
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
