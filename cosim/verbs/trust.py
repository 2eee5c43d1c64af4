"""Sentences for a verb's page on how far a run can be trusted: fallbacks, near decisions, and the audit by ngspice."""

from collections.abc import Mapping

from cosim.base.quantities import format_quantity
from cosim.engines.simulation.audit import LEAST, Audit, DecisionUncertainty, UndecidedChips


def say_elsewhere(elsewhere: Mapping[str, int]) -> tuple[str, ...]:
    """Return a sentence for each other simulator, and reason, that ran samples in place of the engine.

    elsewhere: "simulator: reason" -> number of samples, as in `Inference.elsewhere`.
    """
    parts = ((*text.partition(": "), count) for text, count in elsewhere.items() if count)
    return tuple(f"by {other} {count} samples{f' ({reason})' if reason else ''}" for other, _, reason, count in parts)


def say_undecided(found: DecisionUncertainty | UndecidedChips | None) -> list[str]:
    """Return sentences on how many decisions are so near a threshold that the engine's own error could turn them."""
    if found is None:
        return []
    limit, error = (format_quantity(current, "A") for current in (found.limit, found.error))
    under = f"under {limit}, {error} of it by steps"
    if isinstance(found, UndecidedChips):
        return [f"{_of(found.near, found.inferences, 'inferences')} have a decision {under}"]
    said = [f"{_of(found.near, found.decisions, 'decisions')} {under}"] if found.decisions else []
    if found.latches:
        volt = format_quantity(found.volt, "V")
        said.append(f"{_of(found.floating, found.latches, 'latches')} within {volt} when read")
    return said


def _of(count: int, whole: int, what: str) -> str:
    return f"{count} of {whole} {what} ({100 * count / whole:.2f} %)"


def say_audit(audit: Audit | None) -> list[str]:
    """Return sentences on what the audit of a run, its repetition in ngspice, found; an empty list without an audit."""
    if audit is None:
        return []
    if not audit.instances:
        return [f"nothing to audit: {audit.simulator} ran every sample"]
    failed = f", {audit.failed} failed, the first: {audit.reason}" if audit.failed else ""
    compared = audit.bits - audit.ties - audit.behind
    worst = "" if audit.worst is None else f", up to {format_quantity(audit.worst, 'A')} from a threshold"
    if not audit.bits:
        return [f"REFUSED: all {audit.instances} in {audit.simulator} failed, so nothing was compared: {audit.reason}"]
    share = 100 * audit.ties / audit.bits
    ties = f"{audit.ties} ({share:.2f} %) under {format_quantity(audit.limit, 'A')}, {audit.turned} turned, and "
    return [
        f"{'passed' if audit.passed else 'REFUSED'}: {audit.instances} in {audit.simulator}{failed}",
        f"{100 * audit.agreement:.3f} % of {compared} states equal, {audit.wrong} wrong{worst}",
        f"ties: {ties}{audit.behind} states behind them",
    ]


def trust_rows(
    elsewhere: Mapping[str, int], undecided: DecisionUncertainty | UndecidedChips | None, audit: Audit | None
) -> tuple[tuple[str, str], ...]:
    """Return the rows (name, value) of a page on how far a run can be trusted, without rows that would be empty.
    elsewhere: "simulator: reason" -> samples that another simulator ran; undecided: decisions that the engine's error
    could turn; audit: the repetition in ngspice."""
    found = {
        "simulated elsewhere": say_elsewhere(elsewhere),
        "undecided": say_undecided(undecided),
        "audit": say_audit(audit),
    }
    return tuple((name, "; ".join(said)) for name, said in found.items() if said)


def format_refusal(audit: Audit, place: str) -> str:
    """Return the message for a run whose audit failed: what disagreed, where the results are, and what to do."""
    compared = audit.bits - audit.ties - audit.behind
    if not audit.bits:
        return (
            f"refused by its audit: all {audit.instances} simulations in {audit.simulator} failed, so nothing was "
            f"compared; the first: {audit.reason}. The results are in {place}, marked as refused; give each more time "
            "with --timeout, where that was it, or leave the audit out with --audit 0"
        )
    return (
        f"refused by its audit: {100 * audit.agreement:.3f} % of the {compared} states outside ties are those of "
        f"{audit.simulator}, and {100 * LEAST:g} % must be. The results are in {place}, marked as refused; run it with "
        f"--engine {audit.simulator}, or, where {audit.instances} are not all samples, audit more of them with --audit"
    )
