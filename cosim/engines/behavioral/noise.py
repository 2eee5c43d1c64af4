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

The gate averages over the time in which it closes (`gate_lag`); of other lines that is left out. A clocked
9T cell decides by a share of that and by what its decision node remembers of the candidate, one line more, whose own
noise is that of M1, M2 and the feedback, their diodes' included (`Aperture`).

Aperture of a clocked 9T cell, for a candidate's noise: what is frozen, and what its decision node remembers.

    track    C_0 dv/dt = I_1 - I_2 + J - g_0 (v - V_DD/2)
    decide   C dV/dt = I_1 - I_2 + J - g_0 (V - V_DD/2) - g_x (V - v_f),   V = (C_0 v + (C - C_0) V_latch) / C at first
             (n U_T C_f) dJ/dt = J (S(V) - J),   1/S = 1/I_width + 1/I_6(V)

I_1 is what M1 makes of the candidate, I_2 the threshold, both less by exp(-V_DS / U_T) at the rails;
g_0 = g_ds1 + g_ds2; J what M7 and M9 bring back, S what M6 and M8 let them; C_0, C and C_f the capacitances of decision
node, of it with the latch, and of the feedback's line. When the sample gate has closed, the hold node follows the
decision node through M1's gate, by `kick` volt a volt: g_x = kick g_m1. So the cell compares what is frozen with where
the decision node stood at that moment, v_f: a candidate that was low for long must be that much higher at last.

The threshold is the candidate from which on J regenerates. With a candidate that moves it is linear in it: `frozen` of
what is frozen, the rest of what the node tracked, which follows the candidate with C_0 / g, g = -C_0 d(dv/dt)/dv where
it stands. That is the impulse sensitivity of a clocked comparator: J. Kim, B. S. Leibowitz, J. Ren and C. J. Madden,
IEEE Trans. Circuits Syst. I 56 (2009) 1844. Where regeneration has time, frozen = g_0 / (g_0 + g_x).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.circuit.elements import RAILS, Capacitor, Mos
from cosim.circuit.waveforms import DECIDE, Timing
from cosim.compiler.design import Design
from cosim.network.ir.nodes import PEDESTAL_STRENGTH, And, Memory, Pedestal, Rectifier
from cosim.technology.noise import DeviceNoise, NoiseFit
from cosim.technology.types import Geometry, Polarity, Technology
from cosim.units.builder import instance, net
from cosim.units.schmitt import Schmitt, SchmittBias
from cosim.units.table import unit_of
from cosim.variation.noise import NoiseSimulation

Array = NDArray[np.float64]
_TRACK_STEPS, _DECIDE_STEPS, _SHORTEST = 100, 200, 2e-4  # of both parts; the first step of the second over its length
_SPAN, _TRIED, _ROUNDS = 0.4, 33, 4  # of the threshold: where it is looked for, by so many at once, so often
_LEAST_CURRENT = 1e-18  # A, far below any leakage: a cell whose width is all in its rows has none of its own
_MOVED = 2e-3  # of the threshold, what the frozen candidate is moved by


def gate_lag(fit: NoiseFit, timing: Timing, supply: float, u_t: float) -> float:
    """Return the time in which the conductance of a closing sample gate falls to 1/e, s, for behavioral noise.

    It is n U_T over the slope of the gate's clock. While the gate closes, the hold node follows the candidate's current
    ever more slowly, by 1 / (lag (1 + exp(t / gate))). So white noise leaves S / (4 lag) / (1 + 2 gate / lag) on it:
    the integral of that squared, times what is not forgotten.
    """
    return float(fit.devices["cell_p"].slopes[0]) * u_t * timing.clock_edge * timing.t_step / supply


@dataclass(frozen=True)
class Aperture:
    """The weights with which a clocked cell averages its candidate's noise at one edge, in the behavioral engine.

    frozen: share of the frozen candidate; tracked: share of the candidate as a line with time constant `lag`, s,
    follows it at rest; ran: share of that line's variance that is reached while the cell tracks; after: variance added
    after the freeze, over the one-sided density of noise into the decision node, Hz.
    """

    frozen: float
    tracked: float
    lag: float
    ran: float
    after: float


@dataclass(frozen=True)
class ClockedCells:
    """The clocked cells whose apertures the behavioral engine computes.

    thresh, width: bias currents, (cells,), A; on: whether the edge is the one that turns the cell off, (cells,);
    stages: of the clock; supply, u_t: V.
    """

    thresh: Array
    width: Array
    on: NDArray[np.bool_]
    stages: int
    timing: Timing
    supply: float
    u_t: float


def apertures(cells: ClockedCells, fit: NoiseFit) -> list[Aperture]:
    """Return the behavioral aperture of each clocked cell.

    Where no candidate within 40 % of the threshold turns a cell, its aperture is the frozen candidate alone.
    """
    model = _Model(cells, fit)
    base = model.threshold(np.zeros(len(cells.thresh)))
    step = _MOVED * cells.thresh
    frozen = (model.threshold(-step) - model.threshold(step)) / (2 * step)
    frozen = np.where(np.isfinite(frozen) & np.isfinite(base), np.clip(frozen, 0.0, 1.0), 1.0)
    at = np.where(np.isfinite(base), base, 0.0)
    (low, _), (high, _), (_, g) = (model.track((at + move)[:, None]) for move in (-step, step, 0 * step))
    moved = (high - low)[:, 0] / (2 * step) * g[:, 0]  # 1 where it has come to rest
    lag = model.node.tracking / g[:, 0]
    tracked = np.where(frozen < 1, (1 - frozen) / np.maximum(moved, 1e-9), 0.0)
    ran = -np.expm1(-2 * model.window / lag)
    settles = model.node.joined / model.held[:, 0]
    part = settles / model.decide_time
    mean = 2 * part * (1 + part * np.expm1(-1 / part))  # variance of a mean over the time to decide
    after = (frozen**2 * model.held[:, 0] / (4 * model.node.joined)) * mean
    columns = zip(*(x.tolist() for x in (frozen, tracked, lag, ran, after)), strict=True)
    return [Aperture(*column) for column in columns]


def turning_excess(cells: ClockedCells, fit: NoiseFit) -> Array:
    """Return by how much the candidate that turns each cell exceeds the threshold current, A, in behavioral noise.

    For edges that reset, the threshold current is less the width's.
    """
    model = _Model(cells, fit)
    return model.threshold(np.zeros(len(cells.thresh)))


class _Model:
    """The equations of clocked cells for behavioral noise, for arrays (cells, candidates).

    A candidate is given by its excess over the threshold current, A.
    """

    def __init__(self, cells: ClockedCells, fit: NoiseFit) -> None:
        self.cells, self.node = cells, fit.decision
        self.i_thresh, self.i_width = cells.thresh[:, None], cells.width[:, None]
        self.back = np.where(cells.on[:, None], self.i_width, 0.0)  # J while it tracks
        self.output = self.node.output(self.i_thresh)
        first = np.maximum(self.i_thresh - self.back, 1e-13)
        slope = fit.devices["cell_p"].slope(first)
        siemens = first / (slope * cells.u_t)
        self.kicked, self.left = self.node.kick * siemens, self.node.pedestal * siemens
        self.held = self.output + self.kicked
        self.charge = slope * cells.u_t * self.node.loop
        close = cells.timing.closes(cells.stages)[0]
        self.window, self.decide_time = close * cells.timing.t_step, DECIDE * cells.timing.t_step

    def threshold(self, more: Array) -> Array:
        """Return the excess (cells,), A, above which a cell is on; nan where none is found.

        more: by how much the frozen part of the candidate is higher, (cells,), A.
        """
        low, high = -_SPAN * self.i_thresh[:, 0], _SPAN * self.i_thresh[:, 0]
        rows, found = np.arange(len(low)), np.ones(len(low), dtype=np.bool_)
        for _ in range(_ROUNDS):
            tried = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _TRIED)
            on = self.decide(tried, more[:, None]) > self.i_width / 2
            first = np.argmax(on, axis=1)
            found &= (first > 0) & on[rows, first]
            first = np.maximum(first, 1)
            low, high = tried[rows, first - 1], tried[rows, first]
        return np.where(found, (low + high) / 2, np.nan)

    def net(self, volt: Array, first: Array, back: Array) -> tuple[Array, Array]:
        """Return the current into the decision node, A, and its decrease with the node's voltage, S."""
        supply, u_t = self.cells.supply, self.cells.u_t
        lower, upper = np.exp(-volt / u_t), np.exp((volt - supply) / u_t)
        current = (first + back) * (1 - upper) - self.i_thresh * (1 - lower) - self.output * (volt - supply / 2)
        return current, self.output + ((first + back) * upper + self.i_thresh * lower) / u_t

    def track(self, excess: Array) -> tuple[Array, Array]:
        """Step a behavioral decision node until its sample gate closes; return its voltage, V, and conductance, S."""
        supply, first = self.cells.supply, self.i_thresh - self.back + excess
        volt = np.broadcast_to(np.where(self.cells.on[:, None], supply, 0.0), excess.shape)
        step = self.window / _TRACK_STEPS
        for _ in range(_TRACK_STEPS):
            current, falls = self.net(volt, first, self.back)
            volt = np.clip(volt + current / (self.node.tracking / step + falls), 0.0, supply)
        return volt, self.net(volt, first, self.back)[1]

    def decide(self, excess: Array, more: Array) -> Array:
        """Step a cell's behavioral equations through a decision; return the feedback current J at its end, A."""
        supply, node = self.cells.supply, self.node
        track, _ = self.track(excess)
        share, latch = node.tracking / node.joined, np.where(self.cells.on[:, None], supply, 0.0)
        volt = share * track + (1 - share) * latch
        met = np.where(self.cells.on[:, None], 0.0, volt / supply)  # the latch follows the gate until they are one
        stood = np.where(node.freezes < node.joins + met, track, volt)
        first = self.i_thresh - self.back + excess + more - self.left
        rest = np.maximum(self.charge / self.cells.timing.t_step, 0.0)  # of J, a frame after it was on
        start = np.where(self.cells.on[:, None], self.i_width, rest)
        back = np.broadcast_to(np.maximum(start, _LEAST_CURRENT), excess.shape)
        for step in _steps(self.decide_time):
            current, falls = self.net(volt, first, back)
            current = current - self.kicked * (volt - stood)
            volt = np.clip(volt + current / (node.joined / step + falls + self.kicked), 0.0, supply)
            switched = node.switched(volt)
            let = np.maximum(self.i_width * switched / (self.i_width + switched), _LEAST_CURRENT)
            back = let / (1 + np.expm1(np.log(let / back)) * np.exp(-let * step / self.charge))
        return back


def _steps(length: float) -> Sequence[float]:
    """Return growing time steps, s, for the equations of a decision of this length, s, in the behavioral engine."""
    return np.diff(np.geomspace(_SHORTEST, 1 + _SHORTEST, _DECIDE_STEPS + 1) * length).tolist()


_TRIMMED = 2.0  # largest ratio of a trimmed length to the nominal one


@dataclass(frozen=True)
class Loads:
    """The capacitances of a design's nets, and diodes of its pins, from which behavioral noise follows.

    farads: net -> capacitance, F; held: memory -> capacitances at its candidate's diode and behind its sample gate, F;
    diodes: bias pin -> number of devices of its diode; levels, sinks: memory -> bias pin of its level and of its
    pedestal, if it has one.
    """

    farads: Mapping[str, float]
    held: Mapping[str, tuple[float, float]]
    diodes: Mapping[str, int]
    levels: Mapping[str, str]
    sinks: Mapping[str, str]

    def of(self, name: str) -> float:
        """Return a net's capacitance for behavioral noise, F; name: of the net, inside the network or a port of it."""
        return self.farads[name] if name in self.farads else self.farads[f"xnetwork.{name}"]


@lru_cache(maxsize=4)
def loads_of(design: Design, fit: NoiseFit) -> Loads:
    """Compute the loads of a design's nets for the behavioral engine's equations of noise.

    Raises InputError that names a unit whose candidate is never frozen.
    """
    devices = [element for element in design.flat.elements if isinstance(element, Mos)]
    carriers, farads, kinds = _carriers(devices), defaultdict[str, float](float), _kinds(design.technology)
    for mos in carriers:
        if (kind := _kind(mos, kinds)) is not None:
            for end, farad in _ends(mos, fit.devices[kind]):
                farads[end] += mos.m * farad
    for element in design.flat.elements:
        if isinstance(element, Capacitor):
            for end in {element.a, element.b} - set(RAILS):
                farads[end] += element.value
    memories = tuple(design.graph.memories)
    return Loads(
        dict(farads),
        {node.name: _held(design, node, devices, farads) for node in memories},
        {mos.gate: mos.m for mos in carriers if mos.role == "bias"},
        _pins(carriers, {node.name: instance(f"cell_{net(node.name)}") for node in memories}, "level"),
        _pins(carriers, {node.name: instance(f"pedestal_{net(node.name)}") for node in memories}, "sink"),
    )


def _carriers(devices: Sequence[Mos]) -> list[Mos]:
    """Return the transistors that make a current in the behavioral engine's noise, a self-cascode as one."""
    uppers = {mos.name: mos for mos in devices if mos.match.endswith(".upper")}
    return [
        replace(mos, drain=uppers[f"{mos.name}c"].drain) if f"{mos.name}c" in uppers else mos
        for mos in devices
        if mos.role != "switch" and mos.name not in uppers
    ]


def _kinds(technology: Technology) -> dict[tuple[Polarity, float], tuple[str, float]]:
    """Return for behavioral noise (polarity, width in m) of a device -> its kind and length, m."""
    sizing = technology.sizing
    drawn: dict[Polarity, dict[str, Geometry]] = {
        "n": {"mirror_n": sizing.mirror_n, "cell_n": sizing.cell_n},
        "p": {"mirror_p": sizing.mirror_p, "cell_p": sizing.cell_p},
    }
    return {(polarity, size.w): (kind, size.l) for polarity, sizes in drawn.items() for kind, size in sizes.items()}


def _kind(mos: Mos, kinds: Mapping[tuple[Polarity, float], tuple[str, float]]) -> str | None:
    found, length = kinds.get((mos.polarity, mos.w), (None, 0.0))
    return found if found is not None and length / _TRIMMED < mos.l < length * _TRIMMED else None


def _ends(mos: Mos, device: DeviceNoise) -> list[tuple[str, float]]:
    """Return the nets that a device loads in the behavioral engine's equations of noise, and each one's load, F.

    A diode's net has the load of gate and drain.
    """
    return [(mos.gate, device.diode)] if mos.gate == mos.drain else [(mos.gate, device.gate), (mos.drain, device.drain)]


def _held(design: Design, node: Memory, devices: Sequence[Mos], farads: Mapping[str, float]) -> tuple[float, float]:
    """Return two capacitances of a memory for behavioral noise, F: at its candidate and behind its sample gate.

    Raises InputError for a unit that does not sample its candidate.
    """
    if not unit_of(node).samples_candidate:
        raise InputError(
            f"{node.name} holds an analog state, and noise is modelled where a sample gate "
            "freezes a candidate that is compared; leave --noise and --margins out for this network"
        )
    candidate = design.assembly.candidates[node.name]
    hold = next(mos.drain for mos in devices if mos.role == "switch" and mos.source == candidate)
    return farads[candidate], farads[hold]


def _pins(carriers: Sequence[Mos], instances: Mapping[str, str], role: str) -> dict[str, str]:
    """Return memory -> gate line of its first device of a role, for behavioral noise; instances: memory -> its path."""
    lines = [(mos.name, mos.gate) for mos in carriers if mos.role == role]
    found = {
        name: next((gate for device, gate in lines if device.startswith(f"{path}.")), None)
        for name, path in instances.items()
    }
    return {name: gate for name, gate in found.items() if gate is not None}


CHARGE = 1.602176634e-19  # C
FLICKER_FROM = 1.0  # Hz
_LEAST = 1e-13  # A; a diode that carries less is taken to be as slow as this one
Key = tuple[str, str, bool]  # of a signal or a pin; its line, "p", "n", "bias" or "candidate"; whether it is read late


@dataclass(frozen=True)
class DeviceGroup:
    """The devices of one kind on a node of the behavioral noise model.

    current: through all of them, ampere; units: number of unit devices that share it.
    """

    kind: str
    current: Array
    units: Array | float


@dataclass(frozen=True)
class NoiseNode:
    """The node of a diode in the behavioral noise model.

    lag: time constant, s; white: one-sided density of the noise current into the node, A^2/Hz; drifts: densities of
    flicker at 1 Hz, A^2/Hz, each with its exponent; into: lines whose noise arrives here, each with its gain.
    """

    lag: Array
    white: Array
    drifts: tuple[tuple[Array, float], ...]
    into: tuple[tuple[Key, Array | float], ...]


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """The behavioral noise model of a design in one condition.

    edges: clocked cell -> apertures of the edges that set and reset it; u_t: thermal voltage, V; gate: time constant of
    a closing sample gate, s; scale: factor from the currents of a trace to those of the model.
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
    found = apertures(ClockedCells(thresh, width, on, stages, timing, design.technology.supply, u_t), fit)
    return dict(zip(biases, zip(found, found[len(biases) :], strict=False), strict=True))


class Candidates:
    """The behavioral noise of candidates at the currents of one evaluation.

    currents: function (signal, late=...) -> current of the signal, or if late that of the frame before, (n, time),
    ampere.
    """

    def __init__(self, model: NoiseModel, currents: Callable[..., Array]) -> None:
        self.model, self.currents = model, currents
        self.graph, self.assembly = model.design.graph, model.design.assembly
        self.lines: dict[Key, NoiseNode] = {}
        self.sources: dict[Key, frozenset[Key]] = {}
        self.shared: dict[tuple[Key, Key], Array | float] = {}

    def frozen(self, node: Memory, candidate: Array) -> Array:
        """Return the standard deviation of a behavioral candidate's noise while its sample gate is open, A.

        The array is (n, time), as `candidate`.
        """
        if self.model.noise.flat:
            return np.full(candidate.shape, self.model.noise.flat)
        (at_diode, at_hold), key = self.model.loads.held[node.name], (node.name, "candidate", False)
        diode = DeviceGroup("cell_p", np.maximum(self.model.scale * candidate, _LEAST), 1.0)
        flows, into = self._row(node.name)
        self.lines[key] = self._line(diode, at_diode + at_hold, flows, into)
        share = at_diode / (at_hold * (at_hold + at_diode))
        gate = self._conductance(diode) ** 2 * CHARGE * self.model.u_t * share
        return np.sqrt(self.covariance(key, key) + self._drift(key) + gate) / self.model.scale

    def decided(self, node: Memory, candidate: Array, frozen: Array) -> Array:
        """Return the standard deviation of the noise by which a behavioral memory decides, ampere, (n, time).

        candidate: of the memory; frozen: standard deviation of its noise, from `frozen`; both ampere, (n, time).
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

    def _feeds(self, name: str, *, on: bool) -> list[DeviceGroup]:
        """Return the devices of the behavioral engine's currents into a decision node, in the state before the edge.

        They are M1, M2 and its diode, and in a cell that is on also M8, M7 and their diodes.
        """
        bias = self.graph.biases[name]
        assert isinstance(bias, SchmittBias)
        thresh, width = (np.asarray(self.model.scale * current) for current in (bias.i_thresh, bias.i_width))
        flows = [
            DeviceGroup("cell_n", 2 * thresh, 2.0),
            DeviceGroup("cell_p", np.maximum(thresh - (width if on else 0), _LEAST), 1.0),
        ]
        return [*flows, DeviceGroup("cell_n", 2 * width, 2.0), DeviceGroup("cell_p", 2 * width, 2.0)] if on else flows

    def sigma_of(self, signal: str) -> Array:
        """Return the standard deviation of the behavioral noise current on a signal's line p, ampere, (n, time)."""
        key = (signal, "p", False)
        return np.sqrt(self.covariance(key, key) + self._drift(key)) / self.model.scale

    def covariance(self, a: Key, b: Key) -> Array | float:
        """Return the behavioral model's noise covariance of two lines' currents, A^2, without flicker."""
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
        """Return all lines whose noise arrives in a line of the behavioral noise model, the line itself included."""
        if key not in self.sources:
            self.sources[key] = frozenset([key]).union(*(self._sources(other) for other, _ in self.line(key).into))
        return self.sources[key]

    def _drift(self, target: Key) -> Array | float:
        """Return a line's variance by flicker, from FLICKER_FROM to the line's pole, in behavioral noise, A^2."""
        end = np.maximum(1 / (2 * np.pi * self.line(target).lag), FLICKER_FROM)

        def arriving(key: Key) -> Array | float:
            line = self.line(key)
            own = sum((density * _over(end, exponent) for density, exponent in line.drifts), np.float64(0.0))
            return own + sum((gain**2 * arriving(other) for other, gain in line.into), np.float64(0.0))

        return arriving(target)

    def line(self, key: Key) -> NoiseNode:
        """Return the node of a line in the behavioral noise model, computed once and then kept."""
        if key not in self.lines:
            name, end, late = key
            if end == "bias":
                diode = DeviceGroup("cell_n", np.asarray(self._pin(name)), self.model.loads.diodes[name])
                self.lines[key] = self._line(diode, self.model.loads.of(name), [], [])
            else:
                current = np.maximum(self._strength(name) * self._current(name, late=late), _LEAST)
                devices = self.graph.units * self._strength(name)
                diode, copy = (DeviceGroup(kind, current, devices) for kind in (f"mirror_{end}", "mirror_p"))
                flows, into = ([copy], [((name, "p", late), 1.0)]) if end == "n" else self._feeding(name, late=late)
                self.lines[key] = self._line(diode, self.model.loads.of(f"{net(name)}_{end}"), flows, into)
        return self.lines[key]

    def _feeding(self, name: str, *, late: bool) -> tuple[list[DeviceGroup], list[tuple[Key, Array | float]]]:
        """Return the devices and the lines that feed a signal's line p in behavioral noise; none for inputs."""
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

    def _sunk(self, pin: str, current: Array) -> tuple[DeviceGroup, tuple[Key, Array | float]]:
        """Return a behavioral cell's devices on the line of a bias pin, and that line with its gain."""
        each = self._pin(pin) / self.model.loads.diodes[pin]
        return DeviceGroup("cell_n", current, np.maximum(current / each, 1.0)), (
            (pin, "bias", False),
            current / self._pin(pin),
        )

    def _row(self, target: str) -> tuple[list[DeviceGroup], list[tuple[Key, Array | float]]]:
        """Return the currents that a row's weights make in behavioral noise, and its arriving lines with gains."""
        flows, into = list[DeviceGroup](), list[tuple[Key, Array | float]]()
        for source, weight in self.graph.into(target):
            mirror, current = self.graph.mirrors[source, target], self._current(source, late=weight.late)
            arriving = abs(mirror.realised) * current
            if isinstance(self.graph.nodes[source], And):
                flow, gain = self._sunk(self.assembly.steering[source, target], arriving)
                flows, into = [*flows, flow], [*into, gain]
            elif mirror.count:
                end = "n" if mirror.count > 0 else "p"
                flows.append(DeviceGroup(f"mirror_{end}", arriving, abs(mirror.count)))
                into.append(((source, end, weight.late), mirror.realised / self._strength(source)))
        return flows, into

    def _line(
        self, diode: DeviceGroup, farad: float, flows: Sequence[DeviceGroup], into: Sequence[tuple[Key, Array | float]]
    ) -> NoiseNode:
        drifts = list[tuple[Array, float]]()
        for flow in (diode, *flows):
            device = self.model.noise.fit.devices[flow.kind]
            drifts.append((2 * CHARGE * flow.current * device.drift(flow.current / flow.units), device.exponent))
        return NoiseNode(farad / self._conductance(diode), self._white((diode, *flows)), tuple(drifts), tuple(into))

    def _white(self, flows: Sequence[DeviceGroup]) -> Array:
        """Return the summed thermal densities of flows in the behavioral engine's equations, one-sided, A^2/Hz."""
        total = np.zeros(())
        for flow in flows:
            device, each = self.model.noise.fit.devices[flow.kind], flow.current / flow.units
            thermal = device.factor(each) if self.model.noise.card else device.physical(each)
            total = total + 2 * CHARGE * flow.current * thermal
        return total

    def _conductance(self, diode: DeviceGroup) -> Array:
        slope = self.model.noise.fit.devices[diode.kind].slope(diode.current / diode.units)
        return diode.current / (slope * self.model.u_t)

    def _current(self, name: str, *, late: bool) -> Array:
        return self.model.scale * self.currents(name, late=late)

    def _pin(self, pin: str) -> float:
        return self.model.scale * self.assembly.bias_pins[pin]

    def _strength(self, name: str) -> int:
        """Return how many times stronger than usual the diodes of a signal are, for the noise of its candidate."""
        return PEDESTAL_STRENGTH if isinstance(self.graph.nodes[name], Pedestal) else 1


def _over(end: Array, exponent: float) -> Array:
    """Return the integral of f^-exponent from FLICKER_FROM to `end`, Hz, for flicker in the behavioral engine."""
    if abs(exponent - 1) < 1e-6:
        return np.log(end / FLICKER_FROM)
    power = 1 - exponent
    return (end**power - FLICKER_FROM**power) / power
