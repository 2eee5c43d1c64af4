"""A whole Monte Carlo run: chips are run and kept until there are enough or the yield is known well enough.

Further studies of a run: cures of a low yield, shares of variance, replay of one chip, audit in ngspice.
"""

import json
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.seal import checksum
from cosim.base.store import MADE_WITH, Settings, write_results, write_texts
from cosim.base.version import __version__
from cosim.cells.blocks import outside_of
from cosim.circuit.bench import Bench, Tolerances
from cosim.engines.engine import Inference, Outcome, Progress, Run
from cosim.engines.simulation.audit import (
    REPEATED,
    Audit,
    UndecidedChips,
    choose,
    judge,
    reference_run,
    steps_error,
    tie_limit,
    tighter_benches,
)
from cosim.engines.simulation.inference import run_inferences
from cosim.engines.simulation.read import ReadPlan, read_plan
from cosim.engines.simulation.simulated import SimulatorEngine, engine_named, sample_benches
from cosim.engines.table import BEHAVIORAL, reference_simulator
from cosim.results.intervals import CONFIDENCE, interval
from cosim.results.metrics import CHIP_METRICS, RMSE
from cosim.tasks.testset import TestSet, find_clipping
from cosim.variation.draws import Chip, VariationPlan, check_coefficients
from cosim.verbs.compare.value_errors import rms
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.montecarlo.chips import ChipRecord, ChipSummary, Contribution, Cure, NominalFigures
from cosim.verbs.montecarlo.contributions import chip_figures, share_variance
from cosim.verbs.montecarlo.execute import map_chips
from cosim.verbs.montecarlo.spec import Spec, passes_specs, spec_near
from cosim.verbs.montecarlo.statistics import (
    checkpoints,
    count_noise,
    count_spec_yield,
    count_unreset,
    describe,
    describe_metrics,
    is_precise,
    pair_engines,
    stop_confidence,
)
from cosim.verbs.montecarlo.store import ChipStore, check_held, keep_missing, unpack_certainty
from cosim.verbs.montecarlo.trial import (
    Trial,
    add_simulation,
    behavioral_record,
    run_behavioral_chip,
    trial_samples_hash,
)
from cosim.verbs.trim.trim import check_trimmable, measure_behavioral, trim_codes, trim_ranges

Execute = Callable[[Sequence[int]], Iterator[ChipRecord]]
SUMMARY_FILE, CONTRIBUTIONS_FILE = "summary.json", "contributions.json"
_LEAST_CHIPS = 20
SUFFICIENT_YIELD = 0.9  # of the chips: from there on nothing is advised
LARGER_AREA = 3.0  # times the area of the devices, at which mismatch is 0.58 of what it was
TRIM_BITS = 2  # of the converters; more bring little
_MOST, _LEAST, _WORK = 50, 10, 20_000  # chips that are tried, at most a quarter of the run's; chips times samples


@dataclass(frozen=True)
class KeptContributions:
    """The content of contributions.json: metric -> contribution, with the number of chips that were used."""

    chips: int
    contributions: dict[str, Contribution]


def run_settings(trial: Trial) -> Settings:
    """Return everything that a chip's outcome depends on, the content of run.json.
    The folder of a run accepts only chips of these settings."""
    plan = asdict(trial.plan)
    if trial.plan.sampling == "random":
        del plan["chips"]  # a chip's draw does not depend on how many there are
    for name in ("celsius", "supplies"):
        if plan[name] == getattr(VariationPlan, name):
            del plan[name]  # folders of versions without these ranges do not have them
    settings = {
        "cosim": __version__,
        "engine": trial.engine,
        "variation": plan,
        "design": summarize(trial.design, trial.condition),
        "calibration": _hash(trial.design.calibration.content()),
        "coefficients": {name: asdict(getattr(trial.technology, name)) for name in ("nfet", "pfet")},
        "t_step_s": trial.timing.t_step,
        "samples": len(trial.test_set.y),
        "samples_hash": trial_samples_hash(trial),
        "devices": [device.name for device in trial.devices],
        MADE_WITH: {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__},
    }
    if trial.noise is not None:
        settings["noise"] = {"seed": trial.noise.seed, "devices": trial.noise.fit.fingerprint}
    if (gradient := trial.gradient) is not None:
        settings["gradient"] = {"s_vt": gradient.s_vt, "s_beta": gradient.s_beta, "places": gradient.fingerprint}
    if trial.engine != BEHAVIORAL:
        engine = engine_named(trial.engine).describe(trial.technology)
        settings["simulator"] = {trial.engine: engine.version, "options": asdict(Tolerances())}
        settings[MADE_WITH][f"{trial.engine}_options"] = dict(engine.options)
    return json.loads(json.dumps(settings))


def _hash(content: object) -> str:
    return checksum(json.dumps(content).encode())


def run_montecarlo(
    trial: Trial,
    store: ChipStore,
    execute: Execute,
    specs: Sequence[Spec],
    stop_width: float | None,
    progress: Progress,
) -> ChipSummary:
    """Run the chips that the store lacks, write summary.json, and return its content.

    stop_width: if given, the yield is examined at preset numbers of chips, and the run stops once its interval is at
    most so wide; the reported interval has the confidence of one such look. Chips that an earlier run lost to a
    time-out or a dead worker run again. execute: runs chips by number.
    """
    check_held(store, trial.plan.chips)
    looks = [trial.plan.chips] if stop_width is None else checkpoints(trial.plan.chips)
    records: list[ChipRecord] = []
    for count in looks:
        for done in keep_missing(store, range(len(records), count), execute):
            progress(len(records) + done, trial.plan.chips)
        records = [store.records[number] for number in range(count)]
        passes = [passes_specs(record.outcome(trial.engine), specs) for record in records]
        if stop_width is not None and is_precise(passes, trial.plan, stop_width):
            break
    store.tidy()
    confidence = CONFIDENCE if stop_width is None else stop_confidence(trial.plan)
    summary = summarize_run(trial, records, specs, confidence)
    write_results(store.folder, {SUMMARY_FILE: summary})
    return summary


def shard_of(chips: int, part: int, parts: int) -> range:
    """Return the numbers of the chips in part `part`, counted from 1, of `parts` equal parts of a run."""
    return range(part - 1, chips, parts)


def run_shard(store: ChipStore, execute: Execute, numbers: Sequence[int], progress: Progress) -> None:
    """Run those chips of `numbers` that the store lacks. There is no summary: it needs the chips of all shards."""
    for done in keep_missing(store, numbers, execute):
        progress(done, len(numbers))
    store.tidy()


def summarize_run(
    trial: Trial, records: Sequence[ChipRecord], specs: Sequence[Spec], confidence: float = CONFIDENCE
) -> ChipSummary:
    """Summarize the chips of a run: figures, yield by the specs, and software and nominal circuit on the same samples.

    confidence: of the yield's interval.
    """
    (_, answers), y = trial.software, trial.test_set.y
    outcomes = [record.outcome(trial.engine) for record in records]
    good = [found for found in outcomes if found is not None]
    figures = describe_metrics(good)
    counted = count_spec_yield(outcomes, trial.plan, specs, confidence)
    low = counted.value < SUFFICIENT_YIELD and trial.plan.kind != "none"
    return ChipSummary(
        chips=len(records),
        failed=len(records) - len(good),
        reasons=dict(Counter(record.reason or "" for record in records if record.status != "ok")),
        unreset=count_unreset(good, specs),
        engine=trial.engine,
        accuracy=figures.get("accuracy"),
        task_agreement=figures.get("task_agreement"),
        state_agreement=figures.get("state_agreement"),
        power=figures.get("power"),
        rmse=figures.get(RMSE),
        yield_=counted,
        paired=pair_engines(records, trial.engine),
        elsewhere=dict(sum((Counter(record.elsewhere) for record in records), Counter[str]())),
        samples=len(trial.test_set.y),
        software_accuracy=float(trial.test_set.same(answers, y).mean()),
        software_rmse=None if answers.ndim == 1 else rms(answers - y),
        nominal=NominalFigures(**{one.name: getattr(trial.nominal, one.name) for one in fields(NominalFigures)}),
        power_outside=outside_of(trial.design.assembly.blocks),
        clipped=find_clipping(trial.design.network.encoding, trial.test_set),
        technology=trial.technology.name,
        variation=trial.plan,
        noise=None if trial.noise is None else count_noise(records, trial.noise.seed, specs),
        gradient=None if trial.gradient is None else (trial.gradient.s_vt, trial.gradient.s_beta),
        cures=try_cures(trial, specs) if low else None,
    )


def try_cures(trial: Trial, specs: Sequence[Spec]) -> tuple[Cure, ...]:
    """Count how many of a run's first chips would work with larger devices and with trim bits (behavioral model).

    Larger devices are tried only where transistors deviate by themselves, trim bits only where all units can be
    trimmed.
    """
    most = min(_MOST, trial.plan.chips // 4, _WORK // len(trial.test_set.y))
    count = min(trial.plan.chips, max(_LEAST, most))
    found = list[Cure]()
    if trial.plan.kind in ("local", "all"):
        larger = replace(trial, plan=replace(trial.plan, area=LARGER_AREA * trial.plan.area))
        found.append(_count("area", count, specs, lambda number: (larger, larger.chip(number))))
    try:
        check_trimmable(trial.design, "")
    except InputError:
        return tuple(found)
    wanted, ranges = measure_behavioral(trial, trial.nominal_chip), trim_ranges(trial)
    condition = trial.condition or trial.design.nominal

    def trimmed(number: int) -> tuple[Trial, Chip]:
        chip = trial.chip(number)
        pins = trim_codes(trial.design, measure_behavioral(trial, chip), wanted, TRIM_BITS, ranges)
        return replace(trial, condition=replace(condition, pins=pins)), chip

    return (*found, _count("trim", count, specs, trimmed))


def _count(name: str, chips: int, specs: Sequence[Spec], cured: Callable[[int], tuple[Trial, Chip]]) -> Cure:
    passed = sum(passes_specs(run_behavioral_chip(*cured(number)), specs) for number in range(chips))
    value, low, high = interval(passed, chips)
    return Cure(name, value, low, high, passed, chips)


def default_spec(trial: Trial) -> Spec:
    """Return the spec of a run that has none: an accuracy at most 5 points below that of the nominal circuit."""
    return spec_near(trial.nominal.accuracy, "the nominal circuit")


def check_specs(trial: Trial, specs: Sequence[Spec]) -> None:
    """Raise InputError where a spec is on a figure that the trial's chips do not have."""
    for spec in specs:
        spec.holds(trial.nominal)


def check_contributions(trial: Trial) -> Trial:
    """Return the trial on which the variance is divided: local mismatch, random sampling, behavioral model.

    Raises InputError for a trial with a gradient or too few chips, or a technology without mismatch coefficients.
    """
    if trial.gradient is not None:
        raise InputError(
            "--contributions shares what transistors draw on their own, and a gradient is common to all; leave out "
            "--gradient or --contributions"
        )
    if trial.plan.chips < _LEAST_CHIPS:
        raise InputError(
            f"--contributions needs at least {_LEAST_CHIPS} chips, not {trial.plan.chips}; give more --chips"
        )
    plan = replace(trial.plan, kind="local", sampling="random")
    check_coefficients(trial.technology, plan)
    return replace(trial, engine=BEHAVIORAL, plan=plan)


def run_contributions(trial: Trial, jobs: int, progress: Progress) -> dict[str, Contribution]:
    """Divide the variance of each figure by block and by kind of transistor: metric -> contribution.

    Only local mismatch counts, by the behavioral model. jobs: processes.
    """
    local, pairs = check_contributions(trial), trial.plan.chips // 2
    found: dict[str, list[list[float]]] = {metric: [] for metric in CHIP_METRICS}
    for done, figures in enumerate(map_chips(chip_figures, local, range(pairs), jobs), start=1):
        progress(done, pairs)
        for metric in CHIP_METRICS:
            found[metric].append(figures[metric])
    return {
        metric: Contribution(
            describe([row[0] for row in rows]), **share_variance(local.devices, np.array(rows), local.plan.seed)
        )
        for metric, rows in found.items()
    }


def replay_chip(trial: Trial, number: int, folder: Path) -> ChipRecord:
    """Simulate one chip of a run again, with one netlist a sample written into `folder`; return the chip's record.

    A trial of the behavioral model is replayed in the technology's reference simulator.
    """
    chip = trial.chip(number)
    run = trial.noisy_run(chip)
    if trial.engine == BEHAVIORAL:
        run = replace(trial.run(chip), engine=reference_simulator(trial.technology))
    decks = engine_named(run.engine).decks(trial.design, trial.test_set, run)
    write_texts(
        folder, {f"sample_{k}.sp": deck for k, deck in zip(trial.test_set.indices.tolist(), decks, strict=False)}
    )
    return add_simulation(trial, behavioral_record(trial, chip), run)


def audit_chips(trial: Trial, records: Mapping[int, ChipRecord], count: int, where: Run, progress: Progress) -> Audit:
    """Run `count` samples, each on one of these chips, in ngspice as well, and compare their states.

    where: folder, processes and time-out of the simulations. The trial's engine repeats these samples too, because
    records do not hold the states. Both run them without device noise, which ngspice does not draw.
    """
    found: list[Outcome] = []
    benches: list[Bench] = []
    plans: list[ReadPlan] = []
    places = choose(_certainty(trial, records), count, trial.plan.seed)
    for outcome, alone, run in _run_again(trial, records, places):
        if isinstance(outcome, Inference) and not outcome.elsewhere:
            found.append(outcome)
            benches += sample_benches(trial.design, alone, run)
            plans.append(read_plan(trial.design, int(alone.lengths[0]), run.timing, run.standing(trial.design)))
    others = run_inferences(benches, plans, reference_run(where, trial.technology), progress)
    return judge(trial.design, found, others, trial.condition)


def find_undecided_chips(
    trial: Trial, records: Mapping[int, ChipRecord], where: Run, progress: Progress
) -> UndecidedChips | None:
    """Count the samples on these chips with a decision that an error of the engine could turn.

    A few samples run twice more, once of them with smaller steps, to measure this error. Returns None where the
    simulator measured no margins.
    """
    certainty = _certainty(trial, records)
    known = certainty[np.isfinite(certainty)]
    if not known.size:
        return None
    found: list[Outcome] = []
    benches: list[Bench] = []
    plans: list[ReadPlan] = []
    for outcome, alone, run in _run_again(trial, records, choose(certainty, REPEATED, trial.plan.seed + 1)):
        found.append(outcome)
        few, read = tighter_benches(trial.design, alone, run)
        benches += few
        plans += read
    again = run_inferences(benches, plans, replace(where, engine=trial.engine), progress)
    error = steps_error(zip(found, again, strict=True))
    limit = tie_limit(trial.design, trial.condition) + error
    return UndecidedChips(len(known), int((known < limit).sum()), len(found), error, limit)


def _certainty(trial: Trial, records: Mapping[int, ChipRecord]) -> NDArray[np.float64]:
    """Return the smallest margin of every sample on every chip, A, (chips * samples,), in the order of chip numbers."""
    return np.concatenate([unpack_certainty(records[number], len(trial.test_set.y)) for number in sorted(records)])


def _run_again(
    trial: Trial, records: Mapping[int, ChipRecord], places: NDArray[np.int64]
) -> Iterator[tuple[Outcome, TestSet, Run]]:
    """Simulate some samples on chips again by the trial's engine; yield outcome, one-sample test set and run of each.
    places: positions in the array of `_certainty`."""
    engine, numbers = engine_named(trial.engine), sorted(records)
    assert isinstance(engine, SimulatorEngine), f"{trial.engine} runs no benches, so there is nothing to audit"
    for chip, sample in zip(*np.divmod(places, len(trial.test_set.y)), strict=True):
        alone, run = trial.test_set.select(np.array([sample])), trial.run(trial.chip(numbers[chip]))
        (outcome,) = engine.infer(trial.design, alone, run, lambda done, total: None)
        yield outcome, alone, run
