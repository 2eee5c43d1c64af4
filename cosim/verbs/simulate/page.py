"""The page of samples that a simulator ran: how many, how they were decided, at what power."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.base.quantities import format_quantity
from cosim.compiler.design import Design
from cosim.engines.engine import Inference, Outcome, Run, decided_by
from cosim.engines.simulation.simulated import engine_named
from cosim.network.reference import pool_readout
from cosim.results.html import Picture
from cosim.results.intervals import IntervalEnds, interval
from cosim.results.metrics import percent, within
from cosim.results.page import Facts, Page, Section, Table
from cosim.tasks.target import Answers
from cosim.tasks.testset import TestSet
from cosim.verbs.answers import say_answer, say_target
from cosim.verbs.compare.agreement import count_elsewhere
from cosim.verbs.provenance import circuit_facts, origins, subject_of
from cosim.verbs.trust import say_elsewhere
from cosim.verbs.words import say_conditions, worded

_LEAST = 600  # pixels under which a picture's words cannot be read
_ROWS = 400  # of the table of samples
_WAVES = "Inputs, one unit's candidate with its thresholds, its state, the readout, the supply power."


@dataclass(frozen=True)
class SimulationSubject:
    """Samples that a simulator ran, in their order; picture: PNG of the first that did not fail, None without."""

    design: Design
    test_set: TestSet
    outcomes: Sequence[Outcome]
    run: Run
    picture: bytes | None = None

    def answers(self, outcome: Inference) -> Answers:
        """Return (1,) the class that a readout is decided as, or (1, outputs) its numbers in multiples of the
        software's 1.0."""
        readout = outcome.readout[None] / (self.run.standing(self.design).bias_scale * self.design.i_unit)
        pooled = pool_readout(readout, np.array([len(outcome.readout)]), self.design.network.readout.pooling)
        return decided_by([outcome], self.test_set.target.answers(pooled))

    def right(self, place: int, outcome: Inference) -> bool:
        """Tell whether the answer to the sample at `place` is right."""
        return bool(self.test_set.target.same(self.answers(outcome), self.test_set.y[place : place + 1])[0])


def simulation_page(found: SimulationSubject) -> Page:
    """Return the page of simulated samples."""
    design, run = found.design, found.run
    subject, technology = subject_of(design), run.standing(design).technology
    good = [(k, one) for k, one in enumerate(found.outcomes) if isinstance(one, Inference)]
    right = sum(found.right(k, one) for k, one in good)
    count, total = len(good), len(found.outcomes)
    verdict, cards = f"all {total} simulations failed", [(f"{count} of {total}", "samples simulated")]
    if good:
        share = interval(right, count)
        accuracy, bounds = percent(share[0]), within(IntervalEnds(*share[1:]))
        power = format_quantity(float(np.mean([one.power_w for _, one in good])), "W")
        verdict = f"{accuracy} of {count} samples decided right {bounds}"
        cards += [(accuracy, f"accuracy of the transistors {bounds}"), (power, "mean supply power")]
    made_with = engine_named(run.engine).describe(technology)
    return Page(
        verb="simulate",
        subject=subject,
        title=f"{subject.name} on {technology.name}: {verdict}",
        lead=f"{total} test samples by {run.engine} on {design.assembly.transistors} transistors of {technology.name} "
        f"({say_conditions(technology)}); {total - count} simulations failed.",
        cards=tuple(cards),
        sections=(
            Section("One inference", _waveforms(found)),
            Section("Every sample", _samples(found)),
            Section("Simulated elsewhere", say_elsewhere(count_elsewhere(found.outcomes))),
            Section("The circuit", (Facts(tuple(worded(circuit_facts(design)))),), detail=True),
        ),
        provenance=origins(design, {run.engine: made_with.version}),
    )


def _waveforms(found: SimulationSubject) -> tuple[str | Picture, ...]:
    first = next(((k, one) for k, one in enumerate(found.outcomes) if isinstance(one, Inference)), None)
    if found.picture is None or first is None:
        return ()
    place, outcome = first
    network, test_set = found.design.network, found.test_set
    caption = (
        f"Test sample {test_set.indices[place]}, {say_target(network, test_set.y[place])}; decided: "
        f"{say_answer(network, found.answers(outcome)[0])} by {found.run.engine}. {_WAVES}"
    )
    return (Picture("png", found.picture, caption, caption, _LEAST),)


def _samples(found: SimulationSubject) -> tuple[Table | str, ...]:
    """Return a table with a row for each of the first _ROWS samples, and where the others are."""
    rows = [_row(found, k, outcome) for k, outcome in enumerate(found.outcomes[:_ROWS])]
    wanted = "class" if found.test_set.tolerance is None else "target"
    table = Table(("sample", wanted, "decided", "power"), tuple(rows), (0, 3), tall=True)
    more = len(found.outcomes) - _ROWS
    return (table, f"And {more} more: simulation.npz has all.") if more > 0 else (table,)


def _row(found: SimulationSubject, place: int, outcome: Outcome) -> tuple[str, ...]:
    test_set, network = found.test_set, found.design.network
    known = str(test_set.indices[place]), say_answer(network, test_set.y[place])
    if not isinstance(outcome, Inference):
        return (*known, f"failed: {outcome.kind.value}", "")
    return (*known, say_answer(network, found.answers(outcome)[0]), format_quantity(outcome.power_w, "W"))
