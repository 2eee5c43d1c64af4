"""Simulation of samples: the run, its page and its files, that is results and decks of failed runs.

simulation.npz also has the samples as a table, so that `cosim diff` can compare two runs sample by sample. pvt.npz, for
several conditions, has this table as well; the arrays named in STACKED then have a first axis for the condition.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.base.quantities import format_quantity
from cosim.base.seal import seal_npz
from cosim.base.store import write_results, write_texts
from cosim.base.write import write_atomically, write_together, writing_into
from cosim.compiler.design import Design
from cosim.engines.engine import (
    NO_CLASS,
    Failure,
    Inference,
    Outcome,
    Progress,
    Run,
    count_elsewhere,
    decided_by,
)
from cosim.engines.simulation.inference import deck_hash
from cosim.engines.simulation.simulated import engine_named, simulate_samples
from cosim.network.ir.states import States, differ, software_states, tolerances
from cosim.network.reference import pool_readout, run_reference
from cosim.results.figures import Figure, figure_bytes
from cosim.results.html import Picture
from cosim.results.intervals import IntervalEnds, interval
from cosim.results.kept_page import write_page
from cosim.results.metrics import percent, within
from cosim.results.page import Page, Section, Table
from cosim.tasks.testset import TestSet
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.provenance import circuit_section, origins, subject_of
from cosim.verbs.simulate.waveform_figure import draw_units, draw_waveforms
from cosim.verbs.simulate.waveforms import (
    ProbedInference,
    format_waveforms,
    judge_sample,
    labels_of,
    liveliest_cell,
    record_signals,
    waves_of,
)
from cosim.verbs.trust import say_elsewhere
from cosim.verbs.words import network_name, say_answer, say_conditions, say_target

FAILED = "failed"  # folder
UNDECIDED = NO_CLASS  # the decision of a sample whose simulation failed, or whose chip shows no class
STACKED = ("decisions", "wrong", "power_w")
_BY_SAMPLE = ("indices", "sums", "y", "lengths", "software", "decisions", "wrong", "power_w")
_LEAST = 600  # pixels under which a picture's words cannot be read
_ROWS = 400  # of the table of samples
WAVES = "Inputs, one unit's candidate with its thresholds, its state, the readout, the supply power."


def run_samples(
    design: Design, test_set: TestSet, run: Run, progress: Progress, watched: tuple[str, ...] | None = None
) -> list[Outcome]:
    """Simulate a test set, keeping finished samples; write simulation.npz, decks of failed runs, waveforms and page.

    watched: names of the waveforms to keep, of the first sample that did not fail; empty for the cell that changes most
    often, None for no waveforms. Raises SimulationError where waveforms cannot be recorded.
    """
    clear_failures(run.place)
    outcomes = simulate_test_set(design, test_set, run, progress)
    write_simulation(run.place, design, test_set, outcomes, run)
    write_results(run.place, {"design.json": summarize(design, run.condition)})
    first = next(((k, found) for k, found in enumerate(outcomes) if isinstance(found, Inference)), None)
    picture = None
    if watched is not None and first is not None:
        names = watched or (liveliest_cell(tuple(design.assembly.decisions), first[1].states),)
        figure, recorded = draw_sample(design, test_set, first[0], names, run)
        title = f"{network_name(design.network)}, test sample {test_set.indices[first[0]]}"
        files = format_waveforms(recorded, title)
        write_together({run.place / name: content for name, content in files.items()})
        picture = figure_bytes(figure, "png")
        write_atomically(run.place / "waveforms.png", picture)
    write_page(run.place, simulation_page(design, test_set, outcomes, run, picture))
    return outcomes


def simulate_test_set(design: Design, test_set: TestSet, run: Run, progress: Progress) -> list[Outcome]:
    """Simulate the samples of a test set, keeping finished ones; write the decks of failed runs."""
    outcomes = simulate_samples(design, test_set, run, progress)
    write_failures(run.place, test_set, outcomes)
    return outcomes


def clear_failures(folder: Path) -> None:
    """Remove the decks of runs that failed earlier; those that fail again will be written again."""
    with writing_into(folder / FAILED):
        for deck in (folder / FAILED).glob("sample_*.sp"):
            deck.unlink()


def write_failures(folder: Path, test_set: TestSet, outcomes: Sequence[Outcome]) -> None:
    """Write the deck of every sample whose simulation failed, with the reason on top."""
    texts = {}
    for index, outcome in zip(test_set.indices, outcomes, strict=True):
        if isinstance(outcome, Failure):
            reason = f"* failed: {outcome}\n"
            texts[f"sample_{index}_{deck_hash(outcome.deck)}.sp"] = reason + outcome.deck
    if texts:
        write_texts(folder / FAILED, texts)


def check_any(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Check that at least one simulation succeeded; raises SimulationError that quotes the first failure."""
    if any(isinstance(outcome, Inference) for outcome in outcomes):
        return
    failure = next(outcome for outcome in outcomes if isinstance(outcome, Failure))
    raise SimulationError(
        f"all {len(outcomes)} simulations failed; the first: {failure}; its deck is in {folder / FAILED}"
    )


def write_simulation(folder: Path, design: Design, test_set: TestSet, outcomes: Sequence[Outcome], run: Run) -> None:
    """Write simulation.npz; samples shorter than the longest are padded, `lengths` has their valid frames."""
    steps, cells, outputs = test_set.x.shape[1], len(design.assembly.decisions), len(design.assembly.outputs)
    status = ["ok" if isinstance(outcome, Inference) else outcome.kind.name.lower() for outcome in outcomes]
    kind = next((outcome.states.dtype for outcome in outcomes if isinstance(outcome, Inference)), np.int16)
    states = np.zeros((len(outcomes), steps, cells), dtype=kind)
    readout = np.zeros((len(outcomes), steps, outputs))
    for k, outcome in enumerate(outcomes):
        if isinstance(outcome, Inference):
            frames = len(outcome.states)
            states[k, :frames], readout[k, :frames] = outcome.states, outcome.readout
    made_with = engine_named(run.engine).describe(run.standing(design).technology)
    rows = tabulate_samples(design, test_set, {"": outcomes}, run.engine)
    arrays = {
        **{name: array[0] if name in STACKED else array for name, array in rows.items()},
        "states": states, "readout_a": readout, "status": np.array(status),
        "made_with": np.array(json.dumps(made_with.as_json(run.engine))),
    }  # fmt: skip
    write_atomically(folder / "simulation.npz", seal_npz(arrays))


def draw_sample(
    design: Design, test_set: TestSet, position: int, names: Sequence[str], run: Run
) -> tuple[Figure, ProbedInference]:
    """Draw the waveforms of one sample; return the picture and all that was recorded.

    position: of the sample in the test set; names: of signals, as `watchable` has them. Raises SimulationError when the
    run fails.
    """
    recorded = record_signals(design, test_set.inputs(position), names, run)
    cells = tuple(design.assembly.decisions)
    verdict = judge_sample(design, test_set, position, recorded, run)
    if len(names) == 1 and names[0] in cells:
        waves, labels = waves_of(design, recorded, names[0], run)
        return draw_waveforms(waves, replace(labels, verdict=verdict), run.timing), recorded
    memories = [name for name in names if name in cells] or cells[:1]
    labels = [replace(labels_of(design, name, run), verdict=verdict) for name in memories]
    return draw_units(design, recorded, names, labels, run.timing), recorded


@dataclass(frozen=True)
class SampleTable:
    """The simulated samples of one condition, as arrays.

    indices: in the full test set, (n,); sums: checksums, see `TestSet.sums`, (n,); y: classes, (n,); lengths: valid
    frames, (n,); software, decisions: of the network and of the engine, (n,), the latter the chip's own decision where
    it makes one, UNDECIDED where it shows none or the simulation failed; wrong: frames whose state differs from
    software, (n, cells); power_w: W, NaN where the simulation failed, (n,); tolerances: difference up to which two
    states count as equal, (cells,); states: by the engine, (n, time, cells), None if not kept.
    """

    indices: NDArray[np.int64]
    sums: NDArray[np.str_]
    y: NDArray[np.int64]
    lengths: NDArray[np.int64]
    software: NDArray[np.int64]
    decisions: NDArray[np.int64]
    wrong: NDArray[np.int64]
    power_w: NDArray[np.float64]
    cells: tuple[str, ...]
    tolerances: NDArray[np.float64]
    engine: str
    states: States | None = None

    @property
    def good(self) -> NDArray[np.bool_]:
        """Tell for each sample whether its simulation succeeded, (n,) bool."""
        return ~np.isnan(self.power_w)

    @property
    def agreement(self) -> NDArray[np.float64]:
        """Return each sample's share of states that equal the software's, (n,)."""
        return 1.0 - self.wrong.sum(axis=1) / (self.lengths * self.wrong.shape[1])

    def select(self, places: NDArray[np.int64]) -> "SampleTable":
        """Return a table of the samples at these places, in this order."""
        taken = {name: getattr(self, name)[places] for name in _BY_SAMPLE}
        return replace(self, **taken, states=None if self.states is None else self.states[places])


def tabulate_samples(
    design: Design, test_set: TestSet, outcomes: Mapping[str, Sequence[Outcome] | None], engine: str
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a `SampleTable`, without its states: name -> array.

    outcomes: condition -> outcome of each sample; None where the condition was not simulated.
    """
    reference = run_reference(design.network, test_set.x, test_set.lengths)
    wanted, pooling = software_states(design.graph, reference), design.network.readout.pooling
    allowed, count = tolerances(design.graph), len(test_set.y)
    decisions = np.full((len(outcomes), count), UNDECIDED)
    wrong = np.zeros((len(outcomes), count, wanted.shape[2]), dtype=np.int64)
    power = np.full((len(outcomes), count), np.nan)
    for row, found in enumerate(outcomes.values()):
        for k, outcome in enumerate(found or ()):
            if isinstance(outcome, Inference):
                length = len(outcome.states)
                pooled = pool_readout(outcome.readout[None], np.array([length]), pooling)
                (decisions[row, k],) = decided_by([outcome], pooled.argmax(axis=1))
                power[row, k] = outcome.power_w
                wrong[row, k] = differ(outcome.states, wanted[k, :length], allowed).sum(axis=0)
    return {
        "indices": test_set.indices,
        "sums": test_set.sums,
        "y": test_set.y,
        "lengths": test_set.lengths,
        "software": pool_readout(reference.readout, test_set.lengths, pooling).argmax(axis=1),
        "decisions": decisions,
        "wrong": wrong,
        "power_w": power,
        "cells": np.array(list(design.assembly.decisions)),
        "tolerances": allowed,
        "engine": np.array(engine),
    }


def simulation_page(
    design: Design, test_set: TestSet, outcomes: Sequence[Outcome], run: Run, picture: bytes | None = None
) -> Page:
    """Return the page of simulated samples; picture: waveforms as PNG, None if not recorded."""
    subject, there = subject_of(design), run.standing(design)
    readout, technology = design.network.readout, there.technology
    good = {k: one for k, one in enumerate(outcomes) if isinstance(one, Inference)}
    answers, right = dict[int, str](), 0
    for k, one in good.items():
        units = one.readout[None] / (there.bias_scale * design.i_unit)
        pooled = pool_readout(units, np.array([len(one.readout)]), readout.pooling)
        answer = decided_by([one], test_set.answers(pooled))
        answers[k] = say_answer(design.network, answer[0])
        right += bool(test_set.same(answer, test_set.y[k : k + 1])[0])
    count, total = len(good), len(outcomes)
    verdict, cards = f"all {total} simulations failed", [(f"{count} of {total}", "samples simulated")]
    if good:
        share = interval(right, count)
        accuracy, bounds = percent(share[0]), within(IntervalEnds(*share[1:]))
        power = format_quantity(float(np.mean([one.power_w for one in good.values()])), "W")
        verdict = f"{accuracy} of {count} samples decided right {bounds}"
        cards += [(accuracy, f"accuracy of the transistors {bounds}"), (power, "mean supply power")]
    pictures = ()
    if picture is not None and good:
        first = next(iter(good))
        wanted = say_target(design.network, test_set.y[first])
        caption = f"Test sample {test_set.indices[first]}, {wanted}; decided: {answers[first]} by {run.engine}. {WAVES}"
        pictures = (Picture("png", picture, caption, caption, _LEAST),)
    return Page(
        verb="simulate",
        subject=subject,
        title=f"{subject.name} on {technology.name}: {verdict}",
        lead=f"{total} test samples by {run.engine} on {design.assembly.transistors} transistors of {technology.name} "
        f"({say_conditions(technology)}); {total - count} simulations failed.",
        cards=tuple(cards),
        sections=(
            Section("One inference", pictures),
            Section("Every sample", _samples(design, test_set, outcomes, answers)),
            Section("Simulated elsewhere", say_elsewhere(count_elsewhere(outcomes))),
            circuit_section(design),
        ),
        provenance=origins(design, {run.engine: engine_named(run.engine).describe(technology).version}),
    )


def _samples(
    design: Design, test_set: TestSet, outcomes: Sequence[Outcome], answers: Mapping[int, str]
) -> tuple[Table | str, ...]:
    """Return a table with a row for each of the first _ROWS samples, and a sentence on where the rest are."""
    rows: list[tuple[str, ...]] = []
    for k, one in enumerate(outcomes[:_ROWS]):
        known = str(test_set.indices[k]), say_answer(design.network, test_set.y[k])
        if isinstance(one, Inference):
            rows.append((*known, answers[k], format_quantity(one.power_w, "W")))
        else:
            rows.append((*known, f"failed: {one.kind.value}", ""))
    wanted = "class" if test_set.tolerance is None else "target"
    table = Table(("sample", wanted, "decided", "power"), tuple(rows), (0, 3), tall=True)
    more = len(outcomes) - _ROWS
    return (table, f"And {more} more: simulation.npz has all.") if more > 0 else (table,)
