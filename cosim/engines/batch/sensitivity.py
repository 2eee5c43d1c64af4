"""Derivatives of currents through sources by deviations of transistors and by current sources; see `adjoint`."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import thread_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe
from cosim.engines.batch.adjoint import AdjointWorkspace, RecordedSteps, adjoint_transient
from cosim.engines.batch.arrays import ORDER
from cosim.engines.batch.lanes import LANES, aligned_zeros
from cosim.engines.batch.operating_point import BenchTile, clamped_rows, net_voltages, new_tile, operating_points
from cosim.engines.batch.simulator import (
    advance_benches,
    assemble_benches,
    net_probes,
    probe_buffer,
    unsupported_reason,
)
from cosim.engines.engine import Waveforms

Array = NDArray[np.float64]


class Reading(NamedTuple):
    """A term of an objective: the simulated current of a source or a transistor at some times, with weights.

    probe: a transistor must be a three-terminal device, and the size of its current counts; times: (n,), s; weights:
    (n,). Currents between two steps are interpolated linearly.
    """

    probe: Current | DrainCurrent
    times: Array
    weights: Array


Objective = Sequence[Sequence[Reading]]  # of each bench


@dataclass(frozen=True, eq=False)
class RecordedTile:
    """The simulated transients of a tile's benches with all their steps.

    times, breakpoints: of each bench, s; rows: V and A, (steps + 1, nets and probes, LANES), with the operating point
    at time 0 first; the last row of a bench with fewer steps is repeated. clamps: unknowns and conductances, S, that
    pulled them at the operating point, (n, 2).
    """

    tile: BenchTile
    probes: tuple[Probe, ...]
    times: tuple[Array, ...]
    breakpoints: tuple[Array, ...]
    rows: Array
    clamps: Array

    def waveforms(self, lane: int) -> Waveforms:
        """Return the simulated waveforms of the bench in a lane."""
        first = len(self.tile.circuit.net)
        time = self.times[lane]
        rows = self.rows[1 : len(time) + 1, first:, lane]
        return Waveforms(time, {probe: rows[:, k] for k, probe in enumerate(self.probes)})


@dataclass(frozen=True, eq=False)
class Gradients:
    """Derivatives of objectives of simulated currents, by deviations of transistors and by currents of sources.

    vt_shift, ln_beta: by threshold shift, A/V, and by ln of the current factor, A, (objectives, benches, transistors);
    current: by the current of each source, A/A, (objectives, benches, sources).
    """

    transistors: tuple[str, ...]
    vt_shift: Array
    ln_beta: Array
    sources: tuple[str, ...]
    current: Array


def record(benches: Sequence[Bench], timeout: float) -> RecordedTile:
    """Simulate at most LANES benches of one circuit and record all steps, 64 B for each step and net.

    timeout: seconds of processor time. Raises SimulationTimeout and Unsupported, as `simulator.solve_benches` does.
    """
    deadline = thread_time() + timeout
    circuit, flat = assemble_benches(benches)
    probes = (*net_probes(circuit), *benches[0].probes)
    saved, points = probe_buffer(circuit, probes), operating_points(circuit, benches, flat)
    tile = new_tile(circuit, benches[0], points)
    tile.state.limits[ORDER] = 2.0  # the way back knows the formulas up to this order
    results = advance_benches(tile, benches, points, saved, deadline)
    for result, bench in zip(results, benches, strict=True):
        if reason := unsupported_reason(circuit, result, bench):
            raise reason
    rows = np.zeros((1 + max(len(one.time) for one in results), len(probes), LANES))
    for lane, (one, point) in enumerate(zip(results, points, strict=True)):
        rows[0, : len(circuit.net), lane] = net_voltages(circuit, point)
        rows[1 : len(one.time) + 1, :, lane] = one.probes.T
        rows[len(one.time) + 1 :, :, lane] = one.probes[:, -1]
    clamps = clamped_rows(circuit, benches[0], flat[0])[:, :2].copy()
    times, breakpoints = tuple(one.time for one in results), tuple(one.time for one in points)
    return RecordedTile(tile, benches[0].probes, times, breakpoints, rows, clamps)


def gradients(recorded: RecordedTile, objectives: Sequence[Objective]) -> Gradients:
    """Compute the derivatives of each objective by every parameter, for each bench of a recorded tile.

    One pass back through the transients computes all of them.
    """
    tile, count = recorded.tile, len(objectives)
    circuit, s = tile.circuit, tile.circuit.arrays
    nets = len(circuit.net)

    def rows(n: int) -> Array:
        return aligned_zeros(count * n).reshape(count, n, LANES)

    workspace = AdjointWorkspace(
        now=rows(nets),
        next=rows(nets),
        after=rows(nets),
        charge=aligned_zeros(nets),
        device=aligned_zeros(len(s.three_terminal)),
        side=aligned_zeros(circuit.nets.unknowns + 1),
        three_terminal=rows(4 * len(s.three_terminal)),
        four_terminal=rows(2 * len(s.four_terminal)),
        source=rows(len(s.current_sources)),
    )
    adjoint_transient(s, circuit.matrix.lu, tile.values, _recorded_steps(recorded, objectives), workspace)
    return _by_transistor(recorded, workspace)


def _by_transistor(recorded: RecordedTile, found: AdjointWorkspace) -> Gradients:
    """Return the gradient by transistor: the lower one of a cascode moves the upper one's difference the other way."""
    circuit, count = recorded.tile.circuit, len(recorded.times)
    names: list[str] = []
    parts: list[tuple[Array, Array]] = []
    for k, device in enumerate(circuit.three_terminal):
        own, more = found.three_terminal[:, 4 * k : 4 * k + 2], found.three_terminal[:, 4 * k + 2 : 4 * k + 4]
        pairs = [own - more, more] if len(device.parts) > 1 else [own]
        for name, pair in zip(device.parts, pairs, strict=True):
            names.append(name)
            parts.append((pair[:, 0], pair[:, 1]))
    for k, device in enumerate(circuit.four_terminal):
        names.append(device.parts[0])
        parts.append((found.four_terminal[:, 2 * k], found.four_terminal[:, 2 * k + 1]))
    volts, factors = (np.stack(values, axis=-1)[:, :count] for values in zip(*parts, strict=True))
    numbers = {index: name.removeprefix("i") for name, index in circuit.source.items()}
    sources = tuple(numbers[index] for index in circuit.arrays.current_sources[:, 2].tolist())
    return Gradients(tuple(names), volts, factors, sources, found.source.transpose(0, 2, 1)[:, :count])


def _bdf_coefficients(recorded: RecordedTile) -> Array:
    """Return a0, a1 and a2 of every step, (steps + 3, 3, LANES), 1/s, as `set_coefficients` computed them."""
    found = np.zeros((len(recorded.rows) + 2, 3, LANES))
    found[:, 0] = 1.0  # where lanes without a bench stand
    for lane, (own, breakpoints) in enumerate(zip(recorded.times, recorded.breakpoints, strict=True)):
        time = np.concatenate([[0.0], own])
        h = np.diff(time)
        after_breakpoint = np.isin(time[:-1], breakpoints)
        ratio = np.where(after_breakpoint, 0.0, h / np.concatenate([[1.0], h[:-1]]))
        found[:, 0, lane] = 1.0 / h[-1]
        found[0, 0, lane] = 0.0
        last = len(time)
        found[1:last, 0, lane] = (1.0 + 2.0 * ratio) / (1.0 + ratio) / h
        found[1:last, 1, lane] = -(1.0 + ratio) / h
        found[1:last, 2, lane] = ratio * ratio / (1.0 + ratio) / h
    return found


def _recorded_steps(recorded: RecordedTile, objectives: Sequence[Objective]) -> RecordedSteps:
    """Return the steps of the transients with the weights of the objectives at each."""
    nets, devices = _weights(recorded, objectives)
    count, last = len(recorded.rows), int(max([0, *nets[:, 0], *devices[:, 0]]))
    step, *places = nets[:, :4].astype(np.int64).T
    weighted = np.unique(step)
    net_weight_index = np.full(count, -1, dtype=np.int64)
    net_weight_index[weighted] = np.arange(len(weighted))
    net_weights = np.zeros((len(weighted), len(objectives), len(recorded.tile.circuit.net), LANES))
    np.add.at(net_weights, (net_weight_index[step], *places), nets[:, 4])
    devices = devices[np.lexsort(devices.T[::-1])]
    step, objective, place, lane = devices[:, :4].astype(np.int64).T
    device_weight = np.zeros((len(devices), LANES))
    device_weight[np.arange(len(devices)), lane] = devices[:, 4]
    return RecordedSteps(
        voltage=recorded.rows,
        alpha=_bdf_coefficients(recorded),
        net_weight_index=net_weight_index,
        net_weights=net_weights,
        device_start=np.searchsorted(step, np.arange(count + 1)).astype(np.int64),
        device=np.column_stack([objective, place]),
        device_weight=device_weight,
        clamps=recorded.clamps,
        last=last,
    )


def _weights(recorded: RecordedTile, objectives: Sequence[Objective]) -> tuple[Array, Array]:
    """Return the weights of nets and those of three-terminal devices in all objectives.

    Each is (n, 5): step, objective, net or device, lane, weight.
    """
    circuit = recorded.tile.circuit
    place = {name: k for k, device in enumerate(circuit.three_terminal) for name in device.parts}
    nets: list[tuple[float, ...]] = []
    devices: list[tuple[float, ...]] = []
    for k, objective in enumerate(objectives):
        for lane, readings in enumerate(objective):
            for probe, times, weights in readings:
                steps = _interpolation_weights(recorded.times[lane], times, weights)
                if isinstance(probe, DrainCurrent):
                    devices += [(step, k, place[probe.device], lane, weight) for step, weight in steps]
                    continue
                behind, direction = circuit.nets.behind(probe.source)
                for step, weight in steps:
                    nets += [(step, k, circuit.net[net], lane, direction * weight) for net in behind]
    return np.array(nets).reshape(-1, 5), np.array(devices).reshape(-1, 5)


def _interpolation_weights(time: Array, times: Array, weights: Array) -> list[tuple[int, float]]:
    """Return (step, weight) of what is read between two steps; step 0 is the operating point."""
    left = np.clip(np.searchsorted(time, times, side="right") - 1, 0, len(time) - 2)
    share = np.clip((times - time[left]) / (time[left + 1] - time[left]), 0.0, 1.0)
    pairs = [*zip(left + 1, (1 - share) * weights, strict=True), *zip(left + 2, share * weights, strict=True)]
    return [(int(step), float(weight)) for step, weight in pairs]
