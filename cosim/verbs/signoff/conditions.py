"""The circuit as it is, in every corner, on chips that deviate, and with the noise of its devices."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cosim.cli.progress import say
from cosim.engines.simulation.audit import LEAST, Audit
from cosim.results.metrics import METRICS, Estimate
from cosim.technology.conditions import format_conditions, with_flicker
from cosim.variation.draws import VariationPlan, check_coefficients
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.bias import Bias, bias_words
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.compare.agreement import Figures
from cosim.verbs.compare.noise import study_noise
from cosim.verbs.compare.page import ComparisonExtras, run_comparison
from cosim.verbs.compare.pvt import Conditions, Listener, PvtCondition, Sweep, run_pvt
from cosim.verbs.montecarlo.execute import run_local
from cosim.verbs.montecarlo.keep import keep_trial
from cosim.verbs.montecarlo.run import check_specs, default_spec, run_montecarlo, run_settings
from cosim.verbs.montecarlo.spec import Spec
from cosim.verbs.montecarlo.store import open_store
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.signoff.study import Check, Finding
from cosim.verbs.signoff.subject import SignoffSubject, findings, where_modelled

NOMINAL, CORNERS, CHIPS = "nominal", "corners", "chips"  # folders with pages of their own; of corners one for each bias


def check_nominal(subject: SignoffSubject) -> Check:
    """Check in a sign-off all samples on nominal devices, in the condition that was asked for."""
    run = subject.within(NOMINAL)
    extras = ComparisonExtras(subject.plan.settings.nominal.audit)
    where = format_conditions(run.standing(subject.design).technology)
    with subject.bar("nominal") as progress:
        found = run_comparison(subject.design, subject.test_set, run, progress, extras)
    kept = findings(subject.plan.specs("nominal"), found.measured, where)
    return Check(
        "nominal",
        "Does the circuit decide as the software does?",
        f"{found.samples + found.failed} samples",
        (*kept, *_failures(found.failed), *_audited(found.audit)),
    )


def corners_folder(bias: str) -> str:
    """Return the name of a sign-off's folder with the corners under an assumption on bias currents."""
    return f"{CORNERS}-{bias}"


def check_corners(subject: SignoffSubject) -> Check:
    """Check in a sign-off every condition of the plan's grid, under every assumption on bias currents."""
    worst, rest, notes = list[Finding](), list[Finding](), list[str]()
    count = 0
    for bias in subject.biases:
        sweep = _sweep(subject, bias)
        count = len(sweep.conditions)
        first, others, note = _of_sweep(subject, sweep)
        worst += subject.under(bias, first)
        rest += subject.under(bias, others)
        notes.append(f"{bias_words(subject.design, bias)}: {note}")
    assumptions = f", under {len(subject.biases)} assumptions on bias currents" if len(subject.biases) > 1 else ""
    return Check(
        "corners",
        "Does it in every corner, at every temperature and supply?",
        f"{len(subject.test_set.y)} samples in each of {count} conditions{assumptions}",
        (*worst, *rest),
        tuple(f"{note[:1].upper()}{note[1:]}" for note in notes),
    )


def _sweep(subject: SignoffSubject, bias: Bias) -> Sweep:
    """Run the samples in every condition; the plan's audited samples are divided among the assumptions on bias
    currents."""
    wanted = subject.plan.settings.corners
    audit = -(-wanted.audit // len(subject.biases))
    with subject.bar(f"corners, {bias}") as progress:
        return run_pvt(
            subject.design,
            subject.test_set,
            subject.within(corners_folder(bias)),
            Listener(progress),
            Conditions(wanted.corners, wanted.celsius, wanted.supplies, bias, audit),
        )


def _of_sweep(subject: SignoffSubject, sweep: Sweep) -> tuple[Sequence[Finding], Sequence[Finding], str]:
    """Return the worst findings of a sweep, the others that miss, and a note on how many do."""
    specs = subject.plan.specs("corners")
    found = [finding for row in sweep.conditions for finding in findings(specs, row.measured or None, _where(row))]
    missed = [one for one in found if not one.met]
    worst = list(_worst(specs, sweep.conditions))
    others = (*(one for one in missed if one not in worst), *_failures(sweep.failed), *_audited(sweep.audit))
    note = f"{len(missed)} of {len(found)} figures miss their limit." if missed else "worst of all conditions shown."
    return worst, others, note


def _worst(specs: Iterable[Spec], rows: Iterable[PvtCondition]) -> Iterable[Finding]:
    """Yield for each spec the finding in the condition that is worst for it."""
    known = [row for row in rows if row.measured]
    for spec in specs:

        def value(row: PvtCondition, spec: Spec = spec) -> float:
            return row.measured[spec.metric].value * (1 if spec.at_least else -1)

        if known:
            row = min(known, key=value)
            yield from findings((spec,), row.measured, _where(row))


def _where(row: PvtCondition) -> str:
    return f"{row.corner}, {row.celsius:g} C, {row.supply_v:.4g} V"


def check_mismatch(subject: SignoffSubject) -> Check:
    """Check chips with mismatch, in a store that goes on where it was."""
    wanted = subject.plan.settings.mismatch
    draws = VariationPlan(wanted.variation, subject.seed, wanted.chips, area=wanted.device_area)
    technology = subject.run.standing(subject.design).technology
    with where_modelled():
        check_coefficients(technology, draws)
    trial = Trial(subject.design, subject.test_set, draws, wanted.engine, subject.run.timing, subject.run.condition)
    of_all = tuple(one for one in subject.plan.specs("mismatch") if one.metric == "yield")
    specs = tuple(one for one in subject.plan.own("mismatch") if one.metric != "yield") or (default_spec(trial),)
    check_specs(trial, specs)
    folder = subject.run.place / CHIPS
    with open_store(folder, run_settings(trial)) as store:
        if store.damage:
            say(store.damage)
        keep_trial(folder, trial, subject.compiled)
        with subject.bar("mismatch") as progress:
            timeout = subject.run.timeout * len(subject.test_set.y)
            jobs = max(subject.run.jobs, 1)
            summary = run_montecarlo(
                trial, store, lambda numbers: run_local(trial, numbers, jobs, timeout), specs, None, progress
            )
    yields: Figures = {"yield": Estimate(summary.yield_.value, *summary.yield_.interval)}
    medians = [
        Finding(f"{METRICS[metric].words}, median chip", (value := figure.quantiles["50"]), _percent(value))
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
    """Check in a sign-off the noise of the devices at every decision of the behavioral model, against the same circuit
    without."""
    wanted = subject.plan.settings.noise
    draws = wanted.draws
    with where_modelled():
        technology = with_flicker(subject.design.technology, wanted.flicker)
        noise = NoiseSimulation(find_noise(technology), subject.seed)
        found = study_noise(subject.design, subject.test_set, noise, subject.run, draws)
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
    """Return the audit as a finding; none where there was no audit."""
    if audit is None:
        return ()
    figure, shown = f"states as {audit.simulator}'s, outside ties", f"{100 * audit.agreement:.3f} %"
    limit, why = f">= {100 * LEAST:g} %", f"{audit.instances} samples, {audit.wrong} wrong"
    if audit.failed:
        why += f", {audit.failed} failed: {audit.reason}"
    return (Finding(figure, audit.agreement, shown, limit, audit.passed, interval=why),)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
