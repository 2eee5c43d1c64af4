"""Measures a device in a simulator: many copies of it in one deck, each at voltages of its own.

Voltages, currents and charges are those of an n device here, too; a p device is measured at the opposite ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.circuit.bench import Analysis, Bench, Current, Dc, Probe, Tolerances, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Mos, Source
from cosim.engines.batch.tables import Array, GridAxis, Kind
from cosim.engines.engine import DEFAULT_TIMEOUT, Failure, Simulator, Waveforms
from cosim.errors import SimulationError
from cosim.technology.types import Technology

# gmin is that of the networks' runs, so that a table leaks as they do.
STATIC = Tolerances(abstol=1e-18, vntol=1e-9, reltol=1e-6)
# xmu 0 is the backward Euler rule: the charge that flows in a step is its length times the current at its end.
FAST = replace(STATIC, xmu=0.0, trtol=1e9, chgtol=1e-3)
_RAMP = 1e-18  # s from point to point: no transistor conducts so fast
_COPIES = 600  # in one deck


@dataclass(frozen=True)
class Stack:
    """The device under measurement, or a cascode, with its deviations: vt_shifts, V, and betas, each (lower, upper)."""

    kind: Kind
    vt_shifts: tuple[float, float] = (0.0, 0.0)
    betas: tuple[float, float] = (1.0, 1.0)

    @property
    def sign(self) -> int:
        """1 for an n device, -1 for a p device."""
        return 1 if self.kind.polarity == "n" else -1

    def devices(self, copy: int) -> Iterator[Mos]:
        """Yield the transistors of one copy: nets s, d and m (between two) with the copy's number, gate g, bulk on
        ground."""
        kind, ends = self.kind, (f"d{copy}", f"g{copy}", f"s{copy}", GROUND)
        lower = Mos(f"l{copy}", *ends, kind.polarity, kind.w, kind.l)
        lower = replace(lower, vt_shift=self.vt_shifts[0], beta_factor=self.betas[0])
        if kind.cascode is None:
            yield lower
            return
        yield replace(lower, drain=f"m{copy}")
        w, l = kind.cascode  # noqa: E741
        upper = replace(lower, name=f"u{copy}", source=f"m{copy}", w=w, l=l)
        yield replace(upper, vt_shift=self.vt_shifts[1], beta_factor=self.betas[1])


@dataclass(frozen=True)
class Bias:
    """Voltages of the source and of the drain of a copy, V to the bulk."""

    source: float
    drain: float


@dataclass(frozen=True, eq=False)
class DeviceCurrents:
    """(copies, gate): into the drain and out of the source, A; the inner net of a cascode, V, or 0."""

    drain: Array
    source: Array
    middle: Array


@dataclass(frozen=True)
class Laboratory:
    """A technology in its condition, and the simulator that measures it."""

    technology: Technology
    simulator: Simulator

    def run(self, title: str, elements: Iterable[Element], analysis: Analysis, probes: Iterable[Probe]) -> Waveforms:
        """Waveforms of a circuit. Raises SimulationError with the simulator's words, MissingToolError without it."""
        tolerances = FAST if isinstance(analysis, Tran) else STATIC
        circuit = Circuit(title, (), tuple(elements))
        bench = Bench(circuit, self.technology, analysis, tuple(probes), tolerances)
        found = self.simulator.run(bench, DEFAULT_TIMEOUT)
        if isinstance(found, Failure):
            raise SimulationError(f"{title} of {self.technology.name}: {found.kind.value}: {found.detail}")
        return found


def measure_currents(laboratory: Laboratory, stack: Stack, gate: GridAxis, biases: Sequence[Bias]) -> DeviceCurrents:
    """Direct currents at each bias while the gate, to the bulk, goes along its axis."""
    parts = [
        _currents(laboratory, stack, gate, biases[start : start + _COPIES]) for start in range(0, len(biases), _COPIES)
    ]
    return DeviceCurrents(*(np.concatenate(found) for found in zip(*parts, strict=True)))


def _currents(
    laboratory: Laboratory, stack: Stack, gate: GridAxis, biases: Sequence[Bias]
) -> tuple[Array, Array, Array]:
    """Measure currents like `measure_currents`, in one deck."""
    sign, copies = stack.sign, range(len(biases))
    elements: list[Element] = [Source("gate", "v", "g", GROUND, sign * gate.start)]
    for copy, bias in enumerate(biases):
        elements += [replace(device, gate="g") for device in stack.devices(copy)]
        elements += [Source(f"s{copy}", "v", f"s{copy}", GROUND, sign * bias.source)]
        elements += [Source(f"d{copy}", "v", f"d{copy}", GROUND, sign * bias.drain)]
    inner = [Voltage(f"m{copy}") for copy in copies] if stack.kind.cascode else []
    probes = [*(Current(f"{end}{copy}") for end in "ds" for copy in copies), *inner]
    sweep = Dc("v", "gate", sign * gate.start, sign * gate.stop, sign * gate.step)
    waves = laboratory.run("currents", elements, sweep, probes)
    drain, source = (sign * np.array([waves.delivered(f"{end}{copy}") for copy in copies]) for end in "ds")
    assert drain.shape == (len(biases), gate.count), f"{drain.shape} points of {gate.count}"
    middle = sign * np.array([waves.probes[net] for net in inner]) if inner else np.zeros_like(drain)
    return drain, -source, middle


def measure_charges(laboratory: Laboratory, kind: Kind, paths: Array) -> Array:
    """Charge in gate, source and drain of a device whose voltages go along paths, less what it is at 0 V.

    paths (copies, points, 3): gate, source and drain to the bulk, V. Returns the same shape, C, junctions and overlaps
    included. From point to point the voltages ramp so fast that the current is that of charges alone.
    """
    parts = [_charges(laboratory, kind, paths[start : start + _COPIES]) for start in range(0, len(paths), _COPIES)]
    return np.concatenate(parts)


def _charges(laboratory: Laboratory, kind: Kind, paths: Array) -> Array:
    """Measure charges like `measure_charges`, in one deck."""
    stack = Stack(kind._replace(cascode=None))
    times: Array = _RAMP * np.arange(float(paths.shape[1] + 1))
    elements: list[Element] = []
    for copy, path in enumerate(paths):
        elements += stack.devices(copy)
        for end, voltages in zip("gsd", stack.sign * path.T, strict=True):
            ramp = tuple((float(time), float(v)) for time, v in zip(times, [0.0, *voltages], strict=True))
            elements.append(Source(f"{end}{copy}", "v", f"{end}{copy}", GROUND, ramp))
    names = [f"{end}{copy}" for copy in range(len(paths)) for end in "gsd"]
    waves = laboratory.run("charges", elements, Tran(_RAMP, times[-1]), map(Current, names))
    flow = np.array([waves.delivered(name) for name in names])
    total = np.zeros_like(flow)
    np.cumsum(flow[:, 1:] * np.diff(waves.time), axis=1, out=total[:, 1:])
    reached = np.searchsorted(waves.time, times[1:] - 0.01 * _RAMP)
    found = stack.sign * total[:, np.minimum(reached, len(waves.time) - 1)]
    return found.reshape(len(paths), 3, -1).transpose(0, 2, 1)
