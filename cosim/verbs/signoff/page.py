"""The page of a sign-off: the verdict, a row for each check, every figure with its limit, and what was not checked."""

from cosim.compiler.design import Design
from cosim.results.page import Facts, Fold, Page, Section, Table
from cosim.verbs.provenance import circuit_facts, origins, subject_of
from cosim.verbs.signoff.study import Check, Finding, SignOff
from cosim.verbs.signoff.table import say_basis, say_finding, say_whole, verdict_of
from cosim.verbs.words import worded

_HEAD = ("figure", "where", "found", "95 % interval, or why", "must be", "verdict")
_FOLDED = 12  # rows, beyond which those that have no limit, or keep it, are folded


def signoff_page(design: Design, found: SignOff, plan: str, made_with: dict[str, str]) -> Page:
    """Return the page of a sign-off. plan: as TOML; made_with: name of the simulator -> its version."""
    subject, made = subject_of(design), found.made
    figures = sum(len(one.judged) for one in made)
    missed = sum(len(one.missed) for one in made)
    unsure = sum(not one.sure for check in made for one in check.judged)
    return Page(
        verb="signoff",
        subject=subject,
        title=f"Sign-off of {subject.name} on {found.technology}: {say_whole(found)}",
        lead=f"{design.assembly.transistors} transistors compiled once, run by {', '.join(made_with)} where nothing "
        "else stands; every figure against the limit of its plan.",
        answer=_answer(found),
        cards=(
            (f"{len(made) - len(found.failed)} of {len(made)}", "checks pass"),
            (f"{missed} of {figures}", "figures miss their limit"),
            (str(unsure), "verdicts whose 95 % interval holds the limit"),
            (str(len(found.checks) - len(made)), "checks not made"),
        ),
        sections=(
            Section("Bias currents that the verdict stands on", tuple(f"{line}." for line in say_basis(found))),
            Section("Checks", (_summary(found),)),
            *(_section(one) for one in found.checks if not one.skipped),
            Section("Not checked", (Table(("what",), tuple((one,) for one in found.unchecked)),)),
            Section("The plan", (Fold("As TOML", Table(("plan.toml",), tuple((line,) for line in plan.split("\n")))),)),
            Section("The circuit", (Facts(tuple(worded(circuit_facts(design)))),)),
        ),
        provenance=origins(design, made_with),
    )


def _answer(found: SignOff) -> str:
    worst = [f"{one.name}: {say_finding(one.missed[0])}" for one in found.failed if one.missed]
    return f"{'; '.join(worst)}." if worst else "Every limit of the plan is kept."


def _summary(found: SignOff) -> Table:
    rows = tuple((one.name, one.question or one.skipped, one.looked, verdict_of(one)) for one in found.checks)
    return Table(("check", "question", "looked at", "verdict"), rows)


def _section(check: Check) -> Section:
    rows = check.findings
    first = tuple(one for one in rows if one.limit) if len(rows) > _FOLDED else rows
    rest = tuple(one for one in rows if one not in first)
    folded = (Fold(f"{len(rest)} more figures", _table(rest)),) if rest else ()
    return Section(
        f"{check.name[:1].upper()}{check.name[1:]}: {verdict_of(check)}",
        (f"{check.question} {check.looked[:1].upper()}{check.looked[1:]}.", _table(first), *folded, *check.notes),
    )


def _table(rows: tuple[Finding, ...]) -> Table:
    return Table(_HEAD, tuple(map(_row, rows)), tall=len(rows) > _FOLDED)


def _row(one: Finding) -> tuple[str, ...]:
    verdict = "" if not one.limit else ("kept" if one.met else "MISSED") + ("" if one.sure else ", unsure")
    return one.figure, one.where, one.shown, one.interval, one.limit, verdict
