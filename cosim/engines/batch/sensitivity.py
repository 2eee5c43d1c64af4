"""Derivatives of what flows through sources, by what transistors drew and by current sources; see `adjoint`."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current
from cosim.engines.batch.adjoint import Found, Steps, Work, go_back
from cosim.engines.batch.assemble import Assembled
from cosim.engines.batch.lanes import LANES, blank
from cosim.engines.batch.simulator import assemble_benches
from cosim.engines.batch.solve import Tile, march_tile, net_probes, rest_tile
from cosim.engines.engine import Waveforms

Array = NDArray[np.float64]


class Reading(NamedTuple):
    """What an objective adds: the current through a source, from its first net to its second, at some times, weighed.

    times, weights: (n,), s and 1; between two steps a straight line is read, as a readout is.
    """

    source: str
    times: Array
    weights: Array


Objective = Sequence[Sequence[Reading]]  # of each bench


@dataclass(frozen=True, eq=False)
class Recorded:
    """A tile and its steps. time (steps,), s; rows (steps + 1, nets and sources, LANES), the rest at time 0 first."""

    circuit: Assembled
    tile: Tile
    sources: tuple[str, ...]
    benches: int
    time: Array
    rows: Array

    def waveforms(self, lane: int) -> Waveforms:
        """The currents through the sources of a bench."""
        first = len(self.circuit.net)
        return Waveforms(
            self.time, {Current(name): self.rows[1:, first + k, lane] for k, name in enumerate(self.sources)}
        )


@dataclass(frozen=True, eq=False)
class Gradients:
    """vt_shift (objectives, benches, transistors), A/V, and ln_beta, A, of `transistors`; sources likewise, A/A."""

    transistors: tuple[str, ...]
    vt_shift: Array
    ln_beta: Array
    sources: tuple[str, ...]
    current: Array


def record(benches: Sequence[Bench], sources: tuple[str, ...], timeout: float) -> Recorded:
    """March at most LANES benches of one circuit and keep all steps: 64 B for each of them and each net.

    Raises Stuck, Late and Unsupported, see `solve_tile`.
    """
    deadline = monotonic() + timeout
    circuit, elements = assemble_benches(benches)
    probes = (*net_probes(circuit), *map(Current, sources))
    tile = rest_tile(circuit, benches, elements)
    first = np.zeros((1, len(probes), LANES))
    first[0, : len(circuit.net)] = tile.values.volt
    time, rows = march_tile(circuit, tile, probes, deadline)
    return Recorded(circuit, tile, sources, len(benches), time, np.concatenate([first, rows]))


def gradients(recorded: Recorded, objectives: Sequence[Objective]) -> Gradients:
    """Derivatives of each objective of each bench, all at once."""
    circuit, tile, count = recorded.circuit, recorded.tile, len(objectives)
    s, nets = circuit.structure, len(circuit.net)

    def rows(n: int) -> Array:
        return blank(count * n).reshape(count, n, LANES)

    seed_at, seeds = _seeds(recorded, objectives)
    steps = Steps(recorded.rows, _factors(recorded), seed_at, seeds, tile.held)
    work = Work(rows(nets), rows(nets), rows(nets), blank(nets), blank(circuit.nets.unknowns + 1))
    found = Found(rows(4 * len(s.tied)), rows(2 * len(s.floating)), rows(len(s.currents)))
    go_back(s, circuit.solver, tile.values, steps, work, found)
    return _gathered(recorded, found)


def _gathered(recorded: Recorded, found: Found) -> Gradients:
    """By transistor: of a cascode the lower one moves the difference the other way."""
    circuit, count = recorded.circuit, recorded.benches
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


def _factors(recorded: Recorded) -> Array:
    """a0, a1 and a2 of every step, as the march had them."""
    time = np.concatenate([[0.0], recorded.time])
    h = np.diff(time)
    after_corner = np.isin(time[:-1], recorded.tile.march.corner)
    found = np.zeros((len(time) + 2, 3))
    ratio = np.where(after_corner, 0.0, h / np.concatenate([[1.0], h[:-1]]))
    found[1:-2, 0] = (1.0 + 2.0 * ratio) / (1.0 + ratio) / h
    found[1:-2, 1] = -(1.0 + ratio) / h
    found[1:-2, 2] = ratio * ratio / (1.0 + ratio) / h
    return found


def _seeds(recorded: Recorded, objectives: Sequence[Objective]) -> tuple[NDArray[np.int64], Array]:
    """`Steps.seed_at` and `Steps.seeds`."""
    circuit, time = recorded.circuit, recorded.time
    at: dict[int, int] = {}
    places: list[tuple[int, int, int, int, float]] = []
    for k, objective in enumerate(objectives):
        for lane, readings in enumerate(objective):
            for source, times, weights in readings:
                nets, direction = circuit.nets.behind(source)
                for step, weight in _between(time, times, direction * weights):
                    slot = at.setdefault(step, len(at))
                    places += [(slot, k, circuit.net[net], lane, weight) for net in nets]
    seeds = np.zeros((len(at), len(objectives), len(circuit.net), LANES))
    for slot, k, net, lane, weight in places:
        seeds[slot, k, net, lane] += weight
    seed_at = np.full(len(time) + 1, -1, dtype=np.int64)
    for step, slot in at.items():
        seed_at[step] = slot
    return seed_at, seeds


def _between(time: Array, times: Array, weights: Array) -> list[tuple[int, float]]:
    """(step, weight) for what is read between two steps; step 0 is the rest."""
    left = np.clip(np.searchsorted(time, times, side="right") - 1, 0, len(time) - 2)
    share = np.clip((times - time[left]) / (time[left + 1] - time[left]), 0.0, 1.0)
    pairs = [*zip(left + 1, (1 - share) * weights, strict=True), *zip(left + 2, share * weights, strict=True)]
    return [(int(step), float(weight)) for step, weight in pairs]
