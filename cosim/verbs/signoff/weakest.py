"""Checks of what is nearest to going wrong: decisions, in standard deviations of mismatch, and voltages."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.quantities import format_quantity
from cosim.circuit.bench import Bench, Voltage
from cosim.circuit.elements import GROUND, Mos
from cosim.engines.engine import Failure, Run, Waveforms
from cosim.engines.simulation.inference import run_benches
from cosim.engines.simulation.simulated import sample_benches
from cosim.engines.table import simulator_named
from cosim.technology.conditions import format_conditions
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.compile.margins import NEAR, study_margins
from cosim.verbs.sensitivity.study import Sensitivities, SensitivityTarget, sensitivities
from cosim.verbs.signoff.study import Check, Finding
from cosim.verbs.signoff.subject import NotModelledError, SignoffSubject, where_modelled

PAIRS = (("V_GS", "gate", "source"), ("V_GD", "gate", "drain"), ("V_DS", "drain", "source"), ("V_GB", "gate", "bulk"))
_SHOWN = 3  # decisions


def check_decisions(subject: SignoffSubject) -> Check:
    """Find the decisions that mismatch turns first, from the adjoint; they are reported, unless the plan has a
    limit."""
    wanted = subject.plan.settings.decisions
    few = subject.test_set.take(min(wanted.samples, len(subject.test_set.y)), subject.seed)
    samples = [x[:length] for x, length in zip(few.x, few.lengths, strict=True)]
    with subject.bar("decisions") as progress:
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
    """Yield for sign-off the findings of each layer, over all samples and decisions.

    Nothing is yielded where noise has no model; sign-off's check of noise says so."""
    run = subject.run
    try:
        with where_modelled():
            noise = NoiseSimulation(find_noise(subject.design.technology), timing=run.timing)
            found = study_margins(subject.design, subject.test_set, noise, run.condition)
    except NotModelledError:
        return
    for one in found.layers:
        share = one.circuit.within
        ends = "" if share.low is None or share.high is None else f"[{_percent(share.low)}, {_percent(share.high)}]"
        yield Finding(
            f"decisions within {NEAR:g} sigma of noise and what calibration leaves",
            share.mean,
            _percent(share.mean),
            f"<= {_percent(most)}" if most < 1 else "",
            share.mean <= most,
            one.layer,
            ends,
            share.low is None or share.high is None or not share.low <= most <= share.high,
        )
        yield Finding("fewest sigma, likewise", one.circuit.fewest, f"{one.circuit.fewest:.2f} sigma", where=one.layer)
        chips = f"{_percent(one.chips.within.mean)} within {NEAR:g}"
        yield Finding(
            "fewest sigma, with mismatch", one.chips.fewest, f"{one.chips.fewest:.2f} sigma", where=one.layer,
            interval=chips,
        )  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def check_limits(subject: SignoffSubject) -> Check:
    """Check in a sign-off every transistor's voltages over whole inferences, where the supply is highest."""
    few = subject.test_set.take(min(subject.plan.settings.limits.samples, len(subject.test_set.y)), subject.seed)
    technology = subject.run.standing(subject.design).technology
    grid = subject.plan.settings.corners
    supply = max(grid.supplies) * subject.design.nominal.technology.supply
    devices = [one for one in subject.design.flat.elements if isinstance(one, Mos)]
    found: list[Finding] = []
    for celsius in sorted({min(grid.celsius), max(grid.celsius)}):
        conditions, missing = subject.across(subject.corner("ff"), celsius, supply)
        found += missing
        for bias, condition in conditions.items():
            run = replace(subject.run, condition=condition)
            benches = [replace(bench, probes=()) for bench in sample_benches(subject.design, few, run)]
            limit = technology.supply_max, format_conditions(condition.technology)
            found += subject.under(bias, _largest(benches, devices, run, limit))
    return Check(
        "limits",
        f"Does every transistor stay within {technology.supply_max:g} V, the largest supply of {technology.name}?",
        f"{len(devices)} transistors, {len(few.y)} samples in each condition, every step of the solver",
        tuple(found),
    )


def _largest(benches: Sequence[Bench], devices: Sequence[Mos], run: Run, limit: tuple[float, str]) -> Iterator[Finding]:
    """Yield for each pair of terminals the largest voltage of any transistor at any time of any bench, or a failure."""
    (most, where), simulator = limit, simulator_named(run.engine)
    worst: dict[str, tuple[float, str]] = {}
    for k in range(0, len(benches), simulator.lanes):
        for waves, _ in run_benches(simulator, benches[k : k + simulator.lanes], run.timeout):
            if isinstance(waves, Failure):
                shown = f"a simulation failed: {waves.kind.value}"
                yield Finding("voltages", None, shown, f"<= {most:g} V", met=False, where=where)
                return
            for name, found in largest_voltages(waves, devices).items():
                worst[name] = max(worst.get(name, found), found, key=lambda one: one[0])
    for name, (volts, device) in worst.items():
        shown = format_quantity(volts, "V")
        yield Finding(f"largest |{name}|", volts, shown, f"<= {most:g} V", volts <= most, where, f"in {device}")


def largest_voltages(waves: Waveforms, devices: Iterable[Mos]) -> dict[str, tuple[float, str]]:
    """Return the largest voltage, V, between the terminals of each of PAIRS at any time, by name, with its transistor.
    A net that an engine has drawn into a device, as the middle of a self-cascode, is left out: it lies between the
    others."""
    known = {probe.net: values for probe, values in waves.probes.items() if isinstance(probe, Voltage)}
    known[GROUND] = np.zeros_like(waves.time)
    worst: dict[str, tuple[float, str]] = {}
    for one in devices:
        for name, first, second in PAIRS:
            a, b = known.get(getattr(one, first)), known.get(getattr(one, second))
            if (
                a is not None
                and b is not None
                and (volts := float(np.abs(a - b).max())) > worst.get(name, (-1.0, ""))[0]
            ):
                worst[name] = volts, one.name
    return worst
