"""Behavioral evaluation of a sized graph: currents frame by frame, vectorised over samples.

Each node is one equation of its cell, with the gains, thresholds and levels that calibration measured:

    linear row   I = (1 - a_n dV) sum_{k>0} g_n(I_j) (k/N) I_j - (1 + a_p dV) sum_{k<0} g_p(I_j) (|k|/N) I_j
                 dV = swing ln(I / 1 nA): how far the node's own diode pulls it down; 0 at the readout
    rectifier    max(I, 0)
    and          i_unit where all of its bits are on, 0 elsewhere; a weight on it is a current source
    memory       the equations of its kind, cosim.units

A row that reads a memory late gets what it delivered in the frame before; where a state thus depends on itself, one
frame is evaluated after the other. Statics only: delays, charge injection and glitches are what ngspice adds. With
`ideal=True` gains are 1 and thresholds as asked for: what is then left against the software is rounding alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.engines.behavioral.effects import Deviations
from cosim.engines.behavioral.noise import Candidates, NoiseModel
from cosim.network.ir.graph import SizedGraph
from cosim.network.ir.nodes import And, InputCurrent, Memory, Output, Pedestal, Rectifier, UnitCurrent
from cosim.network.ir.states import States
from cosim.network.reference import EncodedInputs, later
from cosim.technology.calibration import Calibration
from cosim.units.kind import Array, CellEquations
from cosim.units.table import unit_of


@dataclass(frozen=True)
class BehavioralTrace:
    """The currents and states of a behavioral evaluation of n samples.

    currents: node -> output, (n, time), ampere; candidates: memory -> rectified sum of its row, (n, time), ampere;
    states: memory -> (n, time); readout: (n, time, outputs), ampere; ideal: as in `evaluate`; sigmas: memory ->
    standard deviation of the noise at each decision, (n, time), ampere; frozen: memory -> that of its candidate while
    the sample gate is open, (n, time), ampere; both are empty for an evaluation without noise.
    """

    currents: dict[str, Array]
    candidates: dict[str, Array]
    states: dict[str, States]
    readout: Array
    ideal: bool
    sigmas: dict[str, Array] = field(default_factory=dict[str, Array])
    frozen: dict[str, Array] = field(default_factory=dict[str, Array])


def evaluate(
    graph: SizedGraph,
    calibration: Calibration,
    inputs: EncodedInputs,
    deviations: Deviations = Deviations(),
    *,
    ideal: bool = False,
) -> BehavioralTrace:
    """Evaluate a sized graph's behavioral equations on encoded inputs; ideal: only rounding of weights is an error.

    Raises InputError for inputs that are not encoded, and for a deviation of an element that the graph does not have.
    """
    if not isinstance(inputs, EncodedInputs):  # pyright: ignore[reportUnnecessaryIsInstance] - raw ones look alike
        raise InputError(
            f"evaluate: inputs must be encoded, not {type(inputs).__name__}: a graph does not know the encoding of its "
            "network; give encode_inputs(network.encoding, x), or call run_behavioral(design, x)"
        )
    _check_deviations(graph, deviations)
    sources = _source_currents(graph, inputs.units)
    return _Engine(graph, calibration, deviations, ideal=ideal).run(sources)


def evaluate_noisy(model: NoiseModel, inputs: EncodedInputs, deviations: Deviations) -> BehavioralTrace:
    """Evaluate a design's behavioral equations on encoded inputs, with noise at every decision.

    The `candidates` of the trace have no noise.
    """
    graph = model.design.graph
    engine = _Engine(graph, model.design.calibration, deviations, ideal=False)
    engine.noise = Candidates(model, engine.arriving)
    return engine.run(_source_currents(graph, inputs.units))


def evaluate_held(
    graph: SizedGraph,
    calibration: Calibration,
    trace: BehavioralTrace,
    states: Mapping[str, States],
    deviations: Deviations = Deviations(),
) -> BehavioralTrace:
    """Evaluate the behavioral equations on a trace's inputs, with every memory held in given states.

    states: memory -> (n, time). Between two decisions a circuit is in such a condition.
    """
    sources = {node.name: trace.currents[node.name] for node in graph.of(InputCurrent, UnitCurrent, Pedestal)}
    return _Engine(graph, calibration, deviations, states, ideal=trace.ideal).run(sources)


def _source_currents(graph: SizedGraph, inputs: Array) -> dict[str, Array]:
    """Return the currents of inputs, unit and pedestal sources: node -> (n, time), ampere."""
    i_unit, i_pedestal = graph.i_unit, graph.i_pedestal
    shape = inputs.shape[:2]
    currents = {node.name: i_unit * inputs[:, :, node.index] + i_pedestal for node in graph.of(InputCurrent)}
    currents |= {node.name: np.full(shape, i_unit) for node in graph.of(UnitCurrent)}
    return currents | {node.name: np.full(shape, i_pedestal) for node in graph.of(Pedestal)}


def _check_deviations(graph: SizedGraph, deviations: Deviations) -> None:
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


def cell_of(
    graph: SizedGraph,
    node: Memory,
    calibration: Calibration,
    factors: object | None = None,
    *,
    ideal: bool = False,
    beta: tuple[Array, Array] = (np.zeros(()), np.zeros(())),
) -> CellEquations[Any, Any]:
    """Return a memory in the form in which its unit's behavioral equations read it; factors: None for no deviations."""
    asked = graph.currents[node.name]
    factors = unit_of(node).factors_type() if factors is None else factors
    currents = (asked.i_rise, asked.i_fall, asked.i_high)
    return CellEquations(currents, graph.biases[node.name], factors, calibration, ideal, beta)


def threshold_lines(
    graph: SizedGraph, node: Memory, trace: BehavioralTrace, calibration: Calibration
) -> tuple[Array, Array] | tuple[()]:
    """Return the currents of a memory's two threshold lines in a behavioral run, ampere.

    The result is empty for a memory into which no beta flows.
    """
    betas = [trace.currents[source] for source, _ in graph.into(node.name, "beta")]
    if not betas:
        return ()
    total = sum(betas, np.zeros(betas[0].shape))
    return unit_of(node).line_currents(graph.biases[node.name], calibration.mirror, (total, total))


class _Engine:
    def __init__(
        self,
        graph: SizedGraph,
        calibration: Calibration,
        deviations: Deviations,
        held: Mapping[str, States] | None = None,
        *,
        ideal: bool,
    ) -> None:
        self.noise: Candidates | None = None
        self.first = 0  # number of the first frame
        self.sigmas: dict[str, Array] = {}
        self.frozen: dict[str, Array] = {}
        self.graph, self.calibration, self.deviations, self.ideal = graph, calibration, deviations, ideal
        self.held = held  # states of all memories; None: each decides
        self.before: Mapping[str, States] | None = None  # states in front of the first frame; None: the reset's
        self.currents: dict[str, Array] = {}
        self.lines: dict[str, tuple[Array, Array]] = {}  # signal -> what lines n and p deliver per unit weight
        self.late: dict[str, tuple[Array, Array]] = {}  # the same to rows that read it late
        self.candidates: dict[str, Array] = {}
        self.states: dict[str, States] = {}
        self.readout: dict[int, Array] = {}

    def run(self, sources: Mapping[str, Array]) -> BehavioralTrace:
        if self.held is not None:
            self.late = {node.name: self.standing(node, self.held[node.name]) for node in self.graph.memories}
            self.run_frames(sources, {})
        elif self.graph.feeds_back:
            self.run_stepwise(sources)
        else:
            self.run_frames(sources, self.reset(len(next(iter(sources.values())))))
        readout = np.stack([self.readout[k] for k in sorted(self.readout)], axis=2)
        noisy = self.sigmas, self.frozen
        return BehavioralTrace(self.currents, self.candidates, self.states, readout, self.ideal, *noisy)

    def run_frames(self, sources: Mapping[str, Array], first: Mapping[str, tuple[Array, Array]]) -> None:
        """Evaluate the behavioral equations node after node, all frames of a node at once.

        sources: currents (n, time), A; first: signal that is read late -> currents of its lines before the first frame,
        (n, 1).
        """
        shape = next(iter(sources.values())).shape
        for name in self.graph.order:
            node = self.graph.nodes[name]
            match node:
                case InputCurrent() | UnitCurrent() | Pedestal():
                    current = sources[name]
                case Rectifier():
                    current = np.maximum(self.drive(name, shape), 0.0)
                case And():
                    bits = [self.bit(source, late=weight.late) for source, weight in self.graph.into(name, "gate")]
                    current = self.graph.i_unit * np.all(bits, axis=0)
                case Memory():
                    current = self.remember(node, np.maximum(self.drive(name, shape), 0.0))
                case Output():
                    current = self.readout[node.index] = self.drive(name, shape)
            self.currents[name] = current
            self.lines[name] = (current, np.zeros(shape)) if isinstance(node, And) else self.deliver(name, current)
            if name in first:
                (n, p), (first_n, first_p) = self.lines[name], first[name]
                self.late[name] = later(n, 1, first_n), later(p, 1, first_p)

    def run_stepwise(self, sources: Mapping[str, Array]) -> None:
        """Evaluate the behavioral equations frame by frame, for graphs with states that depend on themselves."""
        shape = next(iter(sources.values())).shape
        late, frames = self.reset(shape[0]), list["_Engine"]()
        for t in range(shape[1]):
            frame = _Engine(self.graph, self.calibration, self.deviations, ideal=self.ideal)
            if self.noise is not None:
                frame.noise = Candidates(self.noise.model, frame.arriving)
            frame.late, frame.first = late, t
            if frames:
                frame.before = {name: states[:, 0] for name, states in frames[-1].states.items()}
            frame.run_frames({name: values[:, t : t + 1] for name, values in sources.items()}, {})
            late = {name: frame.lines[name] for name in late}
            frames.append(frame)
        for kept in ("currents", "candidates", "states", "readout", "sigmas", "frozen"):
            parts = [getattr(frame, kept) for frame in frames]
            setattr(self, kept, {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]})

    def reset(self, n: int) -> dict[str, tuple[Array, Array]]:
        """Return late memory -> currents of its lines before the first behavioral frame, (n, 1) each, ampere."""
        late = {source for (source, _), weight in self.graph.weights.items() if weight.late}
        found: dict[str, tuple[Array, Array]] = {}
        for node in self.graph.memories:
            if node.name in late:
                moving = bool(self.graph.into(node.name, "beta"))
                start = 1 if not moving and unit_of(node).stays_on_through_reset(self.cell(node)) else node.start
                found[node.name] = self.standing(node, np.full((n, 1), start, dtype=np.int16))
        return found

    def standing(self, node: Memory, states: States) -> tuple[Array, Array]:
        """Return the currents that a behavioral memory in the given states delivers on its two lines, ampere."""
        return self.deliver(node.name, self.current(node, self.cell(node), states))

    def bit(self, source: str, *, late: bool) -> NDArray[np.bool_]:
        """Tell whether a symbol comparator finds a behavioral signal on, (n, time)."""
        _, line_p = self.late[source] if late else self.lines[source]
        half = self.graph.half(source)
        assert half is not None, f"{source} has no symbol comparator"
        return line_p * self.deviations.symbols.get(source, 1.0) > half

    def cell(self, node: Memory, beta: tuple[Array, Array] = (np.zeros(()), np.zeros(()))) -> CellEquations[Any, Any]:
        factors = self.deviations.cells.get(node.name)
        found = cell_of(self.graph, node, self.calibration, factors, ideal=self.ideal, beta=beta)
        return found if self.before is None else replace(found, initial_states=self.before[node.name])

    def current(self, node: Memory, cell: CellEquations[Any, Any], states: States) -> Array:
        pedestal = self.graph.i_pedestal * self.deviations.pedestals.get(node.name, 1.0)
        return np.asarray(unit_of(node).output_current(cell, states) + pedestal, dtype=np.float64)

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
        for source, weight in self.graph.into(name):
            realised = self.graph.mirrors[source, name].realised
            line_n, line_p = self.late[source] if weight.late else self.lines[source]
            factor = abs(realised) * self.deviations.weights.get((source, name), 1.0)
            if realised > 0:
                pull = pull + factor * line_n
            elif realised < 0:
                push = push + factor * line_p
        drive = pull - push
        if self.ideal or isinstance(self.graph.nodes[name], Output):
            return drive
        mirror, node = self.calibration.mirror, self.graph.nodes[name]
        compared = isinstance(node, Memory) and unit_of(node).has_comparators
        devices = self.graph.comparator_devices if compared else 1
        drop = mirror.node_drop(drive / devices, relu=isinstance(node, Rectifier))
        return np.where(drive > 0, pull * (1 - mirror.slope_n * drop) - push * (1 + mirror.slope_p * drop), drive)

    def remember(self, node: Memory, candidate: Array) -> Array:
        name, cell = node.name, replace(self.cell(node, self.betas(node)), values=self.values(node))
        decided = candidate if self.noise is None else candidate + self.drawn(node, candidate, self.noise)
        states = unit_of(node).compute_states(cell, decided) if self.held is None else self.held[name]
        self.states[name], self.candidates[name] = states, candidate
        return self.current(node, cell, states)

    def drawn(self, node: Memory, candidate: Array, noise: Candidates) -> Array:
        """Draw the noise of a behavioral memory's decisions, (n, time), ampere, one number for each decision."""
        self.frozen[node.name] = frozen = noise.frozen(node, candidate)
        self.sigmas[node.name] = sigma = noise.decided(node, candidate, frozen)
        return sigma * noise.model.noise.normals(node.name, candidate.shape, self.first)

    def arriving(self, source: str, *, late: bool) -> Array:
        """Return the current of a behavioral signal, or with `late` that of the frame before, (n, time), ampere."""
        return self.late[source][1] if late else self.currents[source]

    def values(self, node: Memory) -> tuple[Array, ...]:
        """Return the currents of a behavioral memory's value edges, ampere, with noise where there is a noise model."""
        edges = self.graph.into(node.name, "value")
        found = [(source, self.currents[source] * self.deviations.lines_p.get(source, 1.0)) for source, _ in edges]
        if (noise := self.noise) is None:
            return tuple(value for _, value in found)
        draw = noise.model.noise.normals
        return tuple(
            value + noise.sigma_of(source) * draw(f"{node.name} {source}", value.shape, self.first)
            for source, value in found
        )

    def betas(self, node: Memory) -> tuple[Array, Array]:
        """Return the sums of a behavioral memory's beta currents into the two lines that they move, ampere.

        A memory with rate edges has their sum in place of the first.
        """
        first: Array = np.zeros(())
        second: Array = np.zeros(())
        for source, _ in self.graph.into(node.name, "beta"):
            into_first, into_second = self.deviations.betas.get((source, node.name), (1.0, 1.0))
            arriving = self.currents[source] * self.deviations.lines_p.get(source, 1.0)
            first, second = first + arriving * into_first, second + arriving * into_second
        for source, _ in self.graph.into(node.name, "rate"):
            first = first + self.currents[source]
        return first, second
