"""A whole run: chips into a store, until there are enough or the yield is known well enough; and one chip again."""

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
from cosim.engines.engine import FailureKind, Inference, Outcome, Progress, Run
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
from cosim.engines.table import BEHAVIORAL, NGSPICE
from cosim.results.intervals import CONFIDENCE
from cosim.results.metrics import CHIP_METRICS, RMSE
from cosim.tasks.testset import TestSet, find_clipping
from cosim.variation.draws import Chip, check_coefficients
from cosim.verbs.compare.value_errors import rms
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.montecarlo.chips import ChipRecord, ChipSummary, Contribution, NominalFigures
from cosim.verbs.montecarlo.contributions import chip_figures, share_variance
from cosim.verbs.montecarlo.cures import ENOUGH, try_cures
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
from cosim.verbs.montecarlo.store import ChipStore, unpack_certainty
from cosim.verbs.montecarlo.trial import (
    Trial,
    add_simulation,
    behavioral_record,
    run_behavioral_chip,
    trial_samples_hash,
)

Execute = Callable[[Sequence[int]], Iterator[ChipRecord]]
SUMMARY_FILE, CONTRIBUTIONS_FILE = "summary.json", "contributions.json"
_LEAST_CHIPS = 20
_LOST = (FailureKind.TIMEOUT.value, FailureKind.CRASH.value)


@dataclass(frozen=True)
class KeptContributions:
    """The content of contributions.json, with the number of chips that it comes from."""

    chips: int
    contributions: dict[str, Contribution]


def run_settings(trial: Trial) -> Settings:
    """Return everything that a chip's outcome depends on, as run.json keeps it; a store takes chips of one only."""
    plan = asdict(trial.plan)
    if trial.plan.sampling == "random":
        del plan["chips"]  # a chip's draw does not depend on how many there are
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
    """Run the chips that the store lacks and write summary.json; returns its content.

    `stop_width`: look at preset numbers of chips, and stop where the yield's interval is no wider; what is reported
    then has the confidence of one look. Chips that an earlier run lost to a time-out or a dead worker run again.
    """
    chips = trial.plan.chips
    if store.records and max(store.records) >= chips:
        held = max(store.records) + 1
        raise InputError(
            f"{store.folder}: holds {held} chips, so --chips must be at least {held}, not {chips}; for fewer choose "
            "another folder with -o"
        )
    lost = {number for number, record in store.records.items() if record.reason in _LOST}
    for count in checkpoints(chips) if stop_width is not None else [chips]:
        missing = [number for number in range(count) if number not in store.records or number in lost]
        progress(count - len(missing), chips)
        if missing:
            for record in execute(missing):
                store.append(record)
                lost.discard(record.chip)
                progress(sum(number < count and number not in lost for number in store.records), chips)
        passes = [passes_specs(store.records[number].outcome(trial.engine), specs) for number in range(count)]
        if stop_width is not None and is_precise(passes, trial.plan, stop_width):
            chips = count
            break
    store.tidy()
    confidence = CONFIDENCE if stop_width is None else stop_confidence(trial.plan)
    summary = summarize_run(trial, [store.records[number] for number in range(chips)], specs, confidence)
    write_results(store.folder, {SUMMARY_FILE: summary})
    return summary


def shard_of(chips: int, part: int, parts: int) -> range:
    """Return the numbers of the chips in one of `parts` equal shares; `part` counts from 1."""
    return range(part - 1, chips, parts)


def run_shard(trial: Trial, store: ChipStore, execute: Execute, numbers: Sequence[int], progress: Progress) -> None:
    """Run those of some chips that the store does not hold yet; what all chips show is for `merge`."""
    missing = [number for number in numbers if number not in store.records or store.records[number].reason in _LOST]
    done = len(numbers) - len(missing)
    progress(done, len(numbers))
    for record in execute(missing) if missing else ():
        store.append(record)
        progress(done := done + 1, len(numbers))
    store.tidy()


def summarize_run(
    trial: Trial, records: Sequence[ChipRecord], specs: Sequence[Spec], confidence: float = CONFIDENCE
) -> ChipSummary:
    """Summarize the chips in figures, with those of the trained network and of the nominal circuit on the same
    samples."""
    (_, answers), target, y = trial.software, trial.test_set.target, trial.test_set.y
    nominal = run_behavioral_chip(trial, nominal_chip(trial))
    outcomes = [record.outcome(trial.engine) for record in records]
    good = [found for found in outcomes if found is not None]
    figures = describe_metrics(good)
    counted = count_spec_yield(outcomes, trial.plan, specs, confidence)
    low = counted.value < ENOUGH and trial.plan.kind != "none"
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
        software_accuracy=float(target.same(answers, y).mean()),
        software_rmse=None if answers.ndim == 1 else rms(answers - y),
        nominal=NominalFigures(**{one.name: getattr(nominal, one.name) for one in fields(NominalFigures)}),
        power_outside=outside_of(trial.design.assembly.blocks),
        clipped=find_clipping(trial.design.network.encoding, trial.test_set),
        technology=trial.technology.name,
        variation=trial.plan,
        noise=None if trial.noise is None else count_noise(records, trial.noise.seed, specs),
        gradient=None if trial.gradient is None else (trial.gradient.s_vt, trial.gradient.s_beta),
        cures=try_cures(trial, nominal_chip(trial), specs) if low else None,
    )


def default_spec(trial: Trial) -> Spec:
    """Return a Monte Carlo run's default spec, an accuracy near that of the nominal circuit."""
    return spec_near(run_behavioral_chip(trial, nominal_chip(trial)).accuracy, "the nominal circuit")


def check_specs(trial: Trial, specs: Sequence[Spec]) -> None:
    """Raise InputError where a spec is on a figure that these chips do not have."""
    nominal = run_behavioral_chip(trial, nominal_chip(trial))
    for spec in specs:
        spec.holds(nominal)


def nominal_chip(trial: Trial) -> Chip:
    """Return for a Monte Carlo run the chip whose transistors do not deviate from the design."""
    return replace(trial, plan=replace(trial.plan, kind="none", area=1.0), gradient=None).chip(0)


def check_contributions(trial: Trial) -> Trial:
    """Return the trial as local mismatch by the behavioral equations, whose variance is divided among groups of
    transistors.

    Raises InputError for a gradient, too few chips or a technology without coefficients.
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
    """Compute for a Monte Carlo run the shares of variance by block and by kind of transistor, of local mismatch, by
    the behavioral model."""
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
    """Write the decks of one chip of a Monte Carlo run into `folder`, one a sample, and run them; returns the chip's
    record.

    A trial of the behavioral model is replayed in ngspice.
    """
    chip = trial.chip(number)
    run = trial.run(chip)
    run = replace(run, engine=NGSPICE) if run.engine == BEHAVIORAL else run
    decks = engine_named(run.engine).decks(trial.design, trial.test_set, run)
    write_texts(
        folder, {f"sample_{k}.sp": deck for k, deck in zip(trial.test_set.indices.tolist(), decks, strict=False)}
    )
    return add_simulation(trial, behavioral_record(trial, chip), run)


def audit_chips(trial: Trial, records: Mapping[int, ChipRecord], count: int, where: Run, progress: Progress) -> Audit:
    """Audit `count` samples, each on one of the chips of these records; `where`: folder, processes and time-out.

    The trial's engine runs them once more, which gives what the records are made of.
    """
    numbers, samples = sorted(records), len(trial.test_set.y)
    certainty = _certainty(records, samples)
    found: list[Outcome] = []
    benches: list[Bench] = []
    plans: list[ReadPlan] = []
    for place in choose(certainty, count, trial.plan.seed).tolist():
        outcome, bench, plan = _run_again(trial, numbers[place // samples], place % samples)
        if isinstance(outcome, Inference) and not outcome.elsewhere:
            found.append(outcome)
            benches.append(bench)
            plans.append(plan)
    others = run_inferences(benches, plans, reference_run(where), progress)
    return judge(trial.design, found, others, trial.condition)


def find_undecided_chips(
    trial: Trial, records: Mapping[int, ChipRecord], where: Run, progress: Progress
) -> UndecidedChips | None:
    """Count the samples on the chips of these records with a decision that an error of the engine could turn.

    A few of them run twice more, once with smaller steps. None where no margins were measured.
    """
    numbers, samples = sorted(records), len(trial.test_set.y)
    certainty = _certainty(records, samples)
    known = certainty[np.isfinite(certainty)]
    if not known.size:
        return None
    found: list[Outcome] = []
    benches: list[Bench] = []
    plans: list[ReadPlan] = []
    for place in choose(certainty, REPEATED, trial.plan.seed + 1).tolist():
        number, sample = numbers[place // samples], place % samples
        found.append(_run_again(trial, number, sample)[0])
        alone, run = _on_chip(trial, number, sample)
        few, read = tighter_benches(trial.design, alone, run)
        benches += few
        plans += read
    again = run_inferences(benches, plans, replace(where, engine=trial.engine), progress)
    error = steps_error(zip(found, again, strict=True))
    limit = tie_limit(trial.design, trial.condition) + error
    return UndecidedChips(len(known), int((known < limit).sum()), len(found), error, limit)


def _certainty(records: Mapping[int, ChipRecord], samples: int) -> NDArray[np.float64]:
    """Return the smallest margins of every sample on every chip, ampere, in the order of the chips' numbers, in one
    row."""
    return np.concatenate([unpack_certainty(records[number], samples) for number in sorted(records)])


def _run_again(trial: Trial, number: int, sample: int) -> tuple[Outcome, Bench, ReadPlan]:
    """Simulate one sample on one chip again; return its outcome, the bench that ran, and what is read from it."""
    engine, (alone, run) = engine_named(trial.engine), _on_chip(trial, number, sample)
    assert isinstance(engine, SimulatorEngine), f"{trial.engine} runs no benches, so there is nothing to audit"
    (outcome,) = engine.infer(trial.design, alone, run, lambda done, total: None)
    plan = read_plan(trial.design, int(alone.lengths[0]), run.timing, run.standing(trial.design))
    return outcome, next(sample_benches(trial.design, alone, run)), plan


def _on_chip(trial: Trial, number: int, sample: int) -> tuple[TestSet, Run]:
    """Return a test set of one sample alone, and the run that has it on chip `number`."""
    return trial.test_set.select(np.array([sample])), trial.run(trial.chip(number))
