"""An automaton as a network: one cell for every state, one of which is on, and its state fed back a frame late.

    product   p_ia = q_i and x_a                                 state i and symbol a, for every transition
    state     candidate of q_j = sum of p_ia over all transitions i, a -> j;  set at 0.55, reset at 0.35

The start's cell is the one that the reset leaves on. Symbols come as one bit each, exactly one of them on. Every step
of a string is the same one, from cells that have decided: nothing drifts. Products are steering ANDs, or rectifiers
max(q + x - 1, 0), which cost more devices and let mismatch through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from cosim.automata.automaton import MOST_STATES, Automaton, Whole
from cosim.base.errors import InputError
from cosim.network.layers import AndLayer, FirstQuadrantLayer, Layer, ReluLayer, following
from cosim.network.types import INPUT, DelayedSignal, InputEncoding, Network, Readout, check_network

GRID = 1 / 8
PRODUCTS, STATE = "products", "state"


def bit_inputs(width: int) -> InputEncoding:
    """Return the input encoding of an automaton's or a delay line's network: bits, taken as they are."""
    return InputEncoding(np.zeros(width), np.ones(width), levels=1)


def network_of(automaton: Automaton, task: str, products: type[ReluLayer] = AndLayer) -> Network:
    """Return the network that follows an automaton: unit j of the layer `state` is on in the automaton's state j.

    Its decision after a string is the label of the state that the string leads to. products: AndLayer, or ReluLayer for
    rectifiers. Raises InputError for more states than a circuit of this kind is worth.
    """
    states, symbols = automaton.next.shape
    if states > MOST_STATES:
        raise InputError(
            f"an automaton of {states} states must have at most {MOST_STATES}: {states} cells and {states * symbols} "
            "products are a digital block's work, which takes a few gates a state and picowatts at rest"
        )
    layers = one_hot_layers(automaton.next, np.arange(states) == automaton.start, (PRODUCTS, STATE), products)
    labelled = (automaton.output[None, :] == np.arange(len(automaton.labels))[:, None]).astype(float)
    readout = Readout((STATE,), labelled, np.zeros(len(automaton.labels)), "last")
    return symbol_network(layers, readout, automaton, task)


@dataclass(frozen=True)
class Names:
    """Names of the symbols that an automaton's network reads, of its states, and of its answers."""

    symbols: tuple[str, ...]
    states: tuple[str, ...]
    labels: tuple[str, ...]


def names_by_strings(automaton: Automaton) -> Names:
    """Return the names of an automaton, with states in the order of the shortest strings that lead to them.

    It is the order in which `cosim.automata.automaton_in` finds them in a network whose cells are not states.
    """
    order, waiting = [automaton.start], [automaton.start]
    while waiting:
        after = automaton.next[waiting].ravel().tolist()
        waiting = [state for state in dict.fromkeys(after) if state not in order]
        order += waiting
    return Names(automaton.symbols, tuple(automaton.states[state] for state in order), automaton.labels)


def symbol_network(
    layers: Sequence[Layer],
    readout: Readout,
    named: Names | Automaton,
    task: str,
    ranges: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> Network:
    """Return a checked network that reads symbols, one bit each, and signals a frame late under NAME_1.

    ranges: the ranges of states that are not those of Schmitt triggers.
    """
    late = {
        name: DelayedSignal(name.removesuffix("_1"))
        for layer in layers
        for name in layer.sources
        if name.endswith("_1")
    }
    return check_network(
        Network(
            bit_inputs(len(named.symbols)),
            tuple(layers),
            readout,
            task,
            named.labels,
            GRID,
            {"automaton": {"symbols": list(named.symbols), "states": list(named.states)}},
            state_ranges=ranges,
            late=late,
        )
    )


def one_hot_layers(
    follow: Whole, on: NDArray[np.bool_], names: tuple[str, str] = (PRODUCTS, STATE), kind: type[ReluLayer] = AndLayer
) -> tuple[ReluLayer, FirstQuadrantLayer]:
    """Return a layer of products of states and symbols, and the layer of cells that they set, under these names.

    follow: (states, symbols), the state that each leads to, of no concern where it is negative; on: (states,), those
    that are on at the start. Products read the states a frame late, as NAME_1.
    """
    (states, symbols), (products, name) = follow.shape, names
    pairs = np.hstack([np.tile(np.eye(symbols), (states, 1)), np.repeat(np.eye(states), symbols, axis=0)])
    weight = (follow.reshape(-1)[None, :] == np.arange(states)[:, None]).astype(float)
    return (
        kind(products, (INPUT, f"{name}_1"), pairs, -np.ones(len(pairs))),
        following(name, (products,), weight, initial=on.astype(float)),
    )


def one_hot(symbols: int, strings: Sequence[Sequence[int] | Whole]) -> tuple[NDArray[np.float64], Whole]:
    """Return strings of an automaton's symbols as inputs (n, longest, symbols), and the strings' lengths (n,)."""
    lengths = np.array([len(string) for string in strings])
    x = np.zeros((len(strings), lengths.max(), symbols))
    for row, string in zip(x, strings, strict=True):
        row[np.arange(len(string)), np.asarray(string)] = 1.0
    return x, lengths
