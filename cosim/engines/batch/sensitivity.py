"""Derivatives of what flows through sources, by what transistors drew and by current sources; see `adjoint`."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import thread_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe
from cosim.engines.batch.adjoint import AdjointGradient, RecordedSteps, Work, go_back
from cosim.engines.batch.assemble import Assembled
from cosim.engines.batch.lanes import LANES, blank
from cosim.engines.batch.rest import held_rows, net_voltages, rest_benches
from cosim.engines.batch.simulator import assemble_benches
from cosim.engines.batch.solve import march_all, net_probes, room_for, why_not
from cosim.engines.batch.tile import BenchTile, tile_for
from cosim.engines.engine import Waveforms

Array = NDArray[np.float64]


class Reading(NamedTuple):
    """A term of an objective: at some times the current through a source, or the size of a transistor's current.

    The transistor's source is on its bulk. times, weights: (n,), s and 1; between two steps a straight line is read.
    """

    probe: Current | DrainCurrent
    times: Array
    weights: Array


Objective = Sequence[Sequence[Reading]]  # of each bench


@dataclass(frozen=True, eq=False)
class RecordedTile:
    """A tile and its steps. times, corners: of each bench, s; rows (steps + 1, nets and probes, LANES), the rest at
    time 0 first; where a bench has fewer steps than another, its last row stays. held (n, 2): rows and siemens that
    pulled at rest."""

    circuit: Assembled
    tile: BenchTile
    probes: tuple[Probe, ...]
    times: tuple[Array, ...]
    corners: tuple[Array, ...]
    rows: Array
    held: Array

    def waveforms(self, lane: int) -> Waveforms:
        """The probes of a bench."""
        first = len(self.circuit.net)
        time = self.times[lane]
        rows = self.rows[1 : len(time) + 1, first:, lane]
        return Waveforms(time, {probe: rows[:, k] for k, probe in enumerate(self.probes)})


@dataclass(frozen=True, eq=False)
class Gradients:
    """vt_shift (objectives, benches, transistors), A/V, and ln_beta, A, of `transistors`; sources likewise, A/A."""

    transistors: tuple[str, ...]
    vt_shift: Array
    ln_beta: Array
    sources: tuple[str, ...]
    current: Array


def record(benches: Sequence[Bench], timeout: float) -> RecordedTile:
    """March at most LANES benches of one circuit and keep all steps: 64 B for each of them and each net.

    Raises Late and Unsupported, see `solve_tile`.
    """
    deadline = thread_time() + timeout
    circuit, flat = assemble_benches(benches)
    probes = (*net_probes(circuit), *benches[0].probes)
    saved, rests = room_for(circuit, probes), rest_benches(circuit, benches, flat)
    tile = tile_for(circuit, benches[0], rests)
    marched = march_all(tile, rests, saved, deadline)
    for one, bench in zip(marched, benches, strict=True):
        if reason := why_not(circuit, one, bench):
            raise reason
    rows = np.zeros((1 + max(len(one.time) for one in marched), len(probes), LANES))
    for lane, (one, rest) in enumerate(zip(marched, rests, strict=True)):
        rows[0, : len(circuit.net), lane] = net_voltages(circuit, rest)
        rows[1 : len(one.time) + 1, :, lane] = one.probes.T
        rows[len(one.time) + 1 :, :, lane] = one.probes[:, -1]
    held = held_rows(circuit, benches[0], flat[0])[:, :2].copy()
    corners = tuple(one.ramps.corner for one in rests)
    return RecordedTile(circuit, tile, benches[0].probes, tuple(one.time for one in marched), corners, rows, held)


def gradients(recorded: RecordedTile, objectives: Sequence[Objective]) -> Gradients:
    """Derivatives of each objective of each bench, all at once."""
    circuit, tile, count = recorded.circuit, recorded.tile, len(objectives)
    s, nets = circuit.structure, len(circuit.net)

    def rows(n: int) -> Array:
        return blank(count * n).reshape(count, n, LANES)

    found = AdjointGradient(rows(4 * len(s.tied)), rows(2 * len(s.floating)), rows(len(s.currents)))
    side = blank(circuit.nets.unknowns + 1)
    work = Work(rows(nets), rows(nets), rows(nets), blank(nets), blank(len(s.tied)), side, found)
    go_back(s, circuit.program.solver, tile.values, _steps(recorded, objectives), work)
    return _gathered(recorded, found)


def _gathered(recorded: RecordedTile, found: AdjointGradient) -> Gradients:
    """Return the derivatives by transistor: of a cascode the lower one moves the difference the other way."""
    circuit, count = recorded.circuit, len(recorded.times)
    names: list[str] = []
    parts: list[tuple[Array, Array]] = []
    for k, device in enumerate(circuit.tied):
        own, more = found.tied[:, 4 * k : 4 * k + 2], found.tied[:, 4 * k + 2 : 4 * k + 4]
        pairs = [own - more, more] if len(device.parts) > 1 else [own]
        for name, pair in zip(device.parts, pairs, strict=True):
            names.append(name)
            parts.append((pair[:, 0], pair[:, 1]))
    for k, device in enumerate(circuit.floating):
        names.append(device.parts[0])
        parts.append((found.floating[:, 2 * k], found.floating[:, 2 * k + 1]))
    volts, factors = (np.stack(values, axis=-1)[:, :count] for values in zip(*parts, strict=True))
    numbers = {index: name for name, index in circuit.source.items()}
    sources = tuple(numbers[index] for index in circuit.structure.currents[:, 2].tolist())
    return Gradients(tuple(names), volts, factors, sources, found.source.transpose(0, 2, 1)[:, :count])


def _factors(recorded: RecordedTile) -> Array:
    """a0, a1 and a2 of every step, as the march had them."""
    found = np.zeros((len(recorded.rows) + 2, 3, LANES))
    found[:, 0] = 1.0  # where lanes without a bench stand
    for lane, (own, corner) in enumerate(zip(recorded.times, recorded.corners, strict=True)):
        time = np.concatenate([[0.0], own])
        h = np.diff(time)
        after_corner = np.isin(time[:-1], corner)
        ratio = np.where(after_corner, 0.0, h / np.concatenate([[1.0], h[:-1]]))
        found[:, 0, lane] = 1.0 / h[-1]
        found[0, 0, lane] = 0.0
        last = len(time)
        found[1:last, 0, lane] = (1.0 + 2.0 * ratio) / (1.0 + ratio) / h
        found[1:last, 1, lane] = -(1.0 + ratio) / h
        found[1:last, 2, lane] = ratio * ratio / (1.0 + ratio) / h
    return found


class _Weight(NamedTuple):
    """The weight of a net, or of a tied device, in an objective of a lane at a step."""

    step: int
    objective: int
    place: int
    lane: int
    weight: float


def _steps(recorded: RecordedTile, objectives: Sequence[Objective]) -> RecordedSteps:
    """Return everything on the way back that the march has given, and the weights of the objectives."""
    nets, own = _weights(recorded, objectives)
    seeded = {step: k for k, step in enumerate(sorted({one.step for one in nets}))}
    count = len(recorded.rows)
    seed_at = np.full(count, -1, dtype=np.int64)
    seeds = np.zeros((len(seeded), len(objectives), len(recorded.circuit.net), LANES))
    for one in nets:
        seed_at[one.step] = seeded[one.step]
        seeds[seeded[one.step], one.objective, one.place, one.lane] += one.weight
    own.sort()
    weights = np.zeros((len(own), LANES))
    for k, one in enumerate(own):
        weights[k, one.lane] = one.weight
    return RecordedSteps(
        volt=recorded.rows,
        factor=_factors(recorded),
        seed_at=seed_at,
        seeds=seeds,
        own_at=np.searchsorted([one.step for one in own], np.arange(count + 1)).astype(np.int64),
        own=np.array([(one.objective, one.place) for one in own], dtype=np.int64).reshape(-1, 2),
        own_weight=weights,
        held=recorded.held,
        last=max((one.step for one in (*nets, *own)), default=0),
    )


def _weights(recorded: RecordedTile, objectives: Sequence[Objective]) -> tuple[list[_Weight], list[_Weight]]:
    """Return the weights of nets and those of tied devices in all objectives."""
    circuit = recorded.circuit
    place = {name: k for k, device in enumerate(circuit.tied) for name in device.parts}
    nets: list[_Weight] = []
    own: list[_Weight] = []
    for k, objective in enumerate(objectives):
        for lane, readings in enumerate(objective):
            for probe, times, weights in readings:
                if isinstance(probe, DrainCurrent):
                    at = place[probe.device]
                    own += [
                        _Weight(step, k, at, lane, part)
                        for step, part in _between(recorded.times[lane], times, weights)
                    ]
                    continue
                behind, direction = circuit.nets.behind(probe.source)
                for step, part in _between(recorded.times[lane], times, direction * weights):
                    nets += [_Weight(step, k, circuit.net[net], lane, part) for net in behind]
    return nets, own


def _between(time: Array, times: Array, weights: Array) -> list[tuple[int, float]]:
    """(step, weight) for what is read between two steps; step 0 is the rest."""
    left = np.clip(np.searchsorted(time, times, side="right") - 1, 0, len(time) - 2)
    share = np.clip((times - time[left]) / (time[left + 1] - time[left]), 0.0, 1.0)
    pairs = [*zip(left + 1, (1 - share) * weights, strict=True), *zip(left + 2, share * weights, strict=True)]
    return [(int(step), float(weight)) for step, weight in pairs]
