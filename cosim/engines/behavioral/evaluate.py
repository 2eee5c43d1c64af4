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

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError
from cosim.ir.graph import Sized
from cosim.ir.nodes import (
    InputCurrent,
    Ladder,
    LadderPins,
    Memory,
    Output,
    Pedestal,
    Rectifier,
    Schmitt,
    SchmittBias,
    Toggle,
    TogglePins,
    UnitCurrent,
)
from cosim.network.reference import EncodedInputs
from cosim.technology.calibration import Calibration

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Deviations:
    """One chip's factors of currents; what is absent is 1, that is, nominal.

    lines_p, lines_n: signal -> what its gate line p or n delivers
    weights: (source, target) -> that weight
    compared: memory -> what its cell compares, over its candidate
    thresh, width: 9T cell -> its threshold and width currents
    upper, lower: ladder or toggle -> its comparators' currents (a toggle has no lower one)
    levels: memory -> level of each rung, from the first on; one for a 9T cell or a toggle
    betas: (source, memory) -> (into the threshold line, into the width line)
    pedestals: memory -> what its state of 0 carries
    """

    lines_p: Mapping[str, float] = field(default_factory=dict)
    lines_n: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[tuple[str, str], float] = field(default_factory=dict)
    compared: Mapping[str, float] = field(default_factory=dict)
    thresh: Mapping[str, float] = field(default_factory=dict)
    width: Mapping[str, float] = field(default_factory=dict)
    upper: Mapping[str, float] = field(default_factory=dict)
    lower: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    betas: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    pedestals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BehavioralTrace:
    """currents: node -> (n, time) output, ampere; candidates: memory node -> (n, time) rectified drive, ampere;
    states: memory node -> (n, time) whole numbers; readout: (n, time, outputs) ampere; ideal: as in `evaluate`;
    unreset: the 9T cells that the reset does not turn off."""

    currents: dict[str, Array]
    candidates: dict[str, Array]
    states: dict[str, NDArray[np.int16]]
    readout: Array
    ideal: bool
    unreset: tuple[str, ...] = ()


def evaluate(
    graph: Sized,
    calibration: Calibration,
    inputs: EncodedInputs,
    deviations: Deviations = Deviations(),
    ideal: bool = False,
) -> BehavioralTrace:
    """Evaluate a sized graph on encoded inputs.

    Raises InputError for inputs that are not encoded, and for a deviation of an element that the graph does not have.
    """
    if not isinstance(inputs, EncodedInputs):
        raise InputError(
            f"evaluate: inputs must be encoded, not {type(inputs).__name__}: a graph does not know the encoding of its "
            "network; give encode_inputs(network.encoding, x), or call run_behavioral(design, x)"
        )
    _check_deviations(graph, deviations)
    sources = _source_currents(graph, inputs.units)
    return _Engine(graph, calibration, deviations, ideal).run(sources)


def evaluate_held(
    graph: Sized,
    calibration: Calibration,
    trace: BehavioralTrace,
    states: Mapping[str, NDArray[np.int16]],
    deviations: Deviations = Deviations(),
) -> BehavioralTrace:
    """A trace's inputs with every memory held on states (n, time): how the circuit stands between its decisions."""
    sources = {node.name: trace.currents[node.name] for node in graph.of(InputCurrent, UnitCurrent, Pedestal)}
    return _Engine(graph, calibration, deviations, trace.ideal, states).run(sources)


def _source_currents(graph: Sized, inputs: Array) -> dict[str, Array]:
    """What the sources draw, node -> (n, time), ampere."""
    i_unit, i_pedestal = graph.i_unit, graph.i_pedestal
    shape = inputs.shape[:2]
    currents = {node.name: i_unit * inputs[:, :, node.index] + i_pedestal for node in graph.of(InputCurrent)}
    currents |= {node.name: np.full(shape, i_unit) for node in graph.of(UnitCurrent)}
    return currents | {node.name: np.full(shape, i_pedestal) for node in graph.of(Pedestal)}


def _check_deviations(graph: Sized, deviations: Deviations) -> None:
    for kind in fields(deviations):
        for key in getattr(deviations, kind.name):
            if isinstance(key, tuple):
                if key not in graph.weights:
                    raise InputError(
                        f"deviations.{kind.name}: {key!r} is no weight of the network; name (source, target) nodes"
                    )
            elif key not in graph.nodes:
                raise InputError(
                    f"deviations.{kind.name}: {key!r} is no node of the network; nodes are named like layer1.0"
                )


def first_state(node: Memory) -> int:
    """The state onto which the reset puts a memory."""
    return node.start if isinstance(node, Ladder) else 0


class _Engine:
    def __init__(
        self,
        graph: Sized,
        calibration: Calibration,
        deviations: Deviations,
        ideal: bool,
        held: Mapping[str, NDArray[np.int16]] | None = None,
    ) -> None:
        self.graph, self.calibration, self.deviations, self.ideal = graph, calibration, deviations, ideal
        self.held = held  # states of all memories; None: each decides
        self.i_pedestal = graph.i_pedestal
        self.currents: dict[str, Array] = {}
        self.lines: dict[str, tuple[Array, Array]] = {}  # signal -> what lines n and p deliver per unit weight
        self.candidates: dict[str, Array] = {}
        self.states: dict[str, NDArray[np.int16]] = {}
        self.unreset: list[str] = []

    def run(self, sources: Mapping[str, Array]) -> BehavioralTrace:
        shape = next(iter(sources.values())).shape
        outputs = []
        for name in self.graph.order:
            node = self.graph.nodes[name]
            match node:
                case InputCurrent() | UnitCurrent() | Pedestal():
                    current = sources[name]
                case Rectifier():
                    current = np.maximum(self.drive(name, shape), 0.0)
                case Memory():
                    current = self.remember(node, np.maximum(self.drive(name, shape), 0.0))
                case Output():
                    current = self.drive(name, shape)
                    outputs.append((node.index, current))
            self.currents[name] = current
            self.lines[name] = self.deliver(name, current)
        readout = np.stack([current for _, current in sorted(outputs, key=lambda item: item[0])], axis=2)
        return BehavioralTrace(self.currents, self.candidates, self.states, readout, self.ideal, tuple(self.unreset))

    def deliver(self, name: str, current: Array) -> tuple[Array, Array]:
        mirror, deviations = self.calibration.mirror, self.deviations
        line_n, line_p = deviations.lines_n.get(name, 1.0), deviations.lines_p.get(name, 1.0)
        if self.ideal:
            return current * line_n, current * line_p
        return (
            current * mirror.interpolate(mirror.gain_n, current) * line_n,
            current * mirror.interpolate(mirror.gain_p, current) * line_p,
        )

    def drive(self, name: str, shape: tuple[int, ...]) -> Array:
        pull, push = np.zeros(shape), np.zeros(shape)
        for source, _ in self.graph.into(name):
            mirror = self.graph.mirrors[source, name]
            factor = abs(mirror.realised) * self.deviations.weights.get((source, name), 1.0)
            if mirror.count > 0:
                pull = pull + factor * self.lines[source][0]
            elif mirror.count < 0:
                push = push + factor * self.lines[source][1]
        drive = pull - push
        if self.ideal or isinstance(self.graph.nodes[name], Output):
            return drive
        mirror = self.calibration.mirror
        drop = mirror.node_drop(drive)
        return np.where(drive > 0, pull * (1 - mirror.slope_n * drop) - push * (1 + mirror.slope_p * drop), drive)

    def remember(self, node: Memory, candidate: Array) -> Array:
        rise, fall, levels = self.set_points(node)
        states = self.decide(node, candidate, rise, fall) if self.held is None else self.held[node.name]
        self.states[node.name] = states
        self.candidates[node.name] = candidate
        pedestal = self.i_pedestal * self.deviations.pedestals.get(node.name, 1.0)
        return np.asarray(levels[states] + pedestal, dtype=np.float64)

    def decide(self, node: Memory, candidate: Array, rise: Array, fall: Array) -> NDArray[np.int16]:
        compared = candidate * self.deviations.compared.get(node.name, 1.0)
        sets, resets = compared >= rise, compared <= fall
        states = np.empty(candidate.shape, dtype=np.int16)
        state = np.full(len(candidate), first_state(node), dtype=np.int16)
        if isinstance(node, Schmitt) and np.ndim(fall) == 0 and fall < 0:
            state[:] = 1  # a reset is a candidate of 0; a cell that 0 does not reset stays as it was, on
            self.unreset.append(node.name)
        for t in range(candidate.shape[1]):
            match node:
                case Ladder(rungs=rungs):
                    state = np.clip(state + np.where(sets[:, t], 1, np.where(resets[:, t], -1, 0)), 0, rungs)
                case Toggle():
                    state = np.where(sets[:, t], 1 - state, state)
                case _:
                    state = np.where(sets[:, t], 1, np.where(resets[:, t], 0, state))
            states[:, t] = state
        return states

    def set_points(self, node: Memory) -> tuple[Array, Array, Array]:
        """Upper and lower threshold, (n, time) or scalar; current of every state, (states,); ampere."""
        rise, fall, high = self.schmitt_points(node) if isinstance(node, Schmitt) else self.native_points(node)
        rungs = node.rungs if isinstance(node, Ladder) else 1
        factors = self.deviations.levels.get(node.name, (1.0,) * rungs)
        return rise, fall, np.concatenate([[0.0], np.cumsum(high * np.array(factors))])

    def schmitt_points(self, node: Schmitt) -> tuple[Array, Array, float]:
        asked = self.graph.currents[node.name]
        bias = self.graph.bias(node.name, SchmittBias)
        fit, deviations = self.calibration.schmitt, self.deviations
        thresh, width = deviations.thresh.get(node.name, 1.0), deviations.width.get(node.name, 1.0)
        into_thresh, into_width = self.betas(node)
        if self.ideal:
            # Written so that without deviations both are exact: software decides ties as these numbers do.
            rise, fall = asked.i_rise + into_thresh, asked.i_fall - (2 * into_width - into_thresh)
            moved = (thresh - 1) * rise - (width - 1) * (asked.i_rise - asked.i_fall + 2 * into_width)
            return thresh * rise, fall + moved, asked.i_high
        push = self.calibration.mirror.push
        i_thresh = thresh * (bias.i_thresh + push * into_thresh) / bias.trim_thresh
        i_width = width * (bias.i_width + 2 * push * into_width) / bias.trim_width
        return (
            fit.set_in_frame(fit.i_rise(i_thresh, i_width)),
            fit.reset_in_frame(fit.i_fall(i_thresh, i_width)),
            float(fit.i_high(np.float64(bias.i_gain))),
        )

    def native_points(self, node: Memory) -> tuple[Array, Array, float]:
        upper, lower = self.deviations.upper.get(node.name, 1.0), self.deviations.lower.get(node.name, 1.0)
        asked = self.graph.currents[node.name]
        if self.ideal:
            return np.asarray(upper * asked.i_rise), np.asarray(lower * asked.i_fall), asked.i_high
        bias = self.graph.biases[node.name]
        assert isinstance(bias, LadderPins | TogglePins)
        fit, comparator = self.calibration.schmitt, self.calibration.comparator
        rise = upper * comparator.decides_at(bias.i_upper)
        if isinstance(bias, TogglePins):
            return rise, np.zeros(()), float(fit.i_high(bias.i_gain))
        return rise, lower * comparator.decides_at(bias.i_lower), float(fit.i_high(bias.ladder.i_gain))

    def betas(self, node: Schmitt) -> tuple[Array, Array]:
        """The sum of the beta edges as it arrives in the threshold line and, once, in the width line; ampere."""
        thresh: Array = np.zeros(())
        width: Array = np.zeros(())
        for source, _ in self.graph.into(node.name, "beta"):
            into_thresh, into_width = self.deviations.betas.get((source, node.name), (1.0, 1.0))
            arriving = self.currents[source] * self.deviations.lines_p.get(source, 1.0)
            thresh, width = thresh + arriving * into_thresh, width + arriving * into_width
        return thresh, width
