"""The whole flow on one screen: simulate every sample, hold the engines against each other, write the report."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cosim import __version__
from cosim.circuit.deck import device_sizes
from cosim.design import Design, meter_samples, simulate_samples
from cosim.engines.ngspice.options import DEFAULT_OPTIONS
from cosim.engines.outcome import Failure
from cosim.engines.table import SIMULATORS
from cosim.engines.vacask.program import SimulatorName
from cosim.errors import SimulationError
from cosim.files.seal import seal_npz
from cosim.files.write import write_atomically, writing_into
from cosim.outputs import summarize, write_results, write_texts
from cosim.report.comparison_page import format_report
from cosim.report.figures import draw_confusion, draw_waveforms, figure_bytes, save_figure
from cosim.report.power_figures import draw_power
from cosim.report.pvt_figures import draw_pvt
from cosim.simulation.inference import DEFAULT_TIMEOUT, Inference, Outcome, Progress, deck_hash
from cosim.simulation.keep import INFERENCES
from cosim.simulation.testbench import Timing
from cosim.study.agreement import Comparison, compare_engines, summarize_comparison
from cosim.study.bias import Bias, biased
from cosim.study.power import study_power, summarize_power
from cosim.study.pvt import pvt_grid, summarize_pvt
from cosim.study.waveforms import liveliest_cell, record_waveforms
from cosim.tasks.clipping import find_clipping, summarize_clipping
from cosim.tasks.testset import TestSet
from cosim.technology.conditions import format_conditions
from cosim.technology.devices import device_cards


@dataclass(frozen=True)
class Run:
    """Where and how samples are simulated: folder of results, worker processes, time-out in s, frames, simulator."""

    folder: Path
    jobs: int = 1
    timeout: float = DEFAULT_TIMEOUT
    timing: Timing = Timing()
    simulator: SimulatorName = "ngspice"


def run_samples(design: Design, test_set: TestSet, run: Run, progress: Progress) -> list[Outcome]:
    """Simulate, keeping finished samples; write simulation.npz and the decks of failed runs."""
    outcomes = _simulate(design, test_set, run, progress)
    _write_simulation(run, design, test_set, outcomes)
    return outcomes


def run_comparison(design: Design, test_set: TestSet, run: Run, progress: Progress) -> dict[str, Any]:
    """Simulate, compare and write comparison.json, the figures and report.html; returns the summary.

    Raises SimulationError when every simulation failed; what an earlier run wrote then stays as it is.
    """
    write_texts(run.folder, {})
    outcomes = _simulate(design, test_set, run, progress)
    _check_any(outcomes, run.folder)
    _write_simulation(run, design, test_set, outcomes)
    comparison = compare_engines(design, test_set, outcomes, run.timing, run.simulator)
    assert comparison is not None
    scales = {"bias_scale": design.bias_scale, "input_scale": design.input_scale}
    made_with = SIMULATORS[run.simulator].describe(design.technology)
    in_effect = ", ".join(f"{name} {value}" for name, value in made_with["options"].items())
    clipped = find_clipping(design.network.encoding, test_set)
    summary = {
        **summarize_comparison(comparison),
        **scales,
        "clipped": None if clipped is None else asdict(clipped),
        "made_with": made_with,
    }
    contents = {"design.json": summarize(design), "comparison.json": summary}
    write_results(run.folder, contents)
    timing = run.timing
    settings = {
        "cosim": __version__,
        "calibration measured with": design.calibration.simulator,
        "samples, by number in the test set": ", ".join(map(str, comparison.indices)),
        "inputs": "all in the range of the network's encoding" if clipped is None else str(clipped),
        "frame": f"{timing.t_step:g} s, input edges {timing.edge:g}, clock edges {timing.clock_edge:g} of it",
        "conditions": format_conditions(design.technology),
        "bias currents and inputs": " and ".join(f"{scale:.4g}" for scale in scales.values()) + " of the nominal ones",
        "simulator": f"{run.simulator} {made_with[run.simulator]}, {in_effect}",
    }
    figures = {"confusion": draw_confusion(comparison, _labels(design))}
    try:
        figures = {"waveforms": _draw_first(design, test_set, comparison, timing), **figures}
    except SimulationError as error:
        settings["waveforms"] = f"left out: {error}"
        (run.folder / "waveforms.png").unlink(missing_ok=True)  # of an earlier run
    for name, figure in figures.items():
        save_figure(figure, run.folder / f"{name}.png")
    captions = {
        "waveforms": "One inference on transistors: inputs, one unit's candidate and state, readout, supply power.",
        "confusion": "Decisions of the three engines on the same samples; accuracy with its 95 % interval.",
    }
    pictures = {captions[name]: figure_bytes(figure, "png") for name, figure in figures.items()}
    title = f"{design.network.task or 'network'}: from weights to transistors"
    write_texts(run.folder, {"report.html": format_report(title, summary, summarize(design), settings, pictures)})
    return summary


def run_power(design: Design, test_set: TestSet, run: Run, progress: Progress, simulate: bool = True) -> dict[str, Any]:
    """Meter the samples, hold them against the behavioral equations, write power.json and power.png; returns the first.

    Without `simulate` the behavioral side alone. Raises SimulationError when every simulation failed.
    """
    write_texts(run.folder, {})
    outcomes = None
    if simulate:
        _clear_failures(run.folder)
        store = run.folder / INFERENCES
        outcomes = meter_samples(design, test_set, run.timing, run.jobs, store, run.timeout, progress)
        _write_failures(run.folder, test_set, outcomes)
        _check_any(outcomes, run.folder)
    summary = summarize_power(design, study_power(design, test_set, outcomes, run.timing), run.timing)
    summary["clipped"] = summarize_clipping(design.network.encoding, test_set)
    write_results(run.folder, {"power.json": summary})
    save_figure(draw_power(summary), run.folder / "power.png")
    return summary


def run_pvt(
    design: Design,
    test_set: TestSet,
    run: Run,
    progress: Progress,
    bias: Bias = "constant",
    finished: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Simulate the samples in every condition of `pvt_grid`; write pvt.json, whose content it returns, and pvt.png.

    The network is compiled once, at the nominal point; `bias` as in `biased`. `finished` gets a line after each
    condition.
    """
    conditions = pvt_grid(design.technology)
    sizes = device_sizes(design.assembly.circuit)
    for technology in conditions:
        device_cards(technology, sizes)  # what a library does not have is said before the first run
    write_texts(run.folder, {})
    _clear_failures(run.folder)
    summaries: list[dict[str, Any] | None] = []
    count = len(test_set.y)
    for k, technology in enumerate(conditions):
        where = f"{k + 1}/{len(conditions)} {format_conditions(technology)}"
        try:
            there = biased(design, technology, bias)
        except SimulationError as error:
            summaries.append(None)
            finished(f"{where}: {error}")
            continue
        outcomes = simulate_samples(
            there, test_set, run.timing, DEFAULT_OPTIONS, run.jobs, run.folder / INFERENCES, run.timeout,
            lambda done, total, before=k * count: progress(before + done, len(conditions) * count), run.simulator,
        )  # fmt: skip
        _write_failures(run.folder, test_set, outcomes)
        comparison = compare_engines(there, test_set, outcomes, run.timing, run.simulator)
        summaries.append(None if comparison is None else summarize_comparison(comparison))
        finished(where)
    clipped = summarize_clipping(design.network.encoding, test_set)
    sweep = {"bias": bias, "clipped": clipped, **summarize_pvt(conditions, summaries, count)}
    contents = {"design.json": summarize(design), "pvt.json": sweep}
    write_results(run.folder, contents)
    save_figure(draw_pvt(sweep), run.folder / "pvt.png")
    return sweep


def _simulate(design: Design, test_set: TestSet, run: Run, progress: Progress) -> list[Outcome]:
    """Simulate, keeping finished samples; write the decks of failed runs."""
    _clear_failures(run.folder)
    outcomes = simulate_samples(
        design,
        test_set,
        run.timing,
        DEFAULT_OPTIONS,
        run.jobs,
        run.folder / INFERENCES,
        run.timeout,
        progress,
        run.simulator,
    )
    _write_failures(run.folder, test_set, outcomes)
    return outcomes


def _draw_first(design: Design, test_set: TestSet, comparison: Comparison, timing: Timing) -> Figure:
    """Waveforms of the first compared sample; raises SimulationError when it fails with more probes, or has none."""
    if comparison.simulator != "ngspice":
        raise SimulationError("only ngspice is asked for currents inside a transistor")
    cell = liveliest_cell(comparison.cells, comparison.engines[comparison.simulator].states[0])
    position = int(np.flatnonzero(test_set.indices == comparison.indices[0])[0])
    sample = test_set.x[position, : test_set.lengths[position]]
    return draw_waveforms(*record_waveforms(design, sample, cell, timing), timing)


def _labels(design: Design) -> list[str]:
    return list(design.network.labels) or [str(k) for k in range(design.network.readout.width)]


def _check_any(outcomes: Sequence[Outcome], folder: Path) -> None:
    if any(isinstance(outcome, Inference) for outcome in outcomes):
        return
    failure = next(outcome for outcome in outcomes if isinstance(outcome, Failure))
    raise SimulationError(
        f"all {len(outcomes)} simulations failed; the first: {failure.kind.value}: {failure.detail}; its deck is "
        f"in {folder / 'failed'}"
    )


def _clear_failures(folder: Path) -> None:
    """Decks of an earlier run: those that fail again are written again."""
    with writing_into(folder / "failed"):
        for deck in (folder / "failed").glob("sample_*.sp"):
            deck.unlink()


def _write_failures(folder: Path, test_set: TestSet, outcomes: Sequence[Outcome]) -> None:
    """The deck of every failed sample, with the reason on top."""
    texts = {}
    for index, outcome in zip(test_set.indices, outcomes, strict=True):
        if isinstance(outcome, Failure):
            reason = f"* failed: {outcome.kind.value}: {outcome.detail}\n"
            texts[f"sample_{index}_{deck_hash(outcome.deck)}.sp"] = reason + outcome.deck
    if texts:
        write_texts(folder / "failed", texts)


def _write_simulation(run: Run, design: Design, test_set: TestSet, outcomes: Sequence[Outcome]) -> None:
    """All results in one file; samples shorter than the longest are padded, see `lengths`."""
    steps, cells, outputs = test_set.x.shape[1], len(design.assembly.decisions), len(design.assembly.outputs)
    status = ["ok" if isinstance(outcome, Inference) else outcome.kind.name.lower() for outcome in outcomes]
    states = np.zeros((len(outcomes), steps, cells), dtype=np.int16)
    readout = np.zeros((len(outcomes), steps, outputs))
    power = np.full(len(outcomes), np.nan)
    for k, outcome in enumerate(outcomes):
        if isinstance(outcome, Inference):
            frames = len(outcome.states)
            states[k, :frames], readout[k, :frames], power[k] = outcome.states, outcome.readout, outcome.power_w
    made_with = SIMULATORS[run.simulator].describe(design.technology)
    arrays = {
        "states": states, "readout_a": readout, "power_w": power, "lengths": test_set.lengths, "y": test_set.y,
        "indices": test_set.indices, "cells": np.array(list(design.assembly.decisions)),
        "status": np.array(status), "made_with": np.array(json.dumps(made_with)),
    }  # fmt: skip
    write_atomically(run.folder / "simulation.npz", seal_npz(arrays))
