"""A sign-off as text for a terminal, and the words that its page shares with it."""

from collections.abc import Iterator
from textwrap import wrap

from cosim.verbs.signoff.study import Check, Finding, SignOff

_WIDTH, _INDENT = 79, 11
_MOST = 3  # findings of a check that passes


def verdict_of(check: Check) -> str:
    """Return PASS, FAIL, or that the check was not made; unsure where an interval includes the limit on which it
    depends."""
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
    for one in found.stands_on:
        verdict = f"FAIL in {', '.join(one.failed)}" if one.failed else "PASS"
        said.append(f"{verdict} with {one.words} ({one.bias})")
    if len({one.failed for one in found.stands_on}) > 1:
        said.append("where the chip is made for one of them, ask for that one: --bias NAME")
    return said


def say_finding(one: Finding) -> str:
    """Return a finding on a line: its figure, interval, limit and place."""
    interval = f" {one.interval}" if one.interval else ""
    limit = f", must be {one.limit}" if one.limit else ""
    where = f" ({one.where})" if one.where else ""
    return f"{one.figure} {one.shown}{interval}{limit}{where}"


def format_check(check: Check) -> list[str]:
    """Format a sign-off's check under 80 columns: what missed its limit, or else the worst of each figure with one."""
    lines = [f"{check.name:{_INDENT}}{verdict_of(check)}"]
    if check.skipped:
        return [f"{lines[0]}: {check.skipped}"] if len(lines[0]) + len(check.skipped) < _WIDTH else [
            lines[0], *_wrapped(check.skipped)
        ]  # fmt: skip
    shown = check.missed or tuple(_worst(check)) or check.findings[:_MOST]
    return [*lines, *(line for one in shown[: 2 * _MOST] for line in _wrapped(say_finding(one))), *_more(len(shown))]


def format_signoff(found: SignOff) -> Iterator[str]:
    """Yield the lines of the verdict, and of what nobody looked at."""
    yield ""
    yield from wrap(f"sign-off: {say_whole(found)}", _WIDTH)
    if found.stands_on:
        yield "stands on bias currents:"
    for one in say_basis(found):
        yield from wrap(one, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    yield "not checked:"
    for one in found.unchecked:
        yield from wrap(one, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def _worst(check: Check) -> Iterator[Finding]:
    """Yield for each judged figure, under each assumption, the finding nearest to its limit, or furthest beyond."""
    for name, bias in dict.fromkeys((one.figure, one.bias) for one in check.judged):
        same = [one for one in check.judged if (one.figure, one.bias) == (name, bias) and one.value is not None]
        if same:
            furthest = min if same[0].limit.startswith(">=") else max
            yield furthest(same, key=lambda one: one.value or 0.0)


def _more(count: int) -> list[str]:
    return [" " * _INDENT + f"and {count - 2 * _MOST} more"] if count > 2 * _MOST else []


def _wrapped(text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=" " * _INDENT, subsequent_indent=" " * (_INDENT + 2))
