"""Many inferences: benches in, sampled states and currents out, in worker processes, resumable.

Results depend on the benches alone: not on the number of workers, not on the order in which they finish. Each result is
kept under the hash of its deck, so an interrupted run continues where it stopped.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assembly import Carried, Shown
from cosim.circuit.bench import Bench
from cosim.engines.engine import (
    DEFAULT_TIMEOUT,
    Failure,
    FailureKind,
    Inference,
    Outcome,
    Progress,
    Run,
    Simulator,
    Waveforms,
)
from cosim.engines.table import simulator_named
from cosim.files.write import make_folder
from cosim.ir.states import States
from cosim.simulation.keep import INFERENCES, keep_result, kept_result
from cosim.simulation.schedule import Lost, run_tasks
from cosim.simulation.workers import WorkerPool


@dataclass(frozen=True)
class Meter:
    """A voltage source whose mean current is read. one_way: what flows back into it does not count.

    A supply takes back what flows back. A driver does not: it delivers from its own supply and takes to ground.
    """

    source: str
    one_way: bool = False


@dataclass(frozen=True)
class ReadPlan:
    """What to read from a run.

    decisions: what shows each memory's state, a net is high above `threshold` volt; outputs: sources that
    the readout's currents flow through; supplies: every source that delivers power, with its volt; times: when to
    sample, s; window: (start, end) of the power mean, s.
    meters: sources whose current is read in each of `metered`, (windows, 2) begins and ends, s.
    """

    decisions: tuple[Shown, ...]
    outputs: tuple[str, ...]
    supplies: tuple[tuple[Meter, float], ...]
    threshold: float
    times: NDArray[np.float64]
    window: tuple[float, float]
    meters: tuple[Meter, ...] = ()
    metered: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))


def run_inference(
    bench: Bench, plan: ReadPlan, simulator: str = "ngspice", timeout: float = DEFAULT_TIMEOUT
) -> Outcome:
    """Run one bench from this process and read what the plan asks for."""
    return infer_once(simulator_named(simulator), bench, plan, timeout)


def infer_once(simulator: Simulator, bench: Bench, plan: ReadPlan, timeout: float) -> Outcome:
    """The same, in a simulator that is at hand."""
    waves = simulator.run(bench, timeout)
    if isinstance(waves, Failure):
        return waves
    if short := find_stop(waves, plan):
        return Failure(FailureKind.CONVERGENCE, short, simulator.write(bench))
    return read_inference(waves, plan)


def find_stop(waves: Waveforms, plan: ReadPlan) -> str:
    """Where waveforms end too early for a plan; empty if they do not."""
    last, end = waves.time[-1], plan.window[1]
    return f"stopped at {last:.6g} s of {end:.6g} s" if last < end * (1 - 1e-6) else ""


def read_inference(waves: Waveforms, plan: ReadPlan) -> Inference:
    """What the plan asks for, from a bench's waveforms."""
    time = waves.time
    states = np.stack([_state(waves, shown, plan) for shown in plan.decisions], axis=1)
    readout = np.stack([np.interp(plan.times, time, waves.through(name)) for name in plan.outputs], axis=1)
    power = _mean(time, drawn_power(waves, plan.supplies), plan.window)
    delivered = [[_delivered(waves, meter, (begin, end)) for meter in plan.meters] for begin, end in plan.metered]
    shape = len(plan.metered), len(plan.meters)
    return Inference(states, readout, power, np.array(delivered, dtype=np.float64).reshape(shape))


def run_inferences(
    benches: Sequence[Bench], plans: Sequence[ReadPlan], run: Run = Run(), progress: Progress = lambda done, total: None
) -> list[Outcome]:
    """Outcomes in the order of the benches. In a folder, finished ones are read back instead of run again.

    A bench that fails, exceeds the time-out or loses its process twice is a Failure; the others go on. Raises
    InputError when the folder cannot be written.
    """
    simulator, store = simulator_named(run.engine), None if run.folder is None else run.folder / INFERENCES
    outcomes: dict[int, Outcome] = {}
    names: list[str] = []
    if store is not None:
        make_folder(store)
        names = [deck_hash(simulator.write(bench)) for bench in benches]
        found = ((index, _load(store, name, plans[index])) for index, name in enumerate(names))
        outcomes = {index: outcome for index, outcome in found if outcome is not None}
    todo = [(index, benches[index], plans[index]) for index in range(len(benches)) if index not in outcomes]
    progress(len(outcomes), len(benches))
    if todo:
        for index, outcome in _run_pool(todo, run, simulator):
            outcomes[index] = outcome
            if store is not None and isinstance(outcome, Inference):
                _save(store, names[index], outcome)
            progress(len(outcomes), len(benches))
    return [outcomes[index] for index in range(len(benches))]


def _run_pool(
    tasks: list[tuple[int, Bench, ReadPlan]], run: Run, simulator: Simulator
) -> Iterator[tuple[int, Outcome]]:
    """Outcomes as they finish, so that a slow sample does not keep the others from the store."""
    limit, jobs = run.timeout + simulator.grace, max(run.jobs, 1)
    with WorkerPool(min(jobs, len(tasks))) as pool:
        found = run_tasks(
            lambda task: pool.submit(infer_once, simulator, *task[1:], run.timeout), tasks, jobs, lambda task: limit
        )
        for (index, bench, _), outcome in found:
            lost = isinstance(outcome, Lost)
            yield index, Failure(outcome.kind, outcome.detail, simulator.write(bench)) if lost else outcome


def deck_hash(deck: str) -> str:
    """The name of a deck's result."""
    return hashlib.sha256(deck.encode()).hexdigest()[:24]


def _save(store: Path, name: str, inference: Inference) -> None:
    keep_result(store, name, _arrays(inference))


def _load(store: Path, name: str, plan: ReadPlan) -> Inference | None:
    """What is kept under a deck's hash, if it is what this plan reads."""
    frames, most = len(plan.times), np.array([inf if isinstance(one, Carried) else len(one) for one in plan.decisions])
    least, kind = np.where(np.isinf(most), -inf, 0.0), np.float64 if np.isinf(most).any() else np.int16
    blank = Inference(
        np.zeros((frames, len(most)), kind), np.zeros((frames, len(plan.outputs))), 0.0,
        np.zeros((len(plan.metered), len(plan.meters))),
    )  # fmt: skip
    kept = kept_result(store, name, _arrays(blank))
    if kept is None or (kept["states"] < least).any() or (kept["states"] > most).any():
        return None
    return Inference(kept["states"], kept["readout"], float(kept["power_w"]), kept["delivered"])


def _arrays(inference: Inference) -> dict[str, NDArray[Any]]:
    return {
        "states": inference.states,
        "readout": inference.readout,
        "power_w": np.array(inference.power_w),
        "delivered": inference.delivered,
    }


def _state(waves: Waveforms, shown: Shown, plan: ReadPlan) -> States:
    if isinstance(shown, Carried):
        return (np.interp(plan.times, waves.time, waves.drain(shown.device)) - shown.rest) / shown.step
    levels = [np.interp(plan.times, waves.time, waves.voltage(net)) > plan.threshold for net in shown]
    return np.asarray(np.sum(levels, axis=0), dtype=np.int16)


def drawn_power(waves: Waveforms, supplies: Sequence[tuple[Meter, float]]) -> NDArray[np.float64]:
    """Power that these sources deliver at each of the solver's steps, watt."""
    return sum((volt * _current(waves, meter) for meter, volt in supplies), np.zeros(len(waves.time)))


def _delivered(waves: Waveforms, meter: Meter, window: tuple[float, float]) -> float:
    return _mean(waves.time, _current(waves, meter), window)


def _current(waves: Waveforms, meter: Meter) -> NDArray[np.float64]:
    current = waves.delivered(meter.source)
    return np.maximum(current, 0.0) if meter.one_way else current


def _mean(time: NDArray[np.float64], values: NDArray[np.float64], window: tuple[float, float]) -> float:
    """Time mean over a window, by the trapezoidal rule on the solver's own steps."""
    start, end = window
    inside = (time > start) & (time < end)
    at = np.concatenate([[start], time[inside], [end]])
    return float(np.trapezoid(np.interp(at, time, values), at) / (end - start))
