"""One bench, from this process, for whoever cannot go on without its waveforms."""

from cosim.circuit.bench import Bench
from cosim.engines.engine import DEFAULT_TIMEOUT, Failure, Waveforms
from cosim.engines.table import NGSPICE, simulator_named
from cosim.errors import SimulationError


def run_bench(bench: Bench, what: str, simulator: str = NGSPICE) -> Waveforms:
    """Its waveforms. Raises SimulationError that begins with `what`, MissingToolError without the simulator."""
    found = simulator_named(simulator).run(bench, DEFAULT_TIMEOUT)
    if isinstance(found, Failure):
        raise SimulationError(f"{what}: {found.kind.value}: {found.detail}")
    return found
