"""Checks of a sign-off, in the order in which a reader asks; each function makes one check and returns its findings.

First comes the circuit as it is, in every corner, on chips with deviations, and with the noise of its devices. Then
come stresses of a real board: other frames, a supply that moves or comes up, clocks that are skewed. Last come the
weakest points: decisions, in standard deviations of mismatch, and voltages.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from cosim.base.bounds import T_STEP
from cosim.base.quantities import format_quantity
from cosim.circuit.bench import Bench, Stress, Voltage, with_power_up, with_ripple, with_skew, with_step
from cosim.circuit.elements import GROUND, Mos
from cosim.cli.progress import progress_bar, say
from cosim.compiler.design import Condition
from cosim.engines.engine import Failure, Run, Waveforms
from cosim.engines.simulation.audit import LEAST, Audit
from cosim.engines.simulation.inference import run_benches
from cosim.engines.simulation.simulated import engine_named, sample_benches
from cosim.engines.table import simulator_named
from cosim.results.metrics import METRICS, Estimate, percent
from cosim.technology.conditions import format_conditions, with_flicker
from cosim.variation.draws import VariationPlan, check_coefficients, draw_chip
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.bias import bias_words
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.compare.agreement import Figures
from cosim.verbs.compare.noise import study_noise
from cosim.verbs.compare.page import run_comparison
from cosim.verbs.compare.pvt import PvtCondition, Sweep, run_pvt
from cosim.verbs.compile.margins import NEAR, study_margins
from cosim.verbs.montecarlo.execute import run_local
from cosim.verbs.montecarlo.keep import keep_trial
from cosim.verbs.montecarlo.run import check_specs, default_spec, run_montecarlo, run_settings
from cosim.verbs.montecarlo.store import open_store
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.sensitivity.study import Sensitivities, SensitivityTarget, sensitivities
from cosim.verbs.signoff.plan import Mismatch
from cosim.verbs.signoff.study import Check, Finding, NotModelledError, SignoffSubject, findings, where_modelled

NOMINAL, CORNERS, CHIPS = "nominal", "corners", "chips"  # folders with pages of their own; of corners one for each bias
SHORTER = (0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)  # of the frame that was compiled for
LONGER = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
RESETS = (0.5, 1.0, 2.0, 5.0)  # frames
PAIRS = (("V_GS", "gate", "source"), ("V_GD", "gate", "drain"), ("V_DS", "drain", "source"), ("V_GB", "gate", "bulk"))
_EDGE = 1e-3  # of a frame: of a supply step
_TRACKING = 0.4  # of a frame: where a supply step falls
_NAMED = 3  # memories that stay on
_SHOWN = 3  # decisions


def check_nominal(subject: SignoffSubject) -> Check:
    """Check all samples on nominal devices, in the condition that the command line selects."""
    run = subject.within(NOMINAL)
    where = format_conditions(run.standing(subject.design).technology)
    with progress_bar("nominal") as progress:
        audit = subject.plan.nominal.audit
        found = run_comparison(subject.design, subject.test_set, run, progress, audit=audit)
    kept = findings(subject.plan.specs("nominal"), found.measured, where)
    return Check(
        "nominal",
        "Does the circuit decide as the software does?",
        f"{found.samples + found.failed} samples",
        (*kept, *_failures(found.failed), *_audited(found.audit)),
    )


def corners_folder(bias: str) -> str:
    """Return the name of the sign-off's subfolder for the corners under an assumption on bias currents."""
    return f"{CORNERS}-{bias}"


def check_corners(subject: SignoffSubject) -> Check:
    """Check every condition of the plan's grid of corners, under every assumption on bias currents.

    The plan's audited samples, which ngspice runs as well, are divided among the assumptions.
    """
    wanted, worst, rest, notes, count = subject.plan.corners, list[Finding](), list[Finding](), list[str](), 0
    for bias in subject.biases:
        audit = -(-wanted.audit // len(subject.biases))
        with progress_bar(f"corners, {bias}") as progress:
            run = subject.within(corners_folder(bias))
            sweep = run_pvt(subject.design, subject.test_set, run, progress, wanted, audit=audit, bias=bias)
        count = len(sweep.conditions)
        first, others, note = _of_sweep(subject, sweep)
        worst += subject.under(bias, first)
        rest += subject.under(bias, others)
        said = f"{bias_words(subject.design, bias)}: {note}"
        notes.append(f"{said[:1].upper()}{said[1:]}")
    assumptions = f", under {len(subject.biases)} assumptions on bias currents" if len(subject.biases) > 1 else ""
    return Check(
        "corners",
        "Does it in every corner, at every temperature and supply?",
        f"{len(subject.test_set.y)} samples in each of {count} conditions{assumptions}",
        (*worst, *rest),
        tuple(notes),
    )


def _of_sweep(subject: SignoffSubject, sweep: Sweep) -> tuple[Sequence[Finding], Sequence[Finding], str]:
    """Return (each spec's finding in its worst condition, other findings that miss a spec, note on how many miss)."""
    specs, worst = subject.plan.specs("corners"), list[Finding]()
    found = [finding for row in sweep.conditions for finding in findings(specs, row.measured or None, _where(row))]
    if known := [row for row in sweep.conditions if row.measured]:
        for spec in specs:
            values = [row.measured[spec.metric].value * (1 if spec.at_least else -1) for row in known]
            row = known[values.index(min(values))]
            worst += findings((spec,), row.measured, _where(row))
    missed = [one for one in found if not one.met]
    others = (*(one for one in missed if one not in worst), *_failures(sweep.failed), *_audited(sweep.audit))
    note = f"{len(missed)} of {len(found)} figures miss their limit." if missed else "worst of all conditions shown."
    return worst, others, note


def _where(row: PvtCondition) -> str:
    return f"{row.corner}, {row.celsius:g} C, {row.supply_v:.4g} V"


def drawn_chips(wanted: Mismatch, seed: int) -> VariationPlan:
    """Return how the chips of a sign-off are drawn. wanted: from its plan."""
    celsius, supplies = ((min(ends), max(ends)) for ends in (wanted.celsius, wanted.supplies))
    return VariationPlan(
        wanted.variation, seed, wanted.chips, area=wanted.device_area, celsius=celsius, supplies=supplies
    )


def check_mismatch(subject: SignoffSubject) -> Check:
    """Check chips with mismatch; finished chips are in a store, so that an interrupted check continues."""
    wanted = subject.plan.mismatch
    draws = drawn_chips(wanted, subject.seed)
    with where_modelled():
        check_coefficients(subject.run.standing(subject.design).technology, draws)
    trial = Trial(subject.design, subject.test_set, draws, wanted.engine, subject.run.timing, subject.run.condition)
    of_all = tuple(one for one in subject.plan.specs("mismatch") if one.metric == "yield")
    specs = tuple(one for one in subject.plan.own("mismatch") if one.metric != "yield") or (default_spec(trial),)
    check_specs(trial, specs)
    folder = subject.run.place / CHIPS
    with open_store(folder, run_settings(trial)) as store:
        if store.damage:
            say(store.damage)
        keep_trial(folder, trial, subject.technology, subject.pdk_root)
        with progress_bar("mismatch") as progress:
            timeout = subject.run.timeout * len(subject.test_set.y)
            jobs = max(subject.run.jobs, 1)
            summary = run_montecarlo(
                trial, store, lambda numbers: run_local(trial, numbers, jobs, timeout), specs, None, progress
            )
    yields: Figures = {"yield": Estimate(summary.yield_.value, *summary.yield_.interval)}
    medians = [
        Finding(f"{METRICS[metric].words}, median chip", (value := figure.quantiles["50"]), percent(value))
        for metric, figure in summary.figures.items()
        if metric in ("accuracy", "task_agreement")
    ]
    unreset = summary.unreset.chips
    return Check(
        "mismatch",
        f"How many chips work, that is keep {', '.join(spec.text for spec in specs)}?",
        f"{summary.chips} chips with {wanted.variation} variation, {summary.samples} samples each, {wanted.engine}",
        (*findings(of_all, yields), *medians),
        (f"{unreset} chips have a memory that does not reset, and do not count.",) if unreset else (),
    )


def check_noise(subject: SignoffSubject) -> Check:
    """Check the noise of the devices at every decision, by the behavioral equations with and without noise."""
    wanted = subject.plan.noise
    with where_modelled():
        technology = with_flicker(subject.design.technology, wanted.flicker)
        noise = NoiseSimulation(find_noise(technology), subject.seed)
        found = study_noise(subject.design, subject.test_set, noise, subject.run, wanted.draws)
    figures: Figures = {}
    for metric, share in (("task_agreement", found.answers), ("state_agreement", found.states)):
        ends = (None, None) if share.low is None or share.high is None else (1 - share.high, 1 - share.low)
        figures[metric] = Estimate(1 - share.mean, *ends)
    figures["accuracy"] = Estimate(found.accuracy.mean, found.accuracy.low, found.accuracy.high)
    specs = tuple(one for one in subject.plan.specs("noise") if one.metric in figures)
    words = {"decisions as software": "decisions as without noise", "states as software": "states as without noise"}
    return Check(
        "noise",
        "Does it decide the same with the noise of its devices?",
        f"{found.samples} samples, {found.draws} times each, behavioral model, {wanted.flicker} flicker",
        tuple(replace(one, figure=words.get(one.figure, one.figure)) for one in findings(specs, figures)),
    )


def _failures(failed: int) -> tuple[Finding, ...]:
    return (Finding("simulations that failed", float(failed), str(failed), "= 0", met=False),) if failed else ()


def _audited(audit: Audit | None) -> tuple[Finding, ...]:
    """Return the result of an audit, samples repeated in ngspice, as a finding; empty if there was no audit."""
    if audit is None:
        return ()
    figure, shown = f"states as {audit.simulator}'s, outside ties", f"{100 * audit.agreement:.3f} %"
    limit, why = f">= {100 * LEAST:g} %", f"{audit.instances} samples, {audit.wrong} wrong"
    if audit.failed:
        why += f", {audit.failed} failed: {audit.reason}"
    return (Finding(figure, audit.agreement, shown, limit, audit.passed, interval=why),)


def check_frame(subject: SignoffSubject) -> Check:
    """Find the shortest and the longest frame with which the circuit works.

    Short frames are also tried where the circuit is slowest, long frames also where it leaks most.
    """
    wanted, supply = subject.plan.frame, subject.design.nominal.technology.supply
    nominal = subject.run.standing(subject.design)
    grid = subject.plan.corners
    slow, no_slow = subject.across(subject.corner("ss"), min(grid.celsius), min(grid.supplies) * supply)
    leaky, no_leaky = subject.across(subject.corner("ff"), max(grid.celsius), max(grid.supplies) * supply)
    shorter = (1.0, wanted.shortest, *(share for share in SHORTER if share < wanted.shortest))
    longer = (1.0, wanted.longest, *(share for share in LONGER if share > wanted.longest))
    searches = (("shortest frame", shorter, min, slow), ("longest frame", longer, max, leaky))
    bounds: list[Finding] = []
    tried: dict[tuple[str, str], Finding] = {}
    for figure, shares, furthest, conditions in searches:
        for bias, condition in ((None, nominal), *conditions.items()):
            rows = list(_frames(subject, condition, shares))
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


def _frames(
    subject: SignoffSubject, condition: Condition, shares: Sequence[float]
) -> Iterator[tuple[float, bool, tuple[Finding, ...]]]:
    """Yield (share of the compiled frame, whether it works, findings) for each share, up to the first that fails."""
    for share in dict.fromkeys(shares):  # the plan's own frame may be among those to try
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
    wanted, own = subject.plan.frame, subject.run.timing.t_step
    short = figure.startswith("shortest")
    most, where = (wanted.shortest if short else wanted.longest), format_conditions(condition.technology)
    limit = f"{'<=' if short else '>='} {format_quantity(most * own, 's')}"
    if share is None:
        return Finding(figure, None, f"not even {format_quantity(own, 's')}", limit, met=False, where=where)
    met = share <= most if short else share >= most
    return Finding(figure, share * own, format_quantity(share * own, "s"), limit, met, where)


def check_supply(subject: SignoffSubject) -> Check:
    """Check supply ripple at several frequencies, and supply steps up and down that last a third of a sample."""
    wanted, timing = subject.plan.supply, subject.run.timing
    stresses: list[tuple[str, Stress]] = [
        (
            f"ripple {format_quantity(wanted.ripple_v, 'V')} at {format_quantity(hertz, 'Hz')}",
            partial(with_ripple, volts=wanted.ripple_v, hertz=hertz),
        )
        for hertz in wanted.frequencies_hz
    ]
    frames = int(subject.test_set.lengths.max())
    start, end = (timing.moments(frames, _TRACKING)[k] for k in (frames // 3, min(2 * frames // 3, frames - 1)))
    for volts in (wanted.step_v, -wanted.step_v):
        where = f"step {'up' if volts > 0 else 'down'} {format_quantity(abs(volts), 'V')}"
        last, edge = max(end, start + timing.t_step), _EDGE * timing.t_step
        stresses.append((where, partial(with_step, volts=volts, start=start, end=last, edge=edge)))
    return Check(
        "supply",
        "Does it with a supply that is not still?",
        *_stressed(subject, "supply", [(where, replace(subject.run, stress=stress)) for where, stress in stresses]),
        ("Logic follows the supply; bias and input currents stay what they are.",),
    )


def check_clocks(subject: SignoffSubject) -> Check:
    """Check sharp and slow clock edges, and clock skew, that is a random delay of each clock net."""
    wanted, run = subject.plan.clocks, subject.run
    timing, skew = run.timing, wanted.skew * run.timing.t_step
    edges = [
        (
            f"clock edges of {format_quantity(edge * timing.t_step, 's')}",
            replace(run, timing=replace(timing, clock_edge=edge)),
        )
        for edge in wanted.edges
    ]
    skews = [
        (
            f"skew within {format_quantity(skew, 's')}, draw {draw}",
            replace(run, stress=partial(with_skew, seconds=skew, seed=subject.seed + draw)),
        )
        for draw in range(wanted.draws if wanted.skew else 0)
    ]
    question = "Does it with clocks that are sharp, slow or not in step?"
    return Check("clocks", question, *_stressed(subject, "clocks", [*edges, *skews]))


def _stressed(subject: SignoffSubject, check: str, runs: Sequence[tuple[str, Run]]) -> tuple[str, tuple[Finding, ...]]:
    """Run all samples under each stress; runs: (name of the stress, run). Return (what was looked at, findings)."""
    found = tuple(one for where, run in runs for one in subject.stressed(where, where, check, run))
    return f"{len(subject.test_set.y)} samples under each of {len(runs)} stresses", found


def check_start(subject: SignoffSubject) -> Check:
    """Check that the reset turns every memory off in every corner, and how long the reset must last at power-up."""
    corners = subject.plan.corners.corners or tuple(subject.design.technology.library.sections)
    held = len(subject.design.assembly.held)
    places = list(product(corners, subject.plan.corners.celsius)) if held else []
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
    """Find the shortest reset after power-up with which all figures keep their limits.

    Returns (finding of this reset, findings of every reset that was tried).
    """
    wanted, timing = subject.plan.start, subject.run.timing
    ramp = wanted.ramp * timing.t_step
    where, tried = f"supply and currents come up in {format_quantity(ramp, 's')}", list[Finding]()
    limit = f"<= {format_quantity(wanted.reset * timing.t_step, 's')}"
    for reset in (*(one for one in RESETS if one < wanted.reset), wanted.reset):
        length = format_quantity(reset * timing.t_step, "s")
        run = replace(subject.run, timing=replace(timing, reset=reset), stress=partial(with_power_up, end=ramp))
        found = subject.stressed(f"power-up, reset {length}", f"{where}, reset of {length}", "start", run)
        tried += found
        if all(one.met for one in found):
            return Finding("shortest reset at power-up", reset * timing.t_step, length, limit, where=where), tried
    return Finding("shortest reset at power-up", None, f"more than {limit[3:]}", limit, met=False, where=where), tried


def _stuck(subject: SignoffSubject, corner: str, celsius: float) -> Iterator[Finding]:
    """Yield the number of memories that a reset leaves on, as a finding for each assumption on bias currents."""
    conditions, missing = subject.across(corner, celsius)
    yield from missing
    for bias, condition in conditions.items():
        yield from subject.under(bias, (_staying_on(subject, condition),))


def _staying_on(subject: SignoffSubject, condition: Condition) -> Finding:
    """Count the memories that a reset leaves on in a condition; return the count as a finding."""
    draws = VariationPlan("none", 0, 1)
    chip = draw_chip((), condition.technology, draws, 0)
    run: Run = replace(subject.run, condition=condition, chip=chip)
    found = engine_named(run.engine).unreset(subject.design, subject.test_set, run)
    figure, where = "memories that stay on", format_conditions(condition.technology)
    if isinstance(found, Failure):
        return Finding(figure, None, f"a simulation failed: {found.kind.value}", "= 0", met=False, where=where)
    shown = ": ".join([str(len(found)), *([", ".join(found[:_NAMED])] if found else [])])
    return Finding(figure, float(len(found)), shown, "= 0", not found, where)


def check_decisions(subject: SignoffSubject) -> Check:
    """Find the decisions that mismatch would turn first, from the adjoint.

    The findings are only reported, unless the plan has a limit on them.
    """
    wanted = subject.plan.decisions
    few = subject.test_set.take(min(wanted.samples, len(subject.test_set.y)), subject.seed)
    samples = [x[:length] for x, length in zip(few.x, few.lengths, strict=True)]
    with progress_bar("decisions") as progress:
        found: list[Sensitivities] = []
        for k, x in enumerate(samples):
            with where_modelled():
                found += sensitivities(subject.design, [x], subject.run, SensitivityTarget())
            progress(k + 1, len(samples))
    return Check(
        "decisions",
        "How far are the weakest decisions from their thresholds, over what moves them?",
        f"{len(samples)} samples, {SensitivityTarget().decisions} least certain decisions of each",
        (*_weakest(found, few.indices, wanted.distance), *_margins(subject, wanted.within)),
        ("One standard deviation of the technology's mismatch, to first order; a share of the chips turns each: "
         "yield counts what comes of it.",),
    )  # fmt: skip


def _weakest(found: Sequence[Sensitivities], indices: NDArray[np.int64], limit: float) -> Iterator[Finding]:
    rows = [
        (abs(one.margin_a) / one.sigma_a, one, int(index))
        for index, sample in zip(indices, found, strict=True) for one in sample.decisions if one.sigma_a
    ]  # fmt: skip
    for distance, one, index in sorted(rows, key=lambda row: row[0])[:_SHOWN]:
        yield Finding(
            "distance of a state's decision",
            distance,
            f"{distance:.2f} sigma",
            f">= {limit:g} sigma" if limit else "",
            distance >= limit,
            f"sample {index}, frame {one.frame}, {one.cell}",
            f"{format_quantity(one.margin_a, 'A')}, sigma {format_quantity(one.sigma_a, 'A')}; {100 * one.flips:.0f} % "
            "of chips turn it",
        )
    spreads = [
        (sample.value_a / sample.sigma_a, int(k)) for k, sample in zip(indices, found, strict=True) if sample.sigma_a
    ]
    for distance, index in sorted(spreads)[:1]:
        yield Finding(
            "distance of a class's decision", distance, f"{distance:.2f} sigma", where=f"sample {index}",
            interval="while no state turns",
        )  # fmt: skip


def _margins(subject: SignoffSubject, most: float) -> Iterator[Finding]:
    """Yield the decision margins of each layer, over all samples, as findings.

    Yields nothing where the noise of a unit is not modelled; the check of noise then says so.
    """
    run = subject.run
    try:
        with where_modelled():
            noise = NoiseSimulation(find_noise(subject.design.technology), timing=run.timing)
            found = study_margins(subject.design, subject.test_set, noise, run.condition)
    except NotModelledError:
        return
    for one in found.layers:
        share = one.circuit.within
        ends = "" if share.low is None or share.high is None else f"[{percent(share.low, 2)}, {percent(share.high, 2)}]"
        yield Finding(
            f"decisions within {NEAR:g} sigma of noise and what calibration leaves",
            share.mean,
            percent(share.mean, 2),
            f"<= {percent(most, 2)}" if most < 1 else "",
            share.mean <= most,
            one.layer,
            ends,
            share.low is None or share.high is None or not share.low <= most <= share.high,
        )
        yield Finding("fewest sigma, likewise", one.circuit.fewest, f"{one.circuit.fewest:.2f} sigma", where=one.layer)
        chips = f"{percent(one.chips.within.mean, 2)} within {NEAR:g}"
        yield Finding(
            "fewest sigma, with mismatch", one.chips.fewest, f"{one.chips.fewest:.2f} sigma", where=one.layer,
            interval=chips,
        )  # fmt: skip


def check_limits(subject: SignoffSubject) -> Check:
    """Check every transistor's voltages during whole inferences, at the highest supply."""
    few = subject.test_set.take(min(subject.plan.limits.samples, len(subject.test_set.y)), subject.seed)
    technology = subject.run.standing(subject.design).technology
    grid = subject.plan.corners
    supply = max(grid.supplies) * subject.design.nominal.technology.supply
    devices = [one for one in subject.design.flat.elements if isinstance(one, Mos)]
    found: list[Finding] = []
    for celsius in sorted({min(grid.celsius), max(grid.celsius)}):
        conditions, missing = subject.across(subject.corner("ff"), celsius, supply)
        found += missing
        for bias, condition in conditions.items():
            run = replace(subject.run, condition=condition)
            benches = [replace(bench, probes=()) for bench in sample_benches(subject.design, few, run)]
            found += subject.under(bias, _largest(benches, devices, run, technology.supply_max))
    return Check(
        "limits",
        f"Does every transistor stay within {technology.supply_max:g} V, the largest supply of {technology.name}?",
        f"{len(devices)} transistors, {len(few.y)} samples in each condition, every step of the solver",
        tuple(found),
    )


def _largest(benches: Sequence[Bench], devices: Sequence[Mos], run: Run, most: float) -> Iterator[Finding]:
    """Yield, as a finding for each pair of terminals, the largest voltage of any transistor in any testbench.

    most: the largest voltage allowed, V. A failed simulation is a finding, too.
    """
    assert run.condition is not None
    where, simulator = format_conditions(run.condition.technology), simulator_named(run.engine)
    worst: dict[str, tuple[float, str]] = {}
    for k in range(0, len(benches), simulator.lanes):
        for waves, _ in run_benches(simulator, benches[k : k + simulator.lanes], run.timeout):
            if isinstance(waves, Failure):
                shown = f"a simulation failed: {waves.kind.value}"
                yield Finding("voltages", None, shown, f"<= {most:g} V", met=False, where=where)
                return
            for name, found in largest_voltages(waves, devices).items():
                worst[name] = max(worst.get(name, found), found, key=itemgetter(0))
    for name, (volts, device) in worst.items():
        shown = format_quantity(volts, "V")
        yield Finding(f"largest |{name}|", volts, shown, f"<= {most:g} V", volts <= most, where, f"in {device}")


def largest_voltages(waves: Waveforms, devices: Iterable[Mos]) -> dict[str, tuple[float, str]]:
    """Return the largest voltage between each of PAIRS of terminals: name -> (V, the transistor that has it).

    A net inside a device that an engine simulates as one, as the middle of a self-cascode, is left out: its voltage
    lies between those of the device's terminals.
    """
    known = {probe.net: values for probe, values in waves.probes.items() if isinstance(probe, Voltage)}
    known[GROUND] = np.zeros_like(waves.time)
    worst: dict[str, tuple[float, str]] = {}
    for one in devices:
        for name, first, second in PAIRS:
            a, b = known.get(getattr(one, first)), known.get(getattr(one, second))
            if a is not None and b is not None:
                found = float(np.abs(a - b).max()), one.name
                worst[name] = max(worst.get(name, found), found, key=itemgetter(0))
    return worst


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
