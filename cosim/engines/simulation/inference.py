"""Simulation of benches: one in this process, or many inferences in worker processes, resumable.

Benches go in; waveforms, or sampled states and currents, come out. A bench that a simulator has no model for runs in
another one, unless it has noise of its transistors, which no other one draws. Results depend only on the benches, not
on the number of workers or the order in which they finish. Each result is kept under the hash of its deck, so an
interrupted run continues where it stopped.

A simulator with several lanes runs a tile, a group of so many benches, at once. The result of a bench depends on that
bench alone, so a tile may hold any benches without a result.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import MissingToolError, SimulationError
from cosim.base.store import INFERENCES, keep_result, kept_result
from cosim.base.write import make_folder
from cosim.cells.assembly import StateCurrent
from cosim.circuit.bench import Bench, SmallSignalBench
from cosim.engines.engine import (
    DEFAULT_TIMEOUT,
    Batched,
    Failure,
    FailureKind,
    Inference,
    Outcome,
    Progress,
    Run,
    Simulator,
    SmallSignals,
    SmallSignalSimulator,
    Waveforms,
)
from cosim.engines.simulation.read import ReadPlan, find_stop, read_inference
from cosim.engines.simulation.workers import WorkerPool, run_tasks
from cosim.engines.table import reference_simulator, simulator_named
from cosim.technology.types import Technology

Array = NDArray[np.float64]
TILE_STEPS = 320_000  # of the longest kind, of all benches of a tile: 6,400 frames, 0.2 MB each of a large network
_WORDS = 200  # bytes kept of what ran elsewhere, and why


def run_benches(
    simulator: Simulator, benches: Sequence[Bench], timeout: float
) -> list[tuple[Waveforms | Failure, str]]:
    """Simulate at most `lanes` benches for at most `timeout` seconds each; return (waveforms or Failure, text) of each.

    A bench that a Batched simulator has no model for runs in its fallback, if that is installed and draws the bench's
    noise. The text says which simulator ran in place of the given one, and why; it is empty if none did.
    """
    found = run_alone(simulator, benches, timeout)
    beyond = {k: why for k, one in enumerate(found) if (why := beyond_it(one)) and not _has_device_noise(benches[k])}
    other = fallback_of(simulator, benches[0].technology) if beyond else None
    if other is None:
        return [(one, "") for one in found]
    return [
        (other.run(bench, timeout), f"{other.name}: {beyond[k]}") if k in beyond else (one, "")
        for k, (bench, one) in enumerate(zip(benches, found, strict=True))
    ]


def run_alone(simulator: Simulator, benches: Sequence[Bench], timeout: float) -> list[Waveforms | Failure]:
    """Simulate benches for at most `timeout` seconds each in this simulator, without its fallback."""
    if isinstance(simulator, Batched):
        return simulator.run_all(benches, timeout * len(benches))
    return [simulator.run(bench, timeout) for bench in benches]


def beyond_it(found: object) -> str:
    """Return what a simulator has no model for, in words, if a result is a Failure for that reason; else ""."""
    return found.detail if isinstance(found, Failure) and found.kind is FailureKind.UNSUPPORTED else ""


def _has_device_noise(bench: Bench) -> bool:
    """Tell whether a bench has noise of its transistors, which no fallback draws."""
    return bench.noise is not None and bench.noise.slopes is not None


def fallback_of(simulator: Simulator, technology: Technology) -> Simulator | None:
    """Return the simulator for benches of a technology that this simulator has no model for.

    It is the technology's reference simulator, None where that is not installed, or for one that has no such benches.
    """
    if not isinstance(simulator, Batched):
        return None
    try:
        other = simulator_named(reference_simulator(technology))
        other.check()
    except MissingToolError:
        return None
    return other


def run_bench(bench: Bench, what: str, simulator: str | None = None) -> Waveforms:
    """Simulate a bench in the simulator of a name and return its waveforms.

    simulator: None for the reference simulator of the bench's technology. Raises SimulationError that begins with
    `what` where it fails, MissingToolError without the simulator.
    """
    simulator = simulator or reference_simulator(bench.technology)
    ((found, _),) = run_benches(simulator_named(simulator), [bench], DEFAULT_TIMEOUT)
    if isinstance(found, Failure):
        raise SimulationError(f"{what}: {found}")
    return found


def compute_small_signals(bench: SmallSignalBench) -> SmallSignals:
    """Compute small signals and noise of a bench in the reference simulator of its technology.

    Raises SimulationError where it fails or computes none, MissingToolError without the simulator.
    """
    name = reference_simulator(bench.technology)
    simulator = simulator_named(name)
    if not isinstance(simulator, SmallSignalSimulator):
        raise SimulationError(f"{bench.circuit.title}: {name} computes no small signals")
    return simulator.small_signals(bench)


def run_inference(
    bench: Bench, plan: ReadPlan, simulator: str | None = None, timeout: float = DEFAULT_TIMEOUT
) -> Outcome:
    """Simulate the bench of one inference in this process and read what the plan asks for.

    simulator: its name, None for the reference simulator of the bench's technology.
    """
    simulator = simulator or reference_simulator(bench.technology)
    return infer_tile(simulator_named(simulator), BenchGroup((0,), (bench,), (plan,)), timeout)[0]


@dataclass(frozen=True)
class BenchGroup:
    """A tile: benches that a simulator runs at once, their numbers in the run, and the plans to read them."""

    numbers: tuple[int, ...]
    benches: tuple[Bench, ...]
    plans: tuple[ReadPlan, ...]

    def __str__(self) -> str:
        return f"sample{'s' if len(self.numbers) > 1 else ''} {', '.join(map(str, self.numbers))}"


def split_tiles(benches: Iterable[Bench], plans: Iterable[ReadPlan], lanes: int) -> Iterator[BenchGroup]:
    """Yield all benches to simulate, with their plans, in groups of `lanes` or fewer, in order.

    A group has at most TILE_STEPS time steps in all, or a single bench, because all its waveforms are in memory.
    """
    steps, tile = 0.0, list[tuple[int, Bench, ReadPlan]]()
    for number, (bench, plan) in enumerate(zip(benches, plans, strict=True)):
        own = bench.transient.end / bench.transient.step
        if tile and (len(tile) == lanes or steps + own > TILE_STEPS):
            yield BenchGroup(*zip(*tile, strict=True))
            steps, tile = 0.0, []
        steps += own
        tile.append((number, bench, plan))
    if tile:
        yield BenchGroup(*zip(*tile, strict=True))


def infer_tile(simulator: Simulator, tile: BenchGroup, timeout: float) -> list[Outcome]:
    """Simulate a tile's benches in this process and read what their plans ask for; timeout: seconds for each bench."""
    return _read(simulator, tile, run_benches(simulator, tile.benches, timeout))


def infer_alone(simulator: Simulator, tile: BenchGroup, timeout: float) -> list[Outcome]:
    """Simulate a tile's benches without the simulator's fallback, and read what their plans ask for.

    timeout: seconds for each bench.
    """
    return _read(simulator, tile, [(one, "") for one in run_alone(simulator, tile.benches, timeout)])


def _read(simulator: Simulator, tile: BenchGroup, ran: Sequence[tuple[Waveforms | Failure, str]]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for (found, elsewhere), bench, plan in zip(ran, tile.benches, tile.plans, strict=True):
        if isinstance(found, Failure):
            outcomes.append(found)
        elif short := find_stop(found, plan):
            outcomes.append(Failure(FailureKind.CONVERGENCE, short, simulator.write(bench)))
        else:
            outcomes.append(replace(read_inference(found, plan), elsewhere=elsewhere))
    return outcomes


def run_inferences(
    benches: Sequence[Bench], plans: Sequence[ReadPlan], run: Run, progress: Progress = lambda done, total: None
) -> list[Outcome]:
    """Simulate inference benches in worker processes and return their outcomes in order.

    With a folder, kept results are read instead of run again. A bench that fails, exceeds the time-out or loses its
    process twice is a Failure; the others go on. Benches that the simulator has no model for run in its fallback, after
    all others, or stay Failures where they have noise of their transistors. Raises InputError where the folder cannot
    be written.
    """
    simulator, store = simulator_named(run.engine), None if run.folder is None else run.folder / INFERENCES
    outcomes: dict[int, Outcome] = {}
    names: dict[int, str] = {}
    if store is not None:
        make_folder(store)
        names = {index: deck_hash(simulator.write(bench)) for index, bench in enumerate(benches)}
        found = ((index, _load(store, name, plans[index])) for index, name in names.items())
        outcomes |= {index: outcome for index, outcome in found if outcome is not None}
    progress(len(outcomes), len(benches))
    todo = [index for index in range(len(benches)) if index not in outcomes]

    def keep(tile: BenchGroup, results: Sequence[Outcome], beyond: Mapping[int, str]) -> None:
        for index, outcome in zip(tile.numbers, results, strict=True):
            if index in beyond and isinstance(outcome, Inference):
                outcome = replace(outcome, elsewhere=beyond[index])
            outcomes[index] = outcome
            if store is not None and isinstance(outcome, Inference):
                _save(store, names[index], outcome)

    for tile, results in _run_pool(_tiles(todo, benches, plans, run, simulator), run, simulator) if todo else ():
        keep(tile, results, {})
        done = (k for k, one in outcomes.items() if not beyond_it(one) or _has_device_noise(benches[k]))
        progress(sum(1 for _ in done), len(benches))
    lost = {index: why for index, one in outcomes.items() if (why := beyond_it(one))}
    beyond = {index: why for index, why in lost.items() if not _has_device_noise(benches[index])}
    if beyond and (other := fallback_of(simulator, benches[0].technology)) is not None:
        beyond = {index: f"{other.name}: {why}" for index, why in beyond.items()}
        tiles, begun = _tiles(list(beyond), benches, plans, run, other), len(benches) - len(beyond)
        for done, (tile, results) in enumerate(_run_pool(tiles, run, other), 1):
            keep(tile, results, beyond)
            progress(begun + done, len(benches))
    return [outcomes[index] for index in range(len(benches))]


def _tiles(
    todo: Sequence[int], benches: Sequence[Bench], plans: Sequence[ReadPlan], run: Run, simulator: Simulator
) -> list[BenchGroup]:
    """Return the benches to simulate in full groups, or in smaller ones if some process would get none."""
    size = min(simulator.lanes, -(-len(todo) // max(run.jobs, 1)))
    tiles = split_tiles((benches[k] for k in todo), (plans[k] for k in todo), size)
    return [replace(tile, numbers=tuple(todo[k] for k in tile.numbers)) for tile in tiles]


def _run_pool(tiles: list[BenchGroup], run: Run, simulator: Simulator) -> Iterator[tuple[BenchGroup, list[Outcome]]]:
    """Yield outcomes as they finish, so that a slow tile does not keep the others from the store."""
    jobs = max(run.jobs, 1)
    with WorkerPool(jobs) as pool:
        found = run_tasks(
            lambda tile: pool.submit(infer_alone, simulator, tile, run.timeout), tiles, jobs,
            lambda tile: run.timeout * len(tile.benches) + simulator.grace,
        )  # fmt: skip
        for tile, outcomes in found:
            if isinstance(outcomes, Failure):
                yield tile, [replace(outcomes, deck=simulator.write(bench)) for bench in tile.benches]
            else:
                yield tile, outcomes


def deck_hash(deck: str) -> str:
    """Return the name under which a simulated deck's result is kept: a hash of its text, 24 hexadecimal digits."""
    return hashlib.sha256(deck.encode()).hexdigest()[:24]


def _save(store: Path, name: str, inference: Inference) -> None:
    keep_result(store, name, _arrays(inference))


def _load(store: Path, name: str, plan: ReadPlan) -> Inference | None:
    """Return the inference that is kept under a deck's hash; None if there is none that fits the plan."""
    frames, most = (
        len(plan.times),
        np.array([inf if isinstance(one, StateCurrent) else len(one) for one in plan.decisions]),
    )
    least, kind = np.where(np.isinf(most), -inf, 0.0), np.float64 if np.isinf(most).any() else np.int16
    blank = Inference(
        np.zeros((frames, len(most)), kind), np.zeros((frames, len(plan.outputs))), 0.0,
        np.zeros((len(plan.metered), len(plan.meters))),
    )  # fmt: skip
    margin = np.zeros((frames, len(most)))
    beside = {"margins": margin, "latches": margin, "elsewhere": np.zeros(_WORDS, np.uint8)}
    beside |= {"lines": np.zeros(len(plan.lines), np.bool_)} if plan.lines else {}
    kept = kept_result(store, name, _arrays(blank), beside)
    if kept is None or (kept["states"] < least).any() or (kept["states"] > most).any():
        return None
    margins, latches = kept.get("margins", blank.margins), kept.get("latches", blank.latches)
    words = kept.get("elsewhere", np.zeros(0, np.uint8)).tobytes()
    elsewhere, power = words.rstrip(b"\0").decode(errors="ignore"), float(kept["power_w"])
    lines = kept.get("lines", blank.lines)
    if len(lines) != len(plan.lines):
        return None
    return Inference(kept["states"], kept["readout"], power, kept["delivered"], margins, latches, elsewhere, lines)


def _arrays(inference: Inference) -> dict[str, NDArray[Any]]:
    arrays = {
        "states": inference.states,
        "readout": inference.readout,
        "power_w": np.array(inference.power_w),
        "delivered": inference.delivered,
    }
    if inference.margins.size:
        arrays |= {"margins": inference.margins, "latches": inference.latches}
    if inference.lines.size:
        arrays["lines"] = inference.lines
    if words := inference.elsewhere.encode()[:_WORDS]:
        arrays["elsewhere"] = np.frombuffer(words.ljust(_WORDS, b"\0"), np.uint8)
    return arrays
