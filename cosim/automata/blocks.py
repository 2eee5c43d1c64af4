"""Automata side by side that read the same string, and a decision from all their states: what hard blocks learn.

    state i of block k   next[k, i, symbol]        start: state 0 of each
    bit j, if any        0, 1 or kept, by the symbol and the states that the blocks had before it        start: 0
    decision             any function of the states; a sum of weights of those that are on is a readout

As one automaton: the states of all of them that some string leads to, which are then made few. As a network: each
block's one-hot states in one layer, products of states and symbols in front, the decision's weights as the readout.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.automata.network import BEFORE, GRID, STATE, Names, one_hot_layers, symbol_network
from cosim.automata.partial import OPEN, Partial
from cosim.base.errors import InputError
from cosim.network.automaton import MOST_STATES, Whole
from cosim.network.layers import Array
from cosim.network.types import DelayedSignal, Network, Readout

MOST_PRODUCT = 100_000
KEEP = 2
_SCALES = 1.0, 2.0, 4.0  # of the largest weight of a readout


@dataclass(frozen=True)
class Alphabet:
    """symbols, labels: names; turns: (period, symbols), the symbols that may come at step t modulo period; judged:
    (period,), whether the decision behind them is of concern."""

    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    turns: NDArray[np.bool_]
    judged: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BlockAutomata:
    """next: (blocks, states, symbols); decide: states (n, blocks + bits) -> places of labels (n,).

    write: the blocks' states (n, blocks) before symbols (n,) -> (n, bits), what becomes of each bit, or KEEP.
    """

    next: Whole
    decide: Callable[[Whole], Whole]
    bits: int = 0
    write: Callable[[Whole, Whole], Whole] | None = None

    @property
    def sizes(self) -> Whole:
        """Return the number of states of each automaton, and of each bit."""
        return np.array([self.next.shape[1]] * len(self.next) + [2] * self.bits)

    def step(self, states: Whole, symbols: Whole) -> Whole:
        """Return the automata's states (n, blocks + bits) after symbols (n,)."""
        count = len(self.next)
        blocks, bits = states[:, :count], states[:, count:]
        after = self.next[np.arange(count), blocks, symbols[:, None]]
        if self.write is None:
            return after
        written = self.write(blocks, symbols)
        return np.concatenate([after, np.where(written == KEEP, bits, written)], axis=1)

    def run(self, strings: Whole) -> Whole:
        """Return the automata's decision after each symbol of strings (n, time), as places of labels (n, time)."""
        states = np.zeros((len(strings), len(self.sizes)), dtype=np.int64)
        base = np.concatenate([[1], np.cumprod(self.sizes)[:-1]])
        codes = np.empty(strings.shape, dtype=np.int64)
        for t, symbols in enumerate(strings.T):
            states = self.step(states, symbols)
            codes[:, t] = states @ base
        met, place = np.unique(codes, return_inverse=True)
        return self.decide(met[:, None] // base % self.sizes)[place.reshape(codes.shape)]

    def reached(self, turns: NDArray[np.bool_]) -> tuple[list[tuple[int, tuple[int, ...]]], Whole]:
        """Turn and states that strings lead to, the start first, and where each symbol leads, OPEN if it never comes.

        Raises InputError where there are too many.
        """
        period, symbols = turns.shape
        found: list[tuple[int, tuple[int, ...]]] = [(0, (0,) * len(self.sizes))]
        place, follow = {found[0]: 0}, list[list[int]]()
        for turn, states in found:  # it grows
            after = self.step(np.tile(states, (symbols, 1)), np.arange(symbols))
            leads = [OPEN] * symbols
            for symbol in np.flatnonzero(turns[turn]).tolist():
                key = (turn + 1) % period, tuple(after[symbol].tolist())
                if key not in place:
                    place[key] = len(found)
                    found.append(key)
                leads[symbol] = place[key]
            follow.append(leads)
            if len(found) > MOST_PRODUCT:
                raise InputError(
                    f"blocks must reach at most {MOST_PRODUCT} states together, and these reach more; take fewer or "
                    "smaller ones"
                )
        return found, np.array(follow, dtype=np.int64)

    def words(self, turns: NDArray[np.bool_]) -> tuple[list[tuple[int, ...]], Whole]:
        """Return the shortest string to each reachable turn and states of the automata, and what is decided after it.

        The empty string comes first. Decisions are places of labels, (strings,).
        """
        found, follow = self.reached(turns)
        led, first = np.unique(follow, return_index=True)
        words: list[tuple[int, ...]] = [()] * len(found)
        for place in range(1, len(found)):  # nearest first: the front of a word is known before it
            state, symbol = divmod(int(first[np.searchsorted(led, place)]), follow.shape[1])
            words[place] = (*words[state], symbol)
        return words, self.decide(np.array([states for _, states in found]))

    def product(self, alphabet: Alphabet) -> Partial:
        """Return all blocks as one automaton.

        OPEN are symbols that never come, decisions that do not count, and the decision before the first symbol.
        """
        found, follow = self.reached(alphabet.turns)
        before = np.array([turn for turn, _ in found]) - 1
        output = np.where(alphabet.judged[before], self.decide(np.array([states for _, states in found])), OPEN)
        follow = np.concatenate([follow[:1], follow])  # before the first symbol nothing is said: a state of its own
        follow = np.where(follow == OPEN, OPEN, follow + 1)
        return Partial(alphabet.symbols, alphabet.labels, follow, np.concatenate([[OPEN], output]))


def side_by_side(blocks: BlockAutomata, weight: Array, alphabet: Alphabet, task: str) -> Network:
    """Return a network of the blocks' automata, read out by weights (labels, blocks, states) on their states.

    Weights are rounded to the grid, which must leave all decisions that count as they are: raises InputError where it
    does not, and for too many cells.
    """
    found, _ = blocks.reached(alphabet.turns)
    met = np.array([states for _, states in found])
    judged = alphabet.judged[np.array([turn for turn, _ in found]) - 1]
    kept = [(k, i) for k in range(len(blocks.next)) for i in sorted({0, *met[:, k].tolist()})]
    if len(kept) > MOST_STATES:
        raise InputError(f"blocks must have at most {MOST_STATES} states that are reached, not {len(kept)}")
    rounded = _rounded(weight, met[judged], blocks.decide(met[judged]))
    place = {pair: j for j, pair in enumerate(kept)}  # a symbol that leads to none of them never comes there
    follow = np.array([[place.get((k, to), OPEN) for to in blocks.next[k, i].tolist()] for k, i in kept])
    layers = one_hot_layers(follow, np.array([i == 0 for _, i in kept]))
    weights = np.stack([rounded[:, k, i] for k, i in kept], axis=1)
    readout = Readout((STATE,), weights, np.zeros(len(weights)), "last")
    named = Names(alphabet.symbols, tuple(f"{k}.{i}" for k, i in kept), alphabet.labels)
    return symbol_network(layers, readout, named, task, {BEFORE: DelayedSignal(STATE)})


def _rounded(weight: Array, met: Whole, right: Whole) -> Array:
    """Weights (labels, blocks, states) on the grid, as small as right decisions (n,) at states (n, blocks) allow."""
    centred = weight - weight.mean(axis=0)  # the same for all labels decides nothing
    row = np.arange(weight.shape[1])
    for scale in _SCALES:
        rounded = np.rint(centred * (scale / np.abs(centred).max() / GRID)) * GRID
        scores = rounded[:, row, met].sum(axis=2)
        others = np.where(np.arange(len(weight))[:, None] == right, -np.inf, scores)
        if (scores[right, np.arange(len(met))] > others.max(axis=0)).all():
            return rounded
    raise InputError(
        f"the readout of {weight.shape[1]} blocks must decide alike with weights of up to {_SCALES[-1]:g} in steps of "
        f"{GRID:g}; train longer, or make one automaton of them"
    )
