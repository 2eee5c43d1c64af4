"""Subject of a sign-off, which every check is given, and its results: a check asks one question and compares figures
with their limits. Fields of `SignOff` are the keys of signoff.json."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from cosim.base.errors import InputError, SimulationError
from cosim.cli.progress import progress_bar
from cosim.compiler.design import Condition, Design
from cosim.engines.engine import Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.engines.table import simulator_beside
from cosim.results.metrics import METRICS
from cosim.tasks.testset import TestSet
from cosim.technology.conditions import at
from cosim.verbs.bias import Bias, bias_name, biased
from cosim.verbs.compare.agreement import Figures, compare_engines, summarize_comparison
from cosim.verbs.montecarlo.spec import Spec, judge
from cosim.verbs.signoff.plan import SignoffPlan


@dataclass(frozen=True)
class Finding:
    """One figure. where: under which condition or stress, in words, empty for the nominal one.

    value: in SI, or a fraction; None where nothing came out. shown, interval, limit: in words, the last one empty for a
    figure that is reported and not judged. sure: the whole interval, where there is one, is on one side of the limit.
    bias: the assumption on bias currents that it was found under, empty where no condition but the nominal one is.
    """

    figure: str
    value: float | None
    shown: str
    limit: str = ""
    met: bool = True
    where: str = ""
    interval: str = ""
    sure: bool = True
    bias: str = ""


@dataclass(frozen=True)
class Check:
    """One check of a sign-off, with what it found.

    name: as its table in the plan has it; looked: what it looked at, such as "360 samples in 45 conditions";
    notes: what a reader must know as well; skipped: why nothing was looked at, empty where it was.
    """

    name: str
    question: str
    looked: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: str = ""
    passed: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "passed", not self.skipped and all(one.met for one in self.findings))

    @property
    def judged(self) -> tuple[Finding, ...]:
        """Return the findings of a sign-off's check that have a limit."""
        return tuple(one for one in self.findings if one.limit)

    @property
    def missed(self) -> tuple[Finding, ...]:
        """Return the findings of a sign-off's check that do not keep their limit."""
        return tuple(one for one in self.findings if not one.met)


@dataclass(frozen=True)
class Basis:
    """An assumption on bias currents that a verdict rests on. words: where the currents come from; failed: the checks
    that miss a limit under it, or under any."""

    bias: str
    words: str
    failed: tuple[str, ...]


@dataclass(frozen=True)
class SignOff:
    """All checks in their order; unchecked: what nobody looked at, a line each; bias_assumptions: those on bias
    currents, see `find_basis`. passed: every check that was made, and one was."""

    technology: str
    engine: str
    checks: tuple[Check, ...]
    unchecked: tuple[str, ...]
    bias_assumptions: tuple[Basis, ...] = ()
    passed: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "passed", bool(self.made) and not self.failed)

    @property
    def made(self) -> tuple[Check, ...]:
        """Return the sign-off's checks that were not skipped."""
        return tuple(one for one in self.checks if not one.skipped)

    @property
    def failed(self) -> tuple[Check, ...]:
        """Return the sign-off's checks that did not pass."""
        return tuple(one for one in self.made if not one.passed)


def find_basis(checks: Sequence[Check], words: Mapping[str, str]) -> tuple[Basis, ...]:
    """Return for each assumption of a sign-off the checks that fail under it; words: assumption -> where bias currents
    come from.

    A finding without an assumption, as one at the nominal point, counts under each.
    """

    def failed(bias: str) -> tuple[str, ...]:
        return tuple(
            one.name for one in checks if not one.skipped and any(row.bias in ("", bias) for row in one.missed)
        )

    return tuple(Basis(bias, text, failed(bias)) for bias, text in words.items())


def verdict_of(check: Check) -> str:
    """Return a sign-off check's verdict: PASS, FAIL, or that the check was not made; unsure where an interval includes
    the limit on which it depends."""
    if check.skipped:
        return "not made"
    if check.passed:
        return "PASS" if all(one.sure for one in check.judged) else "PASS, unsure"
    return "FAIL" if any(one.sure for one in check.missed) else "FAIL, unsure"


def say_whole(found: SignOff) -> str:
    """Return the verdict on the whole sign-off."""
    made, failed = found.made, found.failed
    if not made:
        return "FAIL, nothing was checked"
    left = [one.name for one in found.checks if one.skipped]
    besides = f"; not made: {', '.join(left)}" if left else ""
    if not failed:
        return f"PASS in {len(made)} of {len(found.checks)} checks{besides}"
    return f"FAIL in {len(failed)} of {len(made)} checks: {', '.join(one.name for one in failed)}{besides}"


def say_basis(found: SignOff) -> list[str]:
    """Return a statement for each assumption on bias currents: its verdict, and where the currents come from."""
    said = []
    for one in found.bias_assumptions:
        verdict = f"FAIL in {', '.join(one.failed)}" if one.failed else "PASS"
        said.append(f"{verdict} with {one.words} ({one.bias})")
    if len({one.failed for one in found.bias_assumptions}) > 1:
        said.append("where the chip is made for one of them, ask for that one: --bias NAME")
    return said


def say_finding(one: Finding) -> str:
    """Return a sign-off's finding on a line: its figure, interval, limit and place."""
    interval = f" {one.interval}" if one.interval else ""
    limit = f", must be {one.limit}" if one.limit else ""
    where = f" ({one.where})" if one.where else ""
    return f"{one.figure} {one.shown}{interval}{limit}{where}"


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

    compiled: how, as a store of chips keeps it; seed: of chips and noise; extracted: whether the wires of a layout are
    in it; biases: the assumptions on bias currents under which it is looked at in other conditions; no_more_biases: why
    others cannot be, empty where nobody asked for them.
    """

    design: Design
    test_set: TestSet
    run: Run
    plan: SignoffPlan
    compiled: Mapping[str, Any]
    seed: int = 0
    extracted: bool = False
    biases: tuple[Bias, ...] = ("constant",)
    no_more_biases: str = ""

    def across(
        self, corner: str | None = None, celsius: float | None = None, supply: float | None = None
    ) -> tuple[dict[Bias, Condition], tuple[Finding, ...]]:
        """Return the circuit at another corner, temperature (celsius) and supply (V), under each assumption on bias
        currents, and a finding that misses for each under which there is none, because the reference does not start
        there."""
        there = at(self.run.standing(self.design).technology, corner, celsius, supply)
        found, missing = dict[Bias, Condition](), list[Finding]()
        for bias in self.biases:
            try:
                found[bias] = biased(self.design, there, bias, simulator_beside(self.run.engine))
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
        return name if name in (self.plan.corners.corners or self.design.technology.library.sections) else None

    def stressed(self, label: str, where: str, check: str, run: Run) -> tuple[Finding, ...]:
        """Run all samples in another condition or under a stress, as `run` says, and return the findings by the limits
        of a check; where one sample failed, nothing came out."""
        with progress_bar(label) as progress:
            outcomes = simulate_samples(self.design, self.test_set, run, progress)
        comparison = compare_engines(self.design, self.test_set, outcomes, run)
        measured = None if comparison is None or comparison.failures else summarize_comparison(comparison).measured
        return findings(self.plan.specs(check), measured, where)

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
        metric, ends = METRICS[spec.metric], ""
        if verdict.low is not None and verdict.high is not None:
            ends = f"[{metric.format(verdict.low)}, {metric.format(verdict.high)}]"
        shown = metric.format(verdict.value)
        found.append(Finding(metric.words, verdict.value, shown, _limit(spec), verdict.met, where, ends, verdict.sure))
    return tuple(found)


def _limit(spec: Spec) -> str:
    return f"{'>=' if spec.at_least else '<='} {METRICS[spec.metric].format(spec.limit)}"
