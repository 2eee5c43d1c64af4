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

The gate averages over the time in which it closes (`aperture.gate_lag`); of other lines that is left out. A clocked
9T cell decides by a share of that and by what its decision node remembers of the candidate, one line more, whose own
noise is that of M1, M2 and the feedback, their diodes' included (`aperture.Aperture`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import PEDESTAL_STRENGTH, net
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.engines.behavioral.aperture import Aperture, Cells, apertures, gate_lag
from cosim.engines.behavioral.loads import Loads, loads_of
from cosim.network.ir.nodes import And, Memory, Pedestal, Rectifier
from cosim.technology.noise import NoiseFit
from cosim.units.schmitt import Schmitt, SchmittBias
from cosim.variation.noise import NoiseSimulation

Array = NDArray[np.float64]
CHARGE = 1.602176634e-19  # C
FLICKER_FROM = 1.0  # Hz
_LEAST = 1e-13  # A; a diode that carries less is taken to be as slow as this one
Key = tuple[str, str, bool]  # of a signal or a pin; its line, "p", "n", "bias" or "candidate"; whether it is read late


class SignalNoise(Protocol):
    """A function of the behavioral noise model that returns the current of a signal."""

    def __call__(self, source: str, *, late: bool) -> Array:
        """Return the current of a signal, or with `late` that of the frame before, (n, time), ampere."""
        ...


@dataclass(frozen=True)
class Flow:
    """Devices of one kind on a node of the behavioral noise model.

    They have a current in ampere, and so many unit devices through which it flows.
    """

    kind: str
    current: Array
    units: Array | float


@dataclass(frozen=True)
class NoiseNode:
    """A diode's node in the behavioral noise model.

    lag: s; white: one-sided density of what flows in, A^2/Hz; drifts: flicker likewise, at 1 Hz with its exponent;
    into: the lines whose noise arrives, and how much of it.
    """

    lag: Array
    white: Array
    drifts: tuple[tuple[Array, float], ...]
    into: tuple[tuple[Key, Array | float], ...]


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """A design's behavioral noise model in one condition.

    edges: clocked cell -> the edges that set and reset it; u_t: thermal voltage, V; gate: in which a sample gate
    closes, s; scale: by which its currents are those of a trace.
    """

    design: Design
    noise: NoiseSimulation
    loads: Loads
    edges: Mapping[str, tuple[Aperture, Aperture]]
    u_t: float
    gate: float
    scale: float = 1.0


def noise_model(design: Design, noise: NoiseSimulation, u_t: float, scale: float = 1.0) -> NoiseModel:
    """Return the behavioral noise model of a design.

    Raises InputError that names a unit whose noise is not modelled.
    """
    loads, edges = loads_of(design, noise.fit), _edges(design, noise.fit, noise.timing, u_t, scale)
    gate = gate_lag(noise.fit, noise.timing, design.technology.supply, u_t)
    return NoiseModel(design, noise, loads, edges, u_t, gate, scale)


@lru_cache(maxsize=4)
def _edges(
    design: Design, fit: NoiseFit, timing: Timing, u_t: float, scale: float
) -> Mapping[str, tuple[Aperture, Aperture]]:
    """Return the apertures of every clocked 9T cell at its bias currents: cell -> (edge that sets, that resets)."""
    biases = {node.name: design.graph.biases[node.name] for node in design.graph.memories if isinstance(node, Schmitt)}
    if not biases:
        return {}
    thresh, width = (
        np.tile([scale * getattr(bias, pin) for bias in biases.values()], 2) for pin in ("i_thresh", "i_width")
    )
    on = np.repeat([False, True], len(biases))
    stages = len(design.assembly.clocks)
    found = apertures(Cells(thresh, width, on, stages, timing, design.technology.supply, u_t), fit)
    return dict(zip(biases, zip(found, found[len(biases) :], strict=False), strict=True))


class Candidates:
    """Behavioral noise of candidates at the currents of one evaluation."""

    def __init__(self, model: NoiseModel, currents: SignalNoise) -> None:
        self.model, self.currents = model, currents
        self.graph, self.assembly = model.design.graph, model.design.assembly
        self.lines: dict[Key, NoiseNode] = {}
        self.sources: dict[Key, frozenset[Key]] = {}
        self.shared: dict[tuple[Key, Key], Array | float] = {}

    def frozen(self, node: Memory, candidate: Array) -> Array:
        """Return the standard deviation of a memory's noisy candidate while its sample gate is open, A, (n, time)."""
        if self.model.noise.flat:
            return np.full(candidate.shape, self.model.noise.flat)
        held, key = self.model.loads.held[node.name], (node.name, "candidate", False)
        diode = Flow("cell_p", np.maximum(self.model.scale * candidate, _LEAST), 1.0)
        flows, into = self._row(node.name)
        self.lines[key] = self._line(diode, held.candidate + held.hold, flows, into)
        share = held.candidate / (held.hold * (held.hold + held.candidate))
        gate = self._conductance(diode) ** 2 * CHARGE * self.model.u_t * share
        return np.sqrt(self.covariance(key, key) + self._drift(key) + gate) / self.model.scale

    def decided(self, node: Memory, candidate: Array, frozen: Array) -> Array:
        """Return the noise of what a memory decides by, as standard deviation, ampere, (n, time).

        frozen: the standard deviation of its candidate, ampere, (n, time).
        """
        if self.model.noise.flat:
            return frozen
        line = self.lines[node.name, "candidate", False]
        slow = 2 * self.model.gate / line.lag
        frozen = np.sqrt(frozen**2 - line.white / (4 * line.lag) * slow / (1 + slow) / self.model.scale**2)
        if node.name not in self.model.edges:
            return frozen
        asked = self.graph.currents[node.name]
        sets, resets = (self._edge(node.name, candidate, frozen, on=on) for on in (False, True))
        return np.where(candidate < (asked.i_rise + asked.i_fall) / 2, resets, sets)

    def _edge(self, name: str, candidate: Array, frozen: Array, *, on: bool) -> Array:
        edge, key, white = self.model.edges[name][on], (name, "candidate", False), self._white(self._feeds(name, on=on))
        line = (name, "reset" if on else "set", False)
        self.lines[line] = NoiseNode(np.full(candidate.shape, edge.lag), white, (), ((key, 1.0),))
        both, alone = self.covariance(key, line), edge.ran * self.covariance(line, line)
        more = 2 * edge.frozen * edge.tracked * both + edge.tracked**2 * alone + edge.after * white
        return np.sqrt((edge.frozen * frozen) ** 2 + more / self.model.scale**2)

    def _feeds(self, name: str, *, on: bool) -> list[Flow]:
        """Devices that make currents in the decision node: M1, M2 with its diode, and M8 and M7 with theirs."""
        bias = self.graph.biases[name]
        assert isinstance(bias, SchmittBias)
        thresh, width = (np.asarray(self.model.scale * current) for current in (bias.i_thresh, bias.i_width))
        flows = [
            Flow("cell_n", 2 * thresh, 2.0),
            Flow("cell_p", np.maximum(thresh - (width if on else 0), _LEAST), 1.0),
        ]
        return [*flows, Flow("cell_n", 2 * width, 2.0), Flow("cell_p", 2 * width, 2.0)] if on else flows

    def sigma_of(self, signal: str) -> Array:
        """Return the noise of the current on a signal's line p, as standard deviation, ampere, (n, time)."""
        key = (signal, "p", False)
        return np.sqrt(self.covariance(key, key) + self._drift(key)) / self.model.scale

    def covariance(self, a: Key, b: Key) -> Array | float:
        """Return the noise covariance of two lines' currents, A^2, without flicker."""
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
        """Return the lines whose noise arrives in a line, itself included."""
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

    def line(self, key: Key) -> NoiseNode:
        """Return a line of the behavioral noise model with its noise and what feeds it.

        Lines that were asked for are kept.
        """
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
        """Return the devices and the lines that make the current in a signal's line p; none for inputs, which come from
        outside."""
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
        """Return the currents that the weights of a row make, and the lines that arrive in it, each with its gain."""
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
    ) -> NoiseNode:
        drifts = list[tuple[Array, float]]()
        for flow in (diode, *flows):
            device = self.model.noise.fit.devices[flow.kind]
            drifts.append((2 * CHARGE * flow.current * device.drift(flow.current / flow.units), device.exponent))
        return NoiseNode(farad / self._conductance(diode), self._white((diode, *flows)), tuple(drifts), tuple(into))

    def _white(self, flows: Sequence[Flow]) -> Array:
        """Return the summed thermal densities of flows, one-sided, A^2/Hz."""
        total = np.zeros(())
        for flow in flows:
            device, each = self.model.noise.fit.devices[flow.kind], flow.current / flow.units
            thermal = device.factor(each) if self.model.noise.card else device.physical(each)
            total = total + 2 * CHARGE * flow.current * thermal
        return total

    def _conductance(self, diode: Flow) -> Array:
        slope = self.model.noise.fit.devices[diode.kind].slope(diode.current / diode.units)
        return diode.current / (slope * self.model.u_t)

    def _current(self, name: str, *, late: bool) -> Array:
        return self.model.scale * self.currents(name, late=late)

    def _pin(self, pin: str) -> float:
        return self.model.scale * self.assembly.bias_pins[pin]

    def _strength(self, name: str) -> int:
        """Return how many times stronger than usual the diodes of a signal are built."""
        return PEDESTAL_STRENGTH if isinstance(self.graph.nodes[name], Pedestal) else 1


def _over(end: Array, exponent: float) -> Array:
    """Return the integral of f^-exponent from FLICKER_FROM to `end`, Hz."""
    if abs(exponent - 1) < 1e-6:
        return np.log(end / FLICKER_FROM)
    power = 1 - exponent
    return (end**power - FLICKER_FROM**power) / power
