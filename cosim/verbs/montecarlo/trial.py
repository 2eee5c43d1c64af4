"""A trial, which is one design with its samples for any number of chips, and the figures of one chip in the trial.

The behavioral model evaluates every chip, because it takes only milliseconds. If the engine is a simulator, the
transistors of the same chip are simulated as well, on the same samples. A chip's outcome depends on nothing but the
trial and the chip's number.
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
    """The experiment that every chip of a Monte Carlo run goes through.

    design: the compiled circuit; test_set: samples; plan: how chips are drawn; engine: runs each chip in addition to
    the behavioral model; timing: of the frames; condition: that chips deviate from, None for the nominal one; noise: of
    the devices, in the behavioral model and in `engine`, None for none; gradient: linear mismatch across the die, None
    for none.
    """

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
        """Return the technology in the condition (corner, supply, temperature) that chips deviate from."""
        return (self.condition or self.design.nominal).technology

    @cached_property
    def devices(self) -> tuple[VaryingDevice, ...]:
        """Return the transistors that vary from chip to chip, in order of name."""
        return varying_devices(self.design.flat, self.technology, self.plan)

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """Return which frames belong to a sample, (n, time) bool; shorter samples are padded at the end."""
        return valid_steps(self.test_set.lengths, self.test_set.x.shape[1])

    @cached_property
    def software(self) -> tuple[States, Answers]:
        """Return states (n, time, cells) and answers of the trained network in software, on all samples."""
        reference = run_reference(self.design.network, self.test_set.x, self.test_set.lengths)
        return software_states(self.design.graph, reference), self.decide(reference.readout)

    def pool(self, readout: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pool a readout (n, time, outputs) over the frames of each sample, as the network does, to (n, outputs)."""
        return pool_readout(readout, self.test_set.lengths, self.design.network.readout.pooling)

    def decide(self, readout: NDArray[np.float64]) -> Answers:
        """Return each sample's answer for a readout (n, time, outputs), given in multiples of full scale (1.0)."""
        return self.test_set.answers(self.pool(readout))

    @cached_property
    def area(self) -> float:
        """Return the area of gates and capacitors of the circuit as drawn, um2."""
        return gate_area(self.design)

    def chip(self, number: int) -> Chip:
        """Draw chip `number` of the run: mismatch, supply, temperature, and gradients if the trial has them."""
        chip = draw_chip(self.devices, self.technology, self.plan, number)
        return chip if self.gradient is None else graded(chip, self.gradient, self.plan)

    @property
    def nominal_chip(self) -> Chip:
        """Return the chip without any deviation: nominal transistors, with supply and temperature of the condition."""
        return replace(self, plan=replace(self.plan, kind="none", area=1.0), gradient=None).chip(0)

    @cached_property
    def nominal(self) -> Figures:
        """Return the figures of the chip without deviations, by the behavioral model."""
        return run_behavioral_chip(self, self.nominal_chip)

    def run(self, chip: Chip) -> Run:
        """Return the settings with which the trial's engine runs the samples on a chip, in this process, no noise."""
        return Run(jobs=0, timing=self.timing, engine=self.engine, condition=self.condition, chip=chip)

    def noisy_run(self, chip: Chip) -> Run:
        """Return the settings of `run`, with the chip's own draws of the trial's noise if the trial has noise."""
        own = None if self.noise is None else replace(self.noise, chip=chip.number, timing=self.timing)
        return replace(self.run(chip), noise=own)


def run_chips(trial: Trial, numbers: tuple[int, ...], engine: Engine | None = None) -> list[ChipRecord]:
    """Run the chips with these numbers in this process, and return their records.
    engine: the trial's engine, None to look it up by its name."""
    return [run_chip(trial, number, engine) for number in numbers]


def run_chip(trial: Trial, number: int, engine: Engine | None = None) -> ChipRecord:
    """Run one chip by the behavioral model and by the trial's engine, and return its record.

    engine: the trial's engine, None to look it up by its name. A failed chip's record has status `failed` and a reason.
    """
    chip = trial.chip(number)
    record = behavioral_record(trial, chip)
    return record if trial.engine == BEHAVIORAL else add_simulation(trial, record, trial.noisy_run(chip), engine)


def add_simulation(trial: Trial, record: ChipRecord, run: Run, engine: Engine | None = None) -> ChipRecord:
    """Run all samples of a chip by the run's engine, and return its record with the figures of this engine.

    If a sample fails, the record has status `failed` instead. engine: None to look it up by the name in `run`.
    """
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
    """Run all samples on a chip by an engine, and return their outcomes up to and including the first failure."""
    outcomes: list[Outcome] = []
    for outcome in engine.infer(trial.design, trial.test_set, run, lambda done, total: None):
        outcomes.append(outcome)
        if isinstance(outcome, Failure):
            break
    return outcomes


def figures_of(engine: Engine, trial: Trial, run: Run, outcomes: Sequence[Outcome]) -> Figures | Failure:
    """Compute a chip's figures from the outcomes of all samples, or return the failure of a sample or reset test."""
    if isinstance(outcomes[-1], Failure):
        return outcomes[-1]
    unreset = engine.unreset(trial.design, trial.test_set, run)
    if isinstance(unreset, Failure):
        return unreset
    inferences, steps = [outcome for outcome in outcomes if isinstance(outcome, Inference)], trial.valid.shape[1]
    states = _padded([inference.states for inference in inferences], steps)
    readout = _padded([inference.readout for inference in inferences], steps)
    wanted_states, wanted = trial.software
    test_set, pooled = trial.test_set, trial.pool(readout)
    answers = test_set.answers(pooled / (run.standing(trial.design).bias_scale * trial.design.i_unit))
    answers = decided_by(inferences, answers)
    wrong = (differ(states, wanted_states, tolerances(trial.design.graph)) & trial.valid[:, :, None]).sum()
    return Figures(
        accuracy=float(test_set.same(answers, test_set.y).mean()),
        task_agreement=float(test_set.same(answers, wanted).mean()),
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
    """Return a chip's record before any engine ran it: number, supply, temperature and draws."""
    return ChipRecord(chip.number, "ok", chip.supply, chip.celsius, pack_draws(chip))


def behavioral_record(trial: Trial, chip: Chip) -> ChipRecord:
    """Run a chip by the behavioral model and return its record; in a trial with noise, both with and without noise."""
    found = replace(drawn_record(chip), behavioral=run_behavioral_chip(trial, chip))
    if trial.noise is None:
        return found
    return replace(found, behavioral=_run_behavioral(trial, trial.noisy_run(chip)), quiet=found.behavioral)


def run_behavioral_chip(trial: Trial, chip: Chip) -> Figures:
    """Compute the figures of a chip by the behavioral model, without noise."""
    return _run_behavioral(trial, trial.run(chip))


def _run_behavioral(trial: Trial, run: Run) -> Figures:
    run, engine = replace(run, engine=BEHAVIORAL), engine_named(BEHAVIORAL)
    found = figures_of(engine, trial, run, infer_chip(engine, trial, run))
    assert not isinstance(found, Failure)
    return found


def trial_samples_hash(trial: Trial) -> str:
    """Return a hash of the test samples of a trial: inputs, targets, lengths and indices."""
    digest = hashlib.sha256()
    for array in (trial.test_set.x, trial.test_set.y, trial.test_set.lengths, trial.test_set.indices):
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    if trial.test_set.tolerance is not None:
        digest.update(repr(trial.test_set.tolerance).encode())
    return digest.hexdigest()[:16]


def _padded(samples: Sequence[NDArray[T]], steps: int) -> NDArray[T]:
    """Stack the values of samples, (time, ...) each, in one array (n, steps, ...), with zeros at their ends."""
    found = np.zeros((len(samples), steps, *samples[0].shape[1:]), dtype=samples[0].dtype)
    for row, values in zip(found, samples, strict=True):
        row[: len(values)] = values
    return found
