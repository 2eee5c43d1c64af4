"""What a folder keeps of simulated samples: all results in one file, and the decks of those that failed."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosim.design import Design
from cosim.engines.engine import Failure, Inference, Outcome, Run
from cosim.engines.table import engine_entry
from cosim.errors import SimulationError
from cosim.files.seal import seal_npz
from cosim.files.write import write_atomically, writing_into
from cosim.ir.states import States
from cosim.outputs import write_texts
from cosim.report.figures import Figure, draw_waveforms
from cosim.simulation.inference import deck_hash
from cosim.simulation.simulated import engine_named
from cosim.study.waveforms import liveliest_cell, record_waveforms
from cosim.tasks.testset import TestSet

FAILED = "failed"  # folder


def clear_failures(folder: Path) -> None:
    """Remove the decks of an earlier run: those that fail again are written again."""
    with writing_into(folder / FAILED):
        for deck in (folder / FAILED).glob("sample_*.sp"):
            deck.unlink()


def write_failures(folder: Path, test_set: TestSet, outcomes: Sequence[Outcome]) -> None:
    """The deck of every failed sample, with the reason on top."""
    texts = {}
    for index, outcome in zip(test_set.indices, outcomes, strict=True):
        if isinstance(outcome, Failure):
            reason = f"* failed: {outcome.kind.value}: {outcome.detail}\n"
            texts[f"sample_{index}_{deck_hash(outcome.deck)}.sp"] = reason + outcome.deck
    if texts:
        write_texts(folder / FAILED, texts)


def check_any(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Raises SimulationError when every simulation failed."""
    if any(isinstance(outcome, Inference) for outcome in outcomes):
        return
    failure = next(outcome for outcome in outcomes if isinstance(outcome, Failure))
    raise SimulationError(
        f"all {len(outcomes)} simulations failed; the first: {failure.kind.value}: {failure.detail}; its deck is "
        f"in {folder / FAILED}"
    )


def write_simulation(folder: Path, design: Design, test_set: TestSet, outcomes: Sequence[Outcome], run: Run) -> None:
    """simulation.npz: samples shorter than the longest are padded, see `lengths`."""
    steps, cells, outputs = test_set.x.shape[1], len(design.assembly.decisions), len(design.assembly.outputs)
    status = ["ok" if isinstance(outcome, Inference) else outcome.kind.name.lower() for outcome in outcomes]
    kind = next((outcome.states.dtype for outcome in outcomes if isinstance(outcome, Inference)), np.int16)
    states = np.zeros((len(outcomes), steps, cells), dtype=kind)
    readout = np.zeros((len(outcomes), steps, outputs))
    power = np.full(len(outcomes), np.nan)
    for k, outcome in enumerate(outcomes):
        if isinstance(outcome, Inference):
            frames = len(outcome.states)
            states[k, :frames], readout[k, :frames], power[k] = outcome.states, outcome.readout, outcome.power_w
    made_with = engine_named(run.engine).describe(run.standing(design).technology)
    arrays = {
        "states": states, "readout_a": readout, "power_w": power, "lengths": test_set.lengths, "y": test_set.y,
        "indices": test_set.indices, "cells": np.array(list(design.assembly.decisions)),
        "status": np.array(status), "made_with": np.array(json.dumps(made_with.as_json(run.engine))),
    }  # fmt: skip
    write_atomically(folder / "simulation.npz", seal_npz(arrays))


def draw_sample(design: Design, test_set: TestSet, position: int, states: States, run: Run) -> Figure:
    """Waveforms of the sample at a position of the test set, at the cell whose states (time, cells) change most often.

    Raises SimulationError when its run fails, or its engine saves no current inside a transistor.
    """
    if not engine_entry(run.engine).inside:
        raise SimulationError(f"{run.engine} is not asked for currents inside a transistor")
    cell = liveliest_cell(tuple(design.assembly.decisions), states)
    sample = test_set.x[position, : test_set.lengths[position]]
    return draw_waveforms(*record_waveforms(design, sample, cell, run), run.timing)
