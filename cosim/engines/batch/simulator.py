"""The batched engine as one of the simulators: benches of one circuit side by side, on tables of their technology.

A bench runs from its operating point through its transient to waveforms, in a lane of a tile.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import thread_time
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, Tran, Voltage
from cosim.circuit.deck import format_circuit, format_elements
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.elements import Circuit
from cosim.circuit.measures import Interpolation
from cosim.engines.batch.arrays import FAILED, OVERRANGE, RUNNING, SAVED_ROWS, STATUS, ProbeBuffer, TransientState
from cosim.engines.batch.assemble import AssembledCircuit, assemble
from cosim.engines.batch.circuit import (
    CircuitKey,
    FlatCircuit,
    RecentValues,
    Unsupported,
    circuit_key,
    devices_of,
    flatten,
    split_sources,
)
from cosim.engines.batch.device_fit import FORMAT, device_tables
from cosim.engines.batch.interpolation import SMOOTH
from cosim.engines.batch.lanes import LANES, aligned_zeros
from cosim.engines.batch.operating_point import (
    ACCURACY,
    BenchTile,
    OperatingPoint,
    chip_operating_points,
    new_tile,
    operating_points,
)
from cosim.engines.batch.sweep import as_transient, of_analysis
from cosim.engines.batch.transient import advance_transient
from cosim.engines.batch.transient_noise import add_noise_sources, advance_noisy_transient, begin_noise, noise_state
from cosim.engines.engine import Description, Failure, FailureKind, Waveforms
from cosim.engines.table import check_numba, reference_simulator, simulator_named
from cosim.technology.types import Technology
from cosim.variation.draws import Chip

Array = NDArray[np.float64]
Made = TypeVar("Made")
REVISION = 12  # raised whenever the same bench comes out differently
_ROWS = 2048  # of what is saved, between two looks at the clock


class SimulationTimeout(Exception):
    """The simulation of a tile's benches exceeded its time-out."""


@dataclass(frozen=True, eq=False)
class TransientResult:
    """The result of a bench's simulated transient.

    time: of the steps, (steps,), s; probes: (probes, steps); low, high: extremes of each net's voltage, (nets,), V;
    failed: at some time no step converged.
    """

    time: Array
    probes: Array
    low: Array
    high: Array
    failed: bool


# circuit, benches with one analysis and tolerances, probes, operating points, deadline by `time.thread_time`
TransientRunner = Callable[
    [AssembledCircuit, Sequence[Bench], tuple[Probe, ...], Sequence[OperatingPoint], float], list[TransientResult]
]


def solve_benches(
    circuit: AssembledCircuit,
    benches: Sequence[Bench],
    points: Sequence[OperatingPoint],
    deadline: float,
    runner: TransientRunner,
) -> list[Waveforms | Unsupported]:
    """Simulate benches of one circuit and return for each its waveforms, or the reason why it has none.

    A bench has none where no step converged, or where a net left the range of the tables. points: where each begins;
    deadline: by `time.thread_time`. Raises SimulationTimeout after it, Unsupported for a probe that the circuit does
    not have.
    """
    probes = benches[0].probes or net_probes(circuit)
    results = runner(circuit, benches, probes, points, deadline)
    return [
        unsupported_reason(circuit, result, bench)
        or Waveforms(result.time, dict(zip(probes, result.probes, strict=True)))
        for result, bench in zip(results, benches, strict=True)
    ]


def run_transients(
    circuit: AssembledCircuit,
    benches: Sequence[Bench],
    probes: tuple[Probe, ...],
    points: Sequence[OperatingPoint],
    deadline: float,
) -> list[TransientResult]:
    """Simulate the transients of benches from their operating points on this processor core.

    deadline: by `time.thread_time`. Raises SimulationTimeout after it, Unsupported for a probe that the circuit does
    not have.
    """
    tile = new_tile(circuit, benches[0], points)
    return advance_benches(tile, benches, points, probe_buffer(circuit, probes), deadline)


def advance_benches(
    tile: BenchTile,
    benches: Sequence[Bench],
    points: Sequence[OperatingPoint],
    saved: ProbeBuffer,
    deadline: float,
) -> list[TransientResult]:
    """Simulate benches, with their noise if any, from their operating points to their ends.

    When a bench ends, the next one takes its lane. Raises SimulationTimeout after the deadline, by `time.thread_time`.
    """
    s, p, v, m = tile.circuit.arrays, tile.circuit.matrix.lu, tile.values, tile.state
    noises = [bench.noise for bench in benches if bench.noise is not None]
    noise = noise_state(tile.circuit, noises[0], benches[0].technology.thermal_voltage) if noises else None
    parts: list[list[tuple[Array, Array]]] = [[] for _ in points]
    found: dict[int, TransientResult] = {}
    waiting, bench_in = deque(range(len(points))), dict[int, int]()  # lane -> bench
    while waiting or bench_in:
        for lane in range(LANES):
            if lane not in bench_in and waiting:
                bench_in[lane] = waiting.popleft()
                tile.load(lane, points[bench_in[lane]])
                if noise is not None:
                    begin_noise(noise, lane, noises[bench_in[lane]])
        m.clock[SAVED_ROWS] = 0
        if noise is None:
            advance_transient(s, p, v, m, saved, tile.has_deviations, bool(waiting))
        else:
            advance_noisy_transient(s, p, v, m, noise, saved, tile.has_deviations, bool(waiting))
        rows, status = m.clock[SAVED_ROWS].astype(np.int64).tolist(), m.clock[STATUS].tolist()
        for lane, k in list(bench_in.items()):
            parts[k].append(copy_rows(saved, lane, rows[lane]))
            if status[lane] != RUNNING:
                found[k] = transient_result(m, lane, parts[k])
                del bench_in[lane]
        if thread_time() > deadline:
            raise SimulationTimeout
    return [found[k] for k in range(len(points))]


def copy_rows(saved: ProbeBuffer, lane: int, count: int) -> tuple[Array, Array]:
    """Return copies of a simulated lane's first `count` saved rows: times (count,), s, and probes (probes, count)."""
    return saved.time[lane, :count].copy(), saved.values[lane, :count].T.copy(order="C")


def transient_result(state: TransientState, lane: int, parts: Sequence[tuple[Array, Array]]) -> TransientResult:
    """Return the result of a bench that has ended in a simulated lane; parts: what `copy_rows` returned, in order."""
    time, probes = parts[0] if len(parts) == 1 else (np.concatenate(some, axis=-1) for some in zip(*parts, strict=True))
    failed = bool(state.clock[STATUS, lane] == FAILED)
    return TransientResult(time, probes, state.low[:, lane].copy(), state.high[:, lane].copy(), failed)


def unsupported_reason(circuit: AssembledCircuit, result: TransientResult, bench: Bench) -> Unsupported | None:
    """Return why a bench has no batched waveforms: no step converged, or a net left the tables' range; else None."""
    if result.failed:
        return Unsupported(f"no step converged at {result.time[-1] if len(result.time) else 0.0:.6g} s")
    least, most = -0.99 * OVERRANGE, bench.technology.supply + 0.99 * OVERRANGE
    outside = np.flatnonzero((result.low < least) | (result.high > most))
    if not outside.size:
        return None
    net, low = outside[0], result.low[outside[0]]
    beyond = low if low < least else result.high[net]
    return Unsupported(f"net {circuit.nets.names[net]} at {beyond:.3f} V, outside {least:.2f} to {most:.2f} V")


def net_probes(circuit: AssembledCircuit) -> tuple[Probe, ...]:
    """Return probes of the voltages of all nets in the batched engine's circuit."""
    return tuple(Voltage(net) for net in circuit.nets.names)


def probe_buffer(
    circuit: AssembledCircuit, probes: tuple[Probe, ...], lanes: int = LANES, rows: int = _ROWS
) -> ProbeBuffer:
    """Return the buffer in which the batched engine saves these probes, `rows` steps in each lane.

    Raises Unsupported for a probe that the circuit does not have.
    """
    saved: list[tuple[int, int, float]] = []  # kind, which, sign
    lists: list[list[int]] = []
    devices = (*circuit.three_terminal, *circuit.four_terminal)
    place = {name: k for k, device in enumerate(devices) for name in device.parts}
    for probe in probes:
        nets: tuple[str, ...] = ()
        match probe:
            case Voltage(net) if net in circuit.net:
                saved.append((0, circuit.net[net], 1.0))
            case Current(source) if f"v{source}" in circuit.source:
                nets, direction = circuit.nets.behind(source)
                saved.append((1, 0, direction))
            case DrainCurrent(device) if device in place:
                saved.append((2, place[device], 1.0))
            case _:
                raise Unsupported(f"nothing to save {probe} of")
        lists.append([circuit.net[net] for net in nets])
    return ProbeBuffer(
        kind=np.array([one[0] for one in saved], dtype=np.int64),
        which=np.array([one[1] for one in saved], dtype=np.int64),
        sign=np.array([one[2] for one in saved], dtype=np.float64),
        nets_start=np.cumsum([0, *map(len, lists)], dtype=np.int64),
        nets=np.array([net for one in lists for net in one], dtype=np.int64),
        time=np.zeros((lanes, rows)),
        values=np.zeros((lanes, rows, len(probes))),
        present=aligned_zeros(len(probes), lanes),
    )


@dataclass(frozen=True)
class BatchSimulator:
    """The batched engine as a simulator: benches of one circuit side by side, on device tables.

    A bench that it has no model for is a Failure of kind UNSUPPORTED. runner: runs the transients, on this core or on a
    GPU; installed: raises MissingToolError where the runner cannot work; interpolation: how signals run between points.
    """

    name: str = "batch"
    grace: float = 0.0
    lanes: int = 8 * LANES
    runner: TransientRunner = run_transients
    installed: Callable[[], None] = check_numba
    interpolation: Interpolation = SMOOTH

    def write(self, bench: Bench) -> str:
        """Return the text on which a batched result depends: circuit, sources, condition and accuracy."""
        undriven, sources = split_sources(bench.circuit)
        there = bench.technology
        driven = "\n".join(format_elements(sources, there))
        noise = f"* {bench.noise}\n" if bench.noise else ""
        text = _texts.of((undriven, there), lambda key: format_circuit(*key))
        return (
            f"* {self.name} revision {REVISION}, tables {FORMAT}\n{text}{driven}\n"
            f"* {there.name} {there.corner} {there.celsius!r} C {there.supply!r} V\n"
            f"* {bench.analysis} {bench.tolerances} {bench.preset} {bench.start} {bench.probes}\n{noise}"
        )

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Simulate a single bench and return its waveforms, or why there are none; timeout: s of processor time."""
        return self.run_all([bench], timeout)[0]

    def run_all(self, benches: Sequence[Bench], timeout: float) -> list[Waveforms | Failure]:
        """Simulate benches of one circuit side by side and return for each its waveforms, or why it has none.

        timeout: seconds of processor time for all. Raises MissingToolError where tables must be measured and ngspice is
        missing.
        """
        return self._solved(benches, operating_points, timeout)

    def run_chips(self, bench: Bench, chips: Sequence[Chip], timeout: float) -> list[Waveforms | Failure]:
        """Simulate a bench on drawn chips, at least one, and return its waveforms on each, or why there are none.

        The transistors of the chips deviate; supply and temperature are the bench's. timeout: seconds of processor time
        for all. Raises MissingToolError where tables must be measured and ngspice is missing.
        """

        def begun(circuit: AssembledCircuit, run: Sequence[Bench], flat: Sequence[FlatCircuit]) -> list[OperatingPoint]:
            return chip_operating_points(circuit, run[0], flat[0], chips)

        return self._solved([bench] * len(chips), begun, timeout)

    def _solved(
        self,
        benches: Sequence[Bench],
        begun: Callable[[AssembledCircuit, Sequence[Bench], Sequence[FlatCircuit]], list[OperatingPoint]],
        timeout: float,
    ) -> list[Waveforms | Failure]:
        """Simulate benches from the operating points that `begun` returns; see `run_all`."""
        try:
            run = _each_once(benches, as_transient)
            circuit, flat = assemble_benches(run)
            deadline = thread_time() + timeout
            found = solve_benches(circuit, run, begun(circuit, run, flat), deadline, self.runner)
        except Unsupported as reason:
            found = [reason for _ in benches]
        except SimulationTimeout:
            late = f"after {timeout:g} s of processor time"
            return [Failure(FailureKind.TIMEOUT, late, _deck(bench)) for bench in benches]
        return [
            Failure(FailureKind.UNSUPPORTED, str(one), _deck(bench))
            if isinstance(one, Unsupported)
            else of_analysis(bench, one)
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
        name = reference_simulator(technology)
        reference = simulator_named(name).describe(technology)
        options = {name: f"{value:g}" for name, value in ACCURACY.items()}
        return Description(f"{REVISION}, tables {FORMAT} of {name} {reference.version}", options)


def _deck(bench: Bench) -> str:
    """Return an ngspice deck of a bench for a Failure, without the device noise, which ngspice does not have."""
    return format_bench(replace(bench, noise=None))


def assemble_benches(benches: Sequence[Bench]) -> tuple[AssembledCircuit, list[FlatCircuit]]:
    """Return the circuit that benches share, ready for the batched engine, and the flat circuit of each bench.

    Raises Unsupported where there is no model, MissingToolError where tables must be measured without ngspice.
    """
    flat = _each_once(benches, lambda bench: flatten(bench.circuit))
    if (noise := benches[0].noise) is not None:
        flat = add_noise_sources(flat, noise)
    return _assembled(benches[0], flat), flat


def _each_once(benches: Sequence[Bench], make: Callable[[Bench], Made]) -> list[Made]:
    """Return what `make` returns for each bench; for a bench that is the object before it, the object before it."""
    found: list[Made] = []
    for k, bench in enumerate(benches):
        found.append(found[-1] if k and bench is benches[k - 1] else make(bench))
    return found


_texts: RecentValues[tuple[Circuit, Technology], str] = RecentValues(2)
_circuits: RecentValues[tuple[Technology, CircuitKey], AssembledCircuit] = RecentValues(4)


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
        if found and one is found[-1]:
            continue
        if not found or one.shared is not found[-1].shared or _names(one) != _names(found[-1]):
            found.append(one)
    return found


def _names(flat: FlatCircuit) -> list[str]:
    return [source.name for source in flat.sources]
