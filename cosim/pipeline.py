"""The whole flow on one screen: simulate every sample, hold the engines against each other, write the report."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from cosim.circuit.deck import device_sizes
from cosim.design import Design
from cosim.engines.engine import Inference, Outcome, Progress, Run
from cosim.engines.table import engine_entry, simulator_beside
from cosim.errors import SimulationError
from cosim.outputs import summarize, write_results, write_texts
from cosim.report.comparison_sheet import Reported, write_comparison
from cosim.report.figures import draw_power, draw_pvt, save_figure
from cosim.report.samples import check_any, clear_failures, draw_sample, write_failures, write_simulation
from cosim.simulation.audit import Ran, audit_conditions, audit_samples
from cosim.simulation.simulated import meter_samples, simulate_samples
from cosim.simulation.undecided import find_undecided
from cosim.study.agreement import ComparisonSummary, compare_engines, summarize_comparison
from cosim.study.bias import Bias, biased
from cosim.study.power import PowerSummary, study_power, summarize_power
from cosim.study.pvt import Sweep, pvt_grid, summarize_pvt
from cosim.tasks.clipping import find_clipping
from cosim.tasks.testset import TestSet
from cosim.technology.conditions import format_conditions
from cosim.technology.devices import device_cards


def run_samples(
    design: Design, test_set: TestSet, run: Run, progress: Progress, *, waveforms: bool = False
) -> list[Outcome]:
    """Simulate, keeping finished samples; write simulation.npz, the decks of failed runs and with `waveforms` the
    figure of the first sample that did not fail. Raises SimulationError where that cannot be had."""
    clear_failures(run.place)
    outcomes = _simulate(design, test_set, run, progress)
    write_simulation(run.place, design, test_set, outcomes, run)
    first = next(((k, found) for k, found in enumerate(outcomes) if isinstance(found, Inference)), None)
    if waveforms and first is not None:
        figure = draw_sample(design, test_set, first[0], first[1].states, run)
        save_figure(figure, run.place / "waveforms.png")
    return outcomes


def run_comparison(design: Design, test_set: TestSet, run: Run, progress: Progress, audit: int = 0) -> Reported:
    """Simulate, compare and write comparison.json, the figures and report.html; returns the content of the first.

    audit: how many samples go through ngspice, too.
    Raises SimulationError when every simulation failed; what an earlier run wrote then stays as it is.
    """
    write_texts(run.place, {})
    clear_failures(run.place)
    outcomes = _simulate(design, test_set, run, progress)
    check_any(outcomes, run.place)
    write_simulation(run.place, design, test_set, outcomes, run)
    comparison = compare_engines(design, test_set, outcomes, run)
    assert comparison is not None
    ran = Ran(design, test_set, outcomes, run)
    if engine_entry(run.engine).quick:
        comparison = replace(comparison, undecided=find_undecided(ran, lambda done, total: None))
    if audit:
        found = audit_samples(ran, audit, lambda done, total: None)
        comparison = replace(comparison, audit=found)
    return write_comparison(run.place, design, test_set, comparison, run)


def run_power(
    design: Design, test_set: TestSet, run: Run, progress: Progress, *, simulate: bool = True
) -> PowerSummary:
    """Meter the samples, hold them against the behavioral equations, write power.json and power.png; returns the first.

    Without `simulate` the behavioral side alone. Raises SimulationError when every simulation failed.
    """
    write_texts(run.place, {})
    outcomes = None
    if simulate:
        clear_failures(run.place)
        outcomes = meter_samples(design, test_set, run, progress)
        write_failures(run.place, test_set, outcomes)
        check_any(outcomes, run.place)
    summary = summarize_power(design, study_power(design, test_set, outcomes, run), run)
    write_results(run.place, {"power.json": summary})
    save_figure(draw_power(summary), run.place / "power.png")
    return summary


@dataclass(frozen=True)
class Listener:
    """Who hears how far a sweep is: of every run, and by a line after each condition and an audit."""

    progress: Progress
    finished: Callable[[str], None] = lambda line: None


def run_pvt(
    design: Design, test_set: TestSet, run: Run, listener: Listener, bias: Bias = "constant", audit: int = 0
) -> Sweep:
    """Simulate the samples in every condition of `pvt_grid`; write pvt.json, whose content it returns, and pvt.png.

    The network is compiled once, at the nominal point; `bias` as in `biased`. audit: how many samples of all conditions
    together go through ngspice, too.
    """
    conditions = pvt_grid(design.technology)
    sizes = device_sizes(design.assembly.circuit)
    for technology in conditions:
        device_cards(technology, sizes)  # what a library does not have is said before the first run
    write_texts(run.place, {})
    clear_failures(run.place)
    summaries: list[ComparisonSummary | None] = []
    runs: list[Ran] = []
    count = len(test_set.y)
    for k, technology in enumerate(conditions):
        where = f"{k + 1}/{len(conditions)} {format_conditions(technology)}"
        try:
            there = replace(run, condition=biased(design, technology, bias, simulator_beside(run.engine)))
        except SimulationError as error:
            summaries.append(None)
            listener.finished(f"{where}: {error}")
            continue

        def overall(done: int, total: int, before: int = k * count) -> None:
            listener.progress(before + done, len(conditions) * count)

        outcomes = _simulate(design, test_set, there, overall)
        runs.append(Ran(design, test_set, outcomes, there))
        comparison = compare_engines(design, test_set, outcomes, there)
        summaries.append(None if comparison is None else summarize_comparison(comparison))
        listener.finished(where)
    sweep = summarize_pvt(conditions, summaries, count, bias, find_clipping(design.network.encoding, test_set))
    if audit:
        sweep = replace(sweep, audit=audit_conditions(runs, audit, lambda done, total: None))
        listener.finished(f"audit of {audit}")
    write_results(run.place, {"design.json": summarize(design), "pvt.json": sweep})
    save_figure(draw_pvt(sweep), run.place / "pvt.png")
    return sweep


def _simulate(design: Design, test_set: TestSet, run: Run, progress: Progress) -> list[Outcome]:
    """Simulate, keeping finished samples; write the decks of failed runs."""
    outcomes = simulate_samples(design, test_set, run, progress)
    write_failures(run.place, test_set, outcomes)
    return outcomes
