"""Run of a sign-off: all checks of its plan, in the order in which a reader asks, and the page of the results."""

from collections.abc import Callable
from pathlib import Path

from cosim.base.store import write_results, write_texts
from cosim.cells.blocks import OUTSIDE
from cosim.compiler.design import Design
from cosim.engines.simulation.simulated import engine_named
from cosim.results.kept_page import REPORT_FILE, has_page, read_page, write_page
from cosim.results.page import Facts, Fold, Page, Section, Table
from cosim.technology.conditions import format_conditions
from cosim.verbs.bias import bias_name, bias_words
from cosim.verbs.montecarlo.keep import Places
from cosim.verbs.montecarlo.page import read_run
from cosim.verbs.montecarlo.run import SUMMARY_FILE
from cosim.verbs.provenance import circuit_facts, origins, subject_of
from cosim.verbs.signoff.checks import CHECKS, CHIPS, NOMINAL, corners_folder
from cosim.verbs.signoff.plan import CHECK_NAMES, format_plan
from cosim.verbs.signoff.study import (
    Check,
    Finding,
    NotModelledError,
    SignOff,
    SignoffSubject,
    find_basis,
    say_basis,
    say_finding,
    say_whole,
    verdict_of,
)
from cosim.verbs.words import worded

NEVER = (
    "stresses together, other than those that one check names",
    "noise at transistor level, of the supply and of the substrate",
    "what chips do under ripple, skew and power-up: these run on the nominal chip",
    "ageing, electrostatic discharge, latch-up and temperature gradients",
)


def sign_off(subject: SignoffSubject, finished: Callable[[Check], None] = lambda check: None) -> SignOff:
    """Make every check of a sign-off's plan; a check that has no model for the network is listed with the reason.

    finished: called with each check when it is done. Raises InputError where the plan asks for something that does not
    exist.
    """
    checks: list[Check] = []
    for name in CHECK_NAMES:
        checks.append(_made(subject, name))
        finished(checks[-1])
    words = {bias: bias_words(subject.design, bias) for bias in subject.biases}
    unchecked, basis = _unchecked(subject, checks), find_basis(checks, words)
    return SignOff(subject.design.technology.name, subject.run.engine, tuple(checks), tuple(unchecked), basis)


def _made(subject: SignoffSubject, name: str) -> Check:
    if name in subject.plan.skip:
        return Check(name, "", "", skipped="left out by the plan")
    try:
        return CHECKS[name](subject)
    except NotModelledError as reason:
        return Check(name, "", "", skipped=str(reason))


def _unchecked(subject: SignoffSubject, checks: list[Check]) -> list[str]:
    left = [f"{one.name}: {one.skipped}" for one in checks if one.skipped]
    wires = [] if subject.extracted else ["wires: give --extracted with the folder of cosim layout"]
    biases = [f"other bias currents: {subject.no_more_biases}"] if subject.no_more_biases else []
    standing = subject.run.standing(subject.design).technology
    if len(subject.biases) > 1 and standing != subject.design.nominal.technology:
        biases.append(
            f"nominal, mismatch, noise, supply, clocks: at {format_conditions(standing)} with "
            f"{bias_name(subject.design, subject.biases[0])} alone"
        )
    together = subject.plan.mismatch.variation == "all" and any(
        one.name == "mismatch" for one in checks if not one.skipped
    )
    chips = [] if together else ["mismatch together with corners, temperature or supply"]
    return [*left, *wires, *biases, *chips, *NEVER, f"blocks outside the circuit: {', '.join(OUTSIDE)}"]


RESULT, PLAN = "signoff.json", "plan.toml"


def write_signoff(subject: SignoffSubject, found: SignOff) -> Path:
    """Write the results, the plan and the page of a sign-off; return the page's file.
    Raises InputError where the folder cannot be written."""
    place, plan = subject.run.place, format_plan(subject.plan)
    engine = engine_named(subject.run.engine)
    version = engine.describe(subject.run.standing(subject.design).technology).version
    page = signoff_page(subject.design, found, plan, {subject.run.engine: version})
    write_results(place, {RESULT: found})
    write_texts(place, {PLAN: plan})
    write_page(place, page, tuple(_others(subject, found)))
    return place / REPORT_FILE


def _others(subject: SignoffSubject, found: SignOff) -> list[Page]:
    """Return the pages that checks of a sign-off have written themselves: nominal, corners and chips."""
    made = {one.name for one in found.made}
    place = subject.run.place
    corners = [corners_folder(one) for one in subject.biases] if "corners" in made else []
    folders = [*([NOMINAL] if "nominal" in made else []), *corners]
    pages = [read_page(place / one) for one in folders if has_page(place / one)]
    if "mismatch" in made and (place / CHIPS / SUMMARY_FILE).is_file():
        pages.append(read_run(place / CHIPS, Places(subject.pdk_root), waveforms=False))
    return pages


_HEAD = ("figure", "where", "found", "95 % interval, or why", "must be", "verdict")
_FOLDED = 12  # rows, beyond which those that have no limit, or keep it, are folded


def signoff_page(design: Design, found: SignOff, plan: str, made_with: dict[str, str]) -> Page:
    """Return the page of a sign-off; plan: as TOML; made_with: name of the simulator -> its version."""
    subject, made = subject_of(design), found.made
    figures = sum(len(one.judged) for one in made)
    missed = sum(len(one.missed) for one in made)
    unsure = sum(not one.sure for check in made for one in check.judged)
    return Page(
        verb="signoff",
        subject=subject,
        title=f"Sign-off of {subject.name} on {found.technology}: {say_whole(found)}",
        lead=f"{design.assembly.transistors} transistors compiled once, run by {', '.join(made_with)} where a row "
        "names no other; every figure is compared with the limit of its plan.",
        answer=_answer(found),
        cards=(
            (f"{len(made) - len(found.failed)} of {len(made)}", "checks pass"),
            (f"{missed} of {figures}", "figures miss their limit"),
            (str(unsure), "verdicts whose 95 % interval holds the limit"),
            (str(len(found.checks) - len(made)), "checks not made"),
        ),
        sections=(
            Section("Bias currents that the verdict assumes", tuple(f"{line}." for line in say_basis(found))),
            Section("Checks", (_summary(found),)),
            *(_section(one) for one in found.checks if not one.skipped),
            Section("Not checked", (Table(("what",), tuple((one,) for one in found.unchecked)),)),
            Section("The plan", (Fold("As TOML", Table(("plan.toml",), tuple((line,) for line in plan.split("\n")))),)),
            Section("The circuit", (Facts(tuple(worded(circuit_facts(design)))),), detail=True),
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
        detail=check.passed,
    )


def _table(rows: tuple[Finding, ...]) -> Table:
    return Table(_HEAD, tuple(map(_row, rows)), tall=len(rows) > _FOLDED)


def _row(one: Finding) -> tuple[str, ...]:
    verdict = "" if not one.limit else ("kept" if one.met else "MISSED") + ("" if one.sure else ", unsure")
    return one.figure, one.where, one.shown, one.interval, one.limit, verdict
