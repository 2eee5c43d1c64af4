"""A run of chips with all that its page shows, from its store: the trial built again, its worst chip simulated."""

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
from cosim.verbs.simulate.waveforms import WaveLabels, Waves, decide, liveliest_cell, read_outputs, record_waveforms
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
    """One sample that the worst chip decided wrong, on its transistors and on the nominal ones.

    sample: its index in the full test set; decided: what each of software, behavioral model, chip's transistors and
    nominal transistors decides; waves and labels as `record_waveforms` gives them.
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
    """A run of chips with all that its page shows.

    settings: what the run depends on, as its table shows it; origins: hashes and versions of the run; records: of the
    chips that the summary counts; failure: a text says why there is none; network: its file, as commands have it.
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
        """Return the specs that the chips of a Monte Carlo run were counted with."""
        return tuple(parse_spec(text) for text in self.summary.yield_.spec)

    @cached_property
    def passes(self) -> tuple[bool, ...]:
        """Tell of each chip of a Monte Carlo run whether it counts for the yield."""
        return tuple(passes_specs(record.outcome(self.trial.engine), self.specs) for record in self.records)

    def figures(self, metric: str, engine: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return a figure of a Monte Carlo run's chips that were simulated, (chips,), and which of them meet the spec,
        (chips,) bool."""
        found = [(record.outcome(engine), passed) for record, passed in zip(self.records, self.passes, strict=True)]
        good = [(figures[metric], passed) for figures, passed in found if figures is not None]
        return np.array([value for value, _ in good]), np.array([passed for _, passed in good], bool)


def study_chips(
    folder: Path, places: Places = Places(), *, waveforms: bool = True, say: Say = lambda text: None
) -> ChipStudy:
    """Gather everything that the page of a run shows; the same store gives the same study."""
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
    """Return the settings that the run depends on, without those in the page's first lines or in its provenance."""
    design = {key: value for key, value in settings["design"].items() if key not in MOVED}
    hashes = ("cosim", MADE_WITH, "samples_hash", "calibration", "engine", "samples")
    return {
        **{key: value for key, value in settings.items() if key not in hashes},
        "variation": json_object(summary.variation),
        "design": design,
        "devices": f"{len(settings['devices'])} of {design['transistors']}",
        **{name: kept[name] for name in ("technology", "pdk_root", "compile") if kept[name] is not None},
    }


def _origins(settings: Settings) -> dict[str, str]:
    """Return hashes and versions of the run, to be shown beside those of its design."""
    versions = {name: show(version) for name, version in settings[MADE_WITH].items()}
    page = f"{settings['cosim']}, this page {__version__}"
    return {
        "numbers of the calibration": settings["calibration"],
        "test samples": settings["samples_hash"],
        **{words_of(name): version for name, version in versions.items()},
        "cosim": page if settings["cosim"] != __version__ else __version__,
    }


def read_summary(folder: Path) -> ChipSummary:
    """Read the summary of a run's folder.

    Raises InputError where it is missing, or lacks a field that the page needs.
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
    """Return a Monte Carlo run's yield at every accuracy that a chip has as the limit, together with all specs that are
    not such a limit."""
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
    """Compute the mean power of every block of the circuit without deviations, W."""
    trace = run_behavioral(trial.design, trial.test_set.x, trial.condition)
    blocks = behavioral_power(trial.design, trace, trial.timing, trial.condition)
    lengths = trial.test_set.lengths
    return {name: float(((power * trial.valid).sum(axis=1) / lengths).mean()) for name, power in blocks.items()}


def find_failure(trial: Trial, records: Sequence[ChipRecord], say: Say) -> WrongSample | str:
    """Simulate on transistors a sample that the chip of lowest accuracy decides wrong; return a sentence that says why
    where there is none to show."""
    good = [record for record in records if record.status == "ok"]
    if not good:
        return "No chip was simulated to its end."
    worst = min(good, key=lambda record: record.by(trial.engine).accuracy)
    if trial.test_set.tolerance is not None:
        return "Answers are real numbers, of which none decides."
    sample = failing_sample(trial, worst.by(trial.engine).decisions)
    if sample is None:
        return "No chip decides any sample wrong."
    say(f"chip {worst.chip}, the worst, and the nominal circuit in ngspice: one sample each")
    try:
        return simulate_failure(trial, worst, sample)
    except MissingToolError as error:
        return f"Waveforms need ngspice, which is missing where this page was written: {error}"
    except SimulationError as error:
        return f"The simulation for the waveforms failed: {error}"


def failing_sample(trial: Trial, decisions: Sequence[int]) -> int | None:
    """Return the place of a chip's first sample decided wrong, of those that the software decides right if there are
    such; None where all are right."""
    wrong = np.array(decisions) != trial.test_set.y
    _, software = trial.software
    spoilt = wrong & (software == trial.test_set.y)
    chosen = spoilt if spoilt.any() else wrong
    return int(chosen.argmax()) if chosen.any() else None


def simulate_failure(trial: Trial, record: ChipRecord, sample: int) -> WrongSample:
    """Simulate one sample on a chip's transistors and on the nominal ones. Raises SimulationError, MissingToolError."""
    chip, test_set, network = stored_chip(trial, record), trial.test_set, trial.design.network
    length = int(test_set.lengths[sample])
    x = test_set.x[sample, :length]
    trace, run = run_behavioral(trial.design, x[None], trial.condition, chip), trial.run(chip)
    cells = tuple(trial.design.assembly.decisions)
    states = np.stack([trace.states[cell][0] for cell in cells], axis=1)
    wanted, software = trial.software
    differs = (states != wanted[sample, :length]).sum(axis=0)
    cell = cells[int(differs.argmax())] if differs.any() else liveliest_cell(cells, states)
    waves, labels = record_waveforms(trial.design, x, cell, run)
    nominal, _ = record_waveforms(trial.design, x, cell, replace(run, chip=None))
    if not trial.design.graph.into(cell, "beta") and (
        points := measure_behavioral(trial, chip, in_frame=True).get(cell)
    ):
        labels = replace(labels, own=(points.rise, points.fall))
    decided = {
        "software": int(software[sample]),
        BY_EQUATIONS: decide(network, trace.readout[0]),
        BY_TRANSISTORS: decide(network, read_outputs(waves, trial.timing, length)),
        "nominal transistors": decide(network, read_outputs(nominal, trial.timing, length)),
    }
    right, index = int(test_set.y[sample]), int(test_set.indices[sample])
    return WrongSample(chip.number, record.by(trial.engine), index, right, decided, waves, nominal, labels)


def _contributions(folder: Path, chips: int) -> Mapping[str, Contribution] | None:
    """Read the shares of variance of the run in a folder; None where there are none, or those of another number of
    chips."""
    path = folder / CONTRIBUTIONS_FILE
    content = _read(path)
    if content is None or content.get("chips") != chips:
        return None
    return typed(content, KeptContributions, str(path), _AGAIN).contributions


def _read(path: Path) -> Settings | None:
    """Read a sealed JSON object of a Monte Carlo run for its page; None where there is no such file."""
    try:
        return read_sealed(path)
    except FileNotFoundError:
        return None


def spread_cells(trial: Trial, records: Sequence[ChipRecord]) -> CellSpread | None:
    """Return thresholds and levels, ampere, of the 9T cells with constant thresholds on every chip; None without such
    cells.

    Thresholds are those within a frame. The field `asked` has those of the chip that does not deviate, for which the
    compiler has solved its bias currents.
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
    """Rebuild a Monte Carlo run's chip from its record with the draws, the supply and the temperature that it had."""
    vt_shift, beta_factor = unpack_draws(record.draws)
    return Chip(record.chip, trial.devices, vt_shift, beta_factor, record.supply_v, record.celsius)
