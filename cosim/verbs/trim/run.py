"""Chips before and after trimming, and what it did to the yield."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from scipy.stats import binomtest

from cosim.base.errors import InputError, SimulationError
from cosim.base.text import check_plain, json_object, typed
from cosim.cells.blocks import outside_of
from cosim.engines.engine import Engine, Failure, FailureKind, Progress
from cosim.engines.simulation.simulated import SimulatorEngine, engine_named
from cosim.tasks.clipping import find_clipping
from cosim.verbs.compare.agreement import count_elsewhere
from cosim.verbs.montecarlo.chips import Figures, TrimRow, TrimSummary
from cosim.verbs.montecarlo.execute import map_chips
from cosim.verbs.montecarlo.run import nominal_chip
from cosim.verbs.montecarlo.spec import Spec, passes_specs
from cosim.verbs.montecarlo.statistics import count_yield, describe_metrics
from cosim.verbs.montecarlo.store import RecordFormat, RecordStore, Settings
from cosim.verbs.montecarlo.trial import Trial, figures_of, infer_chip
from cosim.verbs.trim.trim import measure_behavioral, measure_transistors, trim_codes, trim_ranges

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


def _read(content: object, settings: Settings, where: str) -> TrimRecord:
    line = typed(check_plain(content, where, _REPAIR), _Line, where, _REPAIR)
    if line.chip < 0 or not (line.failure or set(line.figures) == {"0", *map(str, settings.get("bits", ()))}):
        raise InputError(f"{where}: must hold the figures of chip 0 or more at the bits of its run; {_REPAIR}")
    figures = {int(count): one for count, one in line.figures.items()}
    return TrimRecord(line.chip, figures, line.failure, Counter(line.elsewhere))


def _write(record: TrimRecord, _settings: Settings) -> Mapping[str, object]:
    figures = {str(count): one for count, one in record.figures.items()}
    return json_object(_Line(record.chip, figures, record.failure, dict(record.elsewhere)))


TRIMMED = RecordFormat("trim", _read, _write)


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
