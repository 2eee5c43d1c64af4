"""ngspice as a simulator, which begins at a bench's resting point (its operating point at time 0) where there is one.

The benches of one network differ only in their frames, so at time 0 they are one circuit. Its operating point can take
longer than the transient that follows: ngspice steps gmin and then the sources for the self-cascodes, and every device
must be evaluated, because with `bypass` ngspice 39 accepts points with milliamperes. After a known point `bypass` skips
devices whose terminals stand still within the tolerances, which halves the time; the readout differs from the precise
run by 0.002 i_unit rms (benchmarks/bench_simulator.py). It needs reltol 1e-4: at 1e-3 Newton's method let a cell far
from its thresholds fall into its other state at a clock edge.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from cosim.base.errors import MissingToolError
from cosim.circuit.bench import Bench, SmallSignalBench, Tolerances, relaxed, resting, started
from cosim.circuit.dialects.ngspice import format_bench, format_options
from cosim.engines.engine import Description, Failure, FailureKind, SmallSignals, Waveforms
from cosim.engines.ngspice.library import effective_options, find_ngspice_library, ngspice_version
from cosim.engines.ngspice.process import run_bench, run_deck
from cosim.technology.types import Technology

Point = tuple[tuple[str, float], ...]  # (net, V)


@dataclass(frozen=True)
class Ngspice:
    """The simulator ngspice in its own process, which ends a run that takes too long."""

    name: str = "ngspice"
    grace: float = 10.0
    lanes: int = 1

    def write(self, bench: Bench) -> str:
        """Return the deck of a bench for ngspice."""
        return format_bench(bench)

    def begun(self, bench: Bench) -> Bench:
        """Return the bench as ngspice runs it: from its resting point, with `bypass`; unchanged without one."""
        try:
            point = resting_point(bench) if bench.from_rest else ()
        except MissingToolError:
            return bench
        return started(bench, point) if point and not isinstance(point, Failure) else bench

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Simulate a bench in ngspice; `timeout` is in seconds of processor time, for each deck that the bench needs.

        Raises MissingToolError without libngspice.
        """
        return run_from_rest(bench, timeout) if bench.from_rest else run_bench(bench, timeout)

    def small_signals(self, bench: SmallSignalBench) -> SmallSignals:
        """Compute small signals and noise in ngspice. Raises SimulationError or MissingToolError."""
        from cosim.engines.ngspice.noise import small_signals

        return small_signals(bench)

    def check(self) -> None:
        """Raise MissingToolError where libngspice is not installed."""
        find_ngspice_library()

    def describe(self, technology: Technology) -> Description:
        """Return ngspice's version, and all options in effect as it lists them, also those that no deck sets."""
        library = find_ngspice_library()
        deck = f"* options\nv1 a 0 1\nr1 a 0 1\n{format_options(Tolerances(), technology)}.op\n.end\n"
        return Description(ngspice_version(library), effective_options(library, deck))


def run_from_rest(bench: Bench, timeout: float = inf) -> Waveforms | Failure:
    """Simulate a transient in ngspice from its resting point; relax the tolerances if its time step collapses.

    timeout: seconds of processor time for each deck. A Failure has the deck of the given bench, which finds the resting
    point by itself.
    """
    point = resting_point(bench, timeout)
    found = point if isinstance(point, Failure) else run_bench(started(bench, point), timeout)
    if isinstance(found, Failure) and found.kind is FailureKind.CONVERGENCE:
        found = run_bench(relaxed(bench), timeout)
    return replace(found, deck=format_bench(bench)) if isinstance(found, Failure) else found


def resting_point(bench: Bench, timeout: float = inf) -> Point | Failure:
    """Find a bench's voltages at time 0 in ngspice, net and V; timeout: seconds of processor time."""
    return _rest(format_bench(resting(bench)), timeout)


@lru_cache(maxsize=2)
def _rest(deck: str, timeout: float) -> Point | Failure:
    vectors = run_deck(deck, timeout)
    if isinstance(vectors, Failure):
        return vectors
    return tuple((name, float(values[0])) for name, values in vectors.items() if name != "time" and "#" not in name)
