"""The network of a product of parts, `cosim.automata.parts`, with a readout that tells their labels apart.

    latch     u = sum of x_a over symbols that set it + 1/2 sum of x_a over those that keep it; 1/4 and 3/4
    toggles   bit j turns over at a symbol that moves on while all bits below it are on (cosim.automata.counter)
    one-hot   products of states and symbols (cosim.automata.network)

The readout is linear in the cells. Its weights are the smallest with which the right label leads by 1 in every state,
found by a linear program and rounded to the grid; a product without such weights is none.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cosim.automata.counter import ALPHA, ranges
from cosim.automata.network import names_by_strings, one_hot_layers, symbol_network
from cosim.automata.parts import AutomatonPart, Product
from cosim.automata.weights import readout_of
from cosim.network.automaton import Automaton
from cosim.network.layers import AndLayer, FirstQuadrantLayer, Layer, SignedLayer
from cosim.network.types import INPUT, DelayedSignal, Network, Readout

Array = NDArray[np.float64]
LATCH = "latch"
_KEEP, _LOW, _HIGH = 0.5, 0.25, 0.75


@dataclass
class _Layers:
    """Layers so far; recurrent ones in the order of the product's parts, latches as one layer in front."""

    layers: list[Layer] = field(default_factory=list[Layer])
    read: list[str] = field(default_factory=list[str])
    zeros: list[Array] = field(default_factory=list[Array])  # level 0 of each cell that is read
    late: dict[str, DelayedSignal] = field(default_factory=dict[str, DelayedSignal])
    known: dict[str, Array] = field(default_factory=dict[str, Array])  # ranges of states

    def add(self, cells: Layer, zero: float = 0.0) -> None:
        """Add a recurrent layer that the readout reads; zero: the value of a cell that is off."""
        self.layers.append(cells)
        self.read.append(cells.name)
        self.zeros.append(np.full(cells.width, zero))


def network_of_product(automaton: Automaton, product: Product, task: str) -> Network | None:
    """Return the network that follows an automaton by a product's parts; None where no readout tells labels apart."""
    latches = [part for part in product if part.kind == "latch"]
    others = [part for part in product if part.kind != "latch"]
    weights = readout_of(automaton, np.concatenate([part.features for part in (*latches, *others)], axis=1))
    if weights is None:
        return None
    found = _Layers()
    if latches:
        found.add(_latches(latches))
    for k, part in enumerate(others):
        (_add_toggles if part.kind == "toggles" else _add_one_hot)(found, part, k)
    weight, bias = weights
    readout = Readout(tuple(found.read), weight, bias - weight @ np.concatenate(found.zeros), "last")
    return symbol_network(found.layers, readout, names_by_strings(automaton), task, found.late, found.known)


def _latches(parts: list[AutomatonPart]) -> FirstQuadrantLayer:
    """Return a layer with one latch for each part of two blocks."""
    one = np.stack([part.next for part in parts])  # (parts, 2, symbols)
    weight = np.where(one[:, 0] == one[:, 1], one[:, 0], _KEEP)
    ones = np.ones(len(parts))
    initial = np.array([float(part.start) for part in parts])
    return FirstQuadrantLayer(LATCH, (INPUT,), weight, 0 * ones, _LOW * ones, _HIGH * ones, ones, initial=initial)


def _add_one_hot(found: _Layers, part: AutomatonPart, k: int) -> None:
    name = f"state{k}"
    products, states = one_hot_layers(part.next, np.arange(part.bits) == part.start, (f"products{k}", name))
    found.layers.append(products)
    found.late[f"{name}_1"] = DelayedSignal(name)
    found.add(states)


def _add_toggles(found: _Layers, part: AutomatonPart, k: int) -> None:
    bits, name = part.bits, f"count{k}"
    moves = np.flatnonzero(part.next[0] == 1)
    ones, before, carry = np.ones(bits), f"{name}_1", f"carry{k}"
    first = np.isin(np.arange(part.next.shape[1]), moves).astype(float)[None, :]
    if bits == 1:
        cells = SignedLayer(name, (INPUT,), first, np.zeros(1), np.full(1, 0.5), np.full(1, ALPHA), epsilon=-1.0)
    else:
        below = np.tril(np.ones((bits, bits)), -1)
        rows = np.concatenate(
            [np.repeat(np.eye(part.next.shape[1])[moves], bits, 0), np.tile(below, (len(moves), 1))], 1
        )
        bias = 1 - rows.sum(axis=1) + ALPHA * np.tile(below.sum(axis=1), len(moves))
        found.layers.append(AndLayer(carry, (INPUT, before), rows, bias))
        found.late[before] = DelayedSignal(name)
        into = np.tile(np.eye(bits), (1, len(moves)))
        cells = SignedLayer(name, (carry,), into, np.zeros(bits), 0.5 * ones, ALPHA * ones, epsilon=-1.0)
    found.known[name] = ranges(bits)
    found.add(cells, -ALPHA)
