"""Noise of a candidate when its sample gate freezes it: from each device through its transfer to the hold node.

Every diode makes a current into a line that follows with tau = C / g_m and adds the noise of what flows into it:

    tau_i dx_i/dt = sum_j g_ij x_j - x_i + w_i        x: noise of the current in a diode, g: copies and weights

w_i is white, with the one-sided density of all devices on the node, 2 q I each (`DeviceNoise.physical`). Covariances P
of the lines then follow from

    P_ij (1/tau_i + 1/tau_j) = sum_k g_ik P_kj / tau_i + sum_k g_jk P_ik / tau_j + [i = j] S_i / (2 tau_i^2)

so that a single line has S g_m / (4 C), and a signal's own two lines are correlated as they are. The sample gate, a
resistance much smaller than 1/g_m, adds g_m^2 k T C_c / (C_h (C_h + C_c)) between the diode's and the hold capacitance.
Flicker is what its density gives from 1 Hz to the pole of the candidate: what is slower is the same in all frames of an
inference, as mismatch is. Inputs and bias pins are ideal; the hold capacitor keeps the sum, one number a decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import PEDESTAL_STRENGTH, net
from cosim.design import Design
from cosim.engines.behavioral.loads import Loads, loads_of
from cosim.ir.nodes import And, Memory, Pedestal, Rectifier
from cosim.variation.noise import Noise

Array = NDArray[np.float64]
CHARGE = 1.602176634e-19  # C
FLICKER_FROM = 1.0  # Hz
_LEAST = 1e-13  # A; a diode that carries less is taken to be as slow as this one
Key = tuple[str, str, bool]  # of a signal or a pin; its line, "p", "n", "bias" or "candidate"; whether it is read late


class Currents(Protocol):
    """What signals carry."""

    def __call__(self, source: str, *, late: bool) -> Array:
        """The current of a signal, or of what a row reads of it late, (n, time), ampere."""
        ...


@dataclass(frozen=True)
class Flow:
    """Devices of one kind on a node: their current in ampere, and through how many unit devices it flows."""

    kind: str
    current: Array
    units: Array | float


@dataclass(frozen=True)
class Line:
    """A diode's node. lag: s; white: one-sided density of what flows in, A^2/Hz; drifts: flicker likewise, at 1 Hz with
    its exponent; into: the lines whose noise arrives, and how much of it."""

    lag: Array
    white: Array
    drifts: tuple[tuple[Array, float], ...]
    into: tuple[tuple[Key, Array | float], ...]


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """A design's noise in one condition. u_t: thermal voltage, V; scale: by which its currents are those of a trace."""

    design: Design
    noise: Noise
    loads: Loads
    u_t: float
    scale: float = 1.0


def noise_model(design: Design, noise: Noise, u_t: float, scale: float = 1.0) -> NoiseModel:
    """Raises InputError that names a unit whose noise is not modelled."""
    return NoiseModel(design, noise, loads_of(design, noise.fit), u_t, scale)


class Candidates:
    """The noise of candidates at the currents of one evaluation."""

    def __init__(self, model: NoiseModel, currents: Currents) -> None:
        self.model, self.currents = model, currents
        self.graph, self.assembly = model.design.graph, model.design.assembly
        self.lines: dict[Key, Line] = {}
        self.sources: dict[Key, frozenset[Key]] = {}
        self.shared: dict[tuple[Key, Key], Array | float] = {}

    def sigma(self, node: Memory, candidate: Array) -> Array:
        """Standard deviation of a memory's candidate as it is frozen, ampere, (n, time)."""
        if self.model.noise.flat:
            return np.full(candidate.shape, self.model.noise.flat)
        held, key = self.model.loads.held[node.name], (node.name, "candidate", False)
        diode = Flow("cell_p", np.maximum(self.model.scale * candidate, _LEAST), 1.0)
        flows, into = self._row(node.name)
        self.lines[key] = self._line(diode, held.candidate + held.hold, flows, into)
        share = held.candidate / (held.hold * (held.hold + held.candidate))
        gate = self._conductance(diode) ** 2 * CHARGE * self.model.u_t * share
        return np.sqrt(self.covariance(key, key) + self._drift(key) + gate) / self.model.scale

    def sigma_of(self, signal: str) -> Array:
        """Of the current that a signal's line p carries, ampere, (n, time)."""
        key = (signal, "p", False)
        return np.sqrt(self.covariance(key, key) + self._drift(key)) / self.model.scale

    def covariance(self, a: Key, b: Key) -> Array | float:
        """Of two lines, A^2, without flicker."""
        if not self._sources(a) & self._sources(b):
            return 0.0
        pair = (a, b) if a <= b else (b, a)
        if pair not in self.shared:
            one, other = self.line(a), self.line(b)
            total = sum((gain * self.covariance(key, b) for key, gain in one.into), np.float64(0.0)) / one.lag
            total = (
                total + sum((gain * self.covariance(a, key) for key, gain in other.into), np.float64(0.0)) / other.lag
            )
            if a == b:
                total = total + one.white / (2 * one.lag**2)
            self.shared[pair] = total / (1 / one.lag + 1 / other.lag)
        return self.shared[pair]

    def _sources(self, key: Key) -> frozenset[Key]:
        """The lines whose noise is in one, itself included."""
        if key not in self.sources:
            self.sources[key] = frozenset([key]).union(*(self._sources(other) for other, _ in self.line(key).into))
        return self.sources[key]

    def _drift(self, target: Key) -> Array | float:
        """Variance by flicker from FLICKER_FROM to the pole of a line, A^2."""
        end = np.maximum(1 / (2 * np.pi * self.line(target).lag), FLICKER_FROM)

        def arriving(key: Key) -> Array | float:
            line = self.line(key)
            own = sum((density * _over(end, exponent) for density, exponent in line.drifts), np.float64(0.0))
            return own + sum((gain**2 * arriving(other) for other, gain in line.into), np.float64(0.0))

        return arriving(target)

    def line(self, key: Key) -> Line:
        """A line, its noise and what feeds it."""
        if key not in self.lines:
            name, end, late = key
            if end == "bias":
                diode = Flow("cell_n", np.asarray(self._pin(name)), self.model.loads.diodes[name])
                self.lines[key] = self._line(diode, self.model.loads.of(name), [], [])
            else:
                current = np.maximum(self._strength(name) * self._current(name, late=late), _LEAST)
                devices = self.graph.units * self._strength(name)
                diode, copy = (Flow(kind, current, devices) for kind in (f"mirror_{end}", "mirror_p"))
                flows, into = ([copy], [((name, "p", late), 1.0)]) if end == "n" else self._feeding(name, late=late)
                self.lines[key] = self._line(diode, self.model.loads.of(f"{net(name)}_{end}"), flows, into)
        return self.lines[key]

    def _feeding(self, name: str, *, late: bool) -> tuple[list[Flow], list[tuple[Key, Array | float]]]:
        """What makes the current in a signal's line p; inputs come from outside."""
        match self.graph.nodes[name]:
            case Rectifier():
                return self._row(name)
            case Memory():
                level = self._current(name, late=late) - self.model.scale * self.graph.i_pedestal
                parts = [(self.model.loads.levels, np.maximum(level, 0.0))]
                parts += [(self.model.loads.sinks, np.asarray(self.model.scale * self.graph.i_pedestal))]
                found = [self._sunk(pins[name], current) for pins, current in parts if name in pins]
                return [flow for flow, _ in found], [arriving for _, arriving in found]
            case _:
                return [], []

    def _sunk(self, pin: str, current: Array) -> tuple[Flow, tuple[Key, Array | float]]:
        """Devices of the cell on the line of a bias pin."""
        each = self._pin(pin) / self.model.loads.diodes[pin]
        return Flow("cell_n", current, np.maximum(current / each, 1.0)), (
            (pin, "bias", False),
            current / self._pin(pin),
        )

    def _row(self, target: str) -> tuple[list[Flow], list[tuple[Key, Array | float]]]:
        """The weights of a row."""
        flows, into = list[Flow](), list[tuple[Key, Array | float]]()
        for source, weight in self.graph.into(target):
            mirror, current = self.graph.mirrors[source, target], self._current(source, late=weight.late)
            arriving = abs(mirror.realised) * current
            if isinstance(self.graph.nodes[source], And):
                flow, gain = self._sunk(self.assembly.steering[source, target], arriving)
                flows, into = [*flows, flow], [*into, gain]
            elif mirror.count:
                end = "n" if mirror.count > 0 else "p"
                flows.append(Flow(f"mirror_{end}", arriving, abs(mirror.count)))
                into.append(((source, end, weight.late), mirror.realised / self._strength(source)))
        return flows, into

    def _line(
        self, diode: Flow, farad: float, flows: Sequence[Flow], into: Sequence[tuple[Key, Array | float]]
    ) -> Line:
        fit, white, drifts = self.model.noise.fit, np.float64(0.0), list[tuple[Array, float]]()
        for flow in (diode, *flows):
            device, each = fit.devices[flow.kind], flow.current / flow.units
            thermal = device.factor(each) if self.model.noise.card else device.physical(each)
            white = white + 2 * CHARGE * flow.current * thermal
            drifts.append((2 * CHARGE * flow.current * device.drift(each), device.exponent))
        return Line(farad / self._conductance(diode), np.asarray(white), tuple(drifts), tuple(into))

    def _conductance(self, diode: Flow) -> Array:
        slope = self.model.noise.fit.devices[diode.kind].slope(diode.current / diode.units)
        return diode.current / (slope * self.model.u_t)

    def _current(self, name: str, *, late: bool) -> Array:
        return self.model.scale * self.currents(name, late=late)

    def _pin(self, pin: str) -> float:
        return self.model.scale * self.assembly.bias_pins[pin]

    def _strength(self, name: str) -> int:
        """How much stronger the diodes of a signal are built."""
        return PEDESTAL_STRENGTH if isinstance(self.graph.nodes[name], Pedestal) else 1


def _over(end: Array, exponent: float) -> Array:
    """The integral of f^-exponent from FLICKER_FROM to `end`, Hz."""
    if abs(exponent - 1) < 1e-6:
        return np.log(end / FLICKER_FROM)
    power = 1 - exponent
    return (end**power - FLICKER_FROM**power) / power
