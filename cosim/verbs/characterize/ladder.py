"""Simulation of a ladder, compared with software: random updates, held levels, a staircase; errors, power, timing."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.base.bounds import check_memory
from cosim.base.errors import SimulationError
from cosim.base.store import write_texts
from cosim.cells.benches import LADDER_RAILS, LADDER_SOURCES, LadderDrive, ladder_bench, meter_ladder, rung_nets
from cosim.cells.dpi import dpi_capacitance
from cosim.cells.ladder import LadderBias
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import Bench
from cosim.circuit.waveforms import Waveform
from cosim.engines.engine import Failure, Inference, Progress, Run
from cosim.engines.simulation.inference import deck_hash, run_inferences
from cosim.engines.simulation.read import Meter, ReadPlan
from cosim.network.ir.states import States
from cosim.technology.calibration import Calibration
from cosim.technology.conditions import nominal
from cosim.technology.types import Technology
from cosim.units.ladder import LadderCurrents, LadderTiming, check_ladder, solve_ladder
from cosim.verbs.characterize.study import DPI_SPREAD, Array, CellFigure, row_json

Levels = NDArray[np.int64]

RETENTION_STEPS = 100
SAMPLES_A_STEP = 40
SAMPLE = 37  # of them: 0.95 of a step
SOLVER_STEPS, RETAIN_STEPS = 50, 4  # at least, in a step of a run with pulses and of one without


@dataclass(frozen=True)
class LadderStudy:
    """The plan of a ladder's characterisation: `sequences` random sequences of `steps` updates each, drawn with `seed`.

    backward: True if DPIs couple both ways, as in the ladder; False for the published chain, forward only.
    """

    rungs: int
    sequences: int
    steps: int
    seed: int
    currents: LadderCurrents
    timing: LadderTiming
    backward: bool = True


def check_study(study: LadderStudy, technologies: Sequence[Technology], calibration: Calibration) -> None:
    """Check that a ladder counts correctly at all temperatures of the technologies, and that its samples fit in memory.

    tau is proportional to the thermal voltage, and a DPI is up to DPI_SPREAD faster or slower than its equation says.
    Raises MappingError where the ladder would skip or double a step, OutOfMemoryError where samples do not fit.
    """
    sampled = len(technologies) * study.sequences * study.steps * SAMPLES_A_STEP
    each = 2 * study.rungs + 8 * (1 + len(LADDER_SOURCES))  # byte: states, the output and what rails draw
    check_memory(sampled * each, "the ladder's samples", "take fewer --sequences or --steps")
    for technology in technologies:
        tau = study.timing.tau * technology.thermal_voltage / nominal(technology, calibration).thermal_voltage
        for speed, factor in (("fast", 1 - DPI_SPREAD), ("slow", 1 + DPI_SPREAD)):
            origin = f"ladder of {study.rungs} rungs at {technology.celsius:g} C, DPIs {100 * DPI_SPREAD:g} % {speed}"
            check_ladder(study.currents, replace(study.timing, tau=factor * tau), origin)


@dataclass(frozen=True)
class LadderRun:
    """One transient simulation of a ladder.
    kind: of the run; bias: bias currents; start: level at the beginning; updates: +1, 0 or -1 in each step,
    (steps,)."""

    kind: Literal["random", "retention", "plain", "stairs"]
    bias: LadderBias
    start: int
    updates: Levels


@dataclass(frozen=True)
class LadderTrace:
    """The result of a ladder's run in a simulator, sampled SAMPLES_A_STEP times a step.
    states: of the rungs, (samples, rungs); output: (samples,), A; powers: block -> supply power, (samples,), W;
    power_w: mean power, W."""

    run: LadderRun
    states: States
    output: Array
    powers: dict[str, Array]
    power_w: float

    @property
    def power(self) -> Array:
        """Return the ladder's supply power at each sample, (samples,), W."""
        return np.sum(list(self.powers.values()), axis=0)

    @property
    def expected(self) -> Levels:
        """Return the ladder's level after each step as software computes it, (steps,)."""
        return software_levels(self.run.start, self.run.updates, self.states.shape[1])

    @property
    def sampled(self) -> States:
        """Return the states of the ladder's rungs at the end of each step, (steps, rungs)."""
        return self.states[SAMPLE::SAMPLES_A_STEP]

    @property
    def levels(self) -> Levels:
        """Return the number of the ladder's rungs that are on at the end of each step, (steps,)."""
        return self.sampled.sum(axis=1).astype(np.int64)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Tell for each step whether a rung's state at its end differs from software, (steps,) bool."""
        rungs = np.arange(self.states.shape[1])
        return (self.sampled != (rungs < self.expected[:, None])).any(axis=1)

    @property
    def wrong_updates(self) -> int:
        """Return the number of steps that did not change the level as their update says, from the level before."""
        before = np.concatenate([[self.run.start], self.levels[:-1]])
        return int((np.clip(before + self.run.updates, 0, self.states.shape[1]) != self.levels).sum())


def software_levels(start: int, updates: Levels, rungs: int) -> Levels:
    """Compute a ladder's level after each update, (steps,): the running sum, kept between 0 and `rungs`."""
    levels, level = [], start
    for update in updates:
        level = min(rungs, max(0, level + int(update)))
        levels.append(level)
    return np.array(levels, dtype=np.int64)


def ladder_runs(study: LadderStudy, calibration: Calibration) -> tuple[LadderRun, ...]:
    """Return the runs of a study: random sequences, every level held, and a staircase without and with calibration."""
    c = study.currents
    solved = solve_ladder(c, calibration)
    width, rise = c.i_rise - c.i_fall, c.i_rise
    plain = LadderBias(rise, width, rise + c.alpha, width, c.alpha, c.i_tau, c.i_tau)
    generator, k = np.random.default_rng(study.seed), study.rungs
    stairs = np.array([0, *[1] * (k + 1), 0, *[-1] * (k + 1), 0])  # one beyond either end
    runs: list[LadderRun] = []
    for _ in range(study.sequences):
        start = int(generator.integers(0, k + 1))
        runs.append(LadderRun("random", solved, start, generator.integers(-1, 2, study.steps)))
    held = np.zeros(RETENTION_STEPS, dtype=np.int64)
    runs += [LadderRun("retention", solved, level, held) for level in range(k + 1)]
    return (*runs, LadderRun("plain", plain, 0, stairs), LadderRun("stairs", solved, 0, stairs))


def pulse_train(updates: Levels, currents: LadderCurrents, timing: LadderTiming, start: float) -> Waveform:
    """Return the ladder's input current as points (s, A): the retain level, with a set or reset pulse as a step begins.

    start: time of the first step, s. Edges take 1 % of a step. A pulse as long as the step does not return to retain.
    """
    levels = {1: currents.i_set, 0: currents.i_retain, -1: currents.i_reset}
    rest, edge = currents.i_retain, 0.01 * timing.step
    points = [(0.0, rest)]
    if timing.pulse >= timing.step:
        for k, update in enumerate(updates.tolist()):
            begin, before = start + k * timing.step, points[-1][1]
            points += [(begin, before), (begin + edge, levels[update])]
        return tuple(points)
    for k, update in enumerate(updates.tolist()):
        if update:
            begin = start + k * timing.step
            end = begin + timing.pulse
            points += [(begin, rest), (begin + edge, levels[update]), (end, levels[update]), (end + edge, rest)]
    return tuple(points)


def ladder_plan(
    study: LadderStudy, run: LadderRun, technology: Technology, calibration: Calibration
) -> tuple[Bench, ReadPlan]:
    """Return the testbench of a run in this technology's condition, with power meters, and how to read it."""
    step = study.timing.step
    begin, end = step / 2, step / 2 + len(run.updates) * step
    drive = LadderDrive(
        study.rungs,
        run.start,
        run.bias,
        dpi_capacitance(nominal(technology, calibration), study.timing.tau, study.currents.i_tau),
        pulse_train(run.updates, study.currents, study.timing, begin),
        0.9 * begin,
        end,
        step / (SOLVER_STEPS if run.updates.any() else RETAIN_STEPS),
        study.backward,
    )
    bench = meter_ladder(ladder_bench(technology, calibration.units, drive, calibration.v_node))
    rails = tuple(LADDER_SOURCES.values())
    samples = np.arange(1, SAMPLES_A_STEP * len(run.updates) + 1)
    plan = ReadPlan(
        decisions=tuple((net,) for net in rung_nets(study.rungs)),
        outputs=("out", *rails),
        supplies=tuple((Meter(rail), technology.supply) for rail in rails),
        threshold=STATE_LEVEL * technology.supply,
        times=begin + samples * step / SAMPLES_A_STEP,
        window=(begin, end),
    )
    return bench, plan


def run_ladder(
    study: LadderStudy,
    technologies: Sequence[Technology],
    calibration: Calibration,
    run: Run,
    progress: Progress = lambda done, total: None,
) -> list[list[LadderTrace]]:
    """Simulate all runs of a ladder's study in every condition, in worker processes; return traces by condition.

    Finished runs are kept in the folder and not simulated again. Raises MappingError for a timing that cannot count,
    SimulationError for a failed run, whose deck is kept.
    """
    check_study(study, technologies, calibration)
    runs = ladder_runs(study, calibration)
    asked = [(study, one, technology) for technology in technologies for one in runs]
    found = simulate_runs(asked, calibration, run, progress)
    return [found[first : first + len(runs)] for first in range(0, len(found), len(runs))]


def simulate_runs(
    asked: Sequence[tuple[LadderStudy, LadderRun, Technology]],
    calibration: Calibration,
    run: Run,
    progress: Progress,
) -> list[LadderTrace]:
    """Simulate runs of ladders, and return their traces in the same order.

    asked: (study, run, technology in its condition) of each. Raises SimulationError for a failed run, whose deck is
    kept.
    """
    folder = run.place
    benches, plans = zip(*(ladder_plan(*one, calibration) for one in asked), strict=True)
    found = list[LadderTrace]()
    for (study, one, technology), outcome in zip(asked, run_inferences(benches, plans, run, progress), strict=True):
        if isinstance(outcome, Failure):
            name = f"ladder_{deck_hash(outcome.deck)}.sp"
            write_texts(folder / "failed", {name: outcome.deck})
            raise SimulationError(f"ladder of {study.rungs} rungs: {outcome}; its deck is {folder / 'failed' / name}")
        found.append(_trace(one, outcome, technology))
    return found


def _trace(run: LadderRun, inference: Inference, technology: Technology) -> LadderTrace:
    output, *currents = inference.readout.T
    powers = {block: -technology.supply * current for block, current in zip(LADDER_RAILS, currents, strict=True)}
    return LadderTrace(run, inference.states.astype(np.int16), np.abs(output), powers, inference.power_w)


@dataclass(frozen=True)
class FirstWrong:
    """The first step after which the simulated level (found) differs from the level in software (expected)."""

    sequence: int
    step: int
    expected: int
    found: int


@dataclass(frozen=True)
class LadderSummary:
    """The figures of a ladder in one condition; `docs/how-to/characterize.md` explains each."""

    corner: str
    celsius: float
    supply_v: float
    steps_checked: int
    wrong_levels: int
    wrong_updates: int
    first_wrong: FirstWrong | None
    retention_steps: int
    retention_wrong: int
    staircase_wrong: int
    staircase_wrong_uncalibrated: int
    update_time_max_s: float
    level_error_max: float
    levels: tuple[dict[str, str | float | None], ...]
    power_w: float
    power_split_w: dict[str, float]
    power_by_level_w: tuple[float, ...]


def summarize_ladder(study: LadderStudy, technology: Technology, traces: Sequence[LadderTrace]) -> LadderSummary:
    """Summarize all runs of a ladder's study in one condition."""
    random = [trace for trace in traces if trace.run.kind == "random"]
    held = [trace for trace in traces if trace.run.kind == "retention"]
    stairs, plain = (next(t for t in traces if t.run.kind == kind) for kind in ("stairs", "plain"))
    calibrated = [trace for trace in traces if trace.run.kind != "plain"]
    power = np.array([trace.power_w for trace in random])
    return LadderSummary(
        corner=technology.corner,
        celsius=technology.celsius,
        supply_v=technology.supply,
        steps_checked=sum(len(trace.wrong) for trace in random),
        wrong_levels=sum(int(trace.wrong.sum()) for trace in random),
        wrong_updates=sum(trace.wrong_updates for trace in random),
        first_wrong=_first_wrong(random),
        retention_steps=sum(len(trace.wrong) for trace in held),
        retention_wrong=sum(int(trace.wrong.sum()) for trace in held),
        staircase_wrong=int(stairs.wrong.sum()),
        staircase_wrong_uncalibrated=int(plain.wrong.sum()),
        update_time_max_s=max(_update_time(trace, study.timing.step) for trace in random),
        level_error_max=_largest_level_error(study.currents.alpha, calibrated),
        levels=tuple(row_json(row) for row in level_rows(study, traces)),
        power_w=float(power.mean()),
        power_split_w={block: float(np.mean([t.powers[block].mean() for t in random])) for block in LADDER_RAILS},
        power_by_level_w=_power_by_level(calibrated, study.rungs),
    )


def summarize_study(study: LadderStudy, name: str, conditions: Sequence[LadderSummary]) -> dict[str, object]:
    """Summarize a ladder's study over all conditions: summed counts, largest error, mean power of the worst."""
    return {
        "cell": "ladder",
        "technology": name,
        "rungs": study.rungs,
        "sequences": study.sequences,
        "steps": study.steps,
        "seed": study.seed,
        "timing_s": asdict(study.timing),
        "currents_a": asdict(study.currents),
        **{
            key: sum(getattr(condition, key) for condition in conditions)
            for key in ("steps_checked", "wrong_levels", "wrong_updates", "retention_steps", "retention_wrong")
        },
        "level_error_max": max(condition.level_error_max for condition in conditions),
        "power_w": max(condition.power_w for condition in conditions),
        "conditions": list(conditions),
    }


def level_rows(study: LadderStudy, traces: Sequence[LadderTrace]) -> tuple[CellFigure, ...]:
    """Return the ladder's output at each level, as drawn and calibrated: means over the steps that end at the level.

    Errors are relative to L alpha, the ideal output at level L; at level 0, to alpha.
    """
    alpha = study.currents.alpha

    def mean(chosen: Sequence[LadderTrace], level: int) -> float:
        values = np.concatenate([trace.output[SAMPLE::SAMPLES_A_STEP][trace.levels == level] for trace in chosen])
        return float(values.mean()) if len(values) else float("nan")

    plain = [trace for trace in traces if trace.run.kind == "plain"]
    calibrated = [trace for trace in traces if trace.run.kind != "plain"]
    return tuple(
        CellFigure(f"level {k}", "output", "A", k * alpha, mean(plain, k), mean(calibrated, k), max(k, 1) * alpha)
        for k in range(study.rungs + 1)
    )


def _largest_level_error(alpha: float, traces: Sequence[LadderTrace]) -> float:
    """Return the largest |I_out - L alpha| over all steps, relative to L alpha (at level L = 0, to alpha)."""
    errors = [
        np.abs(trace.output[SAMPLE::SAMPLES_A_STEP] - alpha * trace.levels) / (alpha * np.maximum(trace.levels, 1))
        for trace in traces
    ]
    return float(max(error.max() for error in errors))


def _power_by_level(traces: Sequence[LadderTrace], rungs: int) -> tuple[float, ...]:
    """Return the mean supply power at the ends of steps, for each level 0 ... rungs, W."""
    levels = np.concatenate([trace.levels for trace in traces])
    power = np.concatenate([trace.power[SAMPLE::SAMPLES_A_STEP] for trace in traces])
    return tuple(float(power[levels == k].mean()) for k in range(rungs + 1))


def _update_time(trace: LadderTrace, step: float) -> float:
    """Return the longest time from a step's beginning to the step's last change of a state, s, to within a sample."""
    steps = trace.states.reshape(-1, SAMPLES_A_STEP, trace.states.shape[1])
    changed = (steps[:, 1:] != steps[:, :-1]).any(axis=2)
    last = np.flatnonzero(changed.any(axis=0))
    return float((last[-1] + 2) * step / SAMPLES_A_STEP) if len(last) else 0.0


def _first_wrong(traces: Sequence[LadderTrace]) -> FirstWrong | None:
    for k, trace in enumerate(traces):
        for step in np.flatnonzero(trace.wrong)[:1]:
            return FirstWrong(k, int(step), int(trace.expected[step]), int(trace.levels[step]))
    return None
