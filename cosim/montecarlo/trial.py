"""A trial: one design and its samples, for any number of chips; and what one chip shows in it.

The behavioral model is evaluated for every chip, because it costs milliseconds; with the engine `ngspice` the same
chip's transistors are simulated, too, on the same samples. A chip's outcome depends on the trial and its number alone.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import NETWORK, net
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import held
from cosim.circuit.waveforms import Timing
from cosim.design import Design, behavioral_power, inference_bench, read_plan, run_behavioral
from cosim.engines.engine import Failure
from cosim.engines.table import simulator_named
from cosim.ir.states import States, differ, software_states, tolerances
from cosim.montecarlo.record import pack_draws
from cosim.network.reference import pool_readout, run_reference
from cosim.simulation.inference import DEFAULT_TIMEOUT, Inference, deck_hash, run_inference
from cosim.study.chips import ChipRecord, EngineName, Figures
from cosim.tasks.testset import TestSet
from cosim.units.table import unit_of
from cosim.variation.chip import behavioral_chip, transistor_chip
from cosim.variation.draws import Chip, Device, Plan, draw_chip, varying_devices
from cosim.variation.effects import Effect, effects_of

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Trial:
    """What every chip of a run is put through."""

    design: Design
    test_set: TestSet
    plan: Plan
    engine: EngineName = "behavioral"
    timing: Timing = Timing()

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The transistors that vary, in order of name."""
        return varying_devices(self.design.assembly.circuit, self.design.technology, self.plan)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What they do to the behavioral model."""
        return effects_of(self.design)

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """(n, time): frames that belong to a sample."""
        return np.arange(self.test_set.x.shape[1])[None, :] < self.test_set.lengths[:, None]

    @cached_property
    def software(self) -> tuple[States, NDArray[np.int64]]:
        """States (n, time, cells) and decisions (n,) of the trained network."""
        reference = run_reference(self.design.network, self.test_set.x, self.test_set.lengths)
        return software_states(self.design.graph, reference), self.decide(reference.readout)

    def decide(self, readout: NDArray[np.float64]) -> NDArray[np.int64]:
        """Decisions (n,) of a readout (n, time, outputs)."""
        pooled = pool_readout(readout, self.test_set.lengths, self.design.network.readout.pooling)
        return pooled.argmax(axis=1)

    def chip(self, number: int) -> Chip:
        """The draw of one chip."""
        return draw_chip(self.devices, self.design.technology, self.plan, number)


def run_chips(trial: Trial, numbers: tuple[int, ...]) -> list[ChipRecord]:
    """The records of some chips, in this process."""
    return [run_chip(trial, number) for number in numbers]


def run_chip(trial: Trial, number: int) -> ChipRecord:
    """One chip's record: its conditions and draws, its figures, its decisions; `failed` with the reason instead."""
    chip = trial.chip(number)
    record = behavioral_record(trial, chip)
    if trial.engine == "behavioral":
        return record
    design = transistor_chip(trial.design, chip)
    decks, outcomes = [], []
    for deck, outcome in simulate_design(trial, design):
        decks.append(deck)
        outcomes.append(outcome)
        if isinstance(outcome, Failure):
            break
    return transistor_record(trial, record, design, decks, outcomes)


def transistor_record(
    trial: Trial, record: ChipRecord, design: Design, decks: Sequence[str], outcomes: Sequence[Inference | Failure]
) -> ChipRecord:
    """A chip's record with what its transistors, `design`, did on all samples; failed when one of them failed."""
    record = replace(record, decks=deck_hash("".join(decks)))
    figures = transistor_figures(trial, design, outcomes)
    if isinstance(figures, Failure):
        return failed(record, figures.kind.value, figures.detail)
    return replace(record, ngspice=figures)


def transistor_figures(trial: Trial, design: Design, outcomes: Sequence[Inference | Failure]) -> Figures | Failure:
    """The figures of a chip's transistors from all its inferences; the first failure where there is one."""
    inferences = []
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            return outcome
        inferences.append(outcome)
    unreset = find_unreset(trial, design)
    if isinstance(unreset, Failure):
        return unreset
    steps = trial.test_set.x.shape[1]
    states = np.stack([_pad(inference.states, steps) for inference in inferences])
    readout = np.stack([_pad(inference.readout, steps) for inference in inferences])
    power = float(np.mean([inference.power_w for inference in inferences]))
    return _figures(trial, states, readout, power, unreset)


def find_unreset(trial: Trial, design: Design) -> tuple[str, ...] | Failure:
    """The 9T cells of a chip's transistors that the reset does not turn off: on before it, they are on at its end.

    A cell that resets has one state where its candidate is 0. One run of half a frame a chip, from the resting point
    that its samples start from, in which `transistor_chip` sets every cell.
    """
    end = trial.timing.reset_end
    bench = held(inference_bench(design, trial.test_set.x[0, :1], trial.timing), end)
    waves = simulator_named("ngspice").run(bench, DEFAULT_TIMEOUT)
    if isinstance(waves, Failure):
        return waves
    threshold = STATE_LEVEL * design.technology.supply
    held_at = {cell.name: unit_of(cell).held for cell in design.graph.memories}
    return tuple(
        cell
        for cell, nets in held_at.items()
        if nets and waves.voltage(f"x{NETWORK}.xcell_{net(cell)}.{nets[0]}")[-1] > threshold
    )


def drawn_record(chip: Chip) -> ChipRecord:
    """What a chip's record holds before either engine ran it."""
    return ChipRecord(chip.number, "ok", chip.supply, chip.celsius, pack_draws(chip))


def behavioral_record(trial: Trial, chip: Chip) -> ChipRecord:
    """What a chip's record holds without its transistors."""
    return replace(drawn_record(chip), behavioral=run_behavioral_chip(trial, chip))


def run_behavioral_chip(trial: Trial, chip: Chip) -> Figures:
    """The figures of a chip by the behavioral model."""
    return behavioral_figures(trial, behavioral_chip(trial.design, trial.effects, chip))


def behavioral_figures(trial: Trial, design: Design) -> Figures:
    """The figures of a chip's design on the trial's samples, by the behavioral model."""
    trace = run_behavioral(design, trial.test_set.x)
    states = np.stack([trace.states[cell] for cell in design.assembly.decisions], axis=2)
    total = sum(behavioral_power(design, trace, trial.timing).values(), np.zeros(trial.valid.shape))
    power = float(((total * trial.valid).sum(axis=1) / trial.test_set.lengths).mean())
    return _figures(trial, states, trace.readout, power, trace.unreset)


def simulate_design(trial: Trial, design: Design) -> Iterator[tuple[str, Inference | Failure]]:
    """Each of the trial's samples on a chip's design: its deck and its outcome."""
    for x, length in zip(trial.test_set.x, trial.test_set.lengths, strict=True):
        bench = inference_bench(design, x[:length], trial.timing)
        outcome = run_inference(bench, read_plan(design, int(length), trial.timing))
        yield simulator_named("ngspice").write(bench), outcome


def failed(record: ChipRecord, reason: str, detail: str) -> ChipRecord:
    """The record of a chip whose simulation failed."""
    return replace(record, status="failed", reason=reason, detail=detail)


def trial_samples_hash(trial: Trial) -> str:
    """Hash of the samples that every chip sees."""
    digest = hashlib.sha256()
    for array in (trial.test_set.x, trial.test_set.y, trial.test_set.lengths, trial.test_set.indices):
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _figures(
    trial: Trial, states: States, readout: NDArray[np.float64], power: float, unreset: tuple[str, ...]
) -> Figures:
    wanted_states, wanted = trial.software
    decisions = trial.decide(readout)
    wrong = (differ(states, wanted_states, tolerances(trial.design.graph)) & trial.valid[:, :, None]).sum()
    return Figures(
        accuracy=float((decisions == trial.test_set.y).mean()),
        task_agreement=float((decisions == wanted).mean()),
        state_agreement=1.0 - int(wrong) / (int(trial.valid.sum()) * states.shape[2]),
        power=power,
        decisions=tuple(decisions.tolist()),
        unreset=tuple(cell for cell in trial.design.assembly.decisions if cell in unreset),
    )


def _pad(values: NDArray[T], steps: int) -> NDArray[T]:
    return np.pad(values, ((0, steps - len(values)), (0, 0)))
