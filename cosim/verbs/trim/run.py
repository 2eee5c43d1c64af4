"""Run of chips as fabricated and with trimmed bias pins, counting those that work; free of pictures, for workers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter

from cosim.base.errors import InputError, SimulationError
from cosim.base.store import RecordFormat, RecordStore
from cosim.base.text import check_plain, json_object, typed
from cosim.cells.blocks import outside_of
from cosim.engines.engine import Engine, Failure, FailureKind, Progress, count_elsewhere
from cosim.engines.simulation.simulated import SimulatorEngine, engine_named
from cosim.results.paired import mcnemar
from cosim.tasks.testset import Clipping, find_clipping
from cosim.units.table import unit_of
from cosim.verbs.montecarlo.chips import Figures, Statistic, Yield
from cosim.verbs.montecarlo.execute import map_chips
from cosim.verbs.montecarlo.spec import Spec, passes_specs
from cosim.verbs.montecarlo.statistics import count_yield, describe_metrics
from cosim.verbs.montecarlo.store import check_held, keep_missing
from cosim.verbs.montecarlo.trial import Trial, figures_of, infer_chip
from cosim.verbs.trim.trim import measure_behavioral, measure_transistors, trim_codes, trim_ranges

_REPAIR = "choose another folder with -o, or begin anew with --fresh"


@dataclass(frozen=True)
class TrimRecord:
    """Record of one chip: its figures without converters and with converters of each number of bits.

    figures: bits as text, "0" for none -> figures; empty if the chip failed, and `failure` then says why. elsewhere:
    number of samples that another simulator had to run, by a text that says which one and why.
    """

    chip: int
    figures: dict[str, Figures]
    failure: str
    elsewhere: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class TrimRow:
    """Results of all chips with converters of `bits` bits at their bias pins, None for no converters.

    The statistics of CHIP_METRICS are None where every simulation failed. won: chips that work only with trimming;
    lost: chips that work only without; p: of McNemar's exact test that trimming changes nothing.
    """

    bits: int | None
    yield_: Yield
    accuracy: Statistic | None = None
    task_agreement: Statistic | None = None
    state_agreement: Statistic | None = None
    power: Statistic | None = None
    rmse: Statistic | None = None
    won: int
    lost: int
    p: float


@dataclass(frozen=True)
class TrimSummary:
    """Summary of chips before and after trimming.

    ranges: kind of bias pin -> range R of its converter, relative to the current; rows: without converters, then by
    bits; elsewhere: number of samples, over all chips and rows, that another simulator had to run, by which one and
    why.
    """

    chips: int
    failed: int
    spec: tuple[str, ...]
    engine: str
    samples: int
    power_outside: tuple[str, ...]
    clipped: Clipping | None
    ranges: dict[str, float]
    rows: tuple[TrimRow, ...]
    elsewhere: dict[str, int] = field(default_factory=dict[str, int])


def _read(bit_counts: Sequence[int], content: object, where: str) -> TrimRecord:
    record = typed(check_plain(content, where, _REPAIR), TrimRecord, where, _REPAIR)
    if record.chip < 0 or not (record.failure or set(record.figures) == {"0", *map(str, bit_counts)}):
        raise InputError(f"{where}: must hold the figures of chip 0 or more at the bits of its run; {_REPAIR}")
    return record


def trimmed_format(bit_counts: Sequence[int]) -> RecordFormat[TrimRecord]:
    """Return the format of a chip's record in the folder of `cosim trim`, for converters of these numbers of bits."""
    return RecordFormat("chips", attrgetter("chip"), json_object, partial(_read, bit_counts))


def run_trim(
    trial: Trial, bit_counts: Sequence[int], store: RecordStore[TrimRecord], jobs: int, progress: Progress
) -> list[TrimRecord]:
    """Run and trim the chips that the store lacks (`trim_chip`), and return the records of all chips.

    bit_counts: numbers of bits to try; jobs: processes. Raises InputError where the store holds more chips than the
    trial.
    """
    chips = trial.plan.chips
    check_held(store, chips)
    trimmed = partial(trim_chip, bit_counts=bit_counts, engine=engine_named(trial.engine))
    for done in keep_missing(store, range(chips), lambda missing: map_chips(trimmed, trial, missing, jobs)):
        progress(done, chips)
    store.tidy()
    return [store.records[number] for number in range(chips)]


def trim_chip(trial: Trial, number: int, bit_counts: Sequence[int], engine: Engine | None = None) -> TrimRecord:
    """Run one chip without converters and with converters of each number of bits; return its record.

    engine: the trial's engine, None to look it up by its name. A simulator also measures the chip's 9T cells;
    otherwise, and for units with comparators, thresholds and levels are computed by the behavioral model. The aim is
    what the nominal chip has by the behavioral model, because calibration makes that true.
    """
    engine = engine or engine_named(trial.engine)
    chip = trial.chip(number)
    wanted = measure_behavioral(trial, trial.nominal_chip)
    try:
        measured = (measure_transistors if isinstance(engine, SimulatorEngine) else measure_behavioral)(trial, chip)
    except SimulationError as error:
        return TrimRecord(number, {}, f"{FailureKind.CONVERGENCE.value}: {error}", {})
    condition = trial.condition or trial.design.nominal
    ranges = trim_ranges(trial)
    figures: dict[str, Figures] = {}
    elsewhere = Counter[str]()
    for bits in (0, *bit_counts):
        pins = trim_codes(trial.design, measured, wanted, bits, ranges) if bits else {}
        run = replace(trial.run(chip), condition=replace(condition, pins=pins))
        outcomes = infer_chip(engine, trial, run)
        found = figures_of(engine, trial, run, outcomes)
        elsewhere.update(count_elsewhere(outcomes))
        if isinstance(found, Failure):
            return TrimRecord(number, {}, str(found), {})
        figures[str(bits)] = found
    return TrimRecord(number, figures, "", dict(elsewhere))


def summarize_trim(
    trial: Trial, bit_counts: Sequence[int], records: Sequence[TrimRecord], specs: Sequence[Spec]
) -> TrimSummary:
    """Summarize the chips of `cosim trim`: yield and figures without converters and with each number of bits.
    McNemar's exact test compares each number of bits with no converters on the same chips."""
    rows = []
    as_fabricated = [passes_specs(record.figures.get("0"), specs) for record in records]
    ran = [record.figures for record in records if record.figures]
    for bits in (0, *bit_counts):
        passes = [passes_specs(record.figures.get(str(bits)), specs) for record in records]
        won = sum(now and not then for then, now in zip(as_fabricated, passes, strict=True))
        lost = sum(then and not now for then, now in zip(as_fabricated, passes, strict=True))
        row = TrimRow(
            bits=bits or None,
            yield_=count_yield(passes, trial.plan),
            **describe_metrics([figures[str(bits)] for figures in ran]),
            won=won,
            lost=lost,
            p=mcnemar(won, lost),
        )
        rows.append(row)
    return TrimSummary(
        chips=len(records),
        failed=len(records) - len(ran),
        spec=tuple(spec.text for spec in specs),
        engine=trial.engine,
        samples=len(trial.test_set.y),
        power_outside=outside_of(trial.design.assembly.blocks),
        clipped=find_clipping(trial.design.network.encoding, trial.test_set),
        ranges={name: span for name, span in zip(_pins(trial), trim_ranges(trial), strict=True) if span},
        rows=tuple(rows),
        elsewhere=dict(sum((Counter(record.elsewhere) for record in records), Counter[str]())),
    )


def _pins(trial: Trial) -> tuple[str, str, str]:
    """Return the names of the three kinds of trimmed bias pins: those of comparators or those of 9T cells."""
    compared = all(unit_of(node).has_comparators for node in trial.design.graph.memories)
    return ("upper", "lower", "gain") if compared else ("thresh", "width", "gain")
