"""Files of simulated samples in a folder: all results in one file, and the decks of those that failed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cosim.base.errors import SimulationError
from cosim.base.seal import seal_npz
from cosim.base.store import write_texts
from cosim.base.write import write_atomically, write_together, writing_into
from cosim.compiler.design import Design
from cosim.engines.engine import Failure, Inference, Outcome, Run
from cosim.engines.simulation.inference import deck_hash
from cosim.engines.simulation.simulated import engine_named
from cosim.engines.table import engine_entry
from cosim.network.ir.states import States
from cosim.results.figures import Figure, save_figure
from cosim.tasks.testset import TestSet
from cosim.verbs.simulate.probing import ProbedInference, record
from cosim.verbs.simulate.sample_table import STACKED, tabulate_samples
from cosim.verbs.simulate.unit_figures import draw_units
from cosim.verbs.simulate.waveform_figure import draw_waveforms
from cosim.verbs.simulate.waveform_files import format_waveforms
from cosim.verbs.simulate.waveforms import ends_of, judge_sample, labels_of, liveliest_cell, waves_of

FAILED = "failed"  # folder


def clear_failures(folder: Path) -> None:
    """Remove the decks of an earlier run: those that fail again are written again."""
    with writing_into(folder / FAILED):
        for deck in (folder / FAILED).glob("sample_*.sp"):
            deck.unlink()


def write_failures(folder: Path, test_set: TestSet, outcomes: Sequence[Outcome]) -> None:
    """Write the deck of every failed sample, with the reason on top."""
    texts = {}
    for index, outcome in zip(test_set.indices, outcomes, strict=True):
        if isinstance(outcome, Failure):
            reason = f"* failed: {outcome.kind.value}: {outcome.detail}\n"
            texts[f"sample_{index}_{deck_hash(outcome.deck)}.sp"] = reason + outcome.deck
    if texts:
        write_texts(folder / FAILED, texts)


def check_any(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Raise SimulationError when every simulation failed."""
    if any(isinstance(outcome, Inference) for outcome in outcomes):
        return
    failure = next(outcome for outcome in outcomes if isinstance(outcome, Failure))
    raise SimulationError(
        f"all {len(outcomes)} simulations failed; the first: {failure.kind.value}: {failure.detail}; its deck is "
        f"in {folder / FAILED}"
    )


def write_simulation(folder: Path, design: Design, test_set: TestSet, outcomes: Sequence[Outcome], run: Run) -> None:
    """Write simulation.npz; samples shorter than the longest are padded, see `lengths`."""
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


@dataclass(frozen=True)
class Watched:
    """A sample that is drawn, by its position in the test set, its states (time, cells), and the names of what is shown
    of it, `cosim.verbs.simulate.probing.watchable`; without names the cell whose states change most often."""

    position: int
    states: States
    names: tuple[str, ...] = ()


def draw_sample(design: Design, test_set: TestSet, watched: Watched, run: Run) -> tuple[Figure, ProbedInference]:
    """Draw the waveforms of a sample; return the picture and all that was recorded.

    Raises SimulationError when its run fails, or its engine saves no current inside a transistor.
    """
    if not engine_entry(run.engine).inside:
        raise SimulationError(f"{run.engine} is not asked for currents inside a transistor")
    names = watched.names or (liveliest_cell(tuple(design.assembly.decisions), watched.states),)
    sample = test_set.x[watched.position, : test_set.lengths[watched.position]]
    recorded, cells = record(design, sample, names, run), tuple(design.assembly.decisions)
    verdict = judge_sample(design, test_set, watched.position, ends_of(design, recorded), run)
    if len(names) == 1 and names[0] in cells:
        waves, labels = waves_of(design, recorded, names[0], run)
        return draw_waveforms(waves, replace(labels, verdict=verdict), run.timing), recorded
    memories = [name for name in names if name in cells] or cells[:1]
    labels = [replace(labels_of(design, name, run), verdict=verdict) for name in memories]
    return draw_units(design, recorded, names, labels, run.timing), recorded


def write_waveforms(folder: Path, design: Design, index: int, drawn: tuple[Figure, ProbedInference]) -> None:
    """Write the picture of waveforms, and the waveforms as files; index: of the sample in the full test set."""
    figure, recorded = drawn
    title = f"{design.network.task or 'network'}, test sample {index}"
    files = format_waveforms(recorded, title)
    write_together({folder / name: content for name, content in files.items()})
    save_figure(figure, folder / "waveforms.png")
