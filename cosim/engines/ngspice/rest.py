"""Where a network stands before its first frame: found once, and every sample's transient starts there.

The benches of one network differ in their frames alone, so at time 0 they are one circuit. Its operating point can take
longer than the transient behind it (self-cascodes; ngspice steps gmin, then the sources), and there every device has to
be evaluated: with `bypass` ngspice 39 accepts points with milliamperes. From a known point on, `bypass` skips devices
whose terminals stand still within the tolerances and halves the time; the readout differs from the precise run by 0.002
i_unit rms (benchmarks/bench_simulator.py). It needs reltol 1e-4: at 1e-3 Newton's method let a cell far from its
thresholds fall into its other state at a clock edge.
"""

from dataclasses import replace
from functools import lru_cache

from cosim.circuit.bench import Bench, relaxed, resting, started
from cosim.circuit.dialects.ngspice import format_bench
from cosim.engines.engine import Failure, FailureKind, Waveforms
from cosim.engines.ngspice.session import run_bench, run_deck

Point = tuple[tuple[str, float], ...]  # (net, V)


def run_from_rest(bench: Bench) -> Waveforms | Failure:
    """Run a transient from its resting point; a time step that collapsed gets a second, relaxed try.

    A failure carries the deck of the bench as it was given, which finds the resting point by itself.
    """
    found = run_started(bench)
    if isinstance(found, Failure) and found.kind is FailureKind.CONVERGENCE:
        found = run_bench(relaxed(bench))
    return replace(found, deck=format_bench(bench)) if isinstance(found, Failure) else found


def run_started(bench: Bench) -> Waveforms | Failure:
    """Run a transient from its resting point."""
    point = resting_point(bench)
    return point if isinstance(point, Failure) else run_bench(started(bench, point))


def resting_point(bench: Bench) -> Point | Failure:
    """The voltages at time 0 of a bench."""
    return _rest(format_bench(resting(bench)))


@lru_cache(maxsize=2)
def _rest(deck: str) -> Point | Failure:
    vectors = run_deck(deck)
    if isinstance(vectors, Failure):
        return vectors
    return tuple((name, float(values[0])) for name, values in vectors.items() if name != "time" and "#" not in name)
