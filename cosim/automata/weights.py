"""The weights of a readout that tells the labels of an automaton's states apart from bits of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog  # pyright: ignore[reportUnknownVariableType, reportMissingTypeStubs]

from cosim.automata.network import GRID
from cosim.network.automaton import Automaton

Array = NDArray[np.float64]
_LARGEST, _LEAST_LEAD = 2.0, 0.5  # of a weight; of the right label when weights are rounded


def readout_of(automaton: Automaton, features: Array) -> tuple[Array, Array] | None:
    """Return the weights that read an automaton's answer: (labels, cells), bias (labels,), on the grid, or None.

    The smallest sum of |w| + |b| with w_l phi_s + b_l - w_k phi_s - b_k >= 1 for every state s of label l and every
    other label k.
    """
    labels, (states, cells) = len(automaton.labels), features.shape
    phi, count = np.concatenate([features, np.ones((states, 1))], axis=1), cells + 1
    rows: list[Array] = []
    for state, right in enumerate(automaton.output.tolist()):
        for other in range(labels):
            if other != right:
                row = np.zeros((labels, count))
                row[right], row[other] = -phi[state], phi[state]
                rows.append(row.reshape(-1))
    if not rows:
        return np.zeros((labels, cells)), np.zeros(labels)
    leads = np.stack(rows)
    both: Any = linprog(
        np.ones(2 * labels * count), A_ub=np.hstack([leads, -leads]), b_ub=-np.ones(len(rows)), bounds=(0.0, _LARGEST)
    )
    if both.status != 0:
        return None
    positive, negative = both.x.reshape(2, labels, count)
    found = np.rint((positive - negative) / GRID) * GRID
    scores = phi @ found.T
    right = scores[np.arange(states), automaton.output].copy()
    scores[np.arange(states), automaton.output] = -np.inf
    return (found[:, :-1], found[:, -1]) if (right - scores.max(axis=1) >= _LEAST_LEAD).all() else None
