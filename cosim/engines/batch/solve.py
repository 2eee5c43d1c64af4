"""Benches of one circuit: from elements to waveforms."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import thread_time

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, TransientNoise, Voltage
from cosim.engines.batch.assemble import Assembled
from cosim.engines.batch.blow import begin_noise, noisy_for
from cosim.engines.batch.flat import Flat
from cosim.engines.batch.lanes import LANES, blank
from cosim.engines.batch.layout import BEYOND, ROWS, RUNNING, STANDS, STUCK, March, Saved
from cosim.engines.batch.march import advance
from cosim.engines.batch.noisy import Noisy, advance_noisy
from cosim.engines.batch.rest import rest_benches
from cosim.engines.batch.tile import BenchTile, Rest, tile_for
from cosim.engines.batch.unsupported import Unsupported
from cosim.engines.engine import Waveforms

Array = NDArray[np.float64]
_ROWS = 2048  # of what is saved, between two looks at the clock


class SimulationTimeout(Exception):
    """The exception for a run that takes longer than it may."""


@dataclass(frozen=True, eq=False)
class Marched:
    """A bench's result. time (steps,), s; probes (probes, steps); low, high (nets,): V; stuck: no step worked."""

    time: Array
    probes: Array
    low: Array
    high: Array
    stuck: bool


def taken(saved: Saved, lane: int, count: int) -> tuple[Array, Array]:
    """Times (count,) and probes (probes, count) of a lane that has saved so many rows."""
    return saved.time[lane, :count].copy(), saved.values[lane, :count].T.copy(order="C")


def conclude(march: March, lane: int, parts: Sequence[tuple[Array, Array]]) -> Marched:
    """Return the result of the bench in a lane that has ended, joined from the parts that `taken` read of it."""
    time, probes = (np.concatenate(some, axis=-1) for some in zip(*parts, strict=True))
    stuck = bool(march.clock[STANDS, lane] == STUCK)
    return Marched(time, probes, march.low[:, lane].copy(), march.high[:, lane].copy(), stuck)


Marcher = Callable[[Assembled, Bench, tuple[Probe, ...], Sequence[Rest], float], list[Marched]]


def march_here(
    circuit: Assembled, bench: Bench, probes: tuple[Probe, ...], rests: Sequence[Rest], deadline: float
) -> list[Marched]:
    """March benches like `bench` to their ends on this core. deadline: by `thread_time`. Raises Late, Unsupported."""
    return march_all(tile_for(circuit, bench, rests), rests, room_for(circuit, probes), deadline)


def march_noisily(
    circuit: Assembled, benches: Sequence[Bench], probes: tuple[Probe, ...], rests: Sequence[Rest], deadline: float
) -> list[Marched]:
    """`march_here` of benches with noise."""
    noises = [bench.noise for bench in benches if bench.noise is not None]
    noisy = noisy_for(circuit, noises[0], benches[0].technology.thermal_voltage)
    tile = tile_for(circuit, benches[0], rests)
    return march_all(tile, rests, room_for(circuit, probes), deadline, Blown(noisy, noises))


def solve_benches(
    circuit: Assembled, benches: Sequence[Bench], flat: Sequence[Flat], timeout: float, march: Marcher
) -> list[Waveforms | Unsupported]:
    """Waveforms of benches that stand in one technology; flat: their circuits.

    Of a bench no step of which converged, or that left the tables, the reason. Raises Late after `timeout` seconds of
    the processor; Unsupported for what cannot be probed.
    """
    deadline, probes = thread_time() + timeout, benches[0].probes or net_probes(circuit)
    rests = rest_benches(circuit, benches, flat)
    found: list[Waveforms | Unsupported] = []
    if benches[0].noise is not None:
        if march is not march_here:
            raise Unsupported("noise")
        marched = march_noisily(circuit, benches, probes, rests, deadline)
    else:
        marched = march(circuit, benches[0], probes, rests, deadline)
    for one, bench in zip(marched, benches, strict=True):
        traces = dict(zip(probes, one.probes, strict=True))
        found.append(why_not(circuit, one, bench) or Waveforms(one.time, traces))
    return found


@dataclass(frozen=True)
class Blown:
    """Room for noise, and that of each bench."""

    room: Noisy
    noises: Sequence[TransientNoise]


def march_all(
    tile: BenchTile, rests: Sequence[Rest], saved: Saved, deadline: float, blown: Blown | None = None
) -> list[Marched]:
    """March benches to their ends; where one is there, the next takes its lane.

    deadline: by `time.thread_time`; blown: their noise, None for none. Raises Late.
    """
    march, solver = tile.march, tile.circuit.program.solver
    parts: list[list[tuple[Array, Array]]] = [[] for _ in rests]
    found: dict[int, Marched] = {}
    waiting, at = deque(range(len(rests))), dict[int, int]()  # lane -> bench
    while waiting or at:
        for lane in range(LANES):
            if lane not in at and waiting:
                at[lane] = waiting.popleft()
                tile.load(lane, rests[at[lane]])
                if blown is not None:
                    begin_noise(blown.room, lane, blown.noises[at[lane]])
        march.clock[ROWS] = 0
        place, how = (tile.circuit.structure, solver, tile.values), (tile.varied, bool(waiting))
        if blown is None:
            advance(*place, march, saved, *how)
        else:
            advance_noisy(place, march, saved, blown.room, how)
        for lane, k in list(at.items()):
            parts[k].append(taken(saved, lane, int(march.clock[ROWS, lane])))
            if march.clock[STANDS, lane] != RUNNING:
                found[k] = conclude(march, lane, parts[k])
                del at[lane]
        if thread_time() > deadline:
            raise SimulationTimeout
    return [found[k] for k in range(len(rests))]


def why_not(circuit: Assembled, marched: Marched, bench: Bench) -> Unsupported | None:
    """Return why there is no result: no step converged, or a net went beyond the tables; None where there is one."""
    if marched.stuck:
        return Unsupported(f"no step converged at {marched.time[-1] if len(marched.time) else 0.0:.6g} s")
    least, most = -0.99 * BEYOND, bench.technology.supply + 0.99 * BEYOND
    outside = np.flatnonzero((marched.low < least) | (marched.high > most))
    if not outside.size:
        return None
    net, low = outside[0], marched.low[outside[0]]
    beyond = low if low < least else marched.high[net]
    return Unsupported(f"net {circuit.nets.names[net]} at {beyond:.3f} V, outside {least:.2f} to {most:.2f} V")


def net_probes(circuit: Assembled) -> tuple[Probe, ...]:
    """The voltage of every net."""
    return tuple(Voltage(net) for net in circuit.nets.names)


def room_for(circuit: Assembled, probes: tuple[Probe, ...], lanes: int = LANES, rows: int = _ROWS) -> Saved:
    """Return room for the probes' values at each step. Raises Unsupported for a probe of what is not there."""
    saved: list[tuple[int, int, float]] = []  # kind, which, sign
    lists: list[list[int]] = []
    place = {name: k for k, device in enumerate((*circuit.tied, *circuit.floating)) for name in device.parts}
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
    return Saved(
        kind=np.array([one[0] for one in saved], dtype=np.int64),
        which=np.array([one[1] for one in saved], dtype=np.int64),
        sign=np.array([one[2] for one in saved], dtype=np.float64),
        nets_at=np.cumsum([0, *map(len, lists)], dtype=np.int64),
        nets=np.array([net for one in lists for net in one], dtype=np.int64),
        time=np.zeros((lanes, rows)),
        values=np.zeros((lanes, rows, len(probes))),
        found=blank(len(probes), lanes),
    )
