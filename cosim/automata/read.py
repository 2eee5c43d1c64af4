"""The automaton that a network follows, read back from its weights: what is compiled, whatever its file says of it."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.automata.table import Automaton, Whole
from cosim.errors import InputError
from cosim.network.layers import FirstQuadrantLayer
from cosim.network.reference import encode_inputs, run_reference
from cosim.network.types import InputEncoding, Late, Network


def automaton_in(network: Network) -> Automaton | None:
    """The automaton whose state is the one cell of a network that is on, and whose symbol the one input that is.

    Each state by each symbol goes through a frame of the network's own equations. None where a network keeps anything
    else from frame to frame, decides by anything else, or leaves its states in one of these frames. Names are those
    that its history gives to as many states and symbols, else numbers.
    """
    layer = state_layer(network)
    if layer is None:
        return None
    symbols, cells = network.encoding.features, np.eye(layer.width)
    start = _one_on(layer.start[None], layer)
    found = [_one_on(_behind(network, layer, cell, symbols), layer) for cell in cells]
    follow = [row for row in found if row is not None]
    if start is None or len(follow) < len(found):
        return None
    said = layer.alpha * cells @ network.readout.weight.T + network.readout.bias
    labels = network.labels or tuple(map(str, range(network.readout.width)))
    states = _names(network, "states", layer.width)
    return Automaton(
        _names(network, "symbols", symbols), states, labels, np.stack(follow), int(start[0]), said.argmax(axis=1)
    )


def state_layer(network: Network) -> FirstQuadrantLayer | None:
    """The layer that is all that a network keeps from one frame to the next, and all that it decides by; None where
    there is none, or inputs are no symbols."""
    match network.recurrent_layers:
        case (FirstQuadrantLayer() as layer,):
            pass
        case _:
            return None
    keeps = all(late == Late(layer.name) for late in network.late.values())
    decides = network.readout.sources == (layer.name,) and network.readout.pooling == "last"
    symbols = np.arange(network.encoding.features)
    reads = network.encoding.levels == 1 and np.array_equal(symbols_in(network.encoding, np.eye(len(symbols))), symbols)
    return layer if keeps and decides and reads else None


def symbols_in(encoding: InputEncoding, x: NDArray[np.float64]) -> Whole:
    """The symbols of raw inputs (..., features): the place of the one that is on, -1 where not one alone is."""
    units = encode_inputs(encoding, x.reshape(1, -1, x.shape[-1])).units.reshape(*x.shape[:-1], -1)
    return _place(units)


def check_symbols(network: Network, x: NDArray[np.float64], lengths: Whole, origin: str) -> None:
    """Where a network's history says that it follows an automaton: raises InputError for a frame that is no symbol.

    x (n, time, features) raw, of which lengths (n,) frames count.
    """
    if not isinstance(network.history.get("automaton"), Mapping):
        return
    counts = np.arange(x.shape[1])[None, :] < lengths[:, None]
    strange = np.argwhere(counts & (symbols_in(network.encoding, x) < 0))
    if len(strange):
        i, t = (int(value) for value in strange[0])
        names = ", ".join(_names(network, "symbols", network.encoding.features))
        raise InputError(
            f"{origin}: x_test[{i}, {t}] must be one of the symbols {names}, a 1 in its place and 0 elsewhere, not "
            f"{x[i, t].tolist()}; {len(strange)} such frame(s); write strings with cosim.automata.network.one_hot"
        )


def _behind(
    network: Network, layer: FirstQuadrantLayer, cell: NDArray[np.float64], symbols: int
) -> NDArray[np.float64]:
    """The layer's h behind one frame of each symbol, (symbols, width), from one of its cells on."""
    begun = replace(layer, initial=cell)
    layers = tuple(begun if one is layer else one for one in network.layers)
    return run_reference(replace(network, layers=layers), np.eye(symbols)[:, None]).signals[layer.name][:, 0]


def _one_on(h: NDArray[np.float64], layer: FirstQuadrantLayer) -> Whole | None:
    """Which cell is on, of h (n, width); None where not one alone is, or one is neither on nor off."""
    if not ((h == layer.alpha) ^ (h == 0)).all():
        return None
    place = _place(h / layer.alpha)
    return None if (place < 0).any() else place


def _place(bits: NDArray[np.float64]) -> Whole:
    one = (bits == 1).sum(axis=-1) == 1
    return np.where(one & ((bits == 0) | (bits == 1)).all(axis=-1), bits.argmax(axis=-1), -1)


def _names(network: Network, key: str, count: int) -> tuple[str, ...]:
    """What a history, which may hold anything, calls so many things."""
    held = network.history.get("automaton")
    names = held.get(key) if isinstance(held, Mapping) else None
    if isinstance(names, list | tuple):
        known = [name for name in names if isinstance(name, str) and name and name.isprintable()]
        if len(known) == len(names) == len(set(known)) == count:
            return tuple(known)
    return tuple(map(str, range(count)))
