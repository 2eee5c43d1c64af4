"""Subject of a sign-off, given to every check, and its results: each check compares figures with their limits.

Fields of `SignOff` are the keys of signoff.json.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

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
    """A figure that a check of a sign-off found, with its limit.

    value: in SI or as a fraction, None where nothing came out; shown, interval, limit: as text; limit is empty for a
    figure that is reported and not judged; met: whether the limit is kept; where: condition or stress in words, empty
    for the nominal one; sure: the interval, if there is one, lies on one side of the limit; bias: assumption on bias
    currents, empty where only the nominal condition was looked at.
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
    """A check of a sign-off, with its findings.

    name: the check's table in the plan; looked: what was examined, such as "360 samples in 45 conditions"; notes:
    further remarks for the reader; skipped: why the check was not made, empty if it was; passed: no finding misses its
    limit.
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
        """Return the check's findings that have a limit."""
        return tuple(one for one in self.findings if one.limit)

    @property
    def missed(self) -> tuple[Finding, ...]:
        """Return the check's findings that miss their limit."""
        return tuple(one for one in self.findings if not one.met)


@dataclass(frozen=True)
class Basis:
    """An assumption on bias currents on which a verdict rests.

    bias: the assumption; words: where the currents come from; failed: names of the checks that miss a limit under it.
    """

    bias: str
    words: str
    failed: tuple[str, ...]


@dataclass(frozen=True)
class SignOff:
    """The result of a sign-off: all checks in their order.
    unchecked: sentences on what no check looks at; bias_assumptions: see `find_basis`; passed: at least one check was
    made, and every check that was made passed."""

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
        """Return the checks that were not skipped."""
        return tuple(one for one in self.checks if not one.skipped)

    @property
    def failed(self) -> tuple[Check, ...]:
        """Return the checks that were made and did not pass."""
        return tuple(one for one in self.made if not one.passed)


def find_basis(checks: Sequence[Check], words: Mapping[str, str]) -> tuple[Basis, ...]:
    """Return, for each assumption on bias currents, the checks that fail under it.

    words: assumption -> where bias currents come from. A finding without an assumption, such as one in the nominal
    condition, counts under every assumption.
    """

    def failed(bias: str) -> tuple[str, ...]:
        return tuple(
            one.name for one in checks if not one.skipped and any(row.bias in ("", bias) for row in one.missed)
        )

    return tuple(Basis(bias, text, failed(bias)) for bias, text in words.items())


def verdict_of(check: Check) -> str:
    """Return a check's verdict: PASS, FAIL, or "not made"; "unsure" is added where an interval contains the limit."""
    if check.skipped:
        return "not made"
    if check.passed:
        return "PASS" if all(one.sure for one in check.judged) else "PASS, unsure"
    return "FAIL" if any(one.sure for one in check.missed) else "FAIL, unsure"


def say_whole(found: SignOff) -> str:
    """Return the verdict on a whole sign-off as text, with the checks that failed and those that were not made."""
    made, failed = found.made, found.failed
    if not made:
        return "FAIL, nothing was checked"
    left = [one.name for one in found.checks if one.skipped]
    besides = f"; not made: {', '.join(left)}" if left else ""
    if not failed:
        return f"PASS in {len(made)} of {len(found.checks)} checks{besides}"
    return f"FAIL in {len(failed)} of {len(made)} checks: {', '.join(one.name for one in failed)}{besides}"


def say_basis(found: SignOff) -> list[str]:
    """Return a sentence for each assumption on bias currents: its verdict, and where the currents come from."""
    said = []
    for one in found.bias_assumptions:
        verdict = f"FAIL in {', '.join(one.failed)}" if one.failed else "PASS"
        said.append(f"{verdict} with {one.words} ({one.bias})")
    if len({one.failed for one in found.bias_assumptions}) > 1:
        said.append("where the chip is made for one of them, ask for that one: --bias NAME")
    return said


def say_finding(one: Finding) -> str:
    """Return a finding as one line of text: figure, value, interval, limit and condition."""
    interval = f" {one.interval}" if one.interval else ""
    limit = f", must be {one.limit}" if one.limit else ""
    where = f" ({one.where})" if one.where else ""
    return f"{one.figure} {one.shown}{interval}{limit}{where}"


class NotModelledError(Exception):
    """The error of a check that has no model for the network or the technology; the check is listed as not made."""


@contextmanager
def where_modelled() -> Generator[None, None, None]:
    """Convert InputError to NotModelledError inside the block, which should hold only what needs a model."""
    try:
        yield
    except InputError as reason:
        raise NotModelledError(str(reason)) from None


@dataclass(frozen=True)
class SignoffSubject:
    """The circuit that a sign-off checks: a compiled design, its samples, how they run, and the plan.

    technology, pdk_root: name or file, and folder of the kits, from which the technology was loaded; seed: of chips and
    noise; extracted: whether the wires of a layout are in the circuit; biases: assumptions on bias currents for
    conditions other than the nominal one; no_more_biases: why other assumptions do not apply, empty if none was asked
    for.
    """

    design: Design
    test_set: TestSet
    run: Run
    plan: SignoffPlan
    technology: str
    pdk_root: Path | None = None
    seed: int = 0
    extracted: bool = False
    biases: tuple[Bias, ...] = ("constant",)
    no_more_biases: str = ""

    def across(
        self, corner: str | None = None, celsius: float | None = None, supply: float | None = None
    ) -> tuple[dict[Bias, Condition], tuple[Finding, ...]]:
        """Return another condition under each assumption on bias currents, and findings where there is none.

        corner, celsius, supply (V): the condition, None for the run's own. An assumption under which the reference cell
        does not start yields a finding that misses its limit.
        """
        there = at(self.run.standing(self.design).technology, corner, celsius, supply)
        found, missing = dict[Bias, Condition](), list[Finding]()
        for bias in self.biases:
            try:
                found[bias] = biased(self.design, there, bias, simulator_beside(self.run.engine, there))
            except SimulationError as error:
                missing += self.under(bias, (Finding("bias currents", None, str(error), "a start", met=False),))
        return found, tuple(missing)

    def under(self, bias: Bias, rows: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return findings labelled with the assumption on bias currents under which they were found."""
        name = bias_name(self.design, bias)
        return tuple(replace(one, where=f"{one.where}, {name}" if one.where else name, bias=bias) for one in rows)

    def corner(self, name: str) -> str | None:
        """Return a corner's name if the plan has it, or, where the plan names no corner, the technology; else None.

        None stands for the corner of the run.
        """
        return name if name in (self.plan.corners.corners or self.design.technology.library.sections) else None

    def stressed(self, label: str, where: str, check: str, run: Run) -> tuple[Finding, ...]:
        """Simulate all samples as `run` says; return the findings by a check's specs.

        label: of the progress bar; where: condition or stress in words. If a sample failed, every spec is missed.
        """
        with progress_bar(label) as progress:
            outcomes = simulate_samples(self.design, self.test_set, run, progress)
        comparison = compare_engines(self.design, self.test_set, outcomes, run)
        measured = None if comparison is None or comparison.failures else summarize_comparison(comparison).measured
        return findings(self.plan.specs(check), measured, where)

    def within(self, folder: str) -> Run:
        """Return the sign-off's run with a subfolder of its folder."""
        return replace(self.run, folder=self.run.place / folder)


def findings(specs: Sequence[Spec], figures: Figures | None, where: str = "") -> tuple[Finding, ...]:
    """Return a finding for each spec, judged by the figures; None for figures means that a simulation failed.
    A failed simulation meets no spec. where: condition or stress, in words."""
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
