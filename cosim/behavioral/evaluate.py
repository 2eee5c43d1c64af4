"""Behavioral evaluation of a sized graph: currents frame by frame, vectorised over samples.

Each node is one equation of its cell, with the gains, thresholds and levels that calibration measured:

    linear row   I = (1 - a_n dV) sum_{k>0} g_n(I_j) (k/N) I_j - (1 + a_p dV) sum_{k<0} g_p(I_j) (|k|/N) I_j
                 dV = swing ln(I / 1 nA): how far the node's own diode pulls it down; 0 at the readout
    rectifier    max(I, 0)
    9T cell      s = 1 where u >= i_rise, 0 where u <= i_fall, else kept; I_out = s i_high
    ladder       s + 1 where u >= i_rise, s - 1 where u <= i_fall, within 0 ... K; I_out = s i_high
    toggle       1 - s where u >= i_rise; I_out = s i_high

Statics only: delays, charge injection and glitches are what ngspice adds. With `ideal=True` gains are 1 and thresholds
as asked for: what is then left against the software is rounding alone.
"""

from dataclasses import dataclass, field

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError
from cosim.ir.nodes import (
    InputCurrent,
    Ladder,
    LadderPins,
    Memory,
    MemoryCurrents,
    Node,
    Output,
    Pedestal,
    Rectifier,
    SchmittBias,
    Toggle,
    TogglePins,
    UnitCurrent,
    edges_into,
)
from cosim.technology.calibration import Calibration

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Deviations:
    """Relative deviations of single elements, as factors; what is absent is 1, that is, nominal.

    mirrors: (source, target) of an edge; rails: signal whose line n deviates; rise, fall, level: memory node.
    """

    mirrors: dict[tuple[str, str], float] = field(default_factory=dict)
    rails: dict[str, float] = field(default_factory=dict)
    rise: dict[str, float] = field(default_factory=dict)
    fall: dict[str, float] = field(default_factory=dict)
    level: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BehavioralTrace:
    """currents: node -> (n, time) output, ampere; candidates: memory node -> (n, time) rectified drive, ampere;
    states: memory node -> (n, time) whole numbers; readout: (n, time, outputs) ampere."""

    currents: dict[str, Array]
    candidates: dict[str, Array]
    states: dict[str, NDArray[np.int16]]
    readout: Array


def evaluate(
    graph: nx.DiGraph,
    calibration: Calibration,
    inputs: Array,
    deviations: Deviations | None = None,
    ideal: bool = False,
) -> BehavioralTrace:
    """Evaluate a sized graph on inputs (n, time, width), in software units.

    Raises InputError for a deviation of an element that the graph does not have.
    """
    deviations = deviations or Deviations()
    _check_deviations(graph, deviations)
    engine = _Engine(graph, calibration, deviations, ideal)
    return engine.run(np.asarray(inputs, dtype=np.float64))


def _check_deviations(graph: nx.DiGraph, deviations: Deviations) -> None:
    for kind in ("rails", "rise", "fall", "level"):
        for name in getattr(deviations, kind):
            if name not in graph:
                raise InputError(
                    f"deviations.{kind}: {name!r} is no node of the network; nodes are named like layer1.0"
                )
    for edge in deviations.mirrors:
        if not graph.has_edge(*edge):
            raise InputError(f"deviations.mirrors: {edge!r} is no weight of the network; name (source, target) nodes")


class _Engine:
    def __init__(self, graph: nx.DiGraph, calibration: Calibration, deviations: Deviations, ideal: bool) -> None:
        self.graph, self.calibration, self.deviations, self.ideal = graph, calibration, deviations, ideal
        self.i_unit: float = graph.graph["i_unit"]
        self.i_pedestal: float = graph.graph["i_pedestal"]
        self.currents: dict[str, Array] = {}
        self.lines: dict[str, tuple[Array, Array]] = {}  # signal -> what lines n and p deliver per unit weight
        self.candidates: dict[str, Array] = {}
        self.states: dict[str, NDArray[np.int16]] = {}

    def run(self, inputs: Array) -> BehavioralTrace:
        outputs = []
        for name in nx.topological_sort(self.graph):
            node: Node = self.graph.nodes[name]["node"]
            match node:
                case InputCurrent(index=index):
                    current = self.i_unit * inputs[:, :, index] + self.i_pedestal
                case UnitCurrent():
                    current = np.full(inputs.shape[:2], self.i_unit)
                case Pedestal():
                    current = np.full(inputs.shape[:2], self.i_pedestal)
                case Rectifier():
                    current = np.maximum(self.drive(name, inputs.shape[:2]), 0.0)
                case Memory():
                    current = self.remember(node, np.maximum(self.drive(name, inputs.shape[:2]), 0.0))
                case Output():
                    current = self.drive(name, inputs.shape[:2])
                    outputs.append((node.index, current))
            self.currents[name] = current
            self.lines[name] = self.deliver(name, current)
        readout = np.stack([current for _, current in sorted(outputs, key=lambda item: item[0])], axis=2)
        return BehavioralTrace(self.currents, self.candidates, self.states, readout)

    def deliver(self, name: str, current: Array) -> tuple[Array, Array]:
        if self.ideal:
            return current, current
        mirror = self.calibration.mirror
        rail = self.deviations.rails.get(name, 1.0)
        return (
            current * mirror.interpolate(mirror.gain_n, current) * rail,
            current * mirror.interpolate(mirror.gain_p, current),
        )

    def drive(self, name: str, shape: tuple[int, ...]) -> Array:
        pull, push = np.zeros(shape), np.zeros(shape)
        for source, _ in edges_into(self.graph, name):
            mirror = self.graph.edges[source, name]["mirror"]
            factor = abs(mirror.realised) * self.deviations.mirrors.get((source, name), 1.0)
            if mirror.count > 0:
                pull = pull + factor * self.lines[source][0]
            elif mirror.count < 0:
                push = push + factor * self.lines[source][1]
        drive = pull - push
        if self.ideal or isinstance(self.graph.nodes[name]["node"], Output):
            return drive
        mirror = self.calibration.mirror
        drop = mirror.node_drop(drive)
        return np.where(drive > 0, pull * (1 - mirror.slope_n * drop) - push * (1 + mirror.slope_p * drop), drive)

    def remember(self, node: Memory, candidate: Array) -> Array:
        rise, fall, high = self.set_points(node)
        sets, resets = candidate >= rise, candidate <= fall
        states = np.empty(candidate.shape, dtype=np.int16)
        state = np.full(len(candidate), node.start if isinstance(node, Ladder) else 0, dtype=np.int16)
        for t in range(candidate.shape[1]):
            match node:
                case Ladder(rungs=rungs):
                    state = np.clip(state + np.where(sets[:, t], 1, np.where(resets[:, t], -1, 0)), 0, rungs)
                case Toggle():
                    state = np.where(sets[:, t], 1 - state, state)
                case _:
                    state = np.where(sets[:, t], 1, np.where(resets[:, t], 0, state))
            states[:, t] = state
        self.states[node.name] = states
        self.candidates[node.name] = candidate
        return np.asarray(states * high + self.i_pedestal, dtype=np.float64)

    def set_points(self, node: Memory) -> tuple[Array, Array, float]:
        """Upper and lower threshold, (n, time) or scalar, and the level of one state step, ampere."""
        rise, fall, high = self.asked(node) if self.ideal else self.calibrated(node)
        deviations = self.deviations
        return (
            rise * deviations.rise.get(node.name, 1.0),
            fall * deviations.fall.get(node.name, 1.0),
            high * deviations.level.get(node.name, 1.0),
        )

    def asked(self, node: Memory) -> tuple[Array, Array, float]:
        asked: MemoryCurrents = self.graph.nodes[node.name]["currents"]
        beta = self.beta(node)
        return asked.i_rise + beta, asked.i_fall - beta, asked.i_high

    def calibrated(self, node: Memory) -> tuple[Array, Array, float]:
        bias: SchmittBias | LadderPins | TogglePins = self.graph.nodes[node.name]["bias"]
        fit, comparator = self.calibration.schmitt, self.calibration.comparator
        match bias:
            case SchmittBias():
                push, beta = self.calibration.mirror.push, self.beta(node)
                i_thresh = (bias.i_thresh + push * beta) / bias.trim_thresh
                i_width = (bias.i_width + 2 * push * beta) / bias.trim_width
                return (
                    fit.set_in_frame(fit.i_rise(i_thresh, i_width)),
                    fit.reset_in_frame(fit.i_fall(i_thresh, i_width)),
                    float(fit.i_high(np.float64(bias.i_gain))),
                )
            case LadderPins():
                level = float(fit.i_high(bias.ladder.i_gain))
                return comparator.decides_at(bias.i_upper), comparator.decides_at(bias.i_lower), level
            case TogglePins():
                return comparator.decides_at(bias.i_upper), np.zeros(()), float(fit.i_high(bias.i_gain))

    def beta(self, node: Memory) -> Array:
        betas = [self.currents[source] for source, _ in edges_into(self.graph, node.name, "beta")]
        total: Array = np.zeros(())
        for part in betas:
            total = total + part
        return total
