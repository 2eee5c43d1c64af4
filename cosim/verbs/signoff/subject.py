"""Subject of a sign-off, which every check is given, and how a figure becomes a finding."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from cosim.base.errors import InputError, SimulationError
from cosim.compiler.design import Condition, Design
from cosim.engines.engine import Progress, Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.engines.table import simulator_beside
from cosim.results.metrics import METRICS
from cosim.tasks.testset import TestSet
from cosim.technology.conditions import at
from cosim.verbs.bias import Bias, bias_name, biased
from cosim.verbs.compare.agreement import Figures, compare_engines, summarize_comparison
from cosim.verbs.montecarlo.spec import Spec, judge
from cosim.verbs.signoff.plan import SignoffPlan
from cosim.verbs.signoff.study import Finding


class NotModelledError(Exception):
    """A check has no model for this network or technology: it is listed as not made, with the reason."""


@contextmanager
def where_modelled() -> Generator[None, None, None]:
    """Turn a refusal of a network or a technology into a sign-off's check that is not made; nothing else belongs
    inside."""
    try:
        yield
    except InputError as reason:
        raise NotModelledError(str(reason)) from None


@dataclass(frozen=True)
class SignoffSubject:
    """A compiled design, its samples, how they run, and what must hold.

    compiled: how, as a store of chips keeps it; bar: a progress bar by its label; seed: of chips and noise;
    extracted: whether the wires of a layout are in it; biases: the assumptions on bias currents under which it is
    looked at in other conditions; no_more_biases: why others cannot be, empty where nobody asked for them.
    """

    design: Design
    test_set: TestSet
    run: Run
    plan: SignoffPlan
    compiled: Mapping[str, Any]
    bar: Callable[[str], AbstractContextManager[Progress]]
    seed: int = 0
    extracted: bool = False
    biases: tuple[Bias, ...] = ("constant",)
    no_more_biases: str = ""

    def at(
        self, bias: Bias, corner: str | None = None, celsius: float | None = None, supply: float | None = None
    ) -> Condition:
        """Return the condition of the circuit to sign off at another corner, temperature (celsius) and supply (V).

        Raises SimulationError where its reference does not start there.
        """
        there = at(self.run.standing(self.design).technology, corner, celsius, supply)
        return biased(self.design, there, bias, simulator_beside(self.run.engine))

    def across(
        self, corner: str | None = None, celsius: float | None = None, supply: float | None = None
    ) -> tuple[dict[Bias, Condition], tuple[Finding, ...]]:
        """Return the circuit in another condition under each assumption on bias currents, and a finding that misses for
        each under which there is none, because the reference does not start there."""
        found, missing = dict[Bias, Condition](), list[Finding]()
        for bias in self.biases:
            try:
                found[bias] = self.at(bias, corner, celsius, supply)
            except SimulationError as error:
                missing += self.under(bias, (Finding("bias currents", None, str(error), "a start", met=False),))
        return found, tuple(missing)

    def under(self, bias: Bias, rows: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return a sign-off's findings with the assumption on bias currents that they were found under."""
        name = bias_name(self.design, bias)
        return tuple(replace(one, where=f"{one.where}, {name}" if one.where else name, bias=bias) for one in rows)

    def corner(self, name: str) -> str | None:
        """Return the name of a corner that the plan has, or the technology if the plan names none; else None, for the
        one that was asked for."""
        return name if name in (self.plan.settings.corners.corners or self.design.technology.library.sections) else None

    def measure(self, label: str, run: Run) -> Figures | None:
        """Measure for a sign-off the figures that a spec may be on, over all samples, in another condition or under a
        stress; None where one sample failed."""
        with self.bar(label) as progress:
            outcomes = simulate_samples(self.design, self.test_set, run, progress)
        comparison = compare_engines(self.design, self.test_set, outcomes, run)
        if comparison is None or comparison.failures:
            return None
        return summarize_comparison(comparison).measured

    def stressed(self, label: str, where: str, check: str, run: Run) -> tuple[Finding, ...]:
        """Run the samples as `run` says, and return the findings by the limits of a check."""
        return findings(self.plan.specs(check), self.measure(label, run), where)

    def within(self, folder: str) -> Run:
        """Return the run with a folder of its own below the sign-off's."""
        return replace(self.run, folder=self.run.place / folder)


def findings(specs: Sequence[Spec], figures: Figures | None, where: str = "") -> tuple[Finding, ...]:
    """Return every spec as a finding of a sign-off; where figures are None nothing came out, and no spec is kept."""
    if figures is None:
        return tuple(
            Finding(METRICS[spec.metric].words, None, "a simulation failed", _limit(spec), met=False, where=where)
            for spec in specs
        )
    found: list[Finding] = []
    for spec, verdict in zip(specs, judge(specs, figures), strict=True):
        ends = ""
        if verdict.low is not None and verdict.high is not None:
            ends = f"[{METRICS[spec.metric].format(verdict.low)}, {METRICS[spec.metric].format(verdict.high)}]"
        shown = METRICS[spec.metric].format(verdict.value)
        name = METRICS[spec.metric].words
        found.append(Finding(name, verdict.value, shown, _limit(spec), verdict.met, where, ends, verdict.sure))
    return tuple(found)


def _limit(spec: Spec) -> str:
    return f"{'>=' if spec.at_least else '<='} {METRICS[spec.metric].format(spec.limit)}"
