"""Table of a run's samples, so that `cosim diff` can compare two runs sample by sample.

In simulation.npz of one condition, in pvt.npz of several, then with one more axis in front of what STACKED names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.compiler.design import Design
from cosim.engines.engine import Inference, Outcome
from cosim.network.ir.states import States, differ, software_states, tolerances
from cosim.network.reference import pool_readout, run_reference
from cosim.tasks.testset import TestSet

UNDECIDED = -1  # the decision of a sample whose simulation failed
STACKED = ("decisions", "wrong", "power_w")
_BY_SAMPLE = ("indices", "sums", "y", "lengths", "software", "decisions", "wrong", "power_w")


@dataclass(frozen=True)
class SampleTable:
    """Samples of one condition, by `engine`.

    indices (n,): in the full test set; sums (n,): `TestSet.sums`; y (n,): classes; lengths (n,): valid steps;
    software, decisions (n,): of the trained network and of the engine, UNDECIDED where that failed; wrong (n, cells):
    frames whose state is not the software's; power_w (n,): watt, nan where it failed; tolerances (cells,): how far two
    states may differ and be the same; states (n, time, cells): of the engine, where they are kept.
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
        """Return (n,) booleans: `cosim simulate` ran the sample to its end."""
        return self.decisions != UNDECIDED

    @property
    def agreement(self) -> NDArray[np.float64]:
        """Return (n,) the share of states that equal the software's, of each sample that `cosim diff` may compare."""
        return 1.0 - self.wrong.sum(axis=1) / (self.lengths * self.wrong.shape[1])

    def select(self, places: NDArray[np.int64]) -> "SampleTable":
        """Return the samples at these places, in this order, for `cosim diff` or `cosim power`."""
        taken = {name: getattr(self, name)[places] for name in _BY_SAMPLE}
        return replace(self, **taken, states=None if self.states is None else self.states[places])


def tabulate_samples(
    design: Design, test_set: TestSet, outcomes: Mapping[str, Sequence[Outcome] | None], engine: str
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a `SampleTable` of simulated samples, but for their states, by name.

    outcomes: by condition; None where none was simulated.
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
                decisions[row, k], power[row, k] = pooled[0].argmax(), outcome.power_w
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
