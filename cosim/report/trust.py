"""How far a run can be trusted, as text: what another simulator ran, and what an audit found."""

from collections.abc import Mapping
from textwrap import wrap

from cosim.quantities import format_quantity
from cosim.simulation.audit import LEAST, Audit
from cosim.simulation.undecided import Undecided

_NAME, _WIDTH = 18, 79  # columns


def format_elsewhere(elsewhere: Mapping[str, int], what: str = "samples") -> list[str]:
    """How many samples another simulator ran, and why, by `Inference.elsewhere`; nothing where there are none."""
    lines: list[str] = []
    for text, count in elsewhere.items():
        other, _, reason = text.partition(": ")
        if count:
            lines += _lines(f"by {other}", f"{count} {what}{f' ({reason})' if reason else ''}")
    return lines


def format_undecided(found: Undecided | None) -> list[str]:
    """How many decisions an error of the engine could turn; nothing where it does not say."""
    if found is None:
        return []
    lines: list[str] = []
    if found.decisions:
        share, limit = 100 * found.near / found.decisions, format_quantity(found.limit, "A")
        error = format_quantity(found.error, "A")
        lines.append(
            f"{found.near} of {found.decisions} decisions ({share:.2f} %) under {limit}, {error} of it by steps"
        )
    if found.latches:
        share, volt = 100 * found.floating / found.latches, format_quantity(found.volt, "V")
        lines.append(f"{found.floating} of {found.latches} latches ({share:.2f} %) within {volt} when read")
    lines = [text for line in lines for text in _lines("", line)]
    return [f"{'undecided':{_NAME}}{lines[0].strip()}", *lines[1:]] if lines else []


def format_audit(audit: Audit | None) -> list[str]:
    """What an audit found; nothing without one."""
    if audit is None:
        return []
    failed = f", {audit.failed} failed" if audit.failed else ""
    compared = audit.bits - audit.ties - audit.behind
    worst = "" if audit.worst is None else f", up to {format_quantity(audit.worst, 'A')} from a threshold"
    share = 100 * audit.ties / audit.bits if audit.bits else 0.0
    ties = f"{audit.ties} ({share:.2f} %) under {format_quantity(audit.limit, 'A')}, {audit.turned} turned, and "
    return [
        *_lines("audit", f"{'passed' if audit.passed else 'REFUSED'}: {audit.instances} in {audit.simulator}{failed}"),
        *_lines("", f"{100 * audit.agreement:.3f} % of {compared} states equal, {audit.wrong} wrong{worst}"),
        *_lines("", f"ties: {ties}{audit.behind} states behind them"),
    ]


def format_refusal(audit: Audit, place: str) -> str:
    """Why a run whose audit failed is refused, and where it is."""
    return (
        f"refused by its audit: {100 * audit.agreement:.3f} % of the states outside ties are those of "
        f"{audit.simulator}, and {100 * LEAST:g} % must be. The results are in {place}, marked as refused; run it with "
        f"--engine {audit.simulator}, or look into the samples with a larger --audit"
    )


def _lines(name: str, text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=f"{name:{_NAME}}", subsequent_indent=" " * _NAME)
