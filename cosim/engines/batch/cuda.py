# pyright: basic
# numba compiles the kernel: what it hands it has no type that pyright knows.
"""Transients of all benches of a tile on a CUDA device at once, a thread each, by the kernels of `transient`.

The modules of the kernels are imported a second time, with `cuda_threads` in the place of what kernels of the processor
take from `lanes`, `compiled` and `table_lookup`.
"""

import builtins
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec, module_from_spec
from time import monotonic, thread_time
from types import ModuleType
from typing import Any

import numba.cuda
import numpy as np
from numba.core import config
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Probe
from cosim.engines.batch import cuda_threads
from cosim.engines.batch.arrays import RUNNING, SAVED_ROWS, STATUS, TileValues
from cosim.engines.batch.assemble import AssembledCircuit
from cosim.engines.batch.circuit import Unsupported
from cosim.engines.batch.operating_point import OperatingPoint, new_tile
from cosim.engines.batch.simulator import (
    SimulationTimeout,
    TransientResult,
    copy_rows,
    probe_buffer,
    transient_result,
)

Array = NDArray[np.float64]
cuda: Any = numba.cuda
_SIMULATED = bool(getattr(config, "ENABLE_CUDASIM", 0))
_THREADS = 1 if _SIMULATED else 64  # of a block; numba's simulator of a device runs those of one at the same time
_ROWS = 256  # of what is saved, between two looks at the clock
_REPLACED = ("lanes", "compiled", "table_lookup")
_KERNELS = ("evaluate", "newton", "step_control", "transient")  # each imports from those before it


def run_transients_on_device(
    circuit: AssembledCircuit,
    benches: Sequence[Bench],
    probes: tuple[Probe, ...],
    points: Sequence[OperatingPoint],
    deadline: float,
) -> list[TransientResult]:
    """Simulate the transients of benches from their operating points on a GPU, as a `simulator.TransientRunner`.

    Raises SimulationTimeout after the deadline, Unsupported for noise and for a probe that the circuit does not have.
    """
    if benches[0].noise is not None:
        raise Unsupported("noise")
    count, end = len(points), monotonic() + deadline - thread_time()  # the device's own time, which has no other work
    tile = new_tile(circuit, benches[0], points, count)
    for lane, point in enumerate(points):
        tile.load(lane, point)
    host = (circuit.arrays, circuit.matrix.lu, _with_own_counters(tile.values, count), tile.state)
    s, p, v, m = map(_copy_to_device, host)
    saved = probe_buffer(circuit, probes, count, _ROWS)
    device_saved = _copy_to_device(saved)
    parts: list[list[tuple[Array, Array]]] = [[] for _ in points]
    clock, running = tile.state.clock, True
    while running:
        clock[SAVED_ROWS] = 0
        m.clock.copy_to_device(clock)
        _kernel()[-(-count // _THREADS), _THREADS](s, p, v, m, device_saved, tile.has_deviations)
        m.clock.copy_to_host(clock)
        device_saved.time.copy_to_host(saved.time)
        device_saved.values.copy_to_host(saved.values)
        for lane, rows in enumerate(clock[SAVED_ROWS].astype(np.int64)):
            parts[lane].append(copy_rows(saved, lane, int(rows)))
        running = bool((clock[STATUS] == RUNNING).any())
        if monotonic() > end:
            raise SimulationTimeout
    m.low.copy_to_host(tile.state.low)
    m.high.copy_to_host(tile.state.high)
    return [transient_result(tile.state, lane, some) for lane, some in enumerate(parts)]


def _with_own_counters(values: TileValues, count: int) -> TileValues:
    """Return the values with counters of evaluations for each thread, where the processor has one for all lanes."""
    names = ("gate_version", "drain_version", "three_terminal_version")
    return values._replace(**{name: np.zeros((len(getattr(values, name)), count), np.int64) for name in names})


def _copy_to_device(arrays: Any) -> Any:
    """Return a named tuple with copies of its arrays on the device."""
    return type(arrays)(*(cuda.to_device(np.ascontiguousarray(one)) for one in arrays))


@cache
def _kernel() -> Any:
    """Return the kernel that advances the transients of all benches, compiled for the device."""
    advance_transient = _import_kernels()["transient"].advance_transient

    @cuda.jit
    def kernel(s, p, v, m, saved, has_deviations):
        if cuda.grid(1) < m.clock.shape[1]:
            advance_transient(s, p, v, m, saved, has_deviations, False)

    return kernel


def _import_kernels() -> dict[str, ModuleType]:
    """Import the modules of the kernels a second time, with `cuda_threads` in the place of those in _REPLACED."""
    folder = "cosim.engines.batch."
    found: dict[str, ModuleType] = {folder + name: cuda_threads for name in _REPLACED}

    def import_name(name: str, *context: Any) -> Any:
        return found.get(name) or builtins.__import__(name, *context)

    for name in _KERNELS:
        spec = find_spec(folder + name)
        assert spec is not None, name
        assert spec.loader is not None, name
        module = module_from_spec(spec)
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": import_name}  # what its import statements call
        spec.loader.exec_module(module)
        found[folder + name] = module
    return {name: found[folder + name] for name in _KERNELS}
