"""The result page of a datasheet: conditions and limits, spread and yield, causes, the worst chip, the audit."""

from collections.abc import Mapping, Sequence

import numpy as np

from cosim.base.quantities import format_quantity
from cosim.base.version import __version__
from cosim.results.figures import FAILS, GREY, MEETS, SINGLE, Figure, few_ticks, legend_above, picture_of, plain, styled
from cosim.results.html import Picture
from cosim.results.metrics import percent
from cosim.results.page import Block, Grid, Page, PageSubject, Section, Table
from cosim.verbs.datasheet.axes import prefixed, swept_pictures
from cosim.verbs.datasheet.outputs import DatasheetSummary, MeasuredLine
from cosim.verbs.datasheet.sheet import Datasheet, SheetMeasure
from cosim.verbs.datasheet.statistics import chips_for_causes, named_values
from cosim.verbs.datasheet.study import DatasheetChip, DatasheetStudy
from cosim.verbs.montecarlo.statistics import bin_edges

VARIATIONS = {
    "local": "with mismatch of each transistor",
    "process": "with a process of their own",
    "all": "with mismatch of each transistor and a process of their own",
}
_TOP = 8  # causes of a table
_LEAST = 340  # px
_NONE = "none"


def datasheet_page(
    sheet: Datasheet,
    study: DatasheetStudy,
    found: DatasheetSummary,
    records: tuple[Sequence[DatasheetChip], Sequence[DatasheetChip]],
    made_with: Mapping[str, str],
) -> Page:
    """Return the page of a datasheet; records: of the conditions and of the chips."""
    conditions, chips = records
    swept = swept_pictures(sheet, conditions)
    share, ends = found.yield_, found.yield_.interval
    failing = [line.measure.name for line in found.lines if line.conditions.failing]
    verdict = "every condition keeps the limits" if not failing else f"conditions fail: {', '.join(failing)}"
    return Page(
        verb="datasheet",
        subject=PageSubject(found.name),
        title=f"{found.name}: {share.passed} of {share.chips} chips keep all limits; {verdict}",
        lead=f"{found.transistors} transistors of {found.technology}, {len(sheet.conditions)} condition"
        f"{'s' * (len(sheet.conditions) > 1)} by ngspice, and {share.chips} chips {VARIATIONS[found.variation]} by "
        f"{found.engine}, seed {found.seed}, in {', '.join(found.conditions[0])}.",
        cards=(
            (percent(share.value), f"yield, {percent(ends.low)} to {percent(ends.high)} at 95 %"),
            *((_mean(line), f"{line.measure.name}, mean and sigma") for line in found.lines),
        ),
        sections=(
            Section("Over the conditions", (_conditions_table(found), *_missing(found), *_extremes(found))),
            *((Section("Over one condition at a time", (Grid(swept),)),) if swept else ()),
            Section("Over the chips", (*_chips_tables(found), *_failures(found), Grid(_pictures(sheet, found, chips)))),
            *((Section("Noise of the nominal circuit", _noise(found)),) if found.lines[0].noise is not None else ()),
            Section("What causes the spread", _causes(study, found)),
            Section("The worst chip", _worst(found)),
            *((Section("The same chips in ngspice", _audit(found)),) if found.lines[0].audit is not None else ()),
            Section("Every condition", (_every_condition(sheet, found, conditions),), detail=True),
        ),
        notes=(
            "Intervals hold the true value in 95 % of runs: Clopper and Pearson's for a yield, Student's for a mean, "
            "and for a sigma that of a normal distribution.",
        ),
        provenance={**made_with, "cosim": __version__},
    )


def _shown(value: float | None, measure: SheetMeasure, digits: int = 4) -> str:
    if value is None:
        return _NONE
    return format_quantity(value, measure.unit, digits) if measure.unit else f"{value:.{digits}g}"


def _mean(line: MeasuredLine) -> str:
    if line.chips.mean is None:
        return "no value"
    sigma = "" if line.chips.sigma is None else f" ± {_shown(line.chips.sigma, line.measure, 3)}"
    return f"{_shown(line.chips.mean.mean, line.measure)}{sigma}"


def _conditions_table(found: DatasheetSummary) -> Table:
    rows = tuple(
        (
            line.measure.name,
            *("" if limit is None else _shown(limit, line.measure) for limit in _limits(line.measure)),
            _shown(line.conditions.low, line.measure),
            _shown(line.conditions.nominal, line.measure),
            _shown(line.conditions.high, line.measure),
            _verdict(line, len(found.conditions)),
        )
        for line in found.lines
    )
    return Table(("measure", "min", "typ", "max", "least", "nominal", "greatest", "verdict"), rows, (1, 2, 3, 4, 5, 6))


def _extremes(found: DatasheetSummary) -> tuple[Table, ...]:
    """Return a table of the conditions in which each measure is least and greatest; none for a single condition."""
    if len(found.conditions) == 1:
        return ()
    rows = tuple(
        (line.measure.name, *(_NONE if k is None else ", ".join(found.conditions[k]) for k in places))
        for line in found.lines
        if (places := (line.conditions.low_at, line.conditions.high_at))
    )
    return (Table(("measure", "least at", "greatest at"), rows),)


def _limits(measure: SheetMeasure) -> tuple[float | None, ...]:
    return measure.low, measure.typical, measure.high


def _verdict(line: MeasuredLine, conditions: int) -> str:
    if line.conditions.failing:
        missing = f", {line.conditions.missing} without a value" if line.conditions.missing else ""
        return f"FAIL in {line.conditions.failing} of {conditions}{missing}"
    return "PASS" if line.measure.is_limited else ""


def _chips_tables(found: DatasheetSummary) -> tuple[Table, Table]:
    spread: list[tuple[str, ...]] = []
    shares: list[tuple[str, ...]] = []
    for line in found.lines:
        measure, chips = line.measure, line.chips
        mean, sigma = chips.mean, chips.sigma_interval
        mean_ends = "" if mean is None or mean.low is None else _range(mean.low, mean.high, measure)
        sigma_ends = "" if sigma is None else _range(sigma.low, sigma.high, measure)
        row = (_shown(mean and mean.mean, measure), mean_ends, _shown(chips.sigma, measure), sigma_ends)
        spread.append((measure.name, *row))
        ends = (_shown(chips.low, measure), _shown(chips.high, measure))
        counted = (f"{chips.passed} of {chips.chips + chips.missing}", percent(chips.yield_))
        between = f"{percent(chips.yield_interval.low)} to {percent(chips.yield_interval.high)}"
        shares.append((measure.name, *ends, *counted, between))
    return (
        Table(("measure", "mean", "its interval", "sigma", "its interval"), tuple(spread), (1, 3)),
        Table(
            ("measure", "least", "greatest", "keep the limits", "yield", "its interval"), tuple(shares), (1, 2, 3, 4)
        ),
    )


def _range(low: float, high: float | None, measure: SheetMeasure) -> str:
    return f"{_shown(low, measure, 3)} to {_shown(high, measure, 3)}"


def _failures(found: DatasheetSummary) -> tuple[Block, ...]:
    texts = [
        f"{line.chips.missing} chips have no value of {line.measure.name}; they count as failing, and mean and sigma "
        "are without them."
        for line in found.lines
        if line.chips.missing
    ]
    for what, failed in (("chip", found.failed), ("audit of chip", found.failed_audits)):
        if failed:
            number, reason = failed[0]
            texts.append(f"{len(failed)} simulations gave no result; {what} {number}: {reason}.")
    if found.lost:
        texts.append(
            f"{found.lost} of them were lost to a time-out or a dead process and are in no figure; the same command, "
            "with a longer --timeout, runs them again."
        )
    if found.elsewhere:
        texts.append(f"{found.elsewhere} of {found.engine}'s chips ran elsewhere, the first in {found.moved}.")
    return tuple(texts)


def _missing(found: DatasheetSummary) -> tuple[Block, ...]:
    """Return sentences on conditions in which a measure has no value, or the simulation failed."""
    texts = [
        f"{line.conditions.missing} conditions have no value of {line.measure.name}: least and greatest are of others."
        for line in found.lines
        if line.conditions.missing
    ]
    if found.failed_conditions:
        number, reason = found.failed_conditions[0]
        where = ", ".join(found.conditions[number])
        texts.append(f"{len(found.failed_conditions)} conditions could not be simulated; {where}: {reason}.")
    return tuple(texts)


def _pictures(sheet: Datasheet, found: DatasheetSummary, chips: Sequence[DatasheetChip]) -> tuple[Picture, ...]:
    pictures: list[Picture] = []
    for line in found.lines:
        values = (named_values(sheet, chip)[line.measure.name] for chip in chips)
        known = np.array([value for value in values if value is not None])
        if len(known) > 1:
            caption = f"{line.measure.name} over {len(known)} chips"
            pictures.append(picture_of(draw_measure(line.measure, known), caption, caption, _LEAST))
    return tuple(pictures)


@styled
def draw_measure(measure: SheetMeasure, values: "np.ndarray") -> Figure:
    """Draw a histogram of a measure over chips, values (n,), with its limits as lines."""
    figure = Figure(figsize=(SINGLE, 2.3), layout="constrained")
    axis = figure.subplots()
    plain(axis)
    factor, unit = prefixed(float(np.abs(values).max()), measure.unit)
    edges = bin_edges(values)
    passing = np.array([measure.meets(value) for value in values.tolist()])
    base = np.zeros(len(edges) - 1)
    for chosen, color, label in ((passing, MEETS, "within the limits"), (~passing, FAILS, "outside")):
        if chosen.any():
            counts = np.histogram(values[chosen], edges)[0]
            axis.bar(
                edges[:-1] / factor, counts, np.diff(edges) / factor, base, color=color, label=label, align="edge",
                edgecolor="white", lw=0.3, hatch="//////" if color == FAILS else None,
            )  # fmt: skip
            base += counts
    low, high = axis.get_xlim()
    for limit in (measure.low, measure.high):
        if limit is not None and low - (high - low) <= limit / factor <= high + (high - low):
            axis.axvline(limit / factor, color=GREY, ls="--", lw=1.0)
    axis.set_xlabel(f"{measure.name}{f' ({unit})' if unit else ''}")
    axis.set_ylabel("chips")
    few_ticks(axis, "y", integer=True)
    few_ticks(axis, "x", 4)
    legend_above(figure)
    return figure


def _causes(study: DatasheetStudy, found: DatasheetSummary) -> tuple[Block, ...]:
    blocks: list[Block] = []
    unexplained: list[str] = []
    for line in found.lines:
        causes = line.chips.causes
        if causes is None:
            unexplained += [line.measure.name] * bool(line.chips.sigma)
            continue
        rows = tuple(
            (one.name, percent(max(one.share, 0.0)), _shown(one.sigma_vt, line.measure, 3),
             "" if one.sigma_beta is None else _shown(one.sigma_beta, line.measure, 3))
            for one in causes.causes[:_TOP]
        )  # fmt: skip
        head = (f"{line.measure.name}, by", "of the variance", "threshold + 1 sigma", "current factor + 1 sigma")
        blocks += [
            Table(head, rows, (1, 2, 3)),
            f"A sum over transistors, each in proportion to its deviations, leaves {percent(causes.unexplained)} of "
            f"the variance of {line.measure.name} unexplained.",
        ]
    if unexplained:
        few = (
            f"{chips_for_causes(study)} chips with a value are needed for {found.transistors} transistors; give --chips"
        )
        blocks.append(f"{', '.join(unexplained)}: {few} that many or more.")
    return tuple(blocks)


def _noise(found: DatasheetSummary) -> tuple[Block, ...]:
    rows: list[tuple[str, ...]] = []
    for line in found.lines:
        if (noise := line.noise) is not None:
            measure, ends = line.measure, noise.sigma_interval
            between = "" if ends is None else _range(ends.low, ends.high, measure)
            sigmas = _shown(noise.sigma, measure, 3), between, _shown(line.chips.sigma, measure, 3)
            rows.append((measure.name, *sigmas, _shown(noise.mean and noise.mean.mean, measure), str(noise.missing)))
    runs = found.lines[0].noise
    texts = [
        f"{0 if runs is None else runs.chips + runs.missing} runs without mismatch: each transistor has the white "
        "noise of its present current, each resistor 4 k T / R, up to the frequency 2 / step of the netlist's .tran. "
        "A current that no capacitor smooths has all of this band. Flicker noise is not in them."
    ]
    if found.failed_noise:
        number, reason = found.failed_noise[0]
        texts.append(f"{len(found.failed_noise)} runs with noise gave no result; run {number}: {reason}.")
    head = ("measure", "sigma of noise", "its interval", "sigma of chips", "mean with noise", "no value")
    return Table(head, tuple(rows), (1, 3, 4, 5)), *texts


def _worst(found: DatasheetSummary) -> tuple[Block, ...]:
    rows = tuple(
        (line.measure.name, _shown(value := found.worst_values[line.measure.name], line.measure),
         "" if not line.measure.is_limited else "PASS" if line.measure.meets(value) else "FAIL")
        for line in found.lines
    )  # fmt: skip
    text = (
        f"Chip {found.worst}: the farthest outside a limit, or the nearest to one, in standard deviations. Its deck, "
        "datasheet_worst.sp, has its deviations in its transistors and prints the same measures: "
        "ngspice -b datasheet_worst.sp"
    )
    return text, Table(("measure", "value", "verdict"), rows, (1,))


def _audit(found: DatasheetSummary) -> tuple[Block, ...]:
    rows: list[tuple[str, ...]] = []
    for line in found.lines:
        audit = line.audit
        if audit is not None:
            numbers = ("" if one is None else f"{one:.2g}" for one in (audit.largest, audit.rms, audit.mean))
            alone = str(audit.only_one) if audit.only_one else ""
            rows.append((line.measure.name, str(audit.chips), *numbers, alone))
    text = (
        f"Differences between {found.engine} and ngspice on the same chips, in standard deviations of the measure; "
        f"chips that {found.engine} left to ngspice are not among them."
    )
    head = ("measure", "chips", "largest", "rms", "mean", "with a value in one alone")
    return text, Table(head, tuple(rows), (1, 2, 3, 4, 5))


def _every_condition(sheet: Datasheet, found: DatasheetSummary, records: Sequence[DatasheetChip]) -> Table:
    rows = tuple(
        (", ".join(texts), *(_shown(named_values(sheet, record)[one.name], one) for one in sheet.measures))
        for texts, record in zip(found.conditions, records, strict=True)
    )
    return Table(("condition", *(one.name for one in sheet.measures)), rows, tuple(range(1, len(sheet.measures) + 1)))
