"""Transitions of an automaton in a simulated run: how often each was taken, and its smallest margin to a threshold.

A frame counts for the transition from the state before the frame, by the frame's symbol. The state before is that of
the transistors, not the one in software: after a wrong state, the transitions that the circuit really takes count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.automata.automaton import Automaton, Whole
from cosim.automata.network import coded_in
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

    state, symbol, next: names of the state before, the symbol and the right state after; taken: number of frames in
    which the circuit was in `state` and read `symbol`; wrong: how many of these frames ended in another state than
    `next`; margin_a: smallest margin of any cell in these frames, ampere, None where no margin was measured.
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

    rows: one for each transition; taken: number of transitions that occurred at all; wrong: number of frames that ended
    in a wrong state; astray: frames that began in no state of the automaton or had not exactly one symbol; margin_a:
    smallest margin of all, ampere; unit_a: current of 1.0, ampere.
    """

    taken: int
    wrong: int
    astray: int
    margin_a: float | None
    unit_a: float
    rows: tuple[Transition, ...]


def find_transitions(design: Design, test_set: TestSet, outcomes: Sequence[Outcome], run: Run) -> Transitions | None:
    """Count an automaton's transitions in the simulated samples of a test set; None for other networks."""
    coded = coded_in(design.network)
    if coded is None:
        return None
    symbols = symbols_in(design.network.encoding, test_set.x)
    strings = (
        (string[: len(found.states)], _cells_of(design, found.states), found.margins)
        for string, found in zip(symbols, outcomes, strict=True)
        if isinstance(found, Inference)
    )
    return count_transitions(*coded, strings, run.standing(design).bias_scale * design.i_unit)


def count_transitions(
    automaton: Automaton, codes: Array, strings: Iterable[tuple[Whole, Array, Array]], unit: float
) -> Transitions:
    """Count an automaton's transitions in strings that a circuit has read from its start state on.

    codes: outputs h of the network's cells in each state, (states, cells). strings: (symbols (time,), -1 for none;
    states (time, cells), outputs h of the network's cells; margins (time, cells) of all decisions, ampere, inf for a
    cell without margin, empty if none was measured). unit: current of 1.0, ampere.
    """
    shape = automaton.next.shape
    taken, wrong, margin = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int), np.full(shape, np.inf)
    astray = 0
    for symbols, states, margins in strings:
        behind = _state(states, codes)
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
    """Return the outputs h of a network's own cells, (time, cells), from the states of the circuit's memories.

    Cells that only shift a state are left out; a constant cell, which is not built, has its constant output.
    """
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
    """Return the number of the automaton's state whose code the cells (time, cells) have in each frame, or -1.
    codes: (states, cells); the result is (time,)."""
    same = np.isclose(cells[:, None], codes[None]).all(axis=-1)
    return np.where(same.any(axis=-1), same.argmax(axis=-1), -1)


def _known(margin: float) -> float | None:
    return float(margin) if np.isfinite(margin) else None
