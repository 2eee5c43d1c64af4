"""An audit of chips: some samples on some of them go through ngspice, too, and some once more with smaller steps."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench
from cosim.engines.engine import Inference, Outcome, Progress, Run
from cosim.engines.simulation.audit import TIE, Audit, choose, judge, reference_run
from cosim.engines.simulation.inference import run_inferences
from cosim.engines.simulation.plans import read_plan
from cosim.engines.simulation.read import ReadPlan
from cosim.engines.simulation.simulated import SimulatorEngine, engine_named, sample_benches
from cosim.engines.simulation.undecided import REPEATED, UndecidedChips, steps_error, tighter_benches
from cosim.tasks.testset import TestSet
from cosim.verbs.montecarlo.chips import ChipRecord
from cosim.verbs.montecarlo.store import unpack_certainty
from cosim.verbs.montecarlo.trial import Trial


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
    return judge(trial.design, found, others, (trial.condition or trial.design.nominal).bias_scale)


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
    limit = TIE * (trial.condition or trial.design.nominal).bias_scale * trial.design.i_unit + error
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
