"""All checks of a plan, in the order in which a reader asks."""

from collections.abc import Callable

from cosim.cells.blocks import OUTSIDE
from cosim.technology.conditions import format_conditions
from cosim.verbs.bias import bias_name, bias_words
from cosim.verbs.signoff.conditions import check_corners, check_mismatch, check_noise, check_nominal
from cosim.verbs.signoff.plan import NAMES
from cosim.verbs.signoff.stresses import check_clocks, check_frame, check_start, check_supply
from cosim.verbs.signoff.study import Check, SignOff, find_basis
from cosim.verbs.signoff.subject import NotModelledError, SignoffSubject
from cosim.verbs.signoff.weakest import check_decisions, check_limits

CHECKS: dict[str, Callable[[SignoffSubject], Check]] = {
    "nominal": check_nominal,
    "corners": check_corners,
    "mismatch": check_mismatch,
    "noise": check_noise,
    "frame": check_frame,
    "supply": check_supply,
    "clocks": check_clocks,
    "start": check_start,
    "decisions": check_decisions,
    "limits": check_limits,
}
NEVER = (
    "stresses together: each check moves one thing",
    "mismatch together with corners, temperature or supply",
    "noise at transistor level, of the supply and of the substrate",
    "what chips do under ripple, skew and power-up: these run on the nominal chip",
    "ageing, electrostatic discharge, latch-up and temperature gradients",
)


def sign_off(subject: SignoffSubject, finished: Callable[[Check], None] = lambda check: None) -> SignOff:
    """Make every check of the plan, and tell of each; one that a network has no model for is listed with why.

    Raises InputError where the plan asks for what there is not.
    """
    checks: list[Check] = []
    for name in NAMES:
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
    return [*left, *wires, *biases, *NEVER, f"blocks outside the circuit: {', '.join(OUTSIDE)}"]
