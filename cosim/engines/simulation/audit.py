"""An audit: some samples of an engine's run are also run in ngspice, and states that differ are counted.

Half of these samples are random, the others have the least certain decisions. A decision whose margin is under a limit
is a tie: either state is right. A decision whose net is nearer than HOVERING to the threshold when it is read is a tie
as well: it is still under way, and a stage behind it may have seen a current in between. Where a tie turns out
differently, later states of the sample, from that frame on, are its consequences and are not compared, because states
feed back. Nearly all other states must be equal.

Decisions that the engine's own error could turn are counted, too (`DecisionUncertainty`). For margins in ampere, a few
samples run again with steps of a tenth of the tolerance. The steps' error is the change that 99 of 100 margins stay
within; the tables' error, TIE of the unit current, is added. For latches in volt, a net near its threshold when it is
read has not latched.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench
from cosim.compiler.design import Condition, Design
from cosim.engines.engine import Failure, Inference, Outcome, Progress, Run
from cosim.engines.simulation.inference import run_inferences
from cosim.engines.simulation.read import ReadPlan
from cosim.engines.simulation.simulated import measured_samples, planned_samples
from cosim.engines.table import reference_simulator
from cosim.network.ir.states import differ, tolerances
from cosim.tasks.testset import TestSet
from cosim.technology.types import Technology

TIE = 2e-3  # of the unit current: 0.1 mV at a gate changes a subthreshold current by so much
HOVERING = 0.1  # of V_DD
LEAST = 0.999  # of the states outside ties that must be equal
REPEATED = 8  # samples that run again
TIGHTER = 0.1  # of the tolerance, in those
SHARE = 0.99  # of the decisions, whose margins change by less
LATCHED = 0.05  # of V_DD
Array = NDArray[np.float64]
_COUNTS = ("instances", "failed", "bits", "ties", "turned", "behind", "wrong")


@dataclass(frozen=True)
class Audit:
    """The result of an audit: samples of an engine's run compared with the technology's reference simulator.

    instances: samples, each on its chip; failed: samples that it could not run; reason: why the first of these
    failed, empty for none.
    bits: states of the others. ties: states whose margin is under `limit`, ampere, or whose net is within 0.1 of the
    supply of its threshold when it is read; either value is right. turned: ties that differ. behind: states that are
    not compared, because a tie of their sample turned, in their frame or earlier. wrong: other states that differ.
    agreement: share of compared states that are equal. worst: largest margin of a wrong state, ampere, None where none
    is known. passed: agreement is at least 0.999, and something was compared or nothing was to be audited, because
    it ran every sample itself.
    """

    simulator: str
    instances: int
    failed: int
    bits: int
    ties: int
    turned: int
    behind: int
    wrong: int
    limit: float
    agreement: float
    worst: float | None
    passed: bool
    reason: str = ""


def least_margin(found: Outcome) -> float:
    """Return the smallest margin of a simulated sample's decisions, ampere; inf where none was measured."""
    return float(found.margins.min()) if isinstance(found, Inference) and found.margins.size else np.inf


def choose(certainty: Array, count: int, seed: int) -> NDArray[np.int64]:
    """Return the places of `count` simulated samples to audit: half are the least certain, half random.

    certainty: smallest margin of each sample, (n,), ampere; nan for a sample that cannot be audited.
    """
    there = np.flatnonzero(~np.isnan(certainty))
    ranked = there[np.argsort(certainty[there], kind="stable")]
    doubtful = ranked[np.isfinite(certainty[ranked])][: count // 2]
    others = np.setdiff1d(there, doubtful)
    return np.concatenate([doubtful, np.random.default_rng(seed).permutation(others)[: count - len(doubtful)]])


@dataclass(frozen=True)
class AuditableRun:
    """An engine's run whose samples may be audited: design, samples, their outcomes, and settings of the run."""

    design: Design
    test_set: TestSet
    outcomes: Sequence[Outcome]
    run: Run

    @property
    def certainty(self) -> Array:
        """Return the smallest margin of each sample, (n,), ampere.

        It is nan for a sample that failed or that another simulator ran.
        """
        found = (one if isinstance(one, Inference) and not one.elsewhere else None for one in self.outcomes)
        return np.array([np.nan if one is None else least_margin(one) for one in found])


def audit_samples(ran: AuditableRun, count: int, progress: Progress) -> Audit:
    """Audit `count` samples of an engine's run against ngspice; results are kept in the run's folder."""
    return audit_places(ran, choose(ran.certainty, count, seed=0), progress)


def audit_places(ran: AuditableRun, places: NDArray[np.int64], progress: Progress) -> Audit:
    """Audit an engine's samples at these places: run them in ngspice and count the states that differ."""
    design, run, chosen = ran.design, ran.run, ran.test_set.select(places)
    benches, plans = planned_samples(design, chosen, run)
    others = run_inferences(list(benches), list(plans), reference_run(run, design.technology), progress)
    return judge(design, [ran.outcomes[int(place)] for place in places], others, run.standing(design))


def audit_conditions(runs: Sequence[AuditableRun], count: int, progress: Progress) -> Audit:
    """Audit `count` samples of several engine runs together, each in its run's condition, against ngspice."""
    first = np.cumsum([0, *(len(ran.outcomes) for ran in runs)])
    places = choose(np.concatenate([ran.certainty for ran in runs]), count, seed=0)
    found: list[Audit] = []
    for k, ran in enumerate(runs):
        own = places[(places >= first[k]) & (places < first[k + 1])] - first[k]
        if own.size:
            found.append(audit_places(ran, own, lambda done, total: None))
            progress(sum(one.instances for one in found), len(places))
    return merge(found, runs[0].design.technology)


def merge(audits: Sequence[Audit], technology: Technology) -> Audit:
    """Merge several audits of engine runs in a technology into one; its limit is the largest of theirs."""
    counts = Counter[str]()
    for one in audits:
        counts.update({name: getattr(one, name) for name in _COUNTS})
    worst = max((one.worst for one in audits if one.worst is not None), default=None)
    reason = next((one.reason for one in audits if one.reason), "")
    simulator = reference_simulator(technology)
    return _concluded(simulator, counts, max((one.limit for one in audits), default=0.0), worst, reason)


def _concluded(simulator: str, counts: Mapping[str, int], limit: float, worst: float | None, reason: str) -> Audit:
    compared = counts["bits"] - counts["ties"] - counts["behind"]
    agreement = 1.0 - counts["wrong"] / compared if compared else float(not counts["instances"])
    numbers = {name: counts[name] for name in _COUNTS}
    passed = agreement >= LEAST
    return Audit(
        simulator, **numbers, limit=limit, agreement=agreement, worst=worst, passed=passed, reason=reason
    )  # fmt: skip


def reference_run(run: Run, technology: Technology) -> Run:
    """Return the settings of an audit: an engine's benches run in the technology's reference simulator."""
    return Run(run.folder, max(run.jobs, 1), run.timeout, engine=reference_simulator(technology))


def tie_limit(design: Design, condition: Condition | None = None) -> float:
    """Return the margin, ampere, under which a simulated decision is a tie; condition: None for the nominal one.

    The larger a candidate's currents are, the less certain it is. They scale with the inputs' or the bias pins' factor,
    whichever is larger.
    """
    there = condition or design.nominal
    return TIE * max(there.bias_scale, there.input_scale) * design.i_unit


def judge(
    design: Design, found: Sequence[Outcome], others: Sequence[Outcome], condition: Condition | None = None
) -> Audit:
    """Count the states that differ between an engine's outcomes and those of ngspice for the same benches.

    condition: of all benches, None for the nominal one.
    """
    limit, allowed = tie_limit(design, condition), tolerances(design.graph)
    near = HOVERING * design.nominal.technology.supply
    pairs = [
        (one, other)
        for one, other in zip(found, others, strict=True)
        if isinstance(one, Inference) and isinstance(other, Inference)
    ]
    counts = Counter(instances=len(found), failed=sum(isinstance(other, Failure) for other in others))
    margins: list[Array] = []
    for one, other in pairs:
        margin = one.margins if one.margins.size else np.full(one.states.shape, np.inf)
        differs = differ(one.states, other.states, allowed)
        hovers = one.latches < near if one.latches.size else np.zeros(differs.shape, np.bool_)
        tie = (margin < limit) | hovers
        turned = (differs & tie).any(axis=1) | (differs.any(axis=1) & hovers.any(axis=1))
        follows = (np.cumsum(turned) > 0)[:, None] & ~tie
        errors = differs & ~tie & ~follows
        margins.append(margin[errors])
        counted = {"ties": tie, "turned": differs & tie, "behind": follows, "wrong": errors}
        counts.update(bits=tie.size, **{name: int(states.sum()) for name, states in counted.items()})
    known = np.concatenate([*margins, np.empty(0)])
    known = known[np.isfinite(known)]
    reason = next((str(one) for one in others if isinstance(one, Failure)), "")
    simulator = reference_simulator(design.technology)
    return _concluded(simulator, counts, limit, float(known.max()) if known.size else None, reason)


@dataclass(frozen=True)
class DecisionUncertainty:
    """Simulated decisions that an engine's own error could turn.

    repeated: samples that ran again with tighter steps; error: change that SHARE of the margins stayed within, ampere;
    limit: that error plus the tables', ampere; decisions: number with a margin; near: those of them under the limit;
    latches: decisions whose nets were read; floating: those of them within `volt` of the threshold; samples: with a
    decision that is near or floating.
    """

    repeated: int
    error: float
    limit: float
    decisions: int
    near: int
    latches: int
    floating: int
    volt: float
    samples: int


@dataclass(frozen=True)
class UndecidedChips:
    """Simulated decisions on drawn chips that an engine's own error could turn.

    inferences: samples on chips with measured margins; near: those of them with a decision under `limit`; repeated,
    error, limit: as in `DecisionUncertainty`.
    """

    inferences: int
    near: int
    repeated: int
    error: float
    limit: float


def find_undecided(ran: AuditableRun, progress: Progress) -> DecisionUncertainty:
    """Count the decisions that an engine's error could turn, by running some samples again with smaller steps.

    The run must have measured margins. Half of the repeated samples are the least certain.
    """
    design, run, outcomes, certainty = ran.design, ran.run, ran.outcomes, ran.certainty
    places = choose(certainty, REPEATED, seed=1)
    benches, plans = tighter_benches(design, ran.test_set.select(places), run)
    again = run_inferences(benches, plans, replace(run, jobs=max(run.jobs, 1)), progress)
    error = steps_error(zip((outcomes[int(place)] for place in places), again, strict=True))
    there = run.standing(design)
    limit, volt = tie_limit(design, there) + error, LATCHED * there.technology.supply
    own = [found for found in outcomes if isinstance(found, Inference) and not found.elsewhere]
    near = [found.margins < limit for found in own]
    floating = [found.latches < volt for found in own]
    return DecisionUncertainty(
        repeated=len(places),
        error=error,
        limit=limit,
        decisions=sum(int(np.isfinite(found.margins).sum()) for found in own),
        near=sum(int(one.sum()) for one in near),
        latches=sum(int(np.isfinite(found.latches).sum()) for found in own),
        floating=sum(int(one.sum()) for one in floating),
        volt=volt,
        samples=sum(bool(one.any() or other.any()) for one, other in zip(near, floating, strict=True)),
    )


def tighter_benches(design: Design, few: TestSet, run: Run) -> tuple[list[Bench], list[ReadPlan]]:
    """Return samples' testbenches to simulate with smaller step errors, and plans that read margins, too."""
    benches, plans = measured_samples(design, few, run)
    return [
        replace(bench, tolerances=replace(bench.tolerances, reltol=TIGHTER * bench.tolerances.reltol))
        for bench in benches
    ], list(plans)


def steps_error(pairs: Iterable[tuple[Outcome, Outcome]]) -> float:
    """Return the error of an engine's time steps, ampere, within which SHARE of all changes of margins stay.

    pairs: the outcomes of two simulations of each bench, with different steps.
    """
    changes = np.concatenate([np.empty(0), *(_apart(one, other) for one, other in pairs)])
    return float(np.quantile(changes, SHARE)) if changes.size else 0.0


def _apart(one: Outcome, other: Outcome) -> Array:
    """Return the differences of a sample's margins between two simulator runs, ampere.

    Frames count as long as all states before them are equal.
    """
    if not (isinstance(one, Inference) and isinstance(other, Inference)):
        return np.empty(0)
    differs = (one.states != other.states).any(axis=1)
    frames = int(np.argmax(differs)) + 1 if differs.any() else len(differs)
    mine, theirs = one.margins[:frames], other.margins[:frames]
    both = np.isfinite(mine) & np.isfinite(theirs)
    return np.abs(mine[both] - theirs[both])
