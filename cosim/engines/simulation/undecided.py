"""Decisions that an error of the engine could turn: how near they were, against what two tolerances differ by.

An ampere at the threshold: a few samples run again with steps that may err a tenth as much. What the margins change by,
in 99 of 100 decisions at most, is the steps' error; what the tables may err, `audit.TIE` of the unit current, comes on
top. A volt at the latch: a net that is still so near to the threshold when it is read has not latched.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench
from cosim.compiler.design import Design
from cosim.engines.engine import Inference, Outcome, Progress, Run
from cosim.engines.simulation.audit import AuditableRun, choose, tie_limit
from cosim.engines.simulation.inference import run_inferences
from cosim.engines.simulation.plans import read_plan
from cosim.engines.simulation.read import ReadPlan, decision_margins, with_candidates, with_margins
from cosim.engines.simulation.simulated import sample_benches
from cosim.tasks.testset import TestSet

REPEATED = 8  # samples
TIGHTER = 0.1  # of the tolerance
SHARE = 0.99  # of the decisions, whose margins change by less
LATCHED = 0.05  # of V_DD
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Undecided:
    """Simulated decisions that an engine's error could turn.

    repeated: samples that ran with tighter steps, too; error: what that changed SHARE of the margins by, ampere. limit:
    error and what the tables may err, ampere. decisions: those with a margin; near: of them under the limit. latches:
    decisions whose nets were read; floating: of them within `volt` of the threshold. samples: with either.
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
    """Simulated decisions on drawn chips that an engine's error could turn.

    inferences: samples on chips whose margins were measured; near: those with a decision under `limit`; repeated,
    error, limit: as in `Undecided`.
    """

    inferences: int
    near: int
    repeated: int
    error: float
    limit: float


def find_undecided(ran: AuditableRun, progress: Progress) -> Undecided:
    """Run some samples of an engine's run again, with smaller steps, and count the decisions that its error could turn.

    The run has measured margins. Half of the samples that it repeats are the least certain.
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
    return Undecided(
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
    """Return the testbenches of samples, to run in a simulator with steps that may err less, and plans to read them.

    Margins are included.
    """
    margins, there = decision_margins(design, run), run.standing(design)
    benches = [with_candidates(_tighter(bench), margins) for bench in sample_benches(design, few, run)]
    plans = [with_margins(read_plan(design, int(n), run.timing, there), margins, run) for n in few.lengths]
    return benches, plans


def steps_error(pairs: Iterable[tuple[Outcome, Outcome]]) -> float:
    """Return the error of an engine's steps, ampere: the change of margins between two simulations of one set of
    benches.

    The share SHARE of all changes stays within it.
    """
    changes = np.concatenate([np.empty(0), *(_apart(one, other) for one, other in pairs)])
    return float(np.quantile(changes, SHARE)) if changes.size else 0.0


def _tighter(bench: Bench) -> Bench:
    tolerances = bench.tolerances
    return replace(bench, tolerances=replace(tolerances, reltol=TIGHTER * tolerances.reltol))


def _apart(one: Outcome, other: Outcome) -> Array:
    """Return how much margins of two simulator runs of a sample differ, ampere, in frames before which all states are
    equal."""
    if not (isinstance(one, Inference) and isinstance(other, Inference)):
        return np.empty(0)
    differs = (one.states != other.states).any(axis=1)
    frames = int(np.argmax(differs)) + 1 if differs.any() else len(differs)
    mine, theirs = one.margins[:frames], other.margins[:frames]
    both = np.isfinite(mine) & np.isfinite(theirs)
    return np.abs(mine[both] - theirs[both])
