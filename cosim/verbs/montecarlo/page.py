"""The page of a run of chips: how many work, why the others do not, and what was built."""

from cosim.base.quantities import format_quantity
from cosim.cells.blocks import OUTSIDE
from cosim.results.figures import Figure, figure_bytes
from cosim.results.html import Picture
from cosim.results.metrics import CHIP_METRICS, METRICS, percent, within
from cosim.results.page import Blocks, Facts, Grid, Page, Section, Table
from cosim.verbs.automaton.section import format_automaton
from cosim.verbs.compare.noise_table import chip_noise_rows
from cosim.verbs.compile.page import format_inside, schematics_section
from cosim.verbs.montecarlo.advice import UNRESET, advise
from cosim.verbs.montecarlo.chip_study import (
    BEHAVIORAL,
    TRANSISTORS,
    ChipStudy,
    WrongSample,
    figures_of,
    format_spec,
    scale_of,
    software_of,
    watts_of,
)
from cosim.verbs.montecarlo.chips import ChipSummary
from cosim.verbs.montecarlo.figures import draw_blocks, draw_failure, draw_pairs, draw_shares, draw_yield_curve
from cosim.verbs.montecarlo.spread_section import format_cells, format_spreads, picture_running_yield
from cosim.verbs.provenance import origins, subject_of
from cosim.verbs.tables import format_bias, format_correlation, why_no_correlation
from cosim.verbs.trust import trust_rows
from cosim.verbs.words import VARIATION, say_conditions, worded


def chip_page(study: ChipStudy) -> Page:
    """Return the page of a run of chips."""
    summary, design = study.summary, study.design
    found, subject = summary.yield_, subject_of(design)
    title = f"{subject.name} on {summary.technology}: {_count(summary)} work {within(found.interval)}"
    answer = (
        f"Yield {percent(found.value)}, {percent(found.confidence, 0)} interval {percent(found.interval.low)} to "
        f"{percent(found.interval.high)}: {_count(summary)} have {format_spec(found.spec)}. "
        f"Accuracy of the nominal circuit {percent(summary.nominal.accuracy)}, of the software "
        f"{percent(summary.software_accuracy)}."
    )
    said = [f"{what} ({command})" for what, command in advise(summary)]
    helps = [f"What helps: {'; '.join(said)}."] if said else []
    notes = (_unreset(summary), *helps, _failed(summary), f"{summary.clipped}." if summary.clipped else "")
    return Page(
        verb="montecarlo",
        subject=subject,
        title=title,
        lead=_lead(study),
        cards=_cards(summary),
        sections=_sections(study),
        provenance=_provenance(study),
        answer=answer,
        notes=tuple(note for note in notes if note),
    )


def _sections(study: ChipStudy) -> tuple[Section, ...]:
    summary, trust = study.summary, tuple(trust_rows(study.summary))
    sections = {
        "The automaton": format_automaton(study.design.network),
        "The chips": format_spreads(study),
        "Yield": (Grid((_yield_curve(study), picture_running_yield(study))),),
        "Noise": (Facts(noise),) if (noise := tuple(chip_noise_rows(summary.noise))) else (),
        "The cells of all chips": format_cells(study),
        "Both engines, chip by chip": _pairs(study),
        "How far the engine can be trusted": (Facts(trust),) if trust else (),
        "Where the spread comes from": _contributions(study),
        "The worst chip": _failure(study),
        "Table of figures": _figures(summary),
        "Power of the nominal circuit": _blocks(study),
        **format_inside(study.design),
        "Cells": schematics_section(study.design),
        "How it was run": (Facts(tuple(worded(study.settings))),),
    }
    own_sheet = ("The worst chip", "Every parameter and its transistor", "Cells", "How it was run")
    return tuple(Section(name, blocks, name in own_sheet) for name, blocks in sections.items())


def _count(summary: ChipSummary) -> str:
    return f"{summary.yield_.passed} of {summary.chips} chips"


def _lead(study: ChipStudy) -> str:
    summary, design = study.summary, study.design
    widths = [layer.width for layer in design.network.recurrent_layers]
    d = str(widths[0]) if len({*widths}) == 1 else ", ".join(map(str, widths))
    layers = f"{len(widths)} recurrent layer{'s' if len(widths) > 1 else ''}"
    variation = VARIATION.get(summary.variation.kind, summary.variation.kind)
    return (
        f"d = {d} in {layers}, {design.assembly.transistors} transistors of {summary.technology} "
        f"({say_conditions(study.technology)}). {summary.chips} chips {variation}, each on {summary.samples} "
        f"test samples. Engine: {summary.engine}."
    )


def _cards(summary: ChipSummary) -> tuple[tuple[str, str], ...]:
    found = summary.yield_
    cards = [(percent(found.value), f"yield {within(found.interval)}")]
    for metric, statistic in summary.figures.items():
        beside = f"nominal {METRICS[metric].format(summary.nominal[metric])}"
        if metric == "accuracy":
            beside += f", software {percent(summary.software_accuracy)}"
        cards.append((METRICS[metric].format(statistic.quantiles["50"]), f"median {METRICS[metric].title}; {beside}"))
    return tuple(cards)


def _provenance(study: ChipStudy) -> dict[str, str]:
    return {**origins(study.design), **study.origins}


def _unreset(summary: ChipSummary) -> str:
    found = summary.unreset
    if not found.chips:
        return ""
    cells = ", ".join(f"{cell} in {count}" for cell, count in found.cells.items())
    text = (
        f"{found.chips} chips have a cell that the reset does not turn off ({cells}); {found.meet_spec} of them "
        f"meet the spec. It does not reset: {UNRESET}. Their figures are those of a chip on which such a cell has once "
        "been on, and none counts as working."
    )
    return text


def _failed(summary: ChipSummary) -> str:
    if not summary.failed:
        return ""
    reasons = ", ".join(f"{count}: {reason}" for reason, count in summary.reasons.items())
    text = f"{summary.failed} simulations failed ({reasons}); such a chip counts as one that does not work."
    if without := summary.yield_.without_failed:
        text += f" Without them the yield is {percent(without.value)} {within(without.interval)}."
    return text


def _figures(summary: ChipSummary) -> Blocks:
    if not summary.figures:
        return ()
    quantiles = next(iter(summary.figures.values())).quantiles
    named = {"0": "lowest", "50": "median", "100": "highest"}
    head = ("", "software", "nominal", "mean, 95 %", "sd", *(named.get(q, f"{q} %") for q in quantiles))
    rows = []
    for metric, found in summary.figures.items():
        mean = METRICS[metric].format(found.mean)
        if found.mean_interval is not None:
            mean += f" ± {METRICS[metric].format(found.mean_interval.high - found.mean)}"
        software = "" if (own := software_of(summary, metric)) is None else METRICS[metric].format(own)
        spread = (METRICS[metric].format(value) for value in (found.sd, *found.quantiles.values()))
        rows.append((METRICS[metric].title, software, METRICS[metric].format(summary.nominal[metric]), mean, *spread))
    note = "Nominal: the circuit without deviations, behavioral model. Quantiles over chips, failed ones left out."
    return Table(head, tuple(rows), tuple(range(1, len(head)))), note


def _yield_curve(study: ChipStudy) -> Picture:
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
    return _svg(draw_yield_curve(curve), alt, caption)


def _pairs(study: ChipStudy) -> Blocks:
    """Return the pictures and the table of both engines on the same chips; empty for a run of one engine."""
    paired, engine = study.summary.paired, study.summary.engine
    if not paired:
        return ()
    pictures, rows = [], []
    for metric, pair in paired.items():
        factor, unit = scale_of(study, metric)
        behavioral, other = (factor * figures_of(study, metric, one)[0] for one in ("behavioral", engine))
        bias, correlation = format_bias(metric, pair), format_correlation(pair) or f"none: {why_no_correlation(pair)}"
        caption = f"{METRICS[metric].title.capitalize()}: correlation {correlation}, behavioral - {engine} {bias}."
        figure = draw_pairs(f"{METRICS[metric].title} ({unit})", behavioral, other, engine)
        pictures.append(_svg(figure, f"Behavioral against {engine}, {len(other)} chips. {caption}", caption))
        spread = METRICS[metric].format(pair.difference_sd, 2)
        rows.append((METRICS[metric].title, str(pair.chips), correlation, bias, spread))
    head = ("figure", "chips", "correlation [95 %]", f"behavioral - {engine} [95 %]", "sd of it")
    return Grid(tuple(pictures)), Table(head, tuple(rows), (1, 2, 3, 4))


def _contributions(study: ChipStudy) -> Blocks:
    """Return the shares of the variance as blocks; none where the store has none."""
    if not study.contributions:
        return ()
    pictures, few = [], []
    for metric, found in study.contributions.items():
        if needed := max(division.chips_needed for division in found.divisions.values()):
            few.append(f"{METRICS[metric].title} (about {needed})")
            continue
        texts = [
            f"{name}: "
            + ", ".join(f"{share.group} {percent(share.value)}" for share in division.shares)
            + f"; R2 {percent(division.r2)}"
            for name, division in found.divisions.items()
        ]
        caption = f"{METRICS[metric].title.capitalize()}: share of each group, transistors in brackets."
        pictures.append(
            _svg(draw_shares(found.divisions), f"Shares of the variance by {'. By '.join(texts)}.", caption)
        )
    text = (
        "Share of the variance that a group's deviations explain alone, local mismatch only, behavioral model. R2 is "
        "the sum: what is left to 100 % is the interplay of groups, and the error of a small number of chips."
    )
    if few:
        text += f" Too few chips, with intervals wider than 0 to 100 %, and so not shown: {', '.join(few)}."
    return (text, Grid(tuple(pictures))) if pictures else (text,)


def _failure(study: ChipStudy) -> Blocks:
    """Return blocks with the worst chip on a sample that it decides wrong, or with why that is not shown."""
    failure = study.failure
    if isinstance(failure, str):
        return (failure,)
    text, unit = _failure_text(failure), failure.labels.unit
    chosen = [failure.wanted, failure.decided[TRANSISTORS]]
    if chosen[0] == chosen[1]:
        chosen[1] = failure.decided[BEHAVIORAL]
    figure = draw_failure(failure.waves, failure.nominal, failure.labels, study.timing, list(dict.fromkeys(chosen)))
    own = ", solid those of this chip by the behavioral model" if failure.labels.own else ""
    caption = (
        f"Both simulated by ngspice, the chip solid and the nominal circuit dashed: candidate of {unit}, the unit "
        f"whose states differ most, dashed its thresholds as asked for{own}; its state; the readout of the right class "
        "and of the one that the chip decides; the supply power. Shaded: the unit's stage decides on candidates that "
        "its hold capacitors keep."
    )
    png = Picture("png", figure_bytes(figure, "png"), f"Waveforms of chip {failure.chip}. {text}", caption, 672)
    return text, png


def _failure_text(failure: WrongSample) -> str:
    labels, names = failure.labels, failure.labels.outputs
    decided = ", ".join(f"{whose} {names[k]}" for whose, k in failure.decided.items())
    metrics = ", ".join(
        f"{METRICS[metric].title} {METRICS[metric].format(failure.figures[metric])}" for metric in CHIP_METRICS
    )
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


def _blocks(study: ChipStudy) -> Blocks:
    """Return the power of each block of the nominal circuit, as a picture and a table."""
    total = sum(study.blocks.values())
    factor, unit = watts_of(total)
    rows = [
        (name, format_quantity(power, "W"), percent(power / total if total else 0.0))
        for name, power in (*study.blocks.items(), ("total", total))
    ]
    shares = ", ".join(f"{name} {value}" for name, value, _ in rows)
    caption = "Mean supply power per block over all samples, behavioral equations, without deviations."
    figure = _svg(draw_blocks(study.blocks, factor, unit), f"Power per block: {shares}.", caption)
    outside = f"Not in power, here and above: {', '.join(OUTSIDE)}."
    return figure, Table(("block", "power", "share"), tuple(rows), (1, 2)), outside


def _svg(figure: Figure, alt: str, caption: str) -> Picture:
    return Picture("svg+xml", figure_bytes(figure, "svg"), alt, caption)
