"""An audit of chips: some samples on some of them go through ngspice, too."""

from collections.abc import Mapping

import numpy as np

from cosim.circuit.bench import Bench
from cosim.engines.engine import Inference, Outcome, Progress, Run
from cosim.montecarlo.record import unpack_certainty
from cosim.montecarlo.trial import Trial
from cosim.simulation.audit import Audit, choose, judge, reference_run
from cosim.simulation.inference import ReadPlan, run_inferences
from cosim.simulation.plans import read_plan
from cosim.simulation.simulated import Simulated, engine_named, sample_benches
from cosim.study.chips import ChipRecord


def audit_chips(trial: Trial, records: Mapping[int, ChipRecord], count: int, where: Run, progress: Progress) -> Audit:
    """Audit `count` samples, each on one of the chips of these records; `where`: folder, processes and time-out.

    The trial's engine runs them once more, which gives what the records are made of.
    """
    numbers, samples = sorted(records), len(trial.test_set.y)
    certainty = np.concatenate([unpack_certainty(records[number], samples) for number in numbers])
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


def _run_again(trial: Trial, number: int, sample: int) -> tuple[Outcome, Bench, ReadPlan]:
    """The outcome of a sample on a chip; its bench, and what is read."""
    engine, run = engine_named(trial.engine), trial.run(trial.chip(number))
    assert isinstance(engine, Simulated), f"{trial.engine} runs no benches, so there is nothing to audit"
    alone = trial.test_set.select(np.array([sample]))
    (outcome,) = engine.infer(trial.design, alone, run, lambda done, total: None)
    plan = read_plan(trial.design, int(alone.lengths[0]), run.timing, run.standing(trial.design))
    return outcome, next(sample_benches(trial.design, alone, run)), plan
