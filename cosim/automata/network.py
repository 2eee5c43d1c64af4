"""An automaton as a network: a cell for every state, of which exactly one is on; states are fed back a frame late.

    product   p_ia = q_i and x_a                                 state i and symbol a, for every transition
    state     candidate of q_j = sum of p_ia over all transitions i, a -> j;  set at 0.55, reset at 0.35

The reset leaves the cell of the start on. Each symbol is an input bit, exactly one of which is on. Each step begins
with cells that have decided, so errors do not add up over a string. Products are steering ANDs, or rectifiers
max(q + x - 1, 0), which cost more devices and pass mismatch on.

`automaton_in` finds the automaton that a network follows from the network's weights, whatever its file says of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from cosim.automata.automaton import MOST_STATES, Automaton, Whole, reached
from cosim.base.errors import InputError
from cosim.network.layers import AndLayer, FirstQuadrantLayer, Layer, ReluLayer, following
from cosim.network.reference import names_in, one_on, run_reference, symbols_in
from cosim.network.types import INPUT, DelayedSignal, InputEncoding, Network, Readout, check_network

GRID = 1 / 8
PRODUCTS, STATE = "products", "state"


def bit_inputs(width: int) -> InputEncoding:
    """Return the input encoding of an automaton's network: `width` symbol bits, 0 or 1, used without scaling."""
    return InputEncoding(np.zeros(width), np.ones(width), levels=1)


def network_of(automaton: Automaton, task: str, products: type[ReluLayer] = AndLayer) -> Network:
    """Return the network that follows an automaton: unit j of the layer `state` is on in the automaton's state j.

    Its decision after a string is the label of the state that the string leads to. products: AndLayer, or ReluLayer for
    rectifiers. Raises InputError for more than MOST_STATES states, for which a digital circuit is better.
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
class AutomatonNames:
    """Names of the symbols that an automaton's network reads, of its states, and of its answers."""

    symbols: tuple[str, ...]
    states: tuple[str, ...]
    labels: tuple[str, ...]


def names_by_strings(automaton: Automaton) -> AutomatonNames:
    """Return the names of an automaton, with states in the order of the shortest strings that lead to them.

    `automaton_in` finds states in this order in a network that has no cell for each state.
    """
    states = tuple(automaton.states[state] for state in reached(automaton))
    return AutomatonNames(automaton.symbols, states, automaton.labels)


def symbol_network(
    layers: Sequence[Layer],
    readout: Readout,
    named: AutomatonNames | Automaton,
    task: str,
    ranges: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> Network:
    """Return a checked network whose inputs are symbols, one bit each.

    A source NAME_1 of a layer is the signal NAME delayed by one frame. named: names of symbols, states and labels;
    ranges: layer -> ranges of states, as of `Network.state_ranges`, of layers that are not Schmitt triggers.
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
    """Return two layers: the products of each state and symbol, and a cell for each state, which the products set.

    follow: (states, symbols), the state that each symbol leads to, negative for a symbol that never comes; on:
    (states,), cells that are on at the start; names: of both layers; kind: class of the products. Products read the
    states a frame late, as NAME_1.
    """
    (states, symbols), (products, name) = follow.shape, names
    pairs = np.hstack([np.tile(np.eye(symbols), (states, 1)), np.repeat(np.eye(states), symbols, axis=0)])
    weight = (follow.reshape(-1)[None, :] == np.arange(states)[:, None]).astype(float)
    return (
        kind(products, (INPUT, f"{name}_1"), pairs, -np.ones(len(pairs))),
        following(name, (products,), weight, initial=on.astype(float)),
    )


def one_hot(symbols: int, strings: Sequence[Sequence[int] | Whole]) -> tuple[NDArray[np.float64], Whole]:
    """Return strings of symbol indices as one-hot inputs (n, longest, symbols), 0 after their end; and lengths (n,)."""
    lengths = np.array([len(string) for string in strings])
    x = np.zeros((len(strings), lengths.max(), symbols))
    for row, string in zip(x, strings, strict=True):
        row[np.arange(len(string)), np.asarray(string)] = 1.0
    return x, lengths


Array = NDArray[np.float64]


def automaton_in(network: Network) -> Automaton | None:
    """Find the automaton that a network follows, by evaluating the network in software; None if it follows none.

    `coded_in` says how it is found.
    """
    found = coded_in(network)
    return None if found is None else found[0]


def coded_in(network: Network) -> tuple[Automaton, Array] | None:
    """Find the automaton that a network follows, and the codes of its states, by evaluating the network in software.

    The symbols are the network's one-hot inputs. If one layer's cells are a one-hot code, each cell is a state of the
    automaton. Else, if the network's history says that it follows an automaton, the states are all recurrent states
    that strings lead to, in the order of the shortest strings. The network's own equations give the next state for
    each state and symbol. Names come from the history if it names as many states and symbols, else they are numbers.

    The code of a state is the recurrent states h of all layers, concatenated; codes: (states, cells). Return None in
    any other case, if the network keeps or reads out any signal but its cells' states, and if strings lead to more than
    MOST_STATES states.
    """
    if not _is_closed(network):
        return None
    said = isinstance(network.history.get("automaton"), Mapping)
    return _one_hot_in(network) or (_reached_in(network) if said else None)


def _is_closed(network: Network) -> bool:
    """Tell whether a network reads one-hot symbols, keeps only its cells' states, and decides by these states alone."""
    cells = {layer.name for layer in network.recurrent_layers}
    keeps = all(late.frames == 1 and late.signal in cells for late in network.late.values())
    decides = set(network.readout.sources) <= cells and network.readout.pooling == "last"
    symbols = np.arange(network.encoding.features)
    reads = network.encoding.levels == 1 and np.array_equal(symbols_in(network.encoding, np.eye(len(symbols))), symbols)
    return keeps and decides and reads


def _one_hot_in(network: Network) -> tuple[Automaton, Array] | None:
    match network.recurrent_layers:
        case (FirstQuadrantLayer() as layer,):
            pass
        case _:
            return None
    symbols, cells = network.encoding.features, np.eye(layer.width)
    start = _cell_on(layer.start[None], layer)
    if start is None:
        return None
    found = [_cell_on(_behind(network, layer, cell, symbols), layer) for cell in cells]
    follow = [row for row in found if row is not None]
    if len(follow) < len(found):
        return None
    codes = layer.alpha * cells
    said = (codes @ network.readout.weight.T + network.readout.bias).argmax(axis=1)
    return _automaton(network, np.stack(follow), int(start[0]), said), codes


def _reached_in(network: Network) -> tuple[Automaton, Array] | None:
    """Find the automaton of all recurrent states that strings lead a network to; None beyond MOST_STATES states.

    Strings grow a symbol at a time; only those that lead to a new state are made longer.
    """
    symbols = network.encoding.features
    start = np.concatenate([layer.start for layer in network.recurrent_layers])
    codes, follow = [start], list[list[int]]()
    known = {_key(start): 0}
    level: list[tuple[int, ...]] = [()]
    while level:
        strings = np.array([(*string, symbol) for string in level for symbol in range(symbols)])
        trace = run_reference(network, np.eye(symbols)[strings])
        behind = np.concatenate([trace.signals[layer.name][:, -1] for layer in network.recurrent_layers], axis=1)
        after = list[tuple[int, ...]]()
        for h, string in zip(behind, strings, strict=True):
            if _key(h) not in known:
                if len(codes) == MOST_STATES:
                    return None
                known[_key(h)] = len(codes)
                codes.append(h)
                after.append(tuple(string.tolist()))
        follow += [[known[_key(h)] for h in row] for row in behind.reshape(len(level), symbols, -1)]
        level = after
    table = np.stack(codes)
    read = {layer.name: part for layer, part in zip(network.recurrent_layers, _parts(network, table), strict=True)}
    shown = np.concatenate([read[name] for name in network.readout.sources], axis=1)
    said = (shown @ network.readout.weight.T + network.readout.bias).argmax(axis=1)
    return _automaton(network, np.array(follow), 0, said), table


def _parts(network: Network, h: Array) -> list[Array]:
    """Split the concatenated states h of all recurrent layers, (n, cells), into the columns of each layer."""
    return np.split(h, np.cumsum([layer.width for layer in network.recurrent_layers])[:-1], axis=1)


def _key(h: Array) -> bytes:
    return np.round(h, 6).tobytes()


def _automaton(network: Network, follow: Whole, start: int, said: Whole) -> Automaton:
    labels = network.labels or tuple(map(str, range(network.readout.width)))
    symbols, states = names_in(network, "symbols", follow.shape[1]), names_in(network, "states", len(follow))
    return Automaton(symbols, states, labels, follow, start, said)


def _behind(
    network: Network, layer: FirstQuadrantLayer, cell: NDArray[np.float64], symbols: int
) -> NDArray[np.float64]:
    """Compute a layer's state h after one frame of each symbol, (symbols, width), in software.

    The layer's cells start at `cell`, (width,).
    """
    begun = replace(layer, initial=cell)
    layers = tuple(begun if one is layer else one for one in network.layers)
    return run_reference(replace(network, layers=layers), np.eye(symbols)[:, None]).signals[layer.name][:, 0]


def _cell_on(h: NDArray[np.float64], layer: FirstQuadrantLayer) -> Whole | None:
    """Return the index of the cell that is on in each state h, (n,); h is (n, width).

    Return None if in any state not exactly one cell is on, or a cell is neither on nor off.
    """
    if not ((h == layer.alpha) ^ (h == 0)).all():
        return None
    place = one_on(h / layer.alpha)
    return None if (place < 0).any() else place
