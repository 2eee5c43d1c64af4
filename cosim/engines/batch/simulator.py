"""The batched engine as one of the simulators: benches of one circuit side by side, on tables of their technology."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from cosim.circuit.bench import Bench, Tran
from cosim.circuit.deck import format_circuit, format_elements
from cosim.circuit.dialects.ngspice import format_bench
from cosim.engines.batch.assemble import AssembledCircuit, assemble
from cosim.engines.batch.circuit import (
    CircuitKey,
    CircuitWithoutSources,
    FlatCircuit,
    RecentValues,
    Unsupported,
    circuit_key,
    devices_of,
    flatten,
    split_sources,
)
from cosim.engines.batch.device_cache import FORMAT, device_tables
from cosim.engines.batch.lanes import LANES
from cosim.engines.batch.operating_point import ACCURACY
from cosim.engines.batch.transient_noise import add_noise_sources
from cosim.engines.batch.transient_run import SimulationTimeout, TransientRunner, run_transients, solve_benches
from cosim.engines.engine import Description, Failure, FailureKind, Waveforms
from cosim.engines.table import NGSPICE, check_numba, simulator_named
from cosim.technology.types import Technology

REVISION = 7  # raised whenever the same bench comes out differently


@dataclass(frozen=True)
class BatchSimulator:
    """The batched engine: coupled nodal analysis on device tables.

    A bench that it has no model for is a Failure of kind UNSUPPORTED. runner: runs the transients, on this core or on a
    device; installed: raises MissingToolError where that cannot be.
    """

    name: str = "batch"
    grace: float = 0.0
    lanes: int = 8 * LANES
    fallback: str = NGSPICE
    runner: TransientRunner = run_transients
    installed: Callable[[], None] = check_numba

    def write(self, bench: Bench) -> str:
        """Return the text that a batched result depends on: circuit, sources, condition and accuracy."""
        undriven, sources = split_sources(bench.circuit)
        there = bench.technology
        driven = "\n".join(format_elements(sources, there))
        noise = f"* {bench.noise}\n" if bench.noise else ""
        text = _texts.of((undriven, there), _format_undriven)
        return (
            f"* {self.name} revision {REVISION}, tables {FORMAT}\n{text}{driven}\n"
            f"* {there.name} {there.corner} {there.celsius!r} C {there.supply!r} V\n"
            f"* {bench.analysis} {bench.tolerances} {bench.preset} {bench.start} {bench.probes}\n{noise}"
        )

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Return the waveforms of a bench run alone, or why it has none."""
        return self.run_all([bench], timeout)[0]

    def run_all(self, benches: Sequence[Bench], timeout: float) -> list[Waveforms | Failure]:
        """Return the waveforms of benches of one circuit run side by side, or why one has none.

        Raises MissingToolError where tables must be measured and ngspice is missing.
        """
        try:
            circuit, flat = assemble_benches(benches)
            found = solve_benches(circuit, benches, flat, timeout, self.runner)
        except Unsupported as reason:
            found = [reason for _ in benches]
        except SimulationTimeout:
            late = f"after {timeout:g} s of processor time"
            return [Failure(FailureKind.TIMEOUT, late, _deck(bench)) for bench in benches]
        return [
            Failure(FailureKind.UNSUPPORTED, str(one), _deck(bench)) if isinstance(one, Unsupported) else one
            for one, bench in zip(found, benches, strict=True)
        ]

    def check(self) -> None:
        """Raise MissingToolError where numba or the device of the batched engine is missing."""
        self.installed()

    def describe(self, technology: Technology) -> Description:
        """Return the batched engine's revision and the accuracy of its steps.

        Raises MissingToolError as `check` does.
        """
        self.check()
        reference = simulator_named(self.fallback).describe(technology)
        options = {name: f"{value:g}" for name, value in ACCURACY.items()}
        return Description(f"{REVISION}, tables {FORMAT} of {self.fallback} {reference.version}", options)


def _deck(bench: Bench) -> str:
    """Return a deck for whoever looks into a failure, without noise, which ngspice does not have of transistors."""
    return format_bench(replace(bench, noise=None))


def assemble_benches(benches: Sequence[Bench]) -> tuple[AssembledCircuit, list[FlatCircuit]]:
    """Return the circuit that the benches share, ready for the batched engine, and the flat circuit of each.

    Raises Unsupported for what there is no model of; MissingToolError where tables must be measured without ngspice.
    """
    flat = [flatten(bench.circuit) for bench in benches]
    if (noise := benches[0].noise) is not None:
        flat = add_noise_sources(flat, noise)
    return _assembled(benches[0], flat), flat


_texts: RecentValues[tuple[CircuitWithoutSources, Technology], str] = RecentValues(2)
_circuits: RecentValues[tuple[Technology, CircuitKey], AssembledCircuit] = RecentValues(4)


def _format_undriven(key: tuple[CircuitWithoutSources, Technology]) -> str:
    return format_circuit(key[0].circuit, key[1])


def _assembled(bench: Bench, flat: Sequence[FlatCircuit]) -> AssembledCircuit:
    """Return the circuit that the benches share. Raises Unsupported for an analysis or a device without a model."""
    if not isinstance(bench.analysis, Tran):
        raise Unsupported(f"an analysis {bench.analysis}")
    keys = [circuit_key(one.elements) for one in _distinct(flat)]
    if any(key != keys[0] for key in keys):
        raise Unsupported("circuits that differ in more than sources and deviations")
    elements = flat[0].elements

    def make(key: tuple[Technology, CircuitKey]) -> AssembledCircuit:
        return assemble(elements, device_tables(key[0], dict.fromkeys(device.kind for device in devices_of(elements))))

    return _circuits.of((bench.technology, keys[0]), make)


def _distinct(flat: Iterable[FlatCircuit]) -> list[FlatCircuit]:
    """Return the circuits that differ from the one before in more than the values of sources."""
    found: list[FlatCircuit] = []
    for one in flat:
        if not found or one.shared is not found[-1].shared or _names(one) != _names(found[-1]):
            found.append(one)
    return found


def _names(flat: FlatCircuit) -> list[str]:
    return [source.name for source in flat.sources]
