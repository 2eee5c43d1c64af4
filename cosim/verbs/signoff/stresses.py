"""Stresses of a real board: other frames, a supply that moves or comes up, clocks that are not in step."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from cosim.base.bounds import T_STEP
from cosim.base.quantities import format_quantity
from cosim.circuit.stress import PowerUp, Ripple, Skew, Step
from cosim.compiler.design import Condition
from cosim.engines.engine import Failure, Run
from cosim.engines.simulation.simulated import engine_named
from cosim.technology.conditions import format_conditions
from cosim.variation.draws import VariationPlan, draw_chip
from cosim.verbs.signoff.study import Check, Finding
from cosim.verbs.signoff.subject import SignoffSubject

SHORTER = (0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)  # of the frame that was compiled for
LONGER = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
RESETS = (0.5, 1.0, 2.0, 5.0)  # frames
_EDGE = 1e-3  # of a frame: of a supply step
_TRACKING = 0.4  # of a frame: where a supply step falls
_NAMED = 3  # memories that stay on


def check_frame(subject: SignoffSubject) -> Check:
    """Find for a sign-off how short a frame may be, also where the circuit is slowest, and how long, also where it
    leaks most."""
    wanted, supply = subject.plan.settings.frame, subject.design.nominal.technology.supply
    nominal = subject.run.standing(subject.design)
    grid = subject.plan.settings.corners
    slow, no_slow = subject.across(subject.corner("ss"), min(grid.celsius), min(grid.supplies) * supply)
    leaky, no_leaky = subject.across(subject.corner("ff"), max(grid.celsius), max(grid.supplies) * supply)
    shorter = (*_unless(wanted.shortest), *(share for share in SHORTER if share < wanted.shortest))
    longer = (*_unless(wanted.longest), *(share for share in LONGER if share > wanted.longest))
    searches = (("shortest frame", shorter, min, slow), ("longest frame", longer, max, leaky))
    bounds: list[Finding] = []
    tried: dict[tuple[str, str], Finding] = {}
    for figure, shares, furthest, conditions in searches:
        for bias, condition in ((None, nominal), *conditions.items()):
            rows = list(_frames(subject, condition, (1.0, *shares)))
            share = furthest((share for share, right, _ in rows if right), default=None)
            bound, found = (_bound(subject, figure, share, condition),), [one for _, _, found in rows for one in found]
            bounds += bound if bias is None else subject.under(bias, bound)
            tried |= {(one.where, one.figure): one for one in (found if bias is None else subject.under(bias, found))}
    specs = ", ".join(spec.text for spec in subject.plan.specs("frame"))
    return Check(
        "frame",
        "May the clock be faster or slower?",
        f"{len(subject.test_set.y)} samples in each of {len({where for where, _ in tried})} frames and conditions",
        (*bounds, *no_slow, *no_leaky, *(replace(one, limit="", met=True) for one in tried.values())),
        (f"A frame counts while {specs}; the first that does not ends the search.",),
    )


def _unless(share: float) -> tuple[float, ...]:
    """Return the frame that must work, as a share of the circuit's own; nothing where it is the circuit's own."""
    return () if share == 1.0 else (share,)


Tried = tuple[float, bool, tuple[Finding, ...]]


def _frames(subject: SignoffSubject, condition: Condition, shares: Sequence[float]) -> Iterator[Tried]:
    """Yield (share of the frame, whether it works, its findings), up to the first that does not."""
    for share in shares:
        t_step = share * subject.run.timing.t_step
        if t_step not in T_STEP:
            return
        where = f"{format_quantity(t_step, 's')}, {format_conditions(condition.technology)}"
        run = replace(subject.run, timing=replace(subject.run.timing, t_step=t_step), condition=condition)
        found = subject.stressed(f"frame {format_quantity(t_step, 's')}", where, "frame", run)
        right = all(one.met for one in found)
        yield share, right, found
        if not right:
            return


def _bound(subject: SignoffSubject, figure: str, share: float | None, condition: Condition) -> Finding:
    wanted, own = subject.plan.settings.frame, subject.run.timing.t_step
    short = figure.startswith("shortest")
    most, where = (wanted.shortest if short else wanted.longest), format_conditions(condition.technology)
    limit = f"{'<=' if short else '>='} {format_quantity(most * own, 's')}"
    if share is None:
        return Finding(figure, None, f"not even {format_quantity(own, 's')}", limit, met=False, where=where)
    met = share <= most if short else share >= most
    return Finding(figure, share * own, format_quantity(share * own, "s"), limit, met, where)


def check_supply(subject: SignoffSubject) -> Check:
    """Check in a sign-off ripple at several frequencies, and a step up and down that lasts a third of a sample."""
    wanted, timing = subject.plan.settings.supply, subject.run.timing
    found: list[Finding] = []
    for hertz in wanted.frequencies_hz:
        where = f"ripple {format_quantity(wanted.ripple_v, 'V')} at {format_quantity(hertz, 'Hz')}"
        run = replace(subject.run, stress=Ripple(wanted.ripple_v, hertz))
        found += subject.stressed(where, where, "supply", run)
    frames = int(subject.test_set.lengths.max())
    start, end = (timing.moments(frames, _TRACKING)[k] for k in (frames // 3, min(2 * frames // 3, frames - 1)))
    for volts in (wanted.step_v, -wanted.step_v):
        where = f"step {'up' if volts > 0 else 'down'} {format_quantity(abs(volts), 'V')}"
        run = replace(subject.run, stress=Step(volts, start, max(end, start + timing.t_step), _EDGE * timing.t_step))
        found += subject.stressed(where, where, "supply", run)
    return Check(
        "supply",
        "Does it with a supply that is not still?",
        f"{len(subject.test_set.y)} samples under each of {len(wanted.frequencies_hz) + 2} stresses",
        tuple(found),
        ("Logic follows the supply; bias and input currents stay what they are.",),
    )


def check_clocks(subject: SignoffSubject) -> Check:
    """Check in a sign-off sharp and slow clock edges, and clocks that come late or early, each net by its own delay."""
    wanted, timing = subject.plan.settings.clocks, subject.run.timing
    found: list[Finding] = []
    for edge in wanted.edges:
        where = f"clock edges of {format_quantity(edge * timing.t_step, 's')}"
        found += subject.stressed(where, where, "clocks", replace(subject.run, timing=replace(timing, clock_edge=edge)))
    draws = wanted.draws if wanted.skew else 0
    for draw in range(draws):
        where = f"skew within {format_quantity(wanted.skew * timing.t_step, 's')}, draw {draw}"
        run = replace(subject.run, stress=Skew(wanted.skew * timing.t_step, subject.seed + draw))
        found += subject.stressed(where, where, "clocks", run)
    return Check(
        "clocks",
        "Does it with clocks that are sharp, slow or not in step?",
        f"{len(subject.test_set.y)} samples under each of {len(wanted.edges) + draws} stresses",
        tuple(found),
    )


def check_start(subject: SignoffSubject) -> Check:
    """Check that every memory that was on resets, in every corner, and how long the reset must be at power-up."""
    corners = subject.plan.settings.corners.corners or tuple(subject.design.technology.library.sections)
    held = len(subject.design.assembly.held)
    places = list(product(corners, subject.plan.settings.corners.celsius)) if held else []
    stuck = [found for corner, celsius in places for found in _stuck(subject, corner, celsius)]
    worst = max(stuck, key=lambda one: one.value or 0.0, default=None)
    others = tuple(one for one in stuck if not one.met and one is not worst)
    shortest, tried = _power_up(subject)
    return Check(
        "start",
        "Does every memory reset, and does the circuit start from a supply that comes up?",
        f"{held} memories, all on before the reset, in {len(places)} conditions; {len(subject.test_set.y)} samples",
        (*(() if worst is None else (worst,)), *others, shortest, *(replace(one, limit="", met=True) for one in tried)),
        () if held else ("No memory of this network is reset from outside.",),
    )


def _power_up(subject: SignoffSubject) -> tuple[Finding, list[Finding]]:
    """Find the shortest reset after which the figures are kept; return it, and the findings of every reset that was
    tried."""
    wanted, timing = subject.plan.settings.start, subject.run.timing
    ramp = wanted.ramp * timing.t_step
    where, tried = f"supply and currents come up in {format_quantity(ramp, 's')}", list[Finding]()
    limit = f"<= {format_quantity(wanted.reset * timing.t_step, 's')}"
    for reset in (*(one for one in RESETS if one < wanted.reset), wanted.reset):
        length = format_quantity(reset * timing.t_step, "s")
        run = replace(subject.run, timing=replace(timing, reset=reset), stress=PowerUp(ramp, 0.0))
        found = subject.stressed(f"power-up, reset {length}", f"{where}, reset of {length}", "start", run)
        tried += found
        if all(one.met for one in found):
            return Finding("shortest reset at power-up", reset * timing.t_step, length, limit, where=where), tried
    return Finding("shortest reset at power-up", None, f"more than {limit[3:]}", limit, met=False, where=where), tried


def _stuck(subject: SignoffSubject, corner: str, celsius: float) -> Iterator[Finding]:
    """Yield how many memories stay on, under each assumption on bias currents."""
    conditions, missing = subject.across(corner, celsius)
    yield from missing
    for bias, condition in conditions.items():
        yield from subject.under(bias, (_staying_on(subject, condition),))


def _staying_on(subject: SignoffSubject, condition: Condition) -> Finding:
    """Count the memories that stay on in a condition."""
    draws = VariationPlan("none", 0, 1)
    chip = draw_chip((), condition.technology, draws, 0)
    run: Run = replace(subject.run, condition=condition, chip=chip)
    found = engine_named(run.engine).unreset(subject.design, subject.test_set, run)
    figure, where = "memories that stay on", format_conditions(condition.technology)
    if isinstance(found, Failure):
        return Finding(figure, None, f"a simulation failed: {found.kind.value}", "= 0", met=False, where=where)
    shown = ": ".join([str(len(found)), *([", ".join(found[:_NAMED])] if found else [])])
    return Finding(figure, float(len(found)), shown, "= 0", not found, where)
