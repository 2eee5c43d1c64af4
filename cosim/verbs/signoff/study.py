"""Results of a sign-off: a check asks one question and compares figures with their limits. Keys of signoff.json."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


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
    """name: as its table in the plan has it; looked: what it looked at, such as "360 samples in 45 conditions".

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
