"""The batch engine as one of the simulators: benches of one circuit side by side, on tables of their technology."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from cosim.circuit.bench import Bench, Tran
from cosim.circuit.deck import format_circuit, format_elements
from cosim.circuit.dialects.ngspice import format_bench
from cosim.engines.batch.assemble import Assembled, assemble
from cosim.engines.batch.blow import with_noise
from cosim.engines.batch.flat import Flat, Last, Undriven, flatten, part
from cosim.engines.batch.installed import check_numba
from cosim.engines.batch.keep import FORMAT, device_tables
from cosim.engines.batch.lanes import LANES
from cosim.engines.batch.solve import Marcher, SimulationTimeout, march_here, solve_benches
from cosim.engines.batch.structure import Shape, devices_of, shape_of
from cosim.engines.batch.tile import ACCURACY
from cosim.engines.batch.unsupported import Unsupported
from cosim.engines.engine import Description, Failure, FailureKind, Waveforms
from cosim.engines.table import NGSPICE, simulator_named
from cosim.technology.types import Technology

REVISION = 7  # raised whenever the same bench comes out differently


@dataclass(frozen=True)
class BatchSimulator:
    """Coupled nodal analysis on device tables; what it has no model for is a Failure of kind UNSUPPORTED.

    march: where benches march, on this core or on a device; installed: raises MissingToolError where that cannot be.
    """

    name: str = "batch"
    grace: float = 0.0
    lanes: int = 8 * LANES
    fallback: str = NGSPICE
    march: Marcher = march_here
    installed: Callable[[], None] = check_numba

    def write(self, bench: Bench) -> str:
        """Return the text that a result depends on: circuit, sources, condition and accuracy."""
        rest, sources = part(bench.circuit)
        there = bench.technology
        driven = "\n".join(format_elements(sources, there))
        noise = f"* {bench.noise}\n" if bench.noise else ""
        return (
            f"* {self.name} revision {REVISION}, tables {FORMAT}\n{_texts.of((rest, there), _format_rest)}{driven}\n"
            f"* {there.name} {there.corner} {there.celsius!r} C {there.supply!r} V\n"
            f"* {bench.analysis} {bench.tolerances} {bench.preset} {bench.start} {bench.probes}\n{noise}"
        )

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Run a bench alone."""
        return self.run_all([bench], timeout)[0]

    def run_all(self, benches: Sequence[Bench], timeout: float) -> list[Waveforms | Failure]:
        """Run benches of one circuit side by side.

        Raises MissingToolError where tables must be measured and ngspice is missing.
        """
        try:
            circuit, flat = assemble_benches(benches)
            found = solve_benches(circuit, benches, flat, timeout, self.march)
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
        """Raises MissingToolError. Tables are measured in ngspice, which says so where it is missing."""
        self.installed()

    def describe(self, technology: Technology) -> Description:
        """Return the engine's revision, and its accuracies. Raises MissingToolError as `check` does."""
        self.check()
        reference = simulator_named(self.fallback).describe(technology)
        options = {name: f"{value:g}" for name, value in ACCURACY.items()}
        return Description(f"{REVISION}, tables {FORMAT} of {self.fallback} {reference.version}", options)


def _deck(bench: Bench) -> str:
    """For who looks into a failure; ngspice has no noise of transistors."""
    return format_bench(replace(bench, noise=None))


def assemble_benches(benches: Sequence[Bench]) -> tuple[Assembled, list[Flat]]:
    """The circuit that they share, and each one's own, flat.

    Raises Unsupported for what there is no model of; MissingToolError where tables must be measured without ngspice.
    """
    flat = [flatten(bench.circuit) for bench in benches]
    if (noise := benches[0].noise) is not None:
        flat = with_noise(flat, noise)
    return _assembled(benches[0], flat), flat


_texts: Last[tuple[Undriven, Technology], str] = Last(2)
_circuits: Last[tuple[Technology, Shape], Assembled] = Last(4)


def _format_rest(key: tuple[Undriven, Technology]) -> str:
    return format_circuit(key[0].circuit, key[1])


def _assembled(bench: Bench, flat: Sequence[Flat]) -> Assembled:
    """Raises Unsupported for an analysis, a circuit or a device that there is no model of."""
    if not isinstance(bench.analysis, Tran):
        raise Unsupported(f"an analysis {bench.analysis}")
    shapes = [shape_of(one.elements) for one in _distinct(flat)]
    if any(shape != shapes[0] for shape in shapes):
        raise Unsupported("circuits that differ in more than sources and deviations")
    elements = flat[0].elements

    def make(key: tuple[Technology, Shape]) -> Assembled:
        return assemble(elements, device_tables(key[0], dict.fromkeys(device.kind for device in devices_of(elements))))

    return _circuits.of((bench.technology, shapes[0]), make)


def _distinct(flat: Iterable[Flat]) -> list[Flat]:
    """Without those that share all but the values of sources with the one before."""
    found: list[Flat] = []
    for one in flat:
        if not found or one.shared is not found[-1].shared or _names(one) != _names(found[-1]):
            found.append(one)
    return found


def _names(flat: Flat) -> list[str]:
    return [source.name for source in flat.sources]
