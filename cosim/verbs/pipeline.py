"""The whole flow on one screen: simulate every sample, compare the engines, write the report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.base.seal import seal_npz
from cosim.base.store import write_results, write_texts
from cosim.base.write import write_atomically
from cosim.cells.blocks import outside_of
from cosim.circuit.deck import device_sizes
from cosim.compiler.design import Design
from cosim.engines.engine import Inference, Outcome, Progress, Run
from cosim.engines.simulation.audit import AuditableRun, audit_conditions, audit_samples
from cosim.engines.simulation.simulated import engine_named, meter_samples, simulate_samples
from cosim.engines.simulation.undecided import find_undecided
from cosim.engines.table import BATCH, engine_entry, simulator_beside
from cosim.results.figures import figure_bytes, save_figure
from cosim.results.kept_page import write_page
from cosim.tasks.clipping import find_clipping
from cosim.tasks.testset import TestSet
from cosim.technology.conditions import format_conditions
from cosim.technology.devices import device_cards
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.bias import Bias, bias_words, biased
from cosim.verbs.compare.agreement import ComparisonSummary, compare_engines, summarize_comparison
from cosim.verbs.compare.figures import draw_pvt
from cosim.verbs.compare.noise import compare_noisy, study_noise
from cosim.verbs.compare.page import ComparisonSubject, Reported, write_comparison
from cosim.verbs.compare.pvt import PvtGrid, Sweep, pvt_grid, summarize_pvt
from cosim.verbs.compare.pvt_page import pvt_page
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.power.page import draw_power, power_page
from cosim.verbs.power.study import PowerSummary, study_power, summarize_power, tabulate_power
from cosim.verbs.simulate.page import SimulationSubject, simulation_page
from cosim.verbs.simulate.sample_table import tabulate_samples
from cosim.verbs.simulate.samples import (
    Watched,
    check_any,
    clear_failures,
    draw_sample,
    write_failures,
    write_simulation,
    write_waveforms,
)


def run_samples(
    design: Design, test_set: TestSet, run: Run, progress: Progress, watched: tuple[str, ...] | None = None
) -> list[Outcome]:
    """Simulate, keeping finished samples; write simulation.npz, the decks of failed runs, the page and, unless
    `watched` is None, the waveforms of the first sample that did not fail, of these names or of its liveliest cell.

    Raises SimulationError where waveforms cannot be had.
    """
    clear_failures(run.place)
    outcomes = _simulate(design, test_set, run, progress)
    write_simulation(run.place, design, test_set, outcomes, run)
    write_results(run.place, {"design.json": summarize(design, run.condition)})
    first = next(((k, found) for k, found in enumerate(outcomes) if isinstance(found, Inference)), None)
    picture = None
    if watched is not None and first is not None:
        drawn = draw_sample(design, test_set, Watched(first[0], first[1].states, watched), run)
        write_waveforms(run.place, design, int(test_set.indices[first[0]]), drawn)
        picture = figure_bytes(drawn[0], "png")
    write_page(run.place, simulation_page(SimulationSubject(design, test_set, outcomes, run, picture)))
    return outcomes


@dataclass(frozen=True)
class Beside:
    """Options of a comparison. audit: how many samples go through ngspice, too; watched: names of what its waveforms
    show, none for the liveliest cell; noise: of the decisions of the behavioral model, and of the transistors in the
    batched engine, None for none."""

    audit: int = 0
    watched: tuple[str, ...] = ()
    noise: NoiseSimulation | None = None


def run_comparison(
    design: Design, test_set: TestSet, run: Run, progress: Progress, beside: Beside = Beside()
) -> Reported:
    """Simulate, compare and write comparison.json, the figures and the page; returns the content of the first.

    Raises SimulationError when every simulation failed; what an earlier run wrote then stays as it is.
    """
    write_texts(run.place, {})
    clear_failures(run.place)
    outcomes = _simulate(design, test_set, run, progress)
    check_any(outcomes, run.place)
    write_simulation(run.place, design, test_set, outcomes, run)
    comparison = compare_engines(design, test_set, outcomes, run)
    assert comparison is not None
    if beside.noise is not None:
        noise = study_noise(design, test_set, beside.noise, run)
        if engine_entry(run.engine).name == BATCH:
            noisy = simulate_samples(design, test_set, replace(run, noise=beside.noise), progress)
            noise = replace(noise, transistors=compare_noisy(design, test_set, (outcomes, noisy), run))
        comparison = replace(comparison, noise=noise)
    ran = AuditableRun(design, test_set, outcomes, run)
    if engine_entry(run.engine).quick:
        comparison = replace(comparison, undecided=find_undecided(ran, lambda done, total: None))
    if beside.audit:
        found = audit_samples(ran, beside.audit, lambda done, total: None)
        comparison = replace(comparison, audit=found)
    return write_comparison(ComparisonSubject(design, test_set, comparison, run, beside.watched))


def run_power(
    design: Design, test_set: TestSet, run: Run, progress: Progress, *, simulate: bool = True
) -> PowerSummary:
    """Meter the samples, compare them with the behavioral equations, and write power.png, the page and power.json,
    whose content it returns.

    Without `simulate` it has the behavioral side alone. Raises SimulationError when every simulation failed.
    """
    write_texts(run.place, {})
    outcomes = None
    if simulate:
        clear_failures(run.place)
        outcomes = meter_samples(design, test_set, run, progress)
        write_failures(run.place, test_set, outcomes)
        check_any(outcomes, run.place)
    study = study_power(design, test_set, outcomes, run)
    summary = summarize_power(design, study, run)
    rows = tabulate_power(study, test_set, outcomes, run.engine)
    write_results(run.place, {"design.json": summarize(design, run.condition), "power.json": summary})
    write_atomically(run.place / "power.npz", seal_npz(rows))
    save_figure(draw_power(summary), run.place / "power.png")
    write_page(run.place, power_page(design, summary, _version(run, design) if simulate else {}))
    return summary


@dataclass(frozen=True)
class Listener:
    """Functions that hear of a sweep's progress: within each run, and by a line after each condition and an audit."""

    progress: Progress
    finished: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class Conditions:
    """Conditions of a sweep: bias as in `biased`; audit: how many samples of all conditions together go through
    ngspice, too."""

    bias: Bias = "constant"
    audit: int = 0
    grid: PvtGrid = PvtGrid()


def run_pvt(design: Design, test_set: TestSet, run: Run, listener: Listener, asked: Conditions = Conditions()) -> Sweep:
    """Simulate the samples in every condition of `pvt_grid`; write pvt.json, whose content it returns, pvt.png and the
    page.

    The network is compiled once, at the nominal point.
    """
    bias, conditions = asked.bias, pvt_grid(design.technology, asked.grid)
    sizes = device_sizes(design.assembly.circuit)
    for technology in conditions:
        device_cards(technology, sizes)  # what a library does not have is said before the first run
    write_texts(run.place, {})
    clear_failures(run.place)
    summaries: list[ComparisonSummary | None] = []
    runs: list[AuditableRun] = []
    found: dict[str, list[Outcome] | None] = {}
    count = len(test_set.y)
    for k, technology in enumerate(conditions):
        name = format_conditions(technology)
        where = f"{k + 1}/{len(conditions)} {name}"
        try:
            there = replace(run, condition=biased(design, technology, bias, simulator_beside(run.engine)))
        except SimulationError as error:
            summaries.append(None)
            found[name] = None
            listener.finished(f"{where}: {error}")
            continue

        def overall(done: int, total: int, before: int = k * count) -> None:
            listener.progress(before + done, len(conditions) * count)

        found[name] = outcomes = _simulate(design, test_set, there, overall)
        runs.append(AuditableRun(design, test_set, outcomes, there))
        comparison = compare_engines(design, test_set, outcomes, there)
        summaries.append(None if comparison is None else summarize_comparison(comparison))
        listener.finished(where)
    sweep = summarize_pvt(conditions, summaries, count, bias, find_clipping(design.network.encoding, test_set))
    outside = outside_of(design.assembly.blocks)
    sweep = replace(sweep, power_outside=outside, stands_on=bias_words(design, bias))
    if asked.audit:
        sweep = replace(sweep, audit=audit_conditions(runs, asked.audit, lambda done, total: None))
        listener.finished(f"audit of {asked.audit}")
    write_results(run.place, {"design.json": summarize(design), "pvt.json": sweep})
    _write_conditions(run, tabulate_samples(design, test_set, found, run.engine), tuple(found))
    save_figure(draw_pvt(sweep), run.place / "pvt.png")
    write_page(run.place, pvt_page(design, sweep, _version(run, design)))
    return sweep


def _write_conditions(run: Run, rows: Mapping[str, NDArray[Any]], conditions: Sequence[str]) -> None:
    """Write pvt.npz: every sample in every condition."""
    write_atomically(run.place / "pvt.npz", seal_npz({**rows, "conditions": np.array(conditions)}))


def _version(run: Run, design: Design) -> dict[str, str]:
    """Return the version of the run's simulator, by its name."""
    return {run.engine: engine_named(run.engine).describe(run.standing(design).technology).version}


def _simulate(design: Design, test_set: TestSet, run: Run, progress: Progress) -> list[Outcome]:
    """Simulate, keeping finished samples; write the decks of failed runs."""
    outcomes = simulate_samples(design, test_set, run, progress)
    write_failures(run.place, test_set, outcomes)
    return outcomes
