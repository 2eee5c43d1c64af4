"""An automaton as a network: one cell for every state, one of which is on, and its state fed back a frame late.

    product   p_ia = q_i and x_a                                 state i and symbol a, for every transition
    state     candidate of q_j = sum of p_ia over all transitions i, a -> j;  set at 0.55, reset at 0.35

The start's cell is the one that the reset leaves on. Symbols come as one bit each, exactly one of them on. Every step
of a string is the same one, from cells that have decided: nothing drifts. Products are steering ANDs, or rectifiers
max(q + x - 1, 0), which cost more devices and let mismatch through.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.automata.table import MOST_STATES, Automaton, Whole
from cosim.errors import InputError
from cosim.network.late import FALL, RISE
from cosim.network.layers import AndLayer, FirstQuadrantLayer, ReluLayer
from cosim.network.types import INPUT, InputEncoding, Late, Network, Readout, check_network

GRID = 1 / 8
PRODUCTS, STATE, BEFORE = "products", "state", "state_1"


def network_of(automaton: Automaton, task: str, products: type[ReluLayer] = AndLayer) -> Network:
    """The network that follows an automaton: state j of the layer `state` is its j-th.

    Its decision behind a string is the label of the state that the string leads to. products: AndLayer, or ReluLayer
    for rectifiers. Raises InputError for more states than a circuit of this kind is worth.
    """
    states, symbols = automaton.next.shape
    if states > MOST_STATES:
        raise InputError(
            f"an automaton of {states} states must have at most {MOST_STATES}: {states} cells and {states * symbols} "
            "products are a digital block's work, which takes a few gates a state and picowatts at rest"
        )
    ones, initial = np.ones(states), np.zeros(states)
    initial[automaton.start] = 1.0
    follow = (automaton.next.reshape(-1)[None, :] == np.arange(states)[:, None]).astype(float)
    follows = FirstQuadrantLayer(
        STATE, (PRODUCTS,), follow, np.zeros(states), FALL * ones, RISE * ones, ones, initial=initial
    )
    labelled = (automaton.output[None, :] == np.arange(len(automaton.labels))[:, None]).astype(float)
    return check_network(
        Network(
            InputEncoding(np.zeros(symbols), np.ones(symbols), levels=1),
            (products(PRODUCTS, (INPUT, BEFORE), pairs(states, symbols), -np.ones(states * symbols)), follows),
            Readout((STATE,), labelled, np.zeros(len(automaton.labels)), "last"),
            task,
            automaton.labels,
            GRID,
            {"automaton": {"symbols": list(automaton.symbols), "states": list(automaton.states)}},
            late={BEFORE: Late(STATE)},
        )
    )


def pairs(states: int, symbols: int) -> NDArray[np.float64]:
    """Row i symbols + a: state i and symbol a, weights on the symbols, then on the states."""
    return np.concatenate([np.tile(np.eye(symbols), (states, 1)), np.repeat(np.eye(states), symbols, axis=0)], axis=1)


def one_hot(symbols: int, strings: Sequence[Sequence[int] | Whole]) -> tuple[NDArray[np.float64], Whole]:
    """Inputs (n, longest, symbols) of strings of symbols' places, and their lengths (n,)."""
    lengths = np.array([len(string) for string in strings])
    x = np.zeros((len(strings), lengths.max(), symbols))
    for row, string in zip(x, strings, strict=True):
        row[np.arange(len(string)), np.asarray(string)] = 1.0
    return x, lengths
