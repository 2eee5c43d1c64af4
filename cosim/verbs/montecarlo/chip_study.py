"""Everything that the page of a Monte Carlo run shows, gathered from the run's store (its folder).

The trial (design and samples) is built again, and one failing sample of the worst chip is simulated for its waveforms.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError, MissingToolError, SimulationError
from cosim.base.settings import read_settings
from cosim.base.store import MADE_WITH, Settings
from cosim.base.text import check_plain, json_object, shown, typed
from cosim.base.version import __version__
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.results.html import show
from cosim.units.schmitt import Schmitt
from cosim.variation.draws import Chip
from cosim.verbs.montecarlo.chips import ChipRecord, ChipSummary, Contribution, Figures
from cosim.verbs.montecarlo.figures import YieldCurve
from cosim.verbs.montecarlo.keep import Places, load_trial, read_kept
from cosim.verbs.montecarlo.run import CONTRIBUTIONS_FILE, SUMMARY_FILE, KeptContributions
from cosim.verbs.montecarlo.spec import Spec, parse_spec, passes_specs
from cosim.verbs.montecarlo.statistics import CellSpread, count_yield
from cosim.verbs.montecarlo.store import RUN_FILE, read_sealed, read_store, unpack_draws
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.provenance import MOVED
from cosim.verbs.simulate.waveforms import (
    WaveLabels,
    Waves,
    decide,
    liveliest_cell,
    record_signals,
    recorded_decision,
    waves_of,
)
from cosim.verbs.trim.trim import measure_behavioral
from cosim.verbs.words import words_of

BY_EQUATIONS, BY_TRANSISTORS = "behavioral model", "chip on transistors"  # keys of Failure.decided
NO_WAVES = "Its waveforms were left out; cosim report, with the run's folder, simulates and draws them."
NEEDED = (
    "chips", "failed", "unreset", "engine", "yield", "samples", "nominal", "software_accuracy", "technology",
    "variation",
)  # fmt: skip
_EARLIER: Settings = {"reasons": {}, "power_outside": [], "clipped": None}  # not in the summary of every earlier cosim
_AGAIN = "the same command writes it again"
Say = Callable[[str], None]


@dataclass(frozen=True)
class WrongSample:
    """One sample that the worst chip decided wrong, simulated on its transistors and on those without mismatch.

    chip: number of the chip; figures: accuracy and other figures of the chip; sample: the sample's index in the full
    test set; wanted: its right class; decided: class decided by each of software, behavioral model, the chip's
    transistors and the nominal transistors; waves, nominal: waveforms on the chip and without mismatch, labels: their
    names and thresholds, all as `waves_of` returns them.
    """

    chip: int
    figures: Figures
    sample: int
    wanted: int
    decided: Mapping[str, int]
    waves: Waves
    nominal: Waves
    labels: WaveLabels


@dataclass(frozen=True)
class ChipStudy:
    """A Monte Carlo run with everything that its page shows.

    trial: design, samples and plan of the run; settings: what the run depends on, as the page's last table shows it;
    origins: hashes and versions of the run; records: one for each chip that the summary counts; failure: a wrong sample
    of the worst chip, or a text that says why there is none; network: path of the network's file, as typed in a
    command.
    """

    trial: Trial
    summary: ChipSummary
    settings: Mapping[str, object]
    origins: Mapping[str, str]
    records: tuple[ChipRecord, ...]
    failure: WrongSample | str
    network: str

    @cached_property
    def specs(self) -> tuple[Spec, ...]:
        """Return the specs (limits of a chip's figures) that the run's yield was counted with."""
        return tuple(parse_spec(text) for text in self.summary.yield_.spec)

    @cached_property
    def passes(self) -> tuple[bool, ...]:
        """Return whether each chip counts as working in the yield, in the order of `records`."""
        return tuple(passes_specs(record.outcome(self.trial.engine), self.specs) for record in self.records)

    def figures(self, metric: str, engine: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return one metric of the chips that were simulated, and which of them meet the specs, (chips,) both.

        engine: the one whose figures are taken.
        """
        found = [(record.outcome(engine), passed) for record, passed in zip(self.records, self.passes, strict=True)]
        good = [(figures[metric], passed) for figures, passed in found if figures is not None]
        return np.array([value for value, _ in good]), np.array([passed for _, passed in good], bool)


def study_chips(
    folder: Path, places: Places = Places(), *, waveforms: bool = True, say: Say = lambda text: None
) -> ChipStudy:
    """Gather everything that the page of a finished Monte Carlo run shows from the folder of the run.

    waveforms: also simulate a wrong sample of the worst chip; say: called with a line of text before this simulation.
    """
    settings, found = read_store(folder)
    summary = read_summary(folder)
    summary = replace(summary, contributions=_contributions(folder, summary.chips))
    if missing := [number for number in range(summary.chips) if number not in found]:
        raise InputError(
            f"{folder}: {SUMMARY_FILE} counts {summary.chips} chips, but chip {missing[0]} is not there; the same "
            "command goes on"
        )
    records = tuple(found[number] for number in range(summary.chips))
    trial = load_trial(folder, places)
    kept = read_settings(folder)
    return ChipStudy(
        trial=trial,
        summary=summary,
        settings=_settings(settings, summary, json_object(read_kept(folder))),
        origins=_origins(settings),
        records=records,
        failure=find_failure(trial, records, say) if waveforms else NO_WAVES,
        network="NETWORK" if kept is None else str(kept.arguments.get("network", "NETWORK")),
    )


def _settings(settings: Settings, summary: ChipSummary, kept: Mapping[str, object]) -> dict[str, object]:
    """Return the run's settings for the last table of its page, without those that the page shows elsewhere."""
    design = {key: value for key, value in settings["design"].items() if key not in MOVED}
    plan, ranges = json_object(summary.variation), ("celsius", "supplies")
    assert isinstance(plan, dict)
    hashes = ("cosim", MADE_WITH, "samples_hash", "calibration", "engine", "samples")
    return {
        **{key: value for key, value in settings.items() if key not in hashes},
        "variation": {key: value for key, value in plan.items() if summary.variation.common or key not in ranges},
        "design": design,
        "devices": f"{len(settings['devices'])} of {design['transistors']}",
        **{name: kept[name] for name in ("technology", "pdk_root", "compile") if kept[name] is not None},
    }


def _origins(settings: Settings) -> dict[str, str]:
    """Return hashes and versions of the run, which the page shows next to those of the design."""
    versions = {name: show(version) for name, version in settings[MADE_WITH].items()}
    page = f"{settings['cosim']}, this page {__version__}"
    return {
        "numbers of the calibration": settings["calibration"],
        "test samples": settings["samples_hash"],
        **{words_of(name): version for name, version in versions.items()},
        "cosim": page if settings["cosim"] != __version__ else __version__,
    }


def read_summary(folder: Path) -> ChipSummary:
    """Read summary.json in the folder of a Monte Carlo run.

    Raises InputError where the file is missing, lacks a field that the page needs, or is by another engine than the
    run.
    """
    path = folder / SUMMARY_FILE
    content = _read(path)
    if content is None:
        raise InputError(f"{folder}: the run is not finished ({SUMMARY_FILE} is missing); the same command goes on")
    if lacking := [name for name in NEEDED if name not in content]:
        raise InputError(f"{path}: {', '.join(lacking)} missing; {_AGAIN}")
    if content["engine"] != (engine := read_sealed(folder / RUN_FILE).get("engine")):
        raise InputError(
            f"{path}: engine must be {engine}, that of {RUN_FILE}, not {shown(content['engine'])}; {_AGAIN}"
        )
    content = _EARLIER | content | {"yield_": content["yield"]}
    return typed(check_plain(content, str(path), _AGAIN), ChipSummary, str(path), _AGAIN)


def yield_curve(trial: Trial, records: Sequence[ChipRecord], specs: Sequence[Spec]) -> YieldCurve:
    """Compute the yield of a Monte Carlo run as a function of the lowest accuracy that a chip may have.

    The limits are all accuracies that chips have. All specs except a lowest accuracy apply at every limit.
    """
    outcomes = [record.outcome(trial.engine) for record in records]
    own = [spec for spec in specs if spec.metric == "accuracy" and spec.at_least]
    others = [spec for spec in specs if spec not in own]
    accuracy = np.array([found.accuracy if found and passes_specs(found, others) else -1.0 for found in outcomes])
    step = 1 / len(trial.test_set.y)
    seen = {found.accuracy for found in outcomes if found} or {0.0}
    ends = {max(min(seen) - step, 0.0), min(max(seen) + step, 1.0)}
    limits = np.array(sorted(seen | ends))
    yields = [count_yield([bool(value >= limit) for value in accuracy], trial.plan) for limit in limits]
    spec = None
    if own:
        limit = max(spec.limit for spec in own)
        at_spec = count_yield([bool(value >= limit) for value in accuracy], trial.plan)
        spec = limit, at_spec.value, at_spec.interval.low, at_spec.interval.high
    values = np.array([found.value for found in yields])
    low, high = np.array([found.interval for found in yields]).T
    return YieldCurve(limits, values, low, high, yields[0].method, spec)


def nominal_power(trial: Trial) -> dict[str, float]:
    """Compute the mean power of every block of the circuit without mismatch, block -> W, by the behavioral model."""
    trace = run_behavioral(trial.design, trial.test_set.x, trial.condition)
    blocks = behavioral_power(trial.design, trace, trial.timing, trial.condition)
    lengths = trial.test_set.lengths
    return {name: float(((power * trial.valid).sum(axis=1) / lengths).mean()) for name, power in blocks.items()}


def find_failure(trial: Trial, records: Sequence[ChipRecord], say: Say) -> WrongSample | str:
    """Simulate, on transistors, one sample that the chip with the lowest accuracy decides wrong.

    Returns a sentence that says why where no such sample can be shown. say: called with a line before the simulation.
    """
    good = [record for record in records if record.status == "ok"]
    if not good:
        return "No chip was simulated to its end."
    worst = min(good, key=lambda record: record.by(trial.engine).accuracy)
    if trial.test_set.tolerance is not None:
        return "Answers are real numbers, of which none decides."
    sample = failing_sample(trial, worst.by(trial.engine).decisions)
    if sample is None:
        return "No chip decides any sample wrong."
    say(f"chip {worst.chip}, the worst, and the nominal circuit on transistors: one sample each")
    try:
        return simulate_failure(trial, worst, sample)
    except MissingToolError as error:
        return f"Waveforms need a simulator that is missing where this page was written: {error}"
    except SimulationError as error:
        return f"The simulation for the waveforms failed: {error}"


def failing_sample(trial: Trial, decisions: Sequence[int]) -> int | None:
    """Return the position in the test set of the first sample that a chip decides wrong, None if there is none.

    Samples that the software decides right have priority. decisions: the class that the chip decides for each sample.
    """
    wrong = np.array(decisions) != trial.test_set.y
    _, software = trial.software
    spoilt = wrong & (software == trial.test_set.y)
    chosen = spoilt if spoilt.any() else wrong
    return int(chosen.argmax()) if chosen.any() else None


def simulate_failure(trial: Trial, record: ChipRecord, sample: int) -> WrongSample:
    """Simulate one sample, by its position in the test set, on the transistors of a chip and on those without mismatch.

    Raises SimulationError where a run fails, MissingToolError without ngspice.
    """
    chip, test_set, network = stored_chip(trial, record), trial.test_set, trial.design.network
    length = int(test_set.lengths[sample])
    x = test_set.x[sample, :length]
    trace, run = run_behavioral(trial.design, x[None], trial.condition, chip), trial.run(chip)
    cells = tuple(trial.design.assembly.decisions)
    states = np.stack([trace.states[cell][0] for cell in cells], axis=1)
    wanted, software = trial.software
    differs = (states != wanted[sample, :length]).sum(axis=0)
    cell = cells[int(differs.argmax())] if differs.any() else liveliest_cell(cells, states)
    drawn, typical = (record_signals(trial.design, x, (cell,), one) for one in (run, replace(run, chip=None)))
    (waves, labels), (nominal, _) = (waves_of(trial.design, one, cell, run) for one in (drawn, typical))
    if not trial.design.graph.into(cell, "beta") and (
        points := measure_behavioral(trial, chip, in_frame=True).get(cell)
    ):
        labels = replace(labels, own=(points.rise, points.fall))
    decided = {
        "software": int(software[sample]),
        BY_EQUATIONS: decide(network, trace.readout[0]),
        BY_TRANSISTORS: recorded_decision(trial.design, drawn, trial.timing, length),
        "nominal transistors": recorded_decision(trial.design, typical, trial.timing, length),
    }
    right, index = int(test_set.y[sample]), int(test_set.indices[sample])
    return WrongSample(chip.number, record.by(trial.engine), index, right, decided, waves, nominal, labels)


def _contributions(folder: Path, chips: int) -> Mapping[str, Contribution] | None:
    """Read contributions.json, the shares of variance of a run: metric -> contribution.

    Returns None where the file is missing or was computed with another number of chips than `chips`.
    """
    path = folder / CONTRIBUTIONS_FILE
    content = _read(path)
    if content is None or content.get("chips") != chips:
        return None
    return typed(content, KeptContributions, str(path), _AGAIN).contributions


def _read(path: Path) -> Settings | None:
    """Read a JSON file of a run and verify its checksum; return None where there is no such file."""
    try:
        return read_sealed(path)
    except FileNotFoundError:
        return None


def spread_cells(trial: Trial, records: Sequence[ChipRecord]) -> CellSpread | None:
    """Return thresholds and level of each 9T cell on every chip, ampere, by the behavioral model.

    Cells whose thresholds depend on the input are left out; None if no cell remains. Thresholds are those of a clocked
    cell within a frame. `asked` holds the values of the circuit without mismatch, which the compiler aimed at.
    """
    graph = trial.design.graph
    cells = tuple(cell for cell in graph.of(Schmitt) if not graph.into(cell.name, "beta"))
    if not cells:
        return None
    chips = (trial.nominal_chip, *(stored_chip(trial, record) for record in records))
    found = [measure_behavioral(trial, chip, in_frame=True) for chip in chips]
    points = ([points[cell.name] for cell in cells] for points in found)
    asked, *measured = [[(one.rise, one.fall, one.level) for one in row] for row in points]
    return CellSpread(tuple(cell.name for cell in cells), np.array(asked), np.array(measured))


def stored_chip(trial: Trial, record: ChipRecord) -> Chip:
    """Rebuild a chip of a Monte Carlo run from its record: draws, supply voltage and temperature."""
    vt_shift, beta_factor = unpack_draws(record.draws)
    return Chip(record.chip, trial.devices, vt_shift, beta_factor, record.supply_v, record.celsius)
