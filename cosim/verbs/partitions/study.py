"""Comparison of a backbone whose cells are on transistors with software: partition by partition, and end to end.

The same samples run four times. `software`: as trained. `converters`: software with the converters and the circuit's
equations, which is what the circuit should do. `behavioral` and the simulator: whole traces go through the circuits,
and a later block reads the states that the circuits in front of it really had. Wrong states are therefore counted
twice: along the whole chain, and against the equations on the very inputs that a circuit got.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cosim.cells.blocks import OUTSIDE
from cosim.compiler.design import Design
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.engines.engine import Failure, Inference, Outcome, Progress, Run
from cosim.engines.simulation.audit import Audit, AuditableRun, DecisionUncertainty, audit_samples, find_undecided
from cosim.engines.simulation.simulated import simulate_samples
from cosim.engines.table import engine_entry
from cosim.network.ir.states import States as CircuitStates
from cosim.network.layers import Array
from cosim.network.reference import run_reference, valid_steps
from cosim.results.intervals import IntervalEnds, interval
from cosim.tasks.testset import TestSet

if TYPE_CHECKING:
    from cosim.papers.converter import Partition
    from cosim.papers.cut import CutTrace, PartitionedBackbone, States
    from cosim.papers.sources import Samples

SOFTWARE, CONVERTERS, BEHAVIORAL = "software", "converters", "behavioral"
Integers = NDArray[np.int64]
_SOFTWARE = "zero", "step"  # of a node: h = zero + step s for its state s


@dataclass(frozen=True)
class CompiledPartition:
    """A compiled partition, the cells of one block of a backbone, and the run of its samples."""

    partition: "Partition"
    design: Design
    run: Run

    def read(self, states: CircuitStates) -> "States":
        """Convert the states of the partition's circuit to those of the backbone's cell, (..., units)."""
        if not self.partition.counts:
            return states.astype(np.int16)
        zeros, steps = (np.array([getattr(node, name) for node in self.design.graph.memories]) for name in _SOFTWARE)
        return self.partition.read_software(np.asarray(zeros + steps * states, dtype=np.float64))


@dataclass
class Ledger:
    """The results of a partition's circuit, for each sample of x (n, time, units), in order."""

    placed: CompiledPartition
    x: list[Array] = field(default_factory=list[Array])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    power: list[float] = field(default_factory=list[float])  # W, behavioral

    def ran(self, lengths: Integers) -> AuditableRun:
        """Return the run of all samples through the partition, for an audit by ngspice; lengths: frames, (n,)."""
        numbers = np.arange(len(lengths))
        test_set = TestSet(np.concatenate(self.x), np.zeros_like(numbers), lengths, numbers)
        return AuditableRun(self.placed.design, test_set, self.outcomes, self.placed.run)


@dataclass(frozen=True)
class PartitionSummary:
    """The figures of one partition, the cells of one block of a backbone as a circuit.
    cells: in the circuit; converters: in front of it; bits, codes: of the candidates' converters; value_bits: of the
    converters of an alphaCMRU's values, 0 without; thresholds: of each cell, in steps of its converter; ranges: of
    these converters, in thresholds; out_of_range: share of candidates beyond them. states: number of compared states;
    wrong: those that differ along the whole chain, software to converters, converters to behavioral, converters to
    simulator; wrong_here: those that differ between simulator and equations on the circuit's own inputs; power_w: mean
    over samples; conversions_per_s: into the circuit, as many bits leave it; converters_w: power at the given energy of
    a conversion; even_energy_j: energy of a conversion at which converters take as much power as the circuit;
    least_margin_a: smallest of any decision, None where the engine does not measure it."""

    name: str
    cells: int
    converters: int
    transistors: int
    bits: int
    codes: int
    value_bits: int
    thresholds: tuple[float, ...]
    ranges: tuple[float, ...]
    out_of_range: float
    states: int
    wrong: dict[str, int]
    wrong_here: int
    state_agreement: float
    power_w: dict[str, float]
    conversions_per_s: float
    converters_w: float | None
    even_energy_j: float
    least_margin_a: float | None
    undecided: DecisionUncertainty | None
    audit: Audit | None


@dataclass(frozen=True)
class DeployedSummary:
    """The figures of a whole backbone; accuracies and agreements are fractions of 1.

    agreement: of decisions, between software and converters, converters and behavioral, converters and simulator, and
    `end_to_end` between software and simulator.
    """

    simulator: str
    samples: int
    failed: int
    accuracy: dict[str, float]
    accuracy_interval: dict[str, IntervalEnds]
    agreement: dict[str, float]
    agreement_interval: dict[str, IntervalEnds]
    largest_score_error: float
    states: int
    wrong_states: dict[str, int]
    state_agreement: float
    power_w: dict[str, float]
    power_outside: tuple[str, ...]
    conversion_j: float | None
    partitions: tuple[PartitionSummary, ...]

    @property
    def audits(self) -> list[Audit]:
        """Return the audits of those partitions that were audited."""
        return [one.audit for one in self.partitions if one.audit is not None]


@dataclass(frozen=True)
class BackboneRuns:
    """The results of a backbone's four runs.
    levels: name of the run -> trace; ledgers: cell -> results of its partition's circuit; good: samples that count,
    (n,)."""

    levels: "dict[str, CutTrace]"
    ledgers: dict[str, Ledger]
    samples: "Samples"
    good: NDArray[np.bool_]

    @property
    def simulator(self) -> str:
        """Return the name of the simulator that ran the circuits."""
        return next(iter(self.ledgers.values())).placed.run.engine

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Tell which frames count, (n, time) bool: the valid frames of samples that succeeded."""
        steps = max(one.shape[1] for one in next(iter(self.levels.values())).states.values())
        return valid_steps(self.samples.lengths, steps) & self.good[:, None]

    def wrong(self, cell: str, first: str, second: str) -> int:
        """Count the states of a cell that differ between two of the four runs."""
        differ = self.levels[first].states[cell] != self.levels[second].states[cell]
        return int((differ & self.valid[:, :, None]).sum())

    def same(self, first: str, second: str) -> int:
        """Count the samples that two of the four runs decide equally."""
        return int((self.levels[first].decisions == self.levels[second].decisions)[self.good].sum())


def deploy(
    cut: "PartitionedBackbone", placed: Sequence[CompiledPartition], samples: "Samples", progress: Progress
) -> BackboneRuns:
    """Run a backbone's samples four times: as software, with converters, by the behavioral equations, and simulated."""
    ledgers = {one.partition.cell: Ledger(one) for one in placed}
    done, total = 0, len(samples.lengths) * len(placed)

    def behavioral(partition: "Partition", g: Array, lengths: Integers) -> "States":
        return evaluate(ledgers[partition.cell].placed, g)

    def simulated(partition: "Partition", g: Array, lengths: Integers) -> "States":
        nonlocal done
        ledger, before = ledgers[partition.cell], done
        here = ledger.placed

        def tell(count: int, _total: int) -> None:
            progress(before + count, total)

        numbers = np.arange(len(g))
        x = np.where(valid_steps(lengths, g.shape[1])[:, :, None], g, 0.0)
        outcomes = simulate_samples(here.design, TestSet(x, np.zeros_like(numbers), lengths, numbers), here.run, tell)
        done = before + len(g)
        ledger.x.append(x)
        ledger.outcomes += outcomes
        ledger.power += mean_power(here, x, lengths).tolist()
        return taken_over(equations(partition, x), outcomes, here)

    levels = {
        SOFTWARE: cut.run(samples),
        CONVERTERS: cut.run(samples, lambda partition, g, lengths: equations(partition, g)),
        BEHAVIORAL: cut.run(samples, behavioral),
    }
    levels[placed[0].run.engine] = cut.run(samples, simulated)
    runs = zip(*(ledger.outcomes for ledger in ledgers.values()), strict=True)
    good = np.array([not any(isinstance(one, Failure) for one in outcomes) for outcomes in runs])
    return BackboneRuns(levels, ledgers, samples, good)


def equations(partition: "Partition", g: Array) -> "States":
    """Compute a partition's states by software; g: inputs, (n, time, units)."""
    return partition.read_software(run_reference(partition.network, g).signals["cell"])


def evaluate(placed: CompiledPartition, g: Array) -> "States":
    """Compute a partition's states by the behavioral equations of its circuit; g: inputs, (n, time, units)."""
    trace = run_behavioral(placed.design, g, placed.run.condition, placed.run.chip)
    found = np.stack([trace.states[cell] for cell in placed.design.assembly.decisions], axis=2)
    return placed.read(found)


def mean_power(placed: CompiledPartition, x: Array, lengths: Integers) -> Array:
    """Return the mean power of each sample by the behavioral equations, W, (n,)."""
    there = placed.run.condition, placed.run.chip
    trace = run_behavioral(placed.design, x, *there)
    power = sum(behavioral_power(placed.design, trace, placed.run.timing, *there).values(), np.zeros(x.shape[:2]))
    return (power * valid_steps(lengths, x.shape[1])).sum(axis=1) / lengths


def taken_over(states: "States", outcomes: Sequence[Outcome], placed: CompiledPartition) -> "States":
    """Return a partition's states (n, time, units), with those of successful simulations in place of the given ones."""
    found = states.copy()
    for k, outcome in enumerate(outcomes):
        if isinstance(outcome, Inference):
            found[k, : len(outcome.states)] = placed.read(outcome.states)
    return found


def summarize_deployed(deployed: BackboneRuns, conversion: float | None = None, audit: int = 0) -> DeployedSummary:
    """Summarize a backbone on its circuits.

    conversion: energy of one conversion, J; audit: number of samples of each partition that ngspice runs as well.
    """
    levels, simulator, count = deployed.levels, deployed.simulator, int(deployed.good.sum())
    pairs = {
        CONVERTERS: (SOFTWARE, CONVERTERS),
        BEHAVIORAL: (CONVERTERS, BEHAVIORAL),
        simulator: (CONVERTERS, simulator),
        "end_to_end": (SOFTWARE, simulator),
    }
    right = {name: int((one.decisions == deployed.samples.y)[deployed.good].sum()) for name, one in levels.items()}
    same = {name: deployed.same(*pair) for name, pair in pairs.items()}
    parts = tuple(_summarize(deployed, ledger, conversion, audit) for ledger in deployed.ledgers.values())
    states = sum(part.states for part in parts)
    wrong = {name: sum(part.wrong[name] for part in parts) for name in parts[0].wrong}
    apart = np.abs(levels[CONVERTERS].scores - levels[simulator].scores)[deployed.good]
    return DeployedSummary(
        simulator=simulator,
        samples=count,
        failed=len(deployed.good) - count,
        accuracy={name: value / count for name, value in right.items()},
        accuracy_interval={name: IntervalEnds(*interval(value, count)[1:]) for name, value in right.items()},
        agreement={name: value / count for name, value in same.items()},
        agreement_interval={name: IntervalEnds(*interval(value, count)[1:]) for name, value in same.items()},
        largest_score_error=float(apart.max()),
        states=states,
        wrong_states=wrong,
        state_agreement=1.0 - wrong[simulator] / states,
        power_w={name: sum(part.power_w[name] for part in parts) for name in parts[0].power_w},
        power_outside=OUTSIDE,
        conversion_j=conversion,
        partitions=parts,
    )


def _summarize(deployed: BackboneRuns, ledger: Ledger, conversion: float | None, audit: int) -> PartitionSummary:
    placed, simulator, valid = ledger.placed, deployed.simulator, deployed.valid
    partition = placed.partition
    cell, cells = partition.cell, partition.units
    ran, states = ledger.ran(deployed.samples.lengths), int(valid.sum()) * cells
    here = deployed.levels[simulator].states[cell] != equations(partition, ran.test_set.x)
    found = [one for one in ledger.outcomes if isinstance(one, Inference)]
    margins = [float(one.margins.min()) for one in found if one.margins.size]
    power = {
        BEHAVIORAL: float(np.mean(np.array(ledger.power)[deployed.good])),
        simulator: float(np.mean([one.power_w for one in found])),
    }
    wrong = {
        CONVERTERS: deployed.wrong(cell, SOFTWARE, CONVERTERS),
        BEHAVIORAL: deployed.wrong(cell, CONVERTERS, BEHAVIORAL),
        simulator: deployed.wrong(cell, CONVERTERS, simulator),
    }
    per_s = partition.converters / placed.run.timing.t_step
    beyond = np.abs(ran.test_set.x[..., :cells]) > partition.ranges
    quick = engine_entry(simulator).quick
    return PartitionSummary(
        name=partition.name,
        cells=cells,
        converters=partition.converters,
        transistors=placed.design.assembly.transistors,
        bits=partition.bits,
        codes=partition.codes,
        value_bits=partition.value_bits,
        thresholds=tuple(partition.thresholds.tolist()),
        ranges=tuple(partition.ranges.tolist()),
        out_of_range=float(beyond[valid].mean()),
        states=states,
        wrong=wrong,
        wrong_here=int((here & valid[:, :, None]).sum()),
        state_agreement=1.0 - wrong[simulator] / states,
        power_w=power,
        conversions_per_s=per_s,
        converters_w=None if conversion is None else conversion * per_s,
        even_energy_j=power[simulator] / per_s,
        least_margin_a=min(margins) if margins else None,
        undecided=find_undecided(ran, lambda done, total: None) if quick else None,
        audit=audit_samples(ran, audit, lambda done, total: None) if audit else None,
    )
