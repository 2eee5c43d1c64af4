"""How far a run can be trusted, as text: what another simulator ran, and what an audit found."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

from cosim.quantities import format_quantity
from cosim.simulation.audit import LEAST, Audit
from cosim.simulation.undecided import Undecided, UndecidedChips
from cosim.study.chips import ChipSummary

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
        share, limit, error = 100 * found.near / found.decisions, *map(_ampere, (found.limit, found.error))
        lines.append(
            f"{found.near} of {found.decisions} decisions ({share:.2f} %) under {limit}, {error} of it by steps"
        )
    if found.latches:
        share, volt = 100 * found.floating / found.latches, format_quantity(found.volt, "V")
        lines.append(f"{found.floating} of {found.latches} latches ({share:.2f} %) within {volt} when read")
    lines = [text for line in lines for text in _lines("", line)]
    return [f"{'undecided':{_NAME}}{lines[0].strip()}", *lines[1:]] if lines else []


def format_undecided_chips(found: UndecidedChips | None) -> list[str]:
    """The same of samples on chips."""
    if found is None:
        return []
    share, limit, error = 100 * found.near / found.inferences, *map(_ampere, (found.limit, found.error))
    text = f"{found.near} of {found.inferences} inferences ({share:.2f} %) have a decision under {limit}"
    return _lines("undecided", f"{text}, {error} of it by steps")


def _ampere(current: float) -> str:
    return format_quantity(current, "A")


def format_audit(audit: Audit | None) -> list[str]:
    """What an audit found; nothing without one."""
    if audit is None:
        return []
    failed = f", {audit.failed} failed" if audit.failed else ""
    compared = audit.bits - audit.ties - audit.behind
    worst = "" if audit.worst is None else f", up to {_ampere(audit.worst)} from a threshold"
    share = 100 * audit.ties / audit.bits if audit.bits else 0.0
    ties = f"{audit.ties} ({share:.2f} %) under {_ampere(audit.limit)}, {audit.turned} turned, and "
    return [
        *_lines("audit", f"{'passed' if audit.passed else 'REFUSED'}: {audit.instances} in {audit.simulator}{failed}"),
        *_lines("", f"{100 * audit.agreement:.3f} % of {compared} states equal, {audit.wrong} wrong{worst}"),
        *_lines("", f"ties: {ties}{audit.behind} states behind them"),
    ]


def format_sentence(lines: Sequence[str]) -> str:
    """The lines of a figure as one text, without its name."""
    return " ".join(line[_NAME:].strip() for line in lines)


def trust_rows(summary: ChipSummary) -> list[tuple[str, str]]:
    """What another simulator ran, how many samples stand on an edge, what the audit found: of each what there is."""
    found = {
        "simulated elsewhere": "; ".join(format_elsewhere(summary.elsewhere)),
        "undecided": format_sentence(format_undecided_chips(summary.undecided)),
        "audit": format_sentence(format_audit(summary.audit)),
    }
    return [row for row in found.items() if row[1]]


def format_refusal(audit: Audit, place: str) -> str:
    """Why a run whose audit failed is refused, and where it is."""
    return (
        f"refused by its audit: {100 * audit.agreement:.3f} % of the states outside ties are those of "
        f"{audit.simulator}, and {100 * LEAST:g} % must be. The results are in {place}, marked as refused; run it with "
        f"--engine {audit.simulator}, or look into the samples with a larger --audit"
    )


def _lines(name: str, text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=f"{name:{_NAME}}", subsequent_indent=" " * _NAME)
