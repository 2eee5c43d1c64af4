# pyright: basic
# numba compiles the kernel: what it hands it has no type that pyright knows.
"""All benches of a tile march on a CUDA device at once, a thread each, by the kernels of `batch.march`."""

from collections.abc import Sequence
from functools import cache
from time import monotonic, thread_time
from typing import Any

import numba.cuda
import numpy as np
from numba.core import config
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Probe
from cosim.engines.batch.assemble import Assembled
from cosim.engines.batch.device.port import Port
from cosim.engines.batch.device.scalar import STANDS_FOR
from cosim.engines.batch.layout import ROWS, RUNNING, STANDS, TileValues
from cosim.engines.batch.march import advance
from cosim.engines.batch.solve import Marched, SimulationTimeout, conclude, room_for, taken
from cosim.engines.batch.tile import Rest, tile_for

Array = NDArray[np.float64]
cuda: Any = numba.cuda
_SIMULATED = bool(getattr(config, "ENABLE_CUDASIM", 0))
_THREADS = 1 if _SIMULATED else 64  # of a block; numba's simulator of a device runs those of one at the same time
_ROWS = 256  # of what is saved, between two looks at the clock


def march_on_device(
    circuit: Assembled, bench: Bench, probes: tuple[Probe, ...], rests: Sequence[Rest], deadline: float
) -> list[Marched]:
    """March benches like `bench` to their ends. deadline: by `time.thread_time`. Raises Late, Unsupported."""
    count, end = len(rests), monotonic() + deadline - thread_time()  # the device's own time, which has no other work
    tile = tile_for(circuit, bench, rests, count)
    for lane, rest in enumerate(rests):
        tile.load(lane, rest)
    s, p, v, m = map(_copied, (circuit.structure, circuit.program.solver, _counters(tile.values, count), tile.march))
    saved = room_for(circuit, probes, count, _ROWS)
    there = _copied(saved)
    parts: list[list[tuple[Array, Array]]] = [[] for _ in rests]
    clock, running = tile.march.clock, True
    while running:
        clock[ROWS] = 0
        m.clock.copy_to_device(clock)
        _kernel()[-(-count // _THREADS), _THREADS](s, p, v, m, there, tile.varied)
        for mine, its in ((clock, m.clock), (saved.time, there.time), (saved.values, there.values)):
            its.copy_to_host(mine)
        for lane, rows in enumerate(clock[ROWS].astype(np.int64)):
            parts[lane].append(taken(saved, lane, int(rows)))
        running = bool((clock[STANDS] == RUNNING).any())
        if monotonic() > end:
            raise SimulationTimeout
    m.low.copy_to_host(tile.march.low)
    m.high.copy_to_host(tile.march.high)
    return [conclude(tile.march, lane, some) for lane, some in enumerate(parts)]


def _counters(values: TileValues, count: int) -> TileValues:
    """With counters of its own for each thread, where a tile of the host has one for all lanes."""
    names = ("gate_version", "drain_version", "tied_version")
    return values._replace(**{name: np.zeros((len(getattr(values, name)), count), np.int64) for name in names})


def _copied(arrays: Any) -> Any:
    """A named tuple's arrays on the device."""
    return type(arrays)(*(cuda.to_device(np.ascontiguousarray(one)) for one in arrays))


@cache
def _kernel() -> Any:
    march = Port(STANDS_FOR, cuda.jit(device=True)).of(advance)

    @cuda.jit
    def kernel(s, p, v, m, saved, varied):
        if cuda.grid(1) < m.clock.shape[1]:
            march(s, p, v, m, saved, varied, False)

    return kernel
