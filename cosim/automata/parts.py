"""An automaton as a product of smaller automata (parts) that run in parallel, each as the circuit that costs least.

    latch      two states, every symbol keeps the state or sets one: a 9T cell without feedback
    toggles    2^k states in a ring, every symbol keeps the state or moves on by one: k cells that invert their bit
    one-hot    any automaton: a cell for every state, a product for every transition

A part follows only the block of a partition that contains the automaton's state. The partition must be closed: each
symbol leads all states of a block into one block (J. Hartmanis and R. E. Stearns, Algebraic Structure Theory of
Sequential Machines, 1966). Parts that together tell all states apart are equivalent to the automaton. Latches are the
identity-reset machines of K. Krohn and J. Rhodes (Trans. Amer. Math. Soc. 116, 1965, 450), toggles are cyclic groups.
Parts here do not read each other; in the cascades of `cosim.automata.chains` they do.

The network of a product has the cells of all parts and a readout of labels.

    latch     u = sum of x_a over symbols that turn it on + 1/2 sum of x_a over those that keep it; thresholds 1/4, 3/4
    toggles   bit j toggles at a symbol that moves on while all lower bits are on (cosim.automata.lines)
    one-hot   products of states and symbols (cosim.automata.network)

The readout is linear in the cells. Its weights are the smallest with which the right label leads by 1 in every state,
found by a linear program and rounded to the grid; a product without such weights is not built.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from cosim.automata.automaton import Automaton, Whole
from cosim.automata.lines import ALPHA, ranges
from cosim.automata.network import GRID, names_by_strings, one_hot_layers, symbol_network
from cosim.network.layers import MOST_BITS, AndLayer, FirstQuadrantLayer, Layer, SignedLayer
from cosim.network.types import INPUT, Network, Readout

MOST_SEARCHED = 40  # states; partitions of larger automata are not searched
_MOST_PARTITIONS = 300
_CELL, _PRODUCT, _LATCH, _TOGGLE = 20, 3, 19, 35  # transistors, to look at promising products first
_CANDIDATES = 4
Array = NDArray[np.float64]
Kind = Literal["latch", "toggles", "one-hot"]
Partition = tuple[int, ...]  # the block of each state, blocks numbered as they appear


@dataclass(frozen=True, eq=False)
class AutomatonPart:
    """A part of a product: an automaton whose states are the blocks of a closed partition of another one's states.

    kind: its circuit, see the module's docstring; block: (states,), the block of each state of the whole automaton;
    next: (blocks, symbols), the block that each symbol leads to; start: the first block. The blocks of toggles are
    numbered along the ring from the start.
    """

    kind: Kind
    block: Whole
    next: Whole
    start: int

    @property
    def bits(self) -> int:
        """Return the number of cells of the part: one for each block if it is one-hot, else log2 of the blocks."""
        return len(self.next) if self.kind == "one-hot" else len(self.next).bit_length() - 1

    @property
    def features(self) -> Array:
        """Return which cells of the part are on in each state of the whole automaton, (states, bits), 0 or 1."""
        if self.kind == "one-hot":
            return np.eye(len(self.next))[self.block]
        return ((self.block[:, None] >> np.arange(self.bits)) & 1).astype(float)

    @property
    def estimate(self) -> int:
        """Return the estimated number of transistors of the part."""
        states, symbols = self.next.shape
        match self.kind:
            case "latch":
                return _LATCH + symbols
            case "toggles":
                return _TOGGLE * self.bits
            case "one-hot":
                return _CELL * states + _PRODUCT * states * symbols


Product = tuple[AutomatonPart, ...]


def products(automaton: Automaton) -> list[Product]:
    """Return products of parts that build an automaton: the one-hot form, then others, fewest transistors first."""
    whole = tuple(range(len(automaton.states)))
    found: list[Product] = [(_one_hot(automaton, whole),)]
    if len(whole) < 2 or len(whole) > MOST_SEARCHED:
        return found
    parts = [_part(automaton, partition) for partition in [whole, *closed_partitions(automaton)]]
    others = [*((part,) for part in parts if part.kind != "one-hot"), *combinations(parts, 2), _greedy(parts)]
    told = [product for product in others if _tells_apart(product)]
    told.sort(key=lambda product: sum(part.estimate for part in product))
    known = {_name(found[0])}
    for product in told:
        if _name(product) not in known and len(found) <= _CANDIDATES:
            known.add(_name(product))
            found.append(product)
    return found


def describe(product: Product) -> str:
    """Return the parts of a product in words, such as "2 latches and 3 states, one-hot"."""
    latches = sum(part.kind == "latch" for part in product)
    words = [f"{latches} latch{'es' if latches > 1 else ''}"] if latches else []
    words += [f"{part.bits} toggle{'s' if part.bits > 1 else ''}" for part in product if part.kind == "toggles"]
    words += [f"{part.bits} states, one-hot" for part in product if part.kind == "one-hot"]
    return " and ".join(words)


def _name(product: Product) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((part.kind, part.bits) for part in product))


def _tells_apart(product: Product) -> bool:
    return len(np.unique(np.stack([part.block for part in product]), axis=1).T) == len(product[0].block)


def _greedy(parts: list[AutomatonPart]) -> Product:
    """Choose parts that tell all states apart, each time the part that newly tells most pairs apart per transistor."""
    together = np.ones((len(parts[0].block),) * 2, dtype=np.bool_)
    chosen: list[AutomatonPart] = []
    while (together & ~np.eye(len(together), dtype=np.bool_)).any():
        gains = [(together & (part.block[:, None] != part.block)).sum() / part.estimate for part in parts]
        best = parts[int(np.argmax(gains))]
        chosen.append(best)
        together &= best.block[:, None] == best.block
    return tuple(chosen)


def _part(automaton: Automaton, partition: Partition) -> AutomatonPart:
    """Return the part whose states are the blocks of a closed partition, as the circuit that costs least."""
    plain = _one_hot(automaton, partition)
    follow, count = plain.next, len(plain.next)
    keeps = np.arange(count)
    if count == 2 and not (follow == keeps[::-1, None]).all(axis=0).any():
        return AutomatonPart("latch", plain.block, follow, plain.start)
    ring = _ring(follow, plain.start)
    if ring is None or count & (count - 1) or count > 2**MOST_BITS:
        return plain
    place = np.empty(count, dtype=np.int64)
    place[ring] = keeps
    return AutomatonPart("toggles", place[plain.block], place[follow[ring]], 0)


def _ring(follow: Whole, start: int) -> Whole | None:
    """Return the blocks in the order of a ring from the start, (blocks,), or None if `follow` is no ring.

    follow: (blocks, symbols), the block that each symbol leads to. It is a ring if every symbol either keeps all blocks
    or moves each block to its successor, and the successors pass through all blocks.
    """
    keeps = np.arange(len(follow))
    moves = [column for column in follow.T if (column != keeps).any()]
    if not moves or any((column != moves[0]).any() for column in moves):
        return None
    ring = [start]
    while len(ring) < len(follow) and (after := int(moves[0][ring[-1]])) not in ring:
        ring.append(after)
    closed = len(ring) == len(follow) and int(moves[0][ring[-1]]) == start
    return np.array(ring) if closed else None


def _one_hot(automaton: Automaton, partition: Partition) -> AutomatonPart:
    block = np.array(partition)
    first = [int(np.flatnonzero(block == one)[0]) for one in range(block.max() + 1)]
    return AutomatonPart("one-hot", block, block[automaton.next[first]], int(block[automaton.start]))


def closed_partitions(automaton: Automaton) -> list[Partition]:
    """Return closed partitions of an automaton's states with more than one block and fewer blocks than states.

    Not all are found, but those generated by a pair of states, all states but one, a bit of the state's number, or
    states that lead to each other; and joins of two of these, up to _MOST_PARTITIONS.
    """
    count = len(automaton.states)
    found = dict.fromkeys(_join(automaton, [pair]) for pair in combinations(range(count), 2))
    apart = [tuple(int(k == alone) for k in range(count)) for alone in range(count)]
    apart += [tuple((k >> bit) & 1 for k in range(count)) for bit in range((count - 1).bit_length())]
    for partition in (*apart, _strong(automaton)):
        found.setdefault(_join(automaton, list(_pairs(partition))))
    for first, second in combinations(list(found), 2):
        if len(found) >= _MOST_PARTITIONS:
            break
        found.setdefault(_join(automaton, [*_pairs(first), *_pairs(second)]))
    return [partition for partition in found if 1 < max(partition) + 1 < count]


def _strong(automaton: Automaton) -> Partition:
    """Return the partition of an automaton's states in which states that strings lead to each other share a block."""
    leads = np.eye(len(automaton.states), dtype=np.bool_)
    for state, after in enumerate(automaton.next):
        leads[state, after] = True
    for _ in automaton.states:
        leads = leads @ leads
    return tuple((leads & leads.T).argmax(axis=1).tolist())


def _pairs(partition: Partition) -> Iterator[tuple[int, int]]:
    """Yield for every state the pair (first state of the block that contains it, the state)."""
    first: dict[int, int] = {}
    for state, block in enumerate(partition):
        yield first.setdefault(block, state), state


def _join(automaton: Automaton, pairs: list[tuple[int, int]]) -> Partition:
    """Return the finest closed partition in which the states of each pair share a block."""
    above = list(range(len(automaton.states)))

    def top(state: int) -> int:
        while above[state] != state:
            above[state] = state = above[above[state]]
        return state

    waiting = list(pairs)
    while waiting:
        one, other = map(top, waiting.pop())
        if one != other:
            above[other] = one
            waiting += zip(automaton.next[one].tolist(), automaton.next[other].tolist(), strict=True)
    number: dict[int, int] = {}
    return tuple(number.setdefault(top(state), len(number)) for state in range(len(above)))


_LARGEST, _LEAST_LEAD = 2.0, 0.5  # of a readout; of the right label when weights are rounded


def readout_of(automaton: Automaton, features: Array) -> tuple[Array, Array] | None:
    """Return the smallest weights (labels, cells) and bias (labels,) on the grid that read the label of each state.

    features: phi, the outputs of the cells in each state, (states, cells). Return None if no weights were found. They
    have the smallest sum of |w| + |b| with w_l phi_s + b_l - w_k phi_s - b_k >= 1 for every state s of label l and
    every other label k.
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
        np.ones(2 * labels * count),
        A_ub=np.hstack([leads, -leads]),
        b_ub=-np.ones(len(rows)),
        bounds=(0.0, _LARGEST),
    )
    if both.status != 0:
        return None
    positive, negative = both.x.reshape(2, labels, count)
    found = np.rint((positive - negative) / GRID) * GRID
    scores = phi @ found.T
    right = scores[np.arange(states), automaton.output].copy()
    scores[np.arange(states), automaton.output] = -np.inf
    return (found[:, :-1], found[:, -1]) if (right - scores.max(axis=1) >= _LEAST_LEAD).all() else None


LATCH = "latch"
_KEEP, _LOW, _HIGH = 0.5, 0.25, 0.75


def network_of_product(automaton: Automaton, product: Product, task: str) -> Network | None:
    """Return the network that follows an automaton with a product's parts; None where no readout tells labels apart."""
    latches = [part for part in product if part.kind == "latch"]
    others = [part for part in product if part.kind != "latch"]
    weights = readout_of(automaton, np.concatenate([part.features for part in (*latches, *others)], axis=1))
    if weights is None:
        return None
    layers: list[Layer] = [_latches(latches)] if latches else []
    for k, part in enumerate(others):
        if part.kind == "toggles":
            layers += _toggles(part, k)
        else:
            layers += one_hot_layers(part.next, np.arange(part.bits) == part.start, (f"products{k}", f"state{k}"))
    cells = [layer for layer in layers if not isinstance(layer, AndLayer)]
    known = {layer.name: ranges(layer.width) for layer in cells if isinstance(layer, SignedLayer)}
    zeros = np.concatenate([known[layer.name][0] if layer.name in known else np.zeros(layer.width) for layer in cells])
    weight, bias = weights
    readout = Readout(tuple(layer.name for layer in cells), weight, bias - weight @ zeros, "last")
    return symbol_network(layers, readout, names_by_strings(automaton), task, known)


def _latches(parts: list[AutomatonPart]) -> FirstQuadrantLayer:
    """Return a layer with a latch for each part; each part must have two blocks."""
    one = np.stack([part.next for part in parts])  # (parts, 2, symbols)
    weight = np.where(one[:, 0] == one[:, 1], one[:, 0], _KEEP)
    ones = np.ones(len(parts))
    initial = np.array([float(part.start) for part in parts])
    return FirstQuadrantLayer(LATCH, (INPUT,), weight, 0 * ones, _LOW * ones, _HIGH * ones, ones, initial=initial)


def _toggles(part: AutomatonPart, k: int) -> list[Layer]:
    """Return the layers of the k-th part, a ring: its toggles, and in front their carries if there are several."""
    bits, name, carry = part.bits, f"count{k}", f"carry{k}"
    moves = np.flatnonzero(part.next[0] == 1)
    half, alpha = np.full(bits, 0.5), np.full(bits, ALPHA)
    first = np.isin(np.arange(part.next.shape[1]), moves).astype(float)[None, :]
    if bits == 1:
        return [SignedLayer(name, (INPUT,), first, np.zeros(1), half, alpha, epsilon=-1.0)]
    below = np.tril(np.ones((bits, bits)), -1)
    rows = np.concatenate([np.repeat(np.eye(part.next.shape[1])[moves], bits, 0), np.tile(below, (len(moves), 1))], 1)
    bias = 1 - rows.sum(axis=1) + ALPHA * np.tile(below.sum(axis=1), len(moves))
    into = np.tile(np.eye(bits), (1, len(moves)))
    return [
        AndLayer(carry, (INPUT, f"{name}_1"), rows, bias),
        SignedLayer(name, (carry,), into, np.zeros(bits), half, alpha, epsilon=-1.0),
    ]
