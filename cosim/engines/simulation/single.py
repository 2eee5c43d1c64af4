"""Benches in a simulator, from this process: side by side where it has lanes, and what it cannot run by another one."""

from collections.abc import Sequence

from cosim.base.errors import MissingToolError, SimulationError
from cosim.circuit.bench import Bench
from cosim.engines.engine import DEFAULT_TIMEOUT, Batched, Failure, FailureKind, Simulator, Waveforms
from cosim.engines.table import NGSPICE, simulator_named


def run_benches(
    simulator: Simulator, benches: Sequence[Bench], timeout: float
) -> list[tuple[Waveforms | Failure, str]]:
    """Simulate at most `lanes` benches for at most `timeout` seconds each.

    What a Batched simulator has no model for runs in its fallback, unless that is not installed: the text beside each
    result says which simulator ran in place of the one that was asked, and why; it is empty for none.
    """
    found = run_alone(simulator, benches, timeout)
    beyond = {k: why for k, one in enumerate(found) if (why := beyond_it(one))}
    other = fallback_of(simulator) if beyond else None
    if other is None:
        return [(one, "") for one in found]
    return [
        (other.run(bench, timeout), f"{other.name}: {beyond[k]}") if k in beyond else (one, "")
        for k, (bench, one) in enumerate(zip(benches, found, strict=True))
    ]


def run_alone(simulator: Simulator, benches: Sequence[Bench], timeout: float) -> list[Waveforms | Failure]:
    """Simulate benches for at most `timeout` seconds each, without another simulator's help."""
    if isinstance(simulator, Batched):
        return simulator.run_all(benches, timeout * len(benches))
    return [simulator.run(bench, timeout) for bench in benches]


def beyond_it(found: object) -> str:
    """Return what a simulator has no model for, if that is why a bench has no waveforms; else an empty text."""
    return found.detail if isinstance(found, Failure) and found.kind is FailureKind.UNSUPPORTED else ""


def fallback_of(simulator: Simulator) -> Simulator | None:
    """Return the simulator for benches that this one has no model for; None where there is none, or it is not
    installed."""
    if not isinstance(simulator, Batched):
        return None
    try:
        other = simulator_named(simulator.fallback)
        other.check()
    except MissingToolError:
        return None
    return other


def run_bench(bench: Bench, what: str, simulator: str = NGSPICE) -> Waveforms:
    """Simulate a bench and return its waveforms.

    Raises SimulationError that begins with `what`, MissingToolError without the simulator.
    """
    ((found, _),) = run_benches(simulator_named(simulator), [bench], DEFAULT_TIMEOUT)
    if isinstance(found, Failure):
        raise SimulationError(f"{what}: {found.kind.value}: {found.detail}")
    return found
