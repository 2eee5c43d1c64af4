"""The page of a Monte Carlo run: how many chips work, why the others do not, what helps, and what was built."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.base.claim import check_replaceable, owner_of, starts_with
from cosim.base.errors import InputError
from cosim.base.quantities import format_quantity
from cosim.base.write import write_atomically
from cosim.compiler.design import Design
from cosim.engines.engine import NO_CLASS
from cosim.engines.table import BEHAVIORAL
from cosim.results.figures import picture_of
from cosim.results.html import Picture
from cosim.results.intervals import running_intervals
from cosim.results.kept_page import repeatable
from cosim.results.metrics import CHIP_METRICS, METRICS, RMSE, percent, within
from cosim.results.page import Blocks, Facts, Fold, Grid, Page, Section, Table, format_pages
from cosim.technology.types import Technology
from cosim.verbs.automaton.section import format_automaton
from cosim.verbs.compare.noise import chip_noise_rows
from cosim.verbs.compile.cross_probing import cross_probe
from cosim.verbs.compile.page import format_inside
from cosim.verbs.montecarlo.chip_study import (
    BY_EQUATIONS,
    BY_TRANSISTORS,
    ChipStudy,
    Say,
    WrongSample,
    nominal_power,
    spread_cells,
    study_chips,
    yield_curve,
)
from cosim.verbs.montecarlo.chips import LEAST_PAIRED, ChipSummary, Contribution, Pair
from cosim.verbs.montecarlo.figures import (
    MOST_CELLS,
    draw_blocks,
    draw_cells,
    draw_failure,
    draw_pairs,
    draw_quantiles,
    draw_running_yield,
    draw_shares,
    draw_spread,
    draw_weak,
    draw_yield_curve,
)
from cosim.verbs.montecarlo.keep import Places
from cosim.verbs.montecarlo.run import LARGER_AREA, SUFFICIENT_YIELD, TRIM_BITS
from cosim.verbs.montecarlo.spec import format_spec, verdict_table
from cosim.verbs.montecarlo.statistics import CellSpread, Influence, normal_band, rank_weak
from cosim.verbs.montecarlo.store import VERB
from cosim.verbs.provenance import origins, subject_of
from cosim.verbs.trust import trust_rows
from cosim.verbs.words import VARIATION, say_conditions, worded

LOST = 5.0  # points of accuracy
POWER = "power"
NORMAL = ("accuracy", POWER)  # whose quantiles are held against a normal distribution
LEAST = 8  # chips that show a distribution at all
_WEAK, _CLEAR = 3, 0.05
_LEAST_WIDE = 672  # pixels of seven inches, under which a wide picture's words cannot be read
CELLS = 4  # that the note on those without a reset names
FAITHFUL = 0.9  # of the decisions: below it the nominal circuit is not the trained network
_OTHERS = {"0": "lowest", "25": "25 %", "75": "75 %", "100": "highest"}  # quantiles that the table leaves out
NOISE = "Noise, by the equations"
_IN_TERMINAL = (
    "What helps", "Limits of all chips", "The chips", NOISE, "Both engines, chip by chip",
    "How far the engine can be trusted", "Where the spread comes from",
)  # fmt: skip
_OWN_SHEET = ("The worst chip", "Every parameter and its transistor", "Cells", "How it was run")


def write_report(
    folder: Path, output: Path, places: Places = Places(), *, waveforms: bool = True, say: Say = lambda text: None
) -> Page:
    """Write the page of a finished Monte Carlo run to the file `output`, and return it.

    waveforms: also simulate a wrong sample of the worst chip. Raises InputError for a folder that is no finished run.
    """
    if output.parent != folder:
        check_page(output)
    page = read_run(folder, places, waveforms=waveforms, say=say)
    write_atomically(output, format_pages([page]).encode())
    return page


def read_run(folder: Path, places: Places = Places(), *, waveforms: bool = True, say: Say = lambda text: None) -> Page:
    """Build the page of a Monte Carlo run from its folder. Raises InputError for a folder that is no finished run."""
    return repeatable(folder, chip_page(study_chips(folder, places, waveforms=waveforms, say=say)))


def check_page(output: Path) -> None:
    """Raise InputError where the page of a Monte Carlo run may not be written to this file.

    The file must be writable, must not lie in the folder of another verb, and must not replace anything but a page.
    """
    check_replaceable({output: starts_with(b"<!doctype html>")})
    owner = owner_of(output.parent)
    if owner not in (None, VERB):
        raise InputError(f"{output}: the folder belongs to cosim {owner}; choose another file with -o")


def chip_page(study: ChipStudy) -> Page:
    """Return the page of a Monte Carlo run with its pictures, details and provenance."""
    page = summary_page(study.trial.design, study.trial.technology, study.summary, study.network, study)
    page = replace(page, provenance={**origins(study.trial.design), **study.origins})
    return cross_probe(page, study.trial.design)


def summary_page(
    design: Design,
    technology: Technology,
    summary: ChipSummary,
    network: str = "NETWORK",
    study: ChipStudy | None = None,
) -> Page:
    """Return the page of a Monte Carlo run; without `study` it has no pictures and only the terminal's sections.

    network: path of the network's file, for the commands that the page advises.
    """
    found, subject = summary.yield_, subject_of(design)
    answer = (
        f"Yield {percent(found.value)}, {percent(found.confidence, 0)} interval {percent(found.interval.low)} to "
        f"{percent(found.interval.high)} ({found.method}): {_count(summary)} have {format_spec(found.spec)}. "
        f"Accuracy of the nominal circuit {percent(summary.nominal.accuracy)}, of the software "
        f"{percent(summary.software_accuracy)}."
    )
    notes = (
        _unfaithful(summary),
        _unmoved(design, technology, summary),
        _unreset(summary),
        _failed(summary),
        f"{summary.clipped}." if summary.clipped else "",
    )
    return Page(
        verb="montecarlo",
        subject=subject,
        title=f"{subject.name} on {summary.technology}: {_count(summary)} work {within(found.interval)}",
        lead=_lead(design, technology, summary),
        cards=_cards(summary),
        sections=tuple(
            Section(name, blocks, sheet=name in _OWN_SHEET, detail=name not in _IN_TERMINAL)
            for name, blocks in _sections(summary, "" if design.settings.netlist else network, study).items()
        ),
        answer=answer,
        notes=tuple(note for note in notes if note),
    )


def _sections(summary: ChipSummary, network: str, study: ChipStudy | None) -> dict[str, Blocks]:
    """Return the sections of the page, heading -> blocks; sections without blocks are empty.
    network: its path, for commands that help; "" for an edited circuit, because these commands would compile the
    network anew and lose the edits. Without a study there are no pictures and details."""

    def drawn(blocks: Callable[[ChipStudy], Blocks]) -> Blocks:
        return () if study is None else blocks(study)

    advice, verdicts = tuple(advise(summary, network)) if network else (), summary.verdicts
    noise, trust = (
        tuple(chip_noise_rows(summary.noise)),
        trust_rows(summary.elsewhere, summary.undecided, summary.audit),
    )
    return {
        "What helps": (Facts(advice),) if advice else (),
        "Limits of all chips": (verdict_table(verdicts),) if verdicts else (),
        "The chips": (*_figures(summary), *drawn(format_spreads)),
        "Yield": drawn(lambda study: (Grid((_yield_curve(study), picture_running_yield(study))),)),
        "Cells that do not reset": drawn(_unreset_cells),
        "The automaton": drawn(lambda study: format_automaton(study.trial.design.network)),
        NOISE: (Facts(noise),) if noise else (),
        "The cells of all chips": drawn(format_cells),
        "Both engines, chip by chip": (*_pairs(summary), *drawn(_pair_pictures)),
        "How far the engine can be trusted": (Facts(trust),) if trust else (),
        "Where the spread comes from": _contributions(summary, drawn=study is not None),
        "The worst chip": drawn(_failure),
        "Power of the nominal circuit": drawn(_blocks),
        **({} if study is None else format_inside(study.trial.design)),
        "How it was run": drawn(lambda study: (Facts(tuple(worded(study.settings))),)),
    }


def _count(summary: ChipSummary) -> str:
    return f"{summary.yield_.passed} of {summary.chips} chips"


def _lead(design: Design, technology: Technology, summary: ChipSummary) -> str:
    widths = [layer.width for layer in design.network.recurrent_layers]
    d = str(widths[0]) if len({*widths}) == 1 else ", ".join(map(str, widths))
    layers = f"{len(widths)} recurrent layer{'s' if len(widths) > 1 else ''}"
    plan, graded = summary.variation, ""
    variation = VARIATION.get(plan.kind, plan.kind)
    if plan.common:
        (coldest, hottest), (least, greatest) = plan.celsius, plan.supplies
        variation += f" ({coldest:g} to {hottest:g} °C, {100 * least:.4g} to {100 * greatest:.4g} % of the supply)"
    if summary.gradient is not None:
        s_vt, s_beta = summary.gradient
        graded = f" and gradients across the die (sigma {s_vt:g} uV/um and {s_beta:g} ppm/um)"
    return (
        f"d = {d} in {layers}, {design.assembly.transistors} transistors of {summary.technology} "
        f"({say_conditions(technology)}). {summary.chips} chips {variation}{graded}, each on {summary.samples} "
        f"test samples. Engine: {summary.engine}; {summary.failed or 'none'} failed."
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


def _unmoved(design: Design, technology: Technology, summary: ChipSummary) -> str:
    """Return a warning where process, supply or temperature are not nominal and only equations ran, else "".

    The behavioral equations do not know how process, supply and temperature move thresholds.
    """
    elsewhere = say_conditions(technology) != say_conditions(design.technology)
    if summary.engine != BEHAVIORAL or not (summary.variation.common or elsewhere):
        return ""
    return (
        "In the equations process, supply and temperature move no threshold: they change mismatch (temperature) and "
        "power (supply). --transistors also runs the chips on transistors, where they move thresholds as well."
    )


def _unfaithful(summary: ChipSummary) -> str:
    """Return a warning where too many decisions of the nominal circuit differ from the software's, else ""."""
    kept = summary.nominal.task_agreement
    if kept >= FAITHFUL:
        return ""
    return f"Only {percent(kept)} of the nominal circuit's decisions are the software's; cosim compare says why."


def _unreset(summary: ChipSummary) -> str:
    found = summary.unreset
    if not found.chips:
        return ""
    cells = ", ".join(f"{cell} in {count}" for cell, count in list(found.cells.items())[:CELLS])
    more = f" and {len(found.cells) - CELLS} more" if len(found.cells) > CELLS else ""
    return (
        f"{found.chips} chips have a cell that does not reset ({cells}{more}): it stays on through the reset, because "
        "mismatch has moved its lower threshold below the small current that the reset leaves. Such a chip begins "
        f"every sample with a wrong state and does not count as working; {found.meet_spec} of them would keep every "
        "limit."
    )


def _unreset_cells(study: ChipStudy) -> Blocks:
    """Return a table of all cells that do not reset, empty if the note above already names them all."""
    cells = study.summary.unreset.cells
    rows = tuple((cell, str(count)) for cell, count in cells.items())
    return (Table(("cell", "chips"), rows, (1,), tall=True),) if len(rows) > CELLS else ()


def _failed(summary: ChipSummary) -> str:
    if not summary.failed:
        return ""
    reasons = ", ".join(f"{count}: {reason}" for reason, count in summary.reasons.items())
    text = f"{summary.failed} simulations failed ({reasons}); such a chip counts as one that does not work."
    if without := summary.yield_.without_failed:
        text += f" Without them the yield is {percent(without.value)} {within(without.interval)}."
    return text


def _figures(summary: ChipSummary) -> Blocks:
    """Return the table of the figures over chips, and a folded table with further quantiles."""
    rows, others = [], []
    for metric, found in summary.figures.items():
        known = METRICS[metric]
        mean = known.format(found.mean)
        if found.mean_interval is not None:
            mean += f" ± {known.format(found.mean_interval.high - found.mean)}"
        software = "" if (own := software_of(summary, metric)) is None else known.format(own)
        shown = {q: known.format(value) for q, value in found.quantiles.items()}
        nominal, middle = known.format(summary.nominal[metric]), (shown.pop(q, "") for q in ("5", "50", "95"))
        rows.append((known.title, software, nominal, mean, known.format(found.sd), *middle))
        others.append((known.title, *(shown.get(q, "") for q in _OTHERS)))
    if not rows:
        return ()
    head = ("", "software", "nominal", "mean, 95 %", "sd", "5 %", "median", "95 %")
    return (
        Table(head, tuple(rows), tuple(range(1, len(head)))),
        Fold("More quantiles", Table(("", *_OTHERS.values()), tuple(others), tuple(range(1, len(_OTHERS) + 1)))),
        "Nominal: the circuit without deviations, behavioral model. Quantiles over chips, failed ones left out. Not in "
        f"power: {', '.join(summary.power_outside)}.",
    )


def _yield_curve(study: ChipStudy) -> Picture:
    """Return the picture of the yield against the accuracy limit."""
    curve, found = yield_curve(study.trial, study.records, study.specs), study.summary.yield_
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
    return picture_of(draw_yield_curve(curve), alt, caption)


def _pairs(summary: ChipSummary) -> Blocks:
    """Return the table that compares both engines on the same chips; empty for a run of one engine."""
    rows = tuple(
        (METRICS[metric].title, str(pair.chips), _correlation(pair), _bias(metric, pair),
         METRICS[metric].format(pair.difference_sd, 2))
        for metric, pair in (summary.paired or {}).items()
    )  # fmt: skip
    head = ("figure", "chips", "correlation [95 %]", f"behavioral - {summary.engine} [95 %]", "sd of it")
    return (Table(head, rows, (1, 2, 3, 4)),) if rows else ()


def _pair_pictures(study: ChipStudy) -> Blocks:
    pictures, engine = [], study.summary.engine
    for metric, pair in (study.summary.paired or {}).items():
        factor, unit = scale_of(study, metric)
        behavioral, other = (factor * study.figures(metric, one)[0] for one in ("behavioral", engine))
        caption = (
            f"{METRICS[metric].title.capitalize()}: correlation {_correlation(pair)}, behavioral - {engine} "
            f"{_bias(metric, pair)}."
        )
        figure = draw_pairs(f"{METRICS[metric].title} ({unit})", behavioral, other, engine)
        pictures.append(picture_of(figure, f"Behavioral against {engine}, {len(other)} chips. {caption}", caption))
    return (Grid(tuple(pictures)),) if pictures else ()


def _bias(metric: str, pair: Pair) -> str:
    """Format the mean over chips of the behavioral figure minus the simulator's, with its interval."""
    mean, low, high = (METRICS[metric].format(value, 2) for value in (pair.bias, *pair.bias_interval))
    return f"{mean} [{low}, {high}]"


def _correlation(pair: Pair) -> str:
    """Format the correlation over chips between both engines with its interval, or say why there is none."""
    if pair.correlation is None or (bounds := pair.correlation_interval) is None:
        return f"none: {f'only {pair.chips} chips' if pair.chips < LEAST_PAIRED else 'one engine sees no spread'}"
    return f"{pair.correlation:.3f} [{bounds.low:.3f}, {bounds.high:.3f}]"


def _contributions(summary: ChipSummary, *, drawn: bool) -> Blocks:
    """Return the shares of the variance: a table for accuracy, and pictures for all figures if `drawn`.
    Returns nothing where the run did not compute shares."""
    if not summary.contributions:
        return ()
    enough = dict[str, Contribution]()
    few: list[str] = []
    for metric, found in summary.contributions.items():
        if needed := max(division.chips_needed for division in found.divisions.values()):
            few.append(f"{METRICS[metric].title} (about {needed} chips narrow them)")
        else:
            enough[metric] = found
    text = (
        "Share of the variance that a group's deviations explain alone, local mismatch only, behavioral model. R2 is "
        "the sum: what is left to 100 % is the interplay of groups, and the error of a small number of chips."
    )
    if few:
        text += f" Too few chips, with intervals wider than 0 to 100 %, and so not shown: {', '.join(few)}."
    table = tuple(_shares_table(metric, found) for metric, found in enough.items() if metric == "accuracy")
    pictures = tuple(_shares_picture(metric, found) for metric, found in enough.items()) if drawn else ()
    return text, *table, *((Grid(pictures),) if pictures else ())


def _shares_table(metric: str, found: Contribution) -> Table:
    """Return the table of one figure's shares of variance, by block and by kind of transistor."""
    rows: list[tuple[str, ...]] = []
    for name, division in found.divisions.items():
        rows += [
            (name, share.group, str(share.transistors), percent(share.value), within((share.low, share.high)))
            for share in division.shares
        ]
        rows.append((name, "R2", "", percent(division.r2), ""))
    head = ("by", "group", "transistors", f"share of the variance of {METRICS[metric].title}", "95 % interval")
    return Table(head, tuple(rows), (2, 3, 4))


def _shares_picture(metric: str, found: Contribution) -> Picture:
    texts = [
        f"{name}: "
        + ", ".join(f"{share.group} {percent(share.value)}" for share in division.shares)
        + f"; R2 {percent(division.r2)}"
        for name, division in found.divisions.items()
    ]
    caption = f"{METRICS[metric].title.capitalize()}: share of each group, transistors in brackets."
    return picture_of(draw_shares(found.divisions), f"Shares of the variance by {'. By '.join(texts)}.", caption)


def _failure(study: ChipStudy) -> Blocks:
    """Return text and waveforms of a sample that the worst chip decides wrong, or text that says why there is none."""
    failure = study.failure
    if isinstance(failure, str):
        return (failure,)
    text, unit = _failure_text(failure), failure.labels.unit
    chosen = [failure.wanted, failure.decided[BY_TRANSISTORS]]
    if chosen[0] == chosen[1]:
        chosen[1] = failure.decided[BY_EQUATIONS]
    drawn = [k for k in dict.fromkeys(chosen) if k != NO_CLASS]
    figure = draw_failure(failure.waves, failure.nominal, failure.labels, study.trial.timing, drawn)
    own = ", solid those of this chip by the behavioral model" if failure.labels.own else ""
    caption = (
        f"Both simulated, the chip solid and the nominal circuit dashed: candidate of {unit}, the unit "
        f"whose states differ most, dashed its thresholds as asked for{own}; its state; the readout of the right class "
        "and of the one that the chip decides, if it shows one; the supply power. Shaded: the unit's stage decides on "
        "candidates that its hold capacitors keep."
    )
    return text, picture_of(figure, f"Waveforms of chip {failure.chip}. {text}", caption, _LEAST_WIDE, "png")


def _failure_text(failure: WrongSample) -> str:
    labels = failure.labels
    decided = ", ".join(f"{whose} {labels.class_of(k)}" for whose, k in failure.decided.items())
    metrics = ", ".join(
        f"{METRICS[metric].title} {METRICS[metric].format(failure.figures[metric])}" for metric in CHIP_METRICS
    )
    text = (
        f"Chip {failure.chip} has the lowest accuracy: {metrics}. Test sample {failure.sample} is of class "
        f"{labels.class_of(failure.wanted)}; decided: {decided}."
    )
    if labels.own is None:
        return text
    asked, own = (
        " and ".join(format_quantity(current, "A") for current in currents)
        for currents in ((labels.i_rise, labels.i_fall), labels.own)
    )
    return f"{text} Thresholds of unit {labels.unit}: {asked} asked for, {own} on this chip."


def _blocks(study: ChipStudy) -> Blocks:
    """Return a picture and a table of the supply power of each block, in the circuit without mismatch."""
    blocks = nominal_power(study.trial)
    total = sum(blocks.values())
    factor, unit = watts_of(total)
    rows = [
        (name, format_quantity(power, "W"), percent(power / total if total else 0.0))
        for name, power in (*blocks.items(), ("total", total))
    ]
    shares = ", ".join(f"{name} {value}" for name, value, _ in rows)
    caption = "Mean supply power per block over all samples, behavioral equations, without deviations."
    figure = picture_of(draw_blocks(blocks, factor, unit), f"Power per block: {shares}.", caption)
    return figure, Table(("block", "power", "share"), tuple(rows), (1, 2))


def advise(summary: ChipSummary, network: str = "NETWORK") -> list[tuple[str, str]]:
    """Return what would raise the yield of a run, as pairs (text, command); empty where the yield is high.

    network: path of the network's file, for the commands. If the nominal circuit is much worse than the software, this
    comes first, because no change to mismatch repairs it.
    """
    kind, technology = summary.variation.kind, f"--technology {summary.technology}"
    if summary.yield_.value >= SUFFICIENT_YIELD or kind == "none":
        return []
    found: list[tuple[str, str]] = []
    lost = 100 * (summary.software_accuracy - summary.nominal.accuracy)
    if lost > LOST:
        found.append((f"the nominal circuit loses {lost:.1f} points; why", f"cosim compare {network} {technology}"))
    larger = f"--area {LARGER_AREA * summary.variation.area:g}"
    words = {
        "area": (
            f"{LARGER_AREA:g} times the area of all devices",
            f"cosim montecarlo {network} {technology} {larger} -o larger",
        ),
        "trim": (f"{TRIM_BITS} trim bits at each bias pin, set chip by chip", f"cosim trim {network} {technology}"),
    }
    for cure in summary.cures or ():
        what, command = words[cure.name]
        expected = f"{cure.passed} of {cure.chips} chips {within((cure.low, cure.high))}, by the equations"
        found.append((f"{what}: {expected}", command))
    found.append(
        (
            "training on chips that vary, then more devices, then trim bits, until 95 % of the chips work",
            f"cosim harden {network} {technology}",
        )
    )
    return found


def scale_of(study: ChipStudy, metric: str) -> tuple[float, str]:
    """Return the factor that converts a metric's values for an axis, and the unit of the axis."""
    if metric == RMSE:
        return 1.0, "unit of the targets"
    return watts_of(study.summary.figures[POWER].mean) if metric == POWER else (100.0, "%")


def software_of(summary: ChipSummary, metric: str) -> float | None:
    """Return the software's value of a metric in a Monte Carlo run, None for power; agreements are 1."""
    return {"accuracy": summary.software_accuracy, RMSE: summary.software_rmse, POWER: None}.get(metric, 1.0)


def watts_of(power: float) -> tuple[float, str]:
    """Return the factor from W to the prefixed unit that suits this power, given in W, and that unit."""
    for factor, unit in ((1e12, "pW"), (1e9, "nW"), (1e6, "uW")):
        if factor * power < 1000:
            return factor, unit
    return 1e3, "mW"


def format_spreads(study: ChipStudy) -> Blocks:
    """Return histograms of all figures over chips, and Q-Q plots of accuracy and power against a normal sample."""
    found = study.summary.figures
    pictures = [_spread(study, metric) for metric in found]
    pictures += [_quantiles(study, metric) for metric in NORMAL if metric in found and study.summary.chips >= LEAST]
    return (Grid(tuple(pictures)),) if pictures else ()


def _spread(study: ChipStudy, metric: str) -> Picture:
    summary, engine = study.summary, study.summary.engine
    values, passes = study.figures(metric, engine)
    factor, unit = scale_of(study, metric)
    marks = {"nominal": factor * summary.nominal[metric]}
    if (own := software_of(summary, metric)) is not None:
        marks["software"] = factor * own
    for spec in study.specs:
        if spec.metric == metric:
            marks["spec"] = factor * spec.limit
    quantum = factor / summary.samples if metric in ("accuracy", "task_agreement") else 0.0
    found, known = summary.figures[metric], METRICS[metric]
    low, high = (known.format(found.quantiles[q]) for q in ("5", "95"))
    caption = (
        f"{known.title.capitalize()}: {known.meaning}. Mean {known.format(found.mean)}, sd "
        f"{known.format(found.sd)}, 5 to 95 % of chips {low} to {high}."
    )
    figure = draw_spread(
        f"{known.title} ({unit})", factor * values[passes], factor * values[~passes], marks=marks, quantum=quantum
    )
    return picture_of(figure, f"Histogram of {known.title} over {len(values)} chips. {caption}", caption)


def _quantiles(study: ChipStudy, metric: str) -> Picture:
    values, _ = study.figures(metric, study.summary.engine)
    factor, unit = scale_of(study, metric)
    ordered = np.sort(factor * values)
    _, low, high = normal_band(ordered)
    outside = float(((ordered < low) | (ordered > high)).mean())
    caption = (
        f"{METRICS[metric].title.capitalize()}, Q-Q: sorted values against quantiles of a normal distribution. Dashed: "
        f"one of the same mean and standard deviation; band: 95 % at each point by itself, {percent(outside, 0)} "
        "of the chips are outside of it."
    )
    figure = draw_quantiles(f"{METRICS[metric].title} ({unit})", ordered)
    return picture_of(figure, f"Quantiles of {METRICS[metric].title} over {len(values)} chips. {caption}", caption)


def picture_running_yield(study: ChipStudy) -> Picture:
    """Draw the yield of the first 1, 2, ... all chips of a Monte Carlo run, with its interval."""
    found = study.summary.yield_
    running = running_intervals(study.passes, found.confidence)
    caption = (
        f"Yield of the first chips, by their numbers, with the {percent(found.confidence, 0)} interval of Clopper and "
        "Pearson at each number of chips by itself: how many chips it takes to know it."
    )
    alt = f"Yield against the number of chips, at the end {percent(found.value)} {within(tuple(running[-1, 1:]))}."
    return picture_of(draw_running_yield(running, found.confidence), alt, caption)


def format_cells(study: ChipStudy) -> Blocks:
    """Return pictures of each cell's thresholds and level over chips, and of those that the accuracy depends on.

    Few chips, no 9T cells with constant thresholds, or values that do not vary give no pictures.
    """
    spread = spread_cells(study.trial, study.records)
    if spread is None or len(spread.measured) < LEAST or not spread.deviations().any():
        return ()
    accuracy, passes = study.figures("accuracy", study.summary.engine)
    good = np.array([record.status == "ok" for record in study.records])
    ranked = rank_weak(CellSpread(spread.cells, spread.asked, spread.measured[good]), accuracy)
    shown = _shown_cells(spread, ranked)
    left_out = (
        f" The {len(shown)} of {len(spread.cells)} that matter most to accuracy."
        if len(shown) < len(spread.cells)
        else ""
    )
    captions: dict[Literal["threshold", "level"], str] = {
        "threshold": "Thresholds of each cell over all chips, by the behavioral model from what the chips drew; "
        "dashed: as asked for; sd: of the lower and of the upper one. Grey: below 0, where a cell does not "
        f"reset.{left_out}",
        "level": f"The level of each cell's state over all chips; dashed: as asked for.{left_out}",
    }
    cells = f"of {len(shown)} cells."
    pictures = [
        picture_of(draw_cells(spread, shown, what), f"Histograms of {what}s {cells} {caption}", caption, _LEAST_WIDE)
        for what, caption in captions.items()
    ]
    clear = [one for one in ranked if one.p < _CLEAR][:_WEAK]
    if not clear:
        text = f"The accuracy of these {len(accuracy)} chips goes clearly with no single threshold or level."
        return text, *pictures
    return _weak(clear, accuracy, passes), *pictures


def _shown_cells(spread: CellSpread, ranked: tuple[Influence, ...]) -> list[int]:
    """Return the places in `spread.cells` of the cells to draw: the MOST_CELLS that accuracy depends on most."""
    names = list(dict.fromkeys([*(one.cell for one in ranked), *spread.cells]))[:MOST_CELLS]
    return [place for place, cell in enumerate(spread.cells) if cell in names]


def _weak(weak: Sequence[Influence], accuracy: NDArray[np.float64], passes: NDArray[np.bool_]) -> Picture:
    named = "; ".join(f"{one.cell}, {one.quantity}: {percent(max(one.share, 0.0), 0)}" for one in weak)
    caption = (
        "The weakest cells: accuracy of each chip against what its cell deviates. Share of the variance of accuracy "
        f"between fifths of the chips, without what chance gives: {named}. Shown is what chance would not give one of "
        "all thresholds and levels in 20 runs (Kruskal-Wallis)."
    )
    figure = draw_weak(weak, accuracy, passes)
    alt = f"Accuracy against deviations of cells. {caption}"
    return picture_of(figure, alt, caption, 0 if len(weak) == 1 else _LEAST_WIDE)
