"""A trial: one design and its samples, for any number of chips; and what one chip shows in it.

The behavioral model is evaluated for every chip, because it costs milliseconds; with a simulator the same
chip's transistors are simulated, too, on the same samples. A chip's outcome depends on the trial and its number alone.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design
from cosim.engines.engine import Engine, Failure, Inference, Outcome, Run, count_elsewhere, decided_by
from cosim.engines.simulation.audit import least_margin
from cosim.engines.simulation.inference import deck_hash
from cosim.engines.simulation.simulated import SimulatorEngine, engine_named
from cosim.engines.table import BEHAVIORAL
from cosim.network.ir.states import States, differ, software_states, tolerances
from cosim.network.reference import pool_readout, run_reference, valid_steps
from cosim.tasks.target import Answers
from cosim.tasks.testset import TestSet
from cosim.technology.types import Technology
from cosim.variation.draws import Chip, Gradient, VariationPlan, VaryingDevice, draw_chip, graded, varying_devices
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.compare.agreement import decision_margin, gate_area, latency
from cosim.verbs.compare.value_errors import rms
from cosim.verbs.montecarlo.chips import ChipRecord, Figures
from cosim.verbs.montecarlo.store import pack_certainty, pack_draws

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Trial:
    """The experiment that every chip of a run goes through; noise: of the behavioral model's decisions, and gradient:
    across the die, None for none."""

    design: Design
    test_set: TestSet
    plan: VariationPlan
    engine: str = BEHAVIORAL
    timing: Timing = Timing()
    condition: Condition | None = None
    noise: NoiseSimulation | None = None
    gradient: Gradient | None = None

    @property
    def technology(self) -> Technology:
        """Return the technology in the condition that chips deviate from."""
        return (self.condition or self.design.nominal).technology

    @cached_property
    def devices(self) -> tuple[VaryingDevice, ...]:
        """Return the transistors that vary in a Monte Carlo run, in order of name."""
        return varying_devices(self.design.flat, self.technology, self.plan)

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """Return which frames of a Monte Carlo run's samples count, (n, time) bool."""
        return valid_steps(self.test_set.lengths, self.test_set.x.shape[1])

    @cached_property
    def software(self) -> tuple[States, Answers]:
        """Return for a Monte Carlo run the states (n, time, cells) and answers of the trained network."""
        reference = run_reference(self.design.network, self.test_set.x, self.test_set.lengths)
        return software_states(self.design.graph, reference), self.decide(reference.readout)

    def pool(self, readout: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pool a readout (n, time, outputs) over the frames of each sample; return (n, outputs)."""
        return pool_readout(readout, self.test_set.lengths, self.design.network.readout.pooling)

    def decide(self, readout: NDArray[np.float64]) -> Answers:
        """Return each sample's answer in a Monte Carlo run to a readout (n, time, outputs), which is in multiples of
        the software's 1.0."""
        return self.test_set.target.answers(self.pool(readout))

    @cached_property
    def area(self) -> float:
        """Return for a Monte Carlo run the area of gates and capacitors, um2."""
        return gate_area(self.design)

    def chip(self, number: int) -> Chip:
        """Draw one chip of a Monte Carlo run by its number, with the trial's gradient where there is one."""
        chip = draw_chip(self.devices, self.technology, self.plan, number)
        return chip if self.gradient is None else graded(chip, self.gradient, self.plan)

    @property
    def nominal_chip(self) -> Chip:
        """Return for a Monte Carlo run the chip whose transistors do not deviate from the design."""
        return replace(self, plan=replace(self.plan, kind="none", area=1.0), gradient=None).chip(0)

    @cached_property
    def nominal(self) -> Figures:
        """Return for a Monte Carlo run the figures of the nominal chip, by the behavioral model."""
        return run_behavioral_chip(self, self.nominal_chip)

    def run(self, chip: Chip) -> Run:
        """Return how a Monte Carlo run's samples run on a chip: in this process."""
        return Run(jobs=0, timing=self.timing, engine=self.engine, condition=self.condition, chip=chip)


def run_chips(trial: Trial, numbers: tuple[int, ...], engine: Engine | None = None) -> list[ChipRecord]:
    """Run some chips in this process, and return their records; `engine` is the trial's, where the caller has it at
    hand."""
    return [run_chip(trial, number, engine) for number in numbers]


def run_chip(trial: Trial, number: int, engine: Engine | None = None) -> ChipRecord:
    """Run one chip of a Monte Carlo run; return its record with conditions, draws, figures and decisions, or with
    `failed` and the reason."""
    chip = trial.chip(number)
    record = behavioral_record(trial, chip)
    return record if trial.engine == BEHAVIORAL else add_simulation(trial, record, trial.run(chip), engine)


def add_simulation(trial: Trial, record: ChipRecord, run: Run, engine: Engine | None = None) -> ChipRecord:
    """Run all samples of a chip by the run's engine; return its record with these figures, failed when a sample
    failed."""
    engine = engine or engine_named(run.engine)
    outcomes = infer_chip(engine, trial, run)
    # of many samples side by side one deck stands for all: the run's settings have a hash of the samples
    alike = isinstance(engine, SimulatorEngine) and engine.simulator.lanes > 1
    decks = islice(engine.decks(trial.design, trial.test_set, run), 1 if alike else len(outcomes))
    if text := "".join(decks):
        record = replace(record, decks=deck_hash(text))
    certainty = pack_certainty(np.array([least_margin(outcome) for outcome in outcomes]))
    record = replace(record, elsewhere=count_elsewhere(outcomes) or None, certainty=certainty)
    figures = figures_of(engine, trial, run, outcomes)
    if isinstance(figures, Failure):
        return replace(record, status="failed", reason=figures.kind.value, detail=figures.detail)
    return replace(record, simulated=figures)


def infer_chip(engine: Engine, trial: Trial, run: Run) -> list[Outcome]:
    """Return the outcome of every sample on a chip of a Monte Carlo run, up to the first that failed."""
    outcomes: list[Outcome] = []
    for outcome in engine.infer(trial.design, trial.test_set, run, lambda done, total: None):
        outcomes.append(outcome)
        if isinstance(outcome, Failure):
            break
    return outcomes


def figures_of(engine: Engine, trial: Trial, run: Run, outcomes: Sequence[Outcome]) -> Figures | Failure:
    """Compute a chip's figures from the outcomes of all samples; return the first failure where there is one."""
    if isinstance(outcomes[-1], Failure):
        return outcomes[-1]
    unreset = engine.unreset(trial.design, trial.test_set, run)
    if isinstance(unreset, Failure):
        return unreset
    inferences, steps = [outcome for outcome in outcomes if isinstance(outcome, Inference)], trial.valid.shape[1]
    states = _padded([inference.states for inference in inferences], steps)
    readout = _padded([inference.readout for inference in inferences], steps)
    wanted_states, wanted = trial.software
    target, pooled = trial.test_set.target, trial.pool(readout)
    answers = target.answers(pooled / (run.standing(trial.design).bias_scale * trial.design.i_unit))
    answers = decided_by(inferences, answers)
    wrong = (differ(states, wanted_states, tolerances(trial.design.graph)) & trial.valid[:, :, None]).sum()
    return Figures(
        accuracy=float(target.same(answers, trial.test_set.y).mean()),
        task_agreement=float(target.same(answers, wanted).mean()),
        state_agreement=1.0 - int(wrong) / (int(trial.valid.sum()) * states.shape[2]),
        power=float(np.mean([inference.power_w for inference in inferences])),
        decisions=tuple(answers.tolist()) if answers.ndim == 1 else (),
        unreset=tuple(cell for cell in trial.design.assembly.decisions if cell in unreset),
        rmse=None if answers.ndim == 1 else rms(answers - trial.test_set.y),
        margin=decision_margin(pooled, trial.design.network.readout.pooling) if answers.ndim == 1 else None,
        energy=float(np.mean([one.power_w * len(one.states) for one in inferences])) * run.timing.t_step,
        latency=latency(trial.test_set.lengths, run.timing.t_step),
        area=trial.area,
    )


def drawn_record(chip: Chip) -> ChipRecord:
    """Return a Monte Carlo chip's record before any engine ran it: its conditions and draws."""
    return ChipRecord(chip.number, "ok", chip.supply, chip.celsius, pack_draws(chip))


def behavioral_record(trial: Trial, chip: Chip) -> ChipRecord:
    """Return a chip's record for Monte Carlo with its behavioral figures, and those without noise as `quiet` if the
    trial has noise."""
    found = replace(drawn_record(chip), behavioral=run_behavioral_chip(trial, chip))
    if trial.noise is None:
        return found
    return replace(found, behavioral=run_behavioral_chip(trial, chip, trial.noise), quiet=found.behavioral)


def run_behavioral_chip(trial: Trial, chip: Chip, noise: NoiseSimulation | None = None) -> Figures:
    """Compute the figures of a chip by the behavioral model, with noise at every decision where it is given."""
    own = None if noise is None else replace(noise, chip=chip.number, timing=trial.timing)
    run = replace(trial.run(chip), engine=BEHAVIORAL, noise=own)
    engine = engine_named(BEHAVIORAL)
    found = figures_of(engine, trial, run, infer_chip(engine, trial, run))
    assert not isinstance(found, Failure)
    return found


def trial_samples_hash(trial: Trial) -> str:
    """Return a hash of the samples that every chip of a Monte Carlo run sees."""
    digest = hashlib.sha256()
    for array in (trial.test_set.x, trial.test_set.y, trial.test_set.lengths, trial.test_set.indices):
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    if trial.test_set.tolerance is not None:
        digest.update(repr(trial.test_set.tolerance).encode())
    return digest.hexdigest()[:16]


def _padded(samples: Sequence[NDArray[T]], steps: int) -> NDArray[T]:
    """Return a Monte Carlo chip's values for samples (time, ...) as one array (n, steps, ...), zeros at the ends."""
    found = np.zeros((len(samples), steps, *samples[0].shape[1:]), dtype=samples[0].dtype)
    for row, values in zip(found, samples, strict=True):
        row[: len(values)] = values
    return found
