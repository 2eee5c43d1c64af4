"""Benches in a simulator, from this process: side by side where it has lanes, and what it cannot run by another one."""

from collections.abc import Sequence
from dataclasses import dataclass

from cosim.circuit.bench import Bench
from cosim.engines.engine import DEFAULT_TIMEOUT, Batched, Failure, FailureKind, Simulator, Waveforms
from cosim.engines.table import NGSPICE, simulator_named
from cosim.errors import MissingToolError, SimulationError


@dataclass(frozen=True)
class Ran:
    """What a run gave. elsewhere: what ran it in place of the simulator that was asked, and why."""

    found: Waveforms | Failure
    elsewhere: str = ""


def run_benches(simulator: Simulator, benches: Sequence[Bench], timeout: float) -> list[Ran]:
    """Run at most `lanes` benches for at most `timeout` seconds each.

    What a Batched simulator has no model for runs in its fallback, unless that is not installed.
    """
    if not isinstance(simulator, Batched):
        return [Ran(simulator.run(bench, timeout)) for bench in benches]
    found = simulator.run_all(benches, timeout * len(benches))
    return [_ran(simulator, bench, waves, timeout) for bench, waves in zip(benches, found, strict=True)]


def _ran(simulator: Batched, bench: Bench, found: Waveforms | Failure, timeout: float) -> Ran:
    if not (isinstance(found, Failure) and found.kind is FailureKind.UNSUPPORTED):
        return Ran(found)
    try:
        other = simulator_named(simulator.fallback)
        other.check()
    except MissingToolError:
        return Ran(found)
    return Ran(other.run(bench, timeout), f"{other.name}: {found.detail}")


def run_bench(bench: Bench, what: str, simulator: str = NGSPICE) -> Waveforms:
    """Its waveforms. Raises SimulationError that begins with `what`, MissingToolError without the simulator."""
    (ran,) = run_benches(simulator_named(simulator), [bench], DEFAULT_TIMEOUT)
    if isinstance(ran.found, Failure):
        raise SimulationError(f"{what}: {ran.found.kind.value}: {ran.found.detail}")
    return ran.found
