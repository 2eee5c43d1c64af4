"""Chips before and after trimming, and what it did to the yield."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter

from scipy.stats import binomtest

from cosim.base.errors import InputError, SimulationError
from cosim.base.store import RecordFormat, RecordStore
from cosim.base.text import check_plain, typed
from cosim.cells.blocks import outside_of
from cosim.compiler.design import Design
from cosim.engines.engine import Engine, Failure, FailureKind, Progress, count_elsewhere
from cosim.engines.simulation.simulated import SimulatorEngine, engine_named
from cosim.results.figures import figure_bytes
from cosim.results.html import Picture
from cosim.results.metrics import percent, within
from cosim.results.page import Facts, Page, Section, Table
from cosim.tasks.clipping import find_clipping
from cosim.verbs.montecarlo.chip_study import format_spec
from cosim.verbs.montecarlo.chips import Figures, TrimRow, TrimSummary
from cosim.verbs.montecarlo.execute import map_chips
from cosim.verbs.montecarlo.figures import draw_trim
from cosim.verbs.montecarlo.run import nominal_chip
from cosim.verbs.montecarlo.spec import Spec, passes_specs
from cosim.verbs.montecarlo.statistics import count_yield, describe_metrics
from cosim.verbs.montecarlo.trial import Trial, figures_of, infer_chip
from cosim.verbs.provenance import circuit_facts, origins, subject_of
from cosim.verbs.trim.trim import measure_behavioral, measure_transistors, trim_codes, trim_ranges
from cosim.verbs.trust import say_elsewhere
from cosim.verbs.words import worded

_REPAIR = "choose another folder with -o, or begin anew with --fresh"


@dataclass(frozen=True)
class TrimRecord:
    """One chip's figures by the bits of its converters, 0 without; without figures, `failure` says why.

    elsewhere: how many of its samples another simulator ran, by which and why.
    """

    chip: int
    figures: Mapping[int, Figures] = field(default_factory=dict)
    failure: str = ""
    elsewhere: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Line:
    """A record as its line has it: the bits are keys of an object, and so text."""

    chip: int
    figures: dict[str, Figures]
    failure: str
    elsewhere: dict[str, int]


def _read(bits: Sequence[int], content: object, where: str) -> TrimRecord:
    line = typed(check_plain(content, where, _REPAIR), _Line, where, _REPAIR)
    if line.chip < 0 or not (line.failure or set(line.figures) == {"0", *map(str, bits)}):
        raise InputError(f"{where}: must hold the figures of chip 0 or more at the bits of its run; {_REPAIR}")
    figures = {int(count): one for count, one in line.figures.items()}
    return TrimRecord(line.chip, figures, line.failure, Counter(line.elsewhere))


def _write(record: TrimRecord) -> _Line:
    figures = {str(count): one for count, one in record.figures.items()}
    return _Line(record.chip, figures, record.failure, dict(record.elsewhere))


def trimmed_format(bits: Sequence[int]) -> RecordFormat[TrimRecord]:
    """Return the format of chips that converters of these bits trim, as lines of a store."""
    return RecordFormat("chips", attrgetter("chip"), _write, partial(_read, bits))


def run_trim(
    trial: Trial, bits: Sequence[int], store: RecordStore[TrimRecord], jobs: int, progress: Progress
) -> list[TrimRecord]:
    """Trim the chips that the store lacks, see `trim_chip`; returns the records of all.

    Raises InputError where the store holds more chips than are asked for.
    """
    chips, engine = trial.plan.chips, engine_named(trial.engine)
    if (held := max(store.records, default=-1) + 1) > chips:
        raise InputError(
            f"{store.folder}: holds {held} chips, so --chips must be at least {held}, not {chips}; for fewer choose "
            "another folder with -o"
        )
    missing = [number for number in range(chips) if number not in store.records]
    progress(chips - len(missing), chips)
    for record in map_chips(partial(trim_chip, bits=bits, engine=engine), trial, missing, jobs) if missing else ():
        store.append(record)
        progress(len(store.records), chips)
    store.tidy()
    return [store.records[number] for number in range(chips)]


def trim_chip(trial: Trial, number: int, bits: Sequence[int], engine: Engine | None = None) -> TrimRecord:
    """Run one chip without converters, and with those of each of `bits`, by the trial's engine (`engine`, where the
    caller has it at hand). Cells are measured in it where it is a simulator, else by the equations."""
    engine = engine or engine_named(trial.engine)
    chip = trial.chip(number)
    wanted = measure_behavioral(trial, nominal_chip(trial))
    try:
        measured = (measure_transistors if isinstance(engine, SimulatorEngine) else measure_behavioral)(trial, chip)
    except SimulationError as error:
        return TrimRecord(number, failure=f"{FailureKind.CONVERGENCE.value}: {error}")
    condition = trial.condition or trial.design.nominal
    ranges = trim_ranges(trial)
    figures: dict[int, Figures] = {}
    elsewhere = Counter[str]()
    for count in (0, *bits):
        pins = trim_codes(trial.design, measured, wanted, count, ranges) if count else {}
        run = replace(trial.run(chip), condition=replace(condition, pins=pins))
        outcomes = infer_chip(engine, trial, run)
        found = figures_of(engine, trial, run, outcomes)
        elsewhere.update(count_elsewhere(outcomes))
        if isinstance(found, Failure):
            return TrimRecord(number, failure=f"{found.kind.value}: {found.detail}")
        figures[count] = found
    return TrimRecord(number, figures, elsewhere=elsewhere)


def summarize_trim(
    trial: Trial, bits: Sequence[int], records: Sequence[TrimRecord], specs: Sequence[Spec]
) -> TrimSummary:
    """Yield and figures before and after, and McNemar's exact test of each number of bits on the same chips."""
    rows = []
    before = [passes_specs(record.figures.get(0), specs) for record in records]
    good = [record.figures for record in records if record.figures]
    for count in (0, *bits):
        passes = [passes_specs(record.figures.get(count), specs) for record in records]
        won = sum(now and not then for then, now in zip(before, passes, strict=True))
        lost = sum(then and not now for then, now in zip(before, passes, strict=True))
        row = TrimRow(
            bits=count or None,
            yield_=count_yield(passes, trial.plan),
            **describe_metrics([figures[count] for figures in good]),
            won=won,
            lost=lost,
            p=float(binomtest(won, won + lost).pvalue) if won + lost else 1.0,
        )
        rows.append(row)
    return TrimSummary(
        chips=len(records),
        failed=len(records) - len(good),
        spec=tuple(spec.text for spec in specs),
        engine=trial.engine,
        samples=len(trial.test_set.y),
        power_outside=outside_of(trial.design.assembly.blocks),
        clipped=find_clipping(trial.design.network.encoding, trial.test_set),
        ranges=dict(zip(("thresh", "width", "gain"), trim_ranges(trial), strict=True)),
        rows=tuple(rows),
        elsewhere=dict(sum((record.elsewhere for record in records), Counter[str]())),
    )


def trim_page(design: Design, summary: TrimSummary, run: dict[str, str]) -> Page:
    """Return the page of trimmed chips. run: words -> what the chips were drawn with."""
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
        f"{summary.samples} test samples by the {summary.engine} engine. Their cells were measured, and the converter "
        f"at each bias pin set; the same chips count before and after. A chip counts that has {spec}.",
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
            Section("The circuit", (Facts(tuple(worded(circuit_facts(design)))),), detail=True),
            Section("How it was run", (Facts(tuple(run.items())),), detail=True),
        ),
        provenance=origins(design),
    )


_NOTE = (
    "Intervals: 95 %. p: of McNemar's exact test that trimming changes no chip. Accuracy and states: means over chips."
)


def _ranges(summary: TrimSummary) -> tuple[tuple[str, str], ...]:
    return tuple((f"{name} currents", f"± {percent(value)}") for name, value in summary.ranges.items())


def _picture(summary: TrimSummary) -> Picture:
    caption = "Yield against the bits of the converters with its 95 % interval; dashed as fabricated."
    rows = ", ".join(f"{_bits(row)}: {percent(row.yield_.value)}" for row in summary.rows)
    return Picture("svg+xml", figure_bytes(draw_trim(summary), "svg"), f"{caption} {rows}.", caption)


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
