"""Transitions of an automaton in a run: how often each was taken, and how near to a threshold it came there.

A frame belongs to the transition from the state that its cells stood in before it, by its symbol: by the states of the
transistors themselves, so that behind a wrong state their own way counts, and not the one that they should have gone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.automata.automaton import Whole
from cosim.automata.network import Coded, coded_in
from cosim.compiler.design import Design
from cosim.engines.engine import Inference, Outcome, Run
from cosim.network.ir.nodes import Memory
from cosim.network.ir.states import States
from cosim.network.reference import symbols_in
from cosim.tasks.testset import TestSet

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Transition:
    """One transition of an automaton, as a circuit made it.

    state, symbol, next: their names; taken: frames in which it was; wrong: frames of them that ended elsewhere;
    margin_a: the smallest margin of any cell in them, ampere; None where nothing measured it.
    """

    state: str
    symbol: str
    next: str
    taken: int
    wrong: int
    margin_a: float | None


@dataclass(frozen=True)
class Transitions:
    """All transitions of an automaton, as a circuit made them.

    rows: one for each transition; taken: how many of them the samples took; wrong: frames that ended elsewhere;
    margin_a: the smallest margin, unit_a: the unit current there, ampere; astray: frames that began in no single state,
    or had not one symbol.
    """

    taken: int
    wrong: int
    astray: int
    margin_a: float | None
    unit_a: float
    rows: tuple[Transition, ...]


def find_transitions(design: Design, test_set: TestSet, outcomes: Sequence[Outcome], run: Run) -> Transitions | None:
    """Count for `cosim compare` the transitions of an automaton in simulated test samples; None for other networks."""
    coded = coded_in(design.network)
    if coded is None:
        return None
    symbols = symbols_in(design.network.encoding, test_set.x)
    strings = (
        (string[: len(found.states)], _cells_of(design, found.states), found.margins)
        for string, found in zip(symbols, outcomes, strict=True)
        if isinstance(found, Inference)
    )
    return count_transitions(coded, strings, run.standing(design).bias_scale * design.i_unit)


def count_transitions(coded: Coded, strings: Iterable[tuple[Whole, Array, Array]], unit: float) -> Transitions:
    """Count for `cosim compare` the transitions in strings that transistors have read from the start on.

    strings: symbols (time,), -1 for none; states (time, cells), h of the network's cells; margins (time, cells) of all
    decisions, ampere, inf where there is none, empty where nothing measured them. unit: the current of 1.0, ampere.
    """
    automaton, shape = coded.automaton, coded.automaton.next.shape
    taken, wrong, margin = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int), np.full(shape, np.inf)
    astray = 0
    for symbols, states, margins in strings:
        behind = _state(states, coded.codes)
        before = np.concatenate([[automaton.start], behind[:-1]])
        known = (before >= 0) & (symbols >= 0)
        astray += int((~known).sum())
        at = before[known], symbols[known]
        np.add.at(taken, at, 1)
        np.add.at(wrong, at, behind[known] != automaton.next[at])
        if margins.size:
            np.minimum.at(margin, at, margins[known].min(axis=1))
    rows = tuple(
        Transition(
            automaton.states[state], symbol, automaton.states[int(automaton.next[state, k])], int(taken[state, k]),
            int(wrong[state, k]), _known(margin[state, k]),
        )
        for state in range(shape[0]) for k, symbol in enumerate(automaton.symbols)
    )  # fmt: skip
    return Transitions(int((taken > 0).sum()), int(wrong.sum()), astray, _known(margin.min()), unit, rows)


def _cells_of(design: Design, states: States) -> Array:
    """Return h of a network's own cells (time, cells), layer by layer, without those that only shift, from the states
    of the memories; of cells that are left out their constant."""
    left_out, found = design.graph.left_out, dict[tuple[str, int], Array]()
    for k, node in enumerate(design.graph.memories):
        if node.behind == 0:
            found[node.layer, node.index] = node.zero + node.step * states[:, k].astype(float)
    for name, state in left_out.states.items():
        node = left_out.nodes[name]
        if isinstance(node, Memory) and node.behind == 0:
            found[node.layer, node.index] = np.full(len(states), node.zero + node.step * state)
    places = [(layer.name, i) for layer in design.network.recurrent_layers for i in range(layer.width)]
    return np.stack([found[place] for place in places], axis=1)


def _state(cells: Array, codes: Array) -> Whole:
    """Return for `cosim compare` the number of the state whose code cells (time, cells) have; -1 where none has it."""
    same = np.isclose(cells[:, None], codes[None]).all(axis=-1)
    return np.where(same.any(axis=-1), same.argmax(axis=-1), -1)


def _known(margin: float) -> float | None:
    return float(margin) if np.isfinite(margin) else None
