"""Run benches of one circuit: from their operating points through transients to waveforms."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import thread_time

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, TransientNoise, Voltage
from cosim.engines.batch.arrays import FAILED, OVERRANGE, RUNNING, SAVED_ROWS, STATUS, ProbeBuffer, TransientState
from cosim.engines.batch.assemble import AssembledCircuit
from cosim.engines.batch.circuit import FlatCircuit, Unsupported
from cosim.engines.batch.lanes import LANES, aligned_zeros
from cosim.engines.batch.operating_point import BenchTile, OperatingPoint, new_tile, operating_points
from cosim.engines.batch.transient import advance_transient
from cosim.engines.batch.transient_noise import NoiseState, advance_noisy_transient, begin_noise, noise_state
from cosim.engines.engine import Waveforms

Array = NDArray[np.float64]
_ROWS = 2048  # of what is saved, between two looks at the clock


class SimulationTimeout(Exception):
    """The simulation of a tile's benches takes longer than it may."""


@dataclass(frozen=True, eq=False)
class TransientResult:
    """A simulated bench's result. time (steps,), s; probes (probes, steps); low, high (nets,): V; failed: no step
    converged."""

    time: Array
    probes: Array
    low: Array
    high: Array
    failed: bool


TransientRunner = Callable[
    [AssembledCircuit, Bench, tuple[Probe, ...], Sequence[OperatingPoint], float], list[TransientResult]
]


def solve_benches(
    circuit: AssembledCircuit,
    benches: Sequence[Bench],
    flat: Sequence[FlatCircuit],
    timeout: float,
    runner: TransientRunner,
) -> list[Waveforms | Unsupported]:
    """Simulate benches in one technology, whose circuits are `flat`; return waveforms, or why a bench has none.

    A bench has none where no step converged, or a net left the range of the tables. Raises SimulationTimeout after
    `timeout` seconds of the processor; Unsupported for what cannot be probed.
    """
    deadline, probes = thread_time() + timeout, benches[0].probes or net_probes(circuit)
    points = operating_points(circuit, benches, flat)
    if benches[0].noise is None:
        results = runner(circuit, benches[0], probes, points, deadline)
    elif runner is run_transients:
        results = _run_noisy_transients(circuit, benches, probes, points, deadline)
    else:
        raise Unsupported("noise")
    found: list[Waveforms | Unsupported] = []
    for result, bench in zip(results, benches, strict=True):
        traces = dict(zip(probes, result.probes, strict=True))
        found.append(unsupported_reason(circuit, result, bench) or Waveforms(result.time, traces))
    return found


def run_transients(
    circuit: AssembledCircuit,
    bench: Bench,
    probes: tuple[Probe, ...],
    points: Sequence[OperatingPoint],
    deadline: float,
) -> list[TransientResult]:
    """Simulate transients from these operating points on this core; bench: one whose analysis and tolerances all have.

    deadline: by `time.thread_time`. Raises SimulationTimeout behind it, Unsupported for what cannot be probed.
    """
    return advance_benches(new_tile(circuit, bench, points), points, probe_buffer(circuit, probes), deadline)


def _run_noisy_transients(
    circuit: AssembledCircuit,
    benches: Sequence[Bench],
    probes: tuple[Probe, ...],
    points: Sequence[OperatingPoint],
    deadline: float,
) -> list[TransientResult]:
    """Run transients as `run_transients` does, each bench with its noise."""
    noises = [bench.noise for bench in benches if bench.noise is not None]
    state = noise_state(circuit, noises[0], benches[0].technology.thermal_voltage)
    tile, saved = new_tile(circuit, benches[0], points), probe_buffer(circuit, probes)
    return advance_benches(tile, points, saved, deadline, noise=state, noises=noises)


def advance_benches(
    tile: BenchTile,
    points: Sequence[OperatingPoint],
    saved: ProbeBuffer,
    deadline: float,
    *,
    noise: NoiseState | None = None,
    noises: Sequence[TransientNoise] = (),
) -> list[TransientResult]:
    """Simulate one bench from each operating point to its end; where a lane's bench has ended, the next takes the lane.

    deadline: by `time.thread_time`, behind which SimulationTimeout is raised; noise: the tile's noise, None for none;
    noises: those of the benches.
    """
    s, p, v, m = tile.circuit.arrays, tile.circuit.matrix.lu, tile.values, tile.state
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
        for lane, k in list(bench_in.items()):
            parts[k].append(copy_rows(saved, lane, int(m.clock[SAVED_ROWS, lane])))
            if m.clock[STATUS, lane] != RUNNING:
                found[k] = transient_result(m, lane, parts[k])
                del bench_in[lane]
        if thread_time() > deadline:
            raise SimulationTimeout
    return [found[k] for k in range(len(points))]


def copy_rows(saved: ProbeBuffer, lane: int, count: int) -> tuple[Array, Array]:
    """Return copies of a simulated lane's first `count` saved rows: times (count,), s, and probes (probes, count)."""
    return saved.time[lane, :count].copy(), saved.values[lane, :count].T.copy(order="C")


def transient_result(state: TransientState, lane: int, parts: Sequence[tuple[Array, Array]]) -> TransientResult:
    """Return the result of a bench that has ended in a simulated lane, joined from the parts that `copy_rows` read."""
    time, probes = (np.concatenate(some, axis=-1) for some in zip(*parts, strict=True))
    failed = bool(state.clock[STATUS, lane] == FAILED)
    return TransientResult(time, probes, state.low[:, lane].copy(), state.high[:, lane].copy(), failed)


def unsupported_reason(circuit: AssembledCircuit, result: TransientResult, bench: Bench) -> Unsupported | None:
    """Return why a bench has no batched waveforms, or None: no step converged, or a net left the tables' range."""
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
    """Return the batched engine's room for `rows` values of these probes.

    Raises Unsupported for one that the circuit does not have.
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
            case Current(source) if source in circuit.source:
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
