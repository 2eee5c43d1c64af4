"""Files that a datasheet's run writes: its figures as one record, a table of chips, and the worst chip as a deck."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cosim.base.errors import SimulationError
from cosim.base.text import format_csv
from cosim.circuit.bench import pointed
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.measures import format_measures
from cosim.engines.table import NGSPICE
from cosim.verbs.datasheet.sheet import Datasheet, SheetMeasure
from cosim.verbs.datasheet.statistics import (
    AuditedMeasure,
    ConditionColumn,
    DatasheetYield,
    MeasureSpread,
    audit_of,
    causes_of,
    column_of,
    named_values,
    spread_of,
    worst_chip,
    yield_of,
)
from cosim.verbs.datasheet.study import DatasheetChip, DatasheetStudy, chip_bench, draw_study_chips


@dataclass(frozen=True)
class MeasuredLine:
    """The line of a datasheet about one measure: limits, values over conditions, spread over chips, and the audit.

    noise: spread over runs of the nominal circuit with noise, None without such runs.
    """

    measure: SheetMeasure
    conditions: ConditionColumn
    chips: MeasureSpread
    audit: AuditedMeasure | None
    noise: MeasureSpread | None = None


@dataclass(frozen=True)
class DatasheetSummary:
    """The figures of a datasheet.

    lines: one a measure, in the order of the sheet; conditions: each in words; yield_: of all measures together;
    worst: number of the worst chip; worst_values: measure -> its value; elsewhere: chips that ngspice ran in place of
    the engine; moved: why, of the first of them, "" for none; failed: (chip, reason) of simulations without a result;
    lost: how many of these a time-out or a dead process ended, which are in no statistics; failed_conditions,
    failed_audits, failed_noise: number and reason of conditions, audits and runs with noise without a result.
    """

    name: str
    technology: str
    engine: str
    variation: str
    seed: int
    transistors: int
    lines: tuple[MeasuredLine, ...]
    conditions: tuple[tuple[str, ...], ...]
    yield_: DatasheetYield
    worst: int
    worst_values: dict[str, float | None]
    elsewhere: int
    moved: str
    failed: tuple[tuple[int, str], ...]
    lost: int
    failed_conditions: tuple[tuple[int, str], ...]
    failed_audits: tuple[tuple[int, str], ...]
    failed_noise: tuple[tuple[int, str], ...] = ()


def summarize_datasheet(
    sheet: Datasheet,
    study: DatasheetStudy,
    conditions: Sequence[DatasheetChip],
    chips: Sequence[DatasheetChip],
    again: Sequence[DatasheetChip],
) -> DatasheetSummary:
    """Compute the figures of a datasheet; again: the first chips, as ngspice ran them for an audit.

    Raises SimulationError where time-outs or dead processes ended the simulations of all chips.
    """
    kept = [one for one in chips if not one.lost]
    if not kept:
        raise SimulationError(
            f"all {len(chips)} chips were lost; the first: {chips[0].reason}; give a longer --timeout"
        )
    sources = draw_study_chips(study, [one.chip for one in kept])
    both = [(chips[one.chip], one) for one in again if chips[one.chip].simulator is None]
    under, drawn, own, audited = (
        [named_values(sheet, one) for one in some]
        for some in (conditions, kept, [one for one, _ in both], [one for _, one in both])
    )
    lines: list[MeasuredLine] = []
    for one in sheet.measures:
        values = [chip[one.name] for chip in drawn]
        spread = spread_of(one, values, causes_of(sources.names, sources.normal, values))
        ours, theirs = ([chip[one.name] for chip in some] for some in (own, audited))
        audit = audit_of(ours, theirs, spread.sigma) if again else None
        lines.append(MeasuredLine(one, column_of(one, [each[one.name] for each in under]), spread, audit))
    worst = worst_chip(sheet.measures, drawn, [line.chips for line in lines])
    return DatasheetSummary(
        name=sheet.name,
        technology=study.technology.name,
        engine=study.engine,
        variation=study.variation,
        seed=study.plan.seed,
        transistors=len(study.devices),
        lines=tuple(lines),
        conditions=tuple(one.describe() for one in sheet.conditions),
        yield_=yield_of(sheet.measures, drawn),
        worst=kept[worst].chip,
        worst_values=drawn[worst],
        elsewhere=sum(one.simulator is not None for one in chips),
        moved=next((one.simulator for one in chips if one.simulator is not None), ""),
        failed=record_failures((one.chip, one) for one in chips),
        lost=len(chips) - len(kept),
        failed_conditions=record_failures(enumerate(conditions)),
        failed_audits=record_failures((one.chip, one) for one in again),
    )


def record_failures(records: Iterable[tuple[int, DatasheetChip]]) -> tuple[tuple[int, str], ...]:
    """Return (number, reason) of the runs without a result; records: number and record of each run."""
    return tuple((number, one.reason) for number, one in records if one.reason is not None)


def chips_table(sheet: Datasheet, chips: Sequence[DatasheetChip]) -> str:
    """Return the text of a .csv file with the measures of each chip, whether it keeps all limits, and why not."""
    rows: list[list[object]] = []
    for chip in chips:
        values = named_values(sheet, chip)
        passed = all(one.meets(values[one.name]) for one in sheet.measures)
        numbers = ["" if value is None else value for value in values.values()]
        rows.append([chip.chip, *numbers, int(passed), chip.reason or ""])
    return format_csv(["chip", *(one.name for one in sheet.measures), "passed", "reason"], rows, 9)


def worst_deck(sheet: Datasheet, study: DatasheetStudy, chip: DatasheetChip, origin: str) -> str:
    """Return the deck of a chip for `ngspice -b`, which prints its measures; origin: the sheet, for a comment.

    The deviations of the chip are in its transistors.
    """
    bench = pointed(chip_bench(study, chip.chip, NGSPICE))
    deck = format_bench(bench)
    title, _, rest = deck.partition("\n")
    body, end, _ = rest.rpartition(".end\n")
    assert end
    values = named_values(sheet, chip)
    notes = (f"* {name} = {'no value' if value is None else repr(value)}" for name, value in values.items())
    head = f"* chip {chip.chip} of {origin}, seed {study.plan.seed}, by {study.engine}; run it with ngspice -b"
    return (
        "\n".join([head, title, *notes, body.rstrip("\n")])
        + f"\n{format_measures(study.netlist.measures, bench.analysis)}.end\n"
    )
