"""The simulations of a datasheet: every condition without mismatch, and chips with mismatch in the nominal condition.

Conditions run in ngspice, because each would need device tables of its own in the batched engine, and so do the chips
of an audit. Chips run in the engine that was chosen, in chunks whose members are fixed by their numbers: what a chip
gives does not depend on workers, or on where an interrupted run stopped.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.seal import checksum
from cosim.base.store import RecordFormat, RecordStore, Settings
from cosim.base.text import check_plain, json_object, typed
from cosim.circuit.bench import PRECISE, Bench, Tolerances, Tran
from cosim.circuit.elements import Circuit
from cosim.circuit.measures import LINEAR, Interpolation, evaluate_measures, probes_of
from cosim.circuit.spice import Netlist
from cosim.engines.chip import drawn_values, vary
from cosim.engines.engine import ChipBatched, Failure, FailureKind, Simulator, Waveforms
from cosim.engines.simulation.workers import WorkerPool, run_tasks
from cosim.engines.table import NGSPICE, engine_entry, simulator_named
from cosim.technology.types import Technology
from cosim.variation.draws import Chip, VariationPlan, VaryingDevice, draw_chips, single, varying_devices
from cosim.verbs.datasheet.sheet import Datasheet, DatasheetCondition
from cosim.verbs.montecarlo.execute import Chunk

Array = NDArray[np.float64]
# Step errors of a measure stay below 0.5 % of its spread with these (benchmarks/bench_datasheet.py), where the netlists
# of circuits whose errors add up give the batched engine a smaller reltol.
_TOLERANCES = {False: replace(PRECISE, reltol=1e-6), True: replace(PRECISE, reltol=5e-7, trtol=0.1)}
# A run that does not converge runs again with these: in steps of 1e-16 s, rounding changes the current of a source by
# more than 1e-6 of it.
_WIDER = (PRECISE, Tolerances(trtol=1.0))
_CHUNK = {False: 4, True: 64}
_LOST = (FailureKind.TIMEOUT.value, FailureKind.CRASH.value)
_REPAIR = "choose another run"
KINDS = {"local": ("local",), "process": ("global",), "all": ("local", "global")}


@dataclass(frozen=True)
class DatasheetChip:
    """A chip of a datasheet: its number, the value of each measure of the netlist, None for none, and what went wrong.

    simulator: the one that ran, and why, where it is not the engine; reason: of a failed simulation, in the engine's
    words.
    """

    chip: int
    values: tuple[float | None, ...]
    simulator: str | None = None
    reason: str | None = None

    @property
    def lost(self) -> bool:
        """Tell whether a time-out or a dead process ended the simulation, which says nothing about the chip."""
        return (self.reason or "").startswith(_LOST)


@dataclass(frozen=True)
class DrawnChips:
    """Drawn chips of a datasheet, and the standard normal numbers from which they were drawn.

    names: what each number stands for: a transistor, or the process of n or p devices; normal: (chips, numbers).
    """

    chips: tuple[Chip, ...]
    names: tuple[str, ...]
    normal: Array


@dataclass(frozen=True)
class DatasheetStudy:
    """The study of a netlist's chips: circuit without hierarchy, technology, transistors that vary, and their plan.

    variation: which deviations are drawn, `local`, `process` or `all`; engine: name of the simulator.
    """

    circuit: Circuit
    technology: Technology
    netlist: Netlist
    devices: tuple[VaryingDevice, ...]
    plan: VariationPlan
    variation: str
    engine: str
    timeout: float

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the netlist's measures, in order."""
        return tuple(one.name for one in self.netlist.measures)


def datasheet_study(
    sheet: Datasheet, variation: str, plan: VariationPlan, engine: str, timeout: float
) -> DatasheetStudy:
    """Return the study of a datasheet's chips in its nominal condition. Raises InputError as `varying_devices` does."""
    there = sheet.nominal
    plans = [_of_kind(plan, kind) for kind in KINDS[variation]]
    *_, devices = (varying_devices(there.netlist.circuit, there.technology, one) for one in plans)
    flat = there.netlist.circuit.flat()
    return DatasheetStudy(flat, there.technology, there.netlist, devices, plan, variation, engine, timeout)


def _of_kind(plan: VariationPlan, kind: str) -> VariationPlan:
    return replace(plan, kind="local" if kind == "local" else "global")


def draw_study_chips(study: DatasheetStudy, numbers: Sequence[int]) -> DrawnChips:
    """Draw the chips with the given numbers, at least one; supply and temperature are those of the condition."""
    kinds, devices, technology = KINDS[study.variation], study.devices, study.technology
    drawn = {kind: draw_chips(devices, technology, _of_kind(study.plan, kind), numbers) for kind in kinds}
    shifts = {kind: np.stack([one.vt_shift for one in chips]) for kind, chips in drawn.items()}
    chips = drawn[kinds[0]]
    names, normal = list[str](), [np.zeros((len(numbers), 0))]
    if "local" in kinds:
        sigmas = np.array([[one.sigma_vt, one.sigma_beta] for one in devices]).reshape(len(devices), 2)
        logs = np.log(np.stack([one.beta_factor for one in chips]))
        normal += [shifts["local"] / sigmas[:, 0], logs / np.where(sigmas[:, 1] > 0, sigmas[:, 1], 1.0)]
        names += 2 * [_written(one.name) for one in devices]
    if "global" in kinds:
        spreads = {"n": technology.nfet.spread_vt, "p": technology.pfet.spread_vt}
        for polarity, spread in spreads.items():
            own = [k for k, one in enumerate(devices) if one.polarity == polarity]
            if own:
                names.append(f"process of {polarity} devices")
                normal.append(shifts["global"][:, own[:1]] / spread)
    if len(kinds) > 1:
        both = single(shifts["local"] + shifts["global"])
        chips = [replace(one, vt_shift=shift) for one, shift in zip(chips, both, strict=True)]
    return DrawnChips(tuple(chips), tuple(names), np.concatenate(normal, axis=1))


def _written(name: str) -> str:
    """Return a transistor's hierarchical name as the netlist writes it: `cell.4` is `xcell.m4`."""
    *path, last = name.split(".")
    return ".".join([*(f"x{one}" for one in path), f"m{last}"])


def chip_bench(study: DatasheetStudy, number: int, engine: str) -> Bench:
    """Return the bench of a chip, with the accuracy that a datasheet needs of the engine."""
    (chip,) = draw_study_chips(study, [number]).chips
    return datasheet_bench(vary(study.circuit, drawn_values(chip)), study.technology, study.netlist, engine)


def datasheet_bench(circuit: Circuit, technology: Technology, netlist: Netlist, engine: str) -> Bench:
    """Return the bench of a netlist's run, circuit without hierarchy, with the probes that its measures read."""
    assert netlist.run is not None
    quick = engine_entry(engine).quick
    tolerances = _TOLERANCES[quick]
    if quick and netlist.reltol is not None:
        share = netlist.reltol / tolerances.reltol
        tolerances = replace(tolerances, reltol=netlist.reltol, trtol=share * tolerances.trtol)
    probes = probes_of(netlist.measures)
    return Bench(circuit, technology, netlist.run, probes, tolerances, netlist.preset, netlist.start)


def run_condition(condition: DatasheetCondition, timeout: float) -> DatasheetChip:
    """Simulate a condition without mismatch in ngspice; the record's number is 0."""
    bench = datasheet_bench(condition.netlist.circuit.flat(), condition.technology, condition.netlist, NGSPICE)
    return record_of(0, condition.netlist, _run_alone(simulator_named(NGSPICE), bench, timeout))


def run_chips(study: DatasheetStudy, engine: str, numbers: Sequence[int]) -> list[DatasheetChip]:
    """Simulate chips in an engine and return their records; what the batched engine cannot run, ngspice does."""
    simulator, netlist = simulator_named(engine), study.netlist
    if not isinstance(simulator, ChipBatched):
        return [
            record_of(k, netlist, _run_alone(simulator, chip_bench(study, k, engine), study.timeout)) for k in numbers
        ]
    found: list[DatasheetChip] = []
    nominal = datasheet_bench(study.circuit, study.technology, netlist, engine)
    chips = draw_study_chips(study, numbers).chips
    outcomes = simulator.run_chips(nominal, chips, study.timeout * len(chips))
    interpolation = simulator.interpolation if isinstance(netlist.run, Tran) else LINEAR
    for number, outcome in zip(numbers, outcomes, strict=True):
        if isinstance(outcome, Failure) and outcome.kind is FailureKind.UNSUPPORTED:
            again = _run_alone(simulator_named(NGSPICE), chip_bench(study, number, NGSPICE), study.timeout)
            found.append(
                replace(record_of(number, netlist, again), simulator=f"{NGSPICE}, because {outcome.detail}"[:300])
            )
        else:
            found.append(record_of(number, netlist, outcome, interpolation))
    return found


def _run_alone(simulator: Simulator, bench: Bench, timeout: float) -> Waveforms | Failure:
    """Simulate a bench, and again with wider tolerances where it does not converge."""
    found = simulator.run(bench, timeout)
    for tolerances in _WIDER:
        if isinstance(found, Failure) and found.kind is FailureKind.CONVERGENCE:
            found = simulator.run(replace(bench, tolerances=tolerances), timeout)
    return found


def record_of(
    number: int, netlist: Netlist, outcome: Waveforms | Failure, interpolation: Interpolation = LINEAR
) -> DatasheetChip:
    """Return the record of a simulated run of a netlist; number: of its chip, or of its run.

    interpolation: how its signals run between points.
    """
    if isinstance(outcome, Failure):
        return DatasheetChip(number, (None,) * len(netlist.measures), reason=str(outcome)[:300])
    found = evaluate_measures(netlist.measures, outcome.time, outcome.probes, interpolation)
    return DatasheetChip(number, tuple(value if isfinite(value) else None for value in found.values()))


_study: DatasheetStudy | None = None  # of a worker process; its first call sets it


def _set_study(study: DatasheetStudy) -> None:
    global _study
    _study = study


def _run_here(engine: str, numbers: Sequence[int]) -> list[DatasheetChip]:
    assert _study is not None
    return run_chips(_study, engine, numbers)


def run_conditions(sheet: Datasheet, jobs: int, timeout: float) -> Iterator[tuple[int, DatasheetChip]]:
    """Simulate every condition of a datasheet in worker processes; yield its place and its record as they finish."""
    with WorkerPool(jobs) as pool:
        tasks = run_tasks(
            lambda k: pool.submit(run_condition, sheet.conditions[k], timeout),
            range(len(sheet.conditions)), 2 * jobs, lambda _: timeout,
        )  # fmt: skip
        for k, found in tasks:
            if isinstance(found, Failure):
                found = DatasheetChip(0, (None,) * len(sheet.nominal.netlist.measures), reason=str(found)[:300])
            yield k, found


def run_numbers(
    study: DatasheetStudy, numbers: Sequence[int], jobs: int, engine: str | None = None
) -> Iterator[DatasheetChip]:
    """Simulate chips in worker processes, whole chunks of them, and yield the records of `numbers` as they finish.

    engine: in place of the study's, for an audit.
    """
    engine = engine or study.engine
    size, wanted = _CHUNK[engine_entry(engine).quick], set(numbers)
    firsts = sorted({number - number % size for number in numbers})
    chunks = [Chunk(range(first, min(first + size, study.plan.chips))) for first in firsts]
    if not engine_entry(engine).quick:
        chunks = [Chunk(number for number in chunk if number in wanted) for chunk in chunks]
    with WorkerPool(jobs, _set_study, study) as pool:
        submit = partial(pool.submit, _run_here, engine)
        for chunk, found in run_tasks(submit, chunks, 2 * jobs, lambda chunk: study.timeout * len(chunk)):
            if isinstance(found, Failure):
                found = [DatasheetChip(k, (None,) * len(study.names), reason=str(found)[:300]) for k in chunk]
            yield from (one for one in found if one.chip in wanted)


def keep_chips(
    store: RecordStore[DatasheetChip],
    study: DatasheetStudy,
    jobs: int,
    progress: Callable[[int, int], None],
) -> list[DatasheetChip]:
    """Run the chips of a study that its store lacks, keep each, and return all in order of their numbers.

    Chips that were lost to a time-out or a dead worker run again.
    """
    total = study.plan.chips
    done = {k: one for k, one in store.records.items() if not one.lost}
    missing = [number for number in range(total) if number not in done]
    progress(total - len(missing), total)
    for one in run_numbers(study, missing, jobs) if missing else ():
        store.append(one)
        done[one.chip] = one
        progress(len(done), total)
    store.tidy()
    return [store.records[number] for number in range(total)]


def chip_records(measures: int) -> RecordFormat[DatasheetChip]:
    """Return the format in which a datasheet's chips are lines of a file; measures: how many values each has."""

    def read(content: object, where: str) -> DatasheetChip:
        plain = check_plain(content, where, _REPAIR)
        if isinstance(plain, dict):
            plain = {"simulator": None, "reason": None, **plain}
        found = typed(plain, DatasheetChip, where, _REPAIR)
        if found.chip < 0 or len(found.values) != measures:
            raise InputError(f"{where}: chip must be 0 or more with {measures} values; {_REPAIR}")
        return found

    return RecordFormat("chips", attrgetter("chip"), json_object, read)


def study_settings(study: DatasheetStudy, deck: str, made_with: dict[str, str]) -> Settings:
    """Return what a study's chips depend on, as JSON has it.

    deck: text of the circuit for the engine, of which the hash counts; made_with: simulator -> its version.
    """
    technology = study.technology
    return {
        "engine": study.engine,
        "deck": checksum(deck.encode()),
        "measures": [repr(one) for one in study.netlist.measures],
        "variation": study.variation,
        "seed": study.plan.seed,
        "chips": study.plan.chips,
        "area": study.plan.area,
        "devices": len(study.devices),
        "spreads": checksum(repr((study.devices, technology.nfet.spread_vt, technology.pfet.spread_vt)).encode()),
        "made_with": made_with,
    }
