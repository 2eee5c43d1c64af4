"""An automaton as a network: one cell for every state, one of which is on, and its state fed back a frame late.

    product   p_ia = max(q_i + x_a - 1, 0)                       state i and symbol a, for every transition
    state     candidate of q_j = sum of p_ia over all transitions i, a -> j;  set at 0.55, reset at 0.35

The reset turns every cell off, and the automaton must then stand in its start. So the start's cell holds the
complement c = 1 - q: its products are max(x_a - c, 0), its candidate is 1 - sum. Symbols come as one bit each, exactly
one of them on. Every step of a string is the same one, from cells that have decided: nothing drifts.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.automata.table import MOST_STATES, Automaton, Whole
from cosim.errors import InputError
from cosim.network.late import FALL, RISE
from cosim.network.layers import FirstQuadrantLayer, ReluLayer
from cosim.network.types import INPUT, InputEncoding, Late, Network, Readout, check_network

GRID = 1 / 8
PRODUCTS, STATE, BEFORE = "products", "state", "state_1"


def network_of(automaton: Automaton, task: str) -> Network:
    """The network that follows an automaton: state j of the layer `state` is its j-th, the start's complement.

    Its decision behind a string is the label of the state that the string leads to. Raises InputError for more states
    than a circuit of this kind is worth.
    """
    states, symbols = automaton.next.shape
    if states > MOST_STATES:
        raise InputError(
            f"an automaton of {states} states must have at most {MOST_STATES}: {states} cells and {states * symbols} "
            "products are a digital block's work, which takes a few gates a state and picowatts at rest"
        )
    layers = (_products(automaton), _states(automaton))
    return check_network(
        Network(
            InputEncoding(np.zeros(symbols), np.ones(symbols), levels=1),
            layers,
            _readout(automaton),
            task,
            automaton.labels,
            GRID,
            {"automaton": {"symbols": list(automaton.symbols), "states": list(automaton.states)}},
            late={BEFORE: Late(STATE)},
        )
    )


def _products(automaton: Automaton) -> ReluLayer:
    """Row i symbols + a: state i and symbol a."""
    states, symbols = automaton.next.shape
    weight, bias = np.zeros((states * symbols, symbols + states)), np.full(states * symbols, -1.0)
    for i in range(states):
        for a in range(symbols):
            row, off = i * symbols + a, i == automaton.start
            weight[row, a], weight[row, symbols + i] = 1.0, -1.0 if off else 1.0
            bias[row] = 0.0 if off else -1.0
    return ReluLayer(PRODUCTS, (INPUT, BEFORE), weight, bias)


def _states(automaton: Automaton) -> FirstQuadrantLayer:
    states = len(automaton.states)
    weight = (automaton.next.reshape(-1)[None, :] == np.arange(states)[:, None]).astype(float)
    bias = np.zeros(states)
    weight[automaton.start] *= -1.0
    bias[automaton.start] = 1.0
    ones = np.ones(states)
    return FirstQuadrantLayer(STATE, (PRODUCTS,), weight, bias, FALL * ones, RISE * ones, ones)


def _readout(automaton: Automaton) -> Readout:
    """The label of the state that is on."""
    weight = (automaton.output[None, :] == np.arange(len(automaton.labels))[:, None]).astype(float)
    bias = weight[:, automaton.start].copy()
    weight[:, automaton.start] *= -1.0
    return Readout((STATE,), weight, bias, "last")


def one_hot(symbols: int, strings: Sequence[Sequence[int] | Whole]) -> tuple[NDArray[np.float64], Whole]:
    """Inputs (n, longest, symbols) of strings of symbols' places, and their lengths (n,)."""
    lengths = np.array([len(string) for string in strings])
    x = np.zeros((len(strings), lengths.max(), symbols))
    for row, string in zip(x, strings, strict=True):
        row[np.arange(len(string)), np.asarray(string)] = 1.0
    return x, lengths
