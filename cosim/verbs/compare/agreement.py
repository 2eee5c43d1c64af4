"""Comparison of software, behavioral model and a circuit simulator on the same samples, with the figures for specs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cosim.cells.blocks import outside_of
from cosim.compiler.design import Design, block_areas
from cosim.engines.behavioral.evaluate import BehavioralTrace
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.engines.engine import Failure, Inference, Outcome, Run, count_elsewhere, decided_by
from cosim.engines.simulation.audit import Audit, DecisionUncertainty
from cosim.network.ir.states import States, differ, software_states, tolerances
from cosim.network.reference import Trace, padded, pool_readout, run_reference, threshold_distances, valid_steps
from cosim.results.intervals import IntervalEnds, interval, mean_interval
from cosim.results.metrics import Estimate
from cosim.tasks.target import Answers, balanced_accuracy, is_unbalanced, same_answers
from cosim.tasks.testset import TestSet
from cosim.units.schmitt import Shift
from cosim.verbs.compare.noise import NoiseSummary
from cosim.verbs.compare.transitions import Transitions, find_transitions
from cosim.verbs.compare.value_errors import ValueErrors, measure_errors

Figures = dict[str, Estimate]  # by metric


def measure_cost(design: Design, watts: NDArray[np.float64], lengths: NDArray[np.int64], t_step: float) -> Figures:
    """Compute power and energy of an inference, latency of the longest one, and area of the gates, by metric.
    watts: (n,) mean power of each sample, W; lengths: (n,) frames of each sample; t_step: duration of a frame, s."""
    power, energy = (mean_interval(values) for values in (watts, watts * lengths * t_step))
    return {
        "power": Estimate(power.mean, power.low, power.high),
        "energy": Estimate(energy.mean, energy.low, energy.high),
        "latency": Estimate(latency(lengths, t_step)),
        "area": Estimate(gate_area(design)),
    }


def latency(lengths: NDArray[np.int64], t_step: float) -> float:
    """Return the duration of the longest inference, from its first frame to the end of its last one, s."""
    return float(lengths.max()) * t_step


def gate_area(design: Design) -> float:
    """Return the area that `cosim compare` prints of a design: its transistors and capacitors as drawn, um2.

    It is without wells and wires.
    """
    return 1e12 * sum(gates + capacitors for gates, capacitors in block_areas(design).values())


def decision_margin(pooled: NDArray[np.float64], pooling: str) -> float | None:
    """Return the smallest difference, over all samples, between the two largest readouts, in their unit.

    pooled: (n, outputs) readouts, pooled over frames. Returns None for votes, and for a single output.
    """
    if pooling == "vote" or pooled.shape[1] < 2:
        return None
    top = np.sort(pooled, axis=1)
    return float((top[:, -1] - top[:, -2]).min())


@dataclass(frozen=True)
class EngineResult:
    """Results of one engine on n samples.

    states: (n, time, cells), whole numbers or analog; readout: (n, time, outputs), in units of full scale (1.0);
    decisions: answers, (n,) classes or (n, outputs) real numbers.
    """

    states: States
    readout: NDArray[np.float64]
    decisions: Answers


@dataclass(frozen=True)
class Comparison:
    """Results of three engines on the same samples: software, behavioral and `simulator`, in this order.

    Only samples whose simulation succeeded count; `failures` holds the others.

    valid: (n, time) bool, frames that belong to a sample; y: (n,) classes or (n, outputs) real numbers that are right
    within `answer_tolerance`, which is None for classes; indices: (n,) numbers of the samples in the full test set;
    power_w: simulator and behavioral -> mean power of each sample, (n,) W; blocks: those whose power counts; cost: the
    simulator's power, energy, latency, area, and margin of classes, by metric; rounding: results of an ideal circuit,
    whose only error is that weights are rounded; margins: (n, time, cells) distance of the software's candidate from
    its nearer threshold, in units of full scale; saturated: number of software states that their ladder or counter
    cannot reach; tolerances: (cells,), how far two equal states may differ (`differ`); elsewhere: number of samples
    that something else ran in the simulator's place, by what and why; audit: ngspice's check of some samples;
    undecided: count of states that an error of the simulator could turn; transitions: of an automaton.
    """

    engines: dict[str, EngineResult]
    rounding: EngineResult
    margins: NDArray[np.float64]
    cells: tuple[str, ...]
    valid: NDArray[np.bool_]
    y: Answers
    indices: NDArray[np.int64]
    power_w: dict[str, NDArray[np.float64]]
    failures: tuple[Failure, ...]
    transistors: int
    saturated: int = 0
    simulator: str = "ngspice"
    tolerances: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    elsewhere: dict[str, int] = field(default_factory=dict[str, int])
    audit: Audit | None = None
    undecided: DecisionUncertainty | None = None
    transitions: Transitions | None = None
    answer_tolerance: float | None = None
    cost: dict[str, Estimate] = field(default_factory=dict[str, Estimate])
    noise: NoiseSummary | None = None
    blocks: tuple[str, ...] = ()

    def state_agreement(self, first: str, second: str) -> float:
        """Return the fraction of states that are equal in two engines, over all samples, valid frames and cells."""
        return 1.0 - self.state_errors(first, second) / (int(self.valid.sum()) * len(self.cells))

    def _differ(self, first: EngineResult, second: EngineResult) -> NDArray[np.bool_]:
        return differ(first.states, second.states, self.tolerances) & self.valid[:, :, None]

    def state_errors(self, first: str, second: str) -> int:
        """Count the states in valid frames that differ between two engines."""
        return int(self._differ(self.engines[first], self.engines[second]).sum())

    def task_agreement(self, first: str, second: str) -> float:
        """Return the fraction of samples that two engines answer alike; real numbers may differ by the tolerance."""
        return float(self._same(self.engines[first], self.engines[second]).mean())

    def _same(self, first: EngineResult, second: EngineResult) -> NDArray[np.bool_]:
        return same_answers(first.decisions, second.decisions, self.answer_tolerance)

    def task_interval(self) -> tuple[float, float, float]:
        """Return the task agreement of software and simulator, with its Clopper-Pearson interval: value, low, high."""
        same = self._same(self.engines["software"], self.engines[self.simulator])
        return interval(int(same.sum()), len(self.y))

    def accuracy(self, engine: str) -> tuple[float, float, float]:
        """Return an engine's fraction of right answers with its Clopper-Pearson interval: (fraction, low, high)."""
        right = int(same_answers(self.engines[engine].decisions, self.y, self.answer_tolerance).sum())
        return interval(right, len(self.y))

    def balanced_accuracy(self) -> dict[str, float] | None:
        """Return engine -> balanced accuracy, the mean over classes of the fraction of right decisions in a class.

        Returns None for real-valued answers, and where the classes have about equal numbers of samples.
        """
        if self.answer_tolerance is not None or not is_unbalanced(self.y):
            return None
        return {engine: balanced_accuracy(self.engines[engine].decisions, self.y) for engine in self.engines}

    def first_divergence(self) -> NDArray[np.int64]:
        """Return each sample's first frame in which a state of software and simulator differs, (n,), or -1."""
        frames = np.any(self.wrong(), axis=2)
        return np.where(frames.any(axis=1), frames.argmax(axis=1), -1)

    def wrong(self) -> NDArray[np.bool_]:
        """Return where states of software and simulator differ, (n, time, cells) bool; False outside valid frames."""
        return self._differ(self.engines["software"], self.engines[self.simulator])

    def error_sources(self) -> dict[str, int]:
        """Count the states that each step of realism changes: rounding of weights, statics, dynamics.
        Statics is what calibration leaves (rounded circuit to behavioral model), dynamics the rest (to the simulator).
        """
        return {step: int(self._differ(a, b).sum()) for step, (a, b) in self._steps().items()}

    def decision_sources(self) -> dict[str, int]:
        """Count the decisions that each step of `error_sources` changes; a near tie may turn although no state does."""
        return {step: int((~self._same(a, b)).sum()) for step, (a, b) in self._steps().items()}

    def measured(self) -> dict[str, Estimate]:
        """Return the simulator's figures on which a spec may be: metric -> estimate, with an interval if it has one."""
        found = {
            "accuracy": Estimate(*self.accuracy(self.simulator)),
            "task_agreement": Estimate(*self.task_interval()),
            "state_agreement": Estimate(self.state_agreement("software", self.simulator)),
        }
        if (errors := self.errors()) is not None:
            own = errors.engines[self.simulator]
            found["rmse"] = Estimate(own.rmse, *(own.rmse_interval or (None, None)))
        return found | self.cost

    def errors(self) -> ValueErrors | None:
        """Return the errors of real-valued answers, from their targets and from the software; None for classes."""
        if self.answer_tolerance is None:
            return None
        return measure_errors(
            {name: one.decisions for name, one in self.engines.items()}, self.y, self.answer_tolerance
        )

    def _steps(self) -> dict[str, tuple[EngineResult, EngineResult]]:
        order = (self.engines["software"], self.rounding, self.engines["behavioral"], self.engines[self.simulator])
        return dict(zip(("rounding", "statics", "dynamics"), pairwise(order), strict=True))

    def readout_error(self) -> tuple[float | None, float]:
        """Compare the readouts of software and simulator: (correlation, root mean square of their difference).

        The difference is in units of full scale. The correlation is None where one of the readouts is constant.
        """
        software = self.engines["software"].readout[self.valid]
        simulated = self.engines[self.simulator].readout[self.valid]
        constant = np.ptp(software) == 0 or np.ptp(simulated) == 0
        correlation = None if constant else float(np.corrcoef(software.ravel(), simulated.ravel())[0, 1])
        return correlation, float(np.sqrt(np.mean((software - simulated) ** 2)))


@dataclass(frozen=True)
class Divergence:
    """The number of samples with a state that differs between software and simulator, and the earliest such frame.

    earliest_frame: None where no state differs.
    """

    samples_diverged: int
    earliest_frame: int | None


@dataclass(frozen=True)
class ComparisonSummary:
    """Summary of a comparison, for tables, reports and comparison.json; mappings are by engine, or by step of realism.

    The steps are those of `error_sources` and `decision_sources`. Agreements and accuracies are fractions of 1, powers
    are in W, readout_rmse_units and margins in units of full scale. These are None: balanced accuracy of about equal
    classes, power of the software, correlation with a constant readout, margin where no bit is wrong. analog_tolerance:
    share of full scale by which equal analog states may differ; 0 without analog states.
    """

    simulator: str
    samples: int
    failed: int
    state_bits: int
    state_agreement: float
    state_agreement_behavioral: float
    task_agreement: float
    task_agreement_interval: IntervalEnds
    accuracy: dict[str, float]
    accuracy_interval: dict[str, IntervalEnds]
    balanced_accuracy: dict[str, float] | None
    power_w: dict[str, float | None]
    power_outside: tuple[str, ...]
    first_divergence: Divergence
    readout_correlation: float | None
    readout_rmse_units: float
    error_sources: dict[str, int]
    decision_sources: dict[str, int]
    dominant_error_source: str
    largest_margin_of_a_wrong_bit: float | None
    saturated_states: int
    transistors: int
    elsewhere: dict[str, int]
    audit: Audit | None
    undecided: DecisionUncertainty | None
    transitions: Transitions | None
    errors: ValueErrors | None = field(default=None, kw_only=True)  # a file leaves out what is None by default
    measured: dict[str, Estimate] = field(default_factory=dict[str, Estimate], kw_only=True)
    noise: NoiseSummary | None = field(default=None, kw_only=True)
    analog_tolerance: float = field(default=0.0, kw_only=True)


def compare_engines(
    design: Design, test_set: TestSet, outcomes: Sequence[Outcome], run: Run = Run()
) -> Comparison | None:
    """Compare a simulator's outcomes with software and behavioral model; return None if every simulation failed.

    outcomes: one for each sample of `test_set`, from a run with the settings `run`.
    """
    good = {k: outcome for k, outcome in enumerate(outcomes) if isinstance(outcome, Inference)}
    if not good:
        return None
    inferences, ran = [*good.values()], test_set.select(np.array([*good]))
    x, lengths = ran.x, ran.lengths
    reference = run_reference(design.network, x, lengths)
    steps, cells = x.shape[1], tuple(design.assembly.decisions)
    valid = valid_steps(lengths, steps)

    def engine(states: States, readout: NDArray[np.float64]) -> EngineResult:
        pooled = pool_readout(readout, lengths, design.network.readout.pooling)
        return EngineResult(states, readout, test_set.answers(pooled))

    def evaluated(trace: BehavioralTrace) -> EngineResult:
        return engine(np.stack([trace.states[cell] for cell in cells], axis=2), trace.readout / design.i_unit)

    there = run.condition, run.chip
    behavioral = run_behavioral(design, x, *there)
    power = sum(behavioral_power(design, behavioral, run.timing, *there).values(), np.zeros(valid.shape))
    software = engine(software_states(design.graph, reference), reference.readout)
    simulated = np.stack([padded(inference.readout, steps) for inference in inferences])
    states = np.stack([padded(inference.states, steps) for inference in inferences])
    transistors = engine(states, simulated / (run.standing(design).bias_scale * design.i_unit))
    transistors = replace(transistors, decisions=decided_by(inferences, transistors.decisions))
    watts = np.array([inference.power_w for inference in inferences])
    cost, pooling = measure_cost(design, watts, lengths, run.timing.t_step), design.network.readout.pooling
    margin = decision_margin(pool_readout(simulated, lengths, pooling), pooling)
    if test_set.tolerance is None and margin is not None:
        cost["margin"] = Estimate(margin)
    return Comparison(
        engines={"software": software, "behavioral": evaluated(behavioral), run.engine: transistors},
        rounding=evaluated(run_behavioral(design, x, *there, ideal=True)),
        margins=cell_distances(design, reference),
        cells=cells,
        valid=valid,
        y=ran.y,
        indices=ran.indices,
        power_w={"behavioral": (power * valid).sum(axis=1) / lengths, run.engine: watts},
        failures=tuple(outcome for outcome in outcomes if isinstance(outcome, Failure)),
        transistors=design.assembly.transistors,
        saturated=_saturated(design, software.states, valid),
        tolerances=tolerances(design.graph),
        simulator=run.engine,
        elsewhere=count_elsewhere(outcomes),
        transitions=find_transitions(design, test_set, outcomes, run),
        answer_tolerance=test_set.tolerance,
        cost=cost,
        blocks=design.assembly.blocks,
    )


def _saturated(design: Design, states: States, valid: NDArray[np.bool_]) -> int:
    tops = [np.inf if node.tolerance else node.most for node in design.graph.memories]
    return int((((states < 0) | (states > np.array(tops))) & valid[:, :, None]).sum())


def summarize_comparison(comparison: Comparison) -> ComparisonSummary:
    """Summarize a comparison in figures for tables, reports and comparison.json."""
    accuracy = {engine: comparison.accuracy(engine) for engine in comparison.engines}
    correlation, rmse = comparison.readout_error()
    diverged = comparison.first_divergence()
    sources, decisions = comparison.error_sources(), comparison.decision_sources()
    changed = sources if any(sources.values()) else decisions
    simulator = comparison.simulator
    agreement, *ends = comparison.task_interval()
    margins = comparison.margins[comparison.wrong()]
    margins = margins[np.isfinite(margins)]  # an analog state has no threshold
    return ComparisonSummary(
        simulator=simulator,
        samples=len(comparison.y),
        failed=len(comparison.failures),
        state_bits=int(comparison.valid.sum()) * len(comparison.cells),
        state_agreement=comparison.state_agreement("software", simulator),
        state_agreement_behavioral=comparison.state_agreement("behavioral", simulator),
        task_agreement=agreement,
        task_agreement_interval=IntervalEnds(*ends),
        accuracy={engine: value for engine, (value, _, _) in accuracy.items()},
        accuracy_interval={engine: IntervalEnds(low, high) for engine, (_, low, high) in accuracy.items()},
        balanced_accuracy=comparison.balanced_accuracy(),
        power_w={"software": None, **{engine: float(watt.mean()) for engine, watt in comparison.power_w.items()}},
        power_outside=outside_of(comparison.blocks),
        first_divergence=Divergence(
            int((diverged >= 0).sum()), int(diverged[diverged >= 0].min()) if (diverged >= 0).any() else None
        ),
        readout_correlation=correlation,
        readout_rmse_units=rmse,
        error_sources=sources,
        decision_sources=decisions,
        dominant_error_source=max(changed, key=lambda name: changed[name]) if any(changed.values()) else "none",
        largest_margin_of_a_wrong_bit=float(margins.max()) if margins.size else None,
        saturated_states=comparison.saturated,
        transistors=comparison.transistors,
        elsewhere=comparison.elsewhere,
        audit=comparison.audit,
        undecided=comparison.undecided,
        transitions=comparison.transitions,
        errors=comparison.errors(),
        measured=comparison.measured(),
        noise=comparison.noise,
        analog_tolerance=float(comparison.tolerances.max()),
    )


def cell_distances(design: Design, reference: Trace) -> NDArray[np.float64]:
    """Return how far each cell's candidate in software is from its nearer threshold, (n, time, cells of the circuit).

    Distances are in units of full scale. The candidate of a shift cell is the level of the bit that it takes over.
    """
    layers = design.network.recurrent_layers
    places = [(layer.name, k) for layer in layers for k in range(layer.width)]
    units = dict(zip(places, np.moveaxis(threshold_distances(design.network, reference), 2, 0), strict=True))
    states = software_states(design.graph, reference)
    margins: list[NDArray[np.float64]] = []
    for k, node in enumerate(design.graph.memories):
        if isinstance(node, Shift):
            level = node.level * states[:, :, k]
            margins.append(np.minimum(np.abs(level - node.rise), np.abs(level - node.fall)))
        else:
            margins.append(units[node.layer, node.index])
    return np.stack(margins, axis=2)
