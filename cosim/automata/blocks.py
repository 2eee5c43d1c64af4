"""Block automata: several automata read one string in parallel, and a decision is made from all their states.

Trained hard blocks (`cosim.automata.train_blocks`) are such automata.

    state i of block k   next[k, i, symbol]        start: state 0 of each
    bit j, if any        0, 1 or kept, by the symbol and the states that the blocks had before it        start: 0
    decision             any function of the states; where it is a sum of weights of states, a readout computes it

As one automaton, its states are the joint states that some string leads to; their number is then reduced. As a network,
one layer has the one-hot states of all blocks, a layer in front has the products of states and symbols, and the readout
has the weights of the decision.

Tasks on strings of symbols, with a right answer after each symbol at any length (arXiv 2309.07412, section 5).

sum        digits 0 to M - 1                       their sum modulo M
even-pair  M symbols                               whether the last one is the first
mod-arith  digits 0 to M - 1 and + - x in turn     the value modulo M, x before + and -; no answer after operators

Partial automata leave some transitions open (symbols that never come) and some outputs (answers that do not count).

Open entries may be filled in so that states can be merged. To find the fewest states is NP-hard (C. P. Pfleeger, IEEE
Trans. Computers C-22 (1973) 1099), so states are merged greedily: each into the first state that it never contradicts,
with all pairs that must then be merged as well. A set of states that contradict each other pairwise is a lower bound.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.automata.automaton import MOST_STATES, Automaton, Whole, minimise
from cosim.automata.network import GRID, STATE, AutomatonNames, one_hot_layers, symbol_network
from cosim.base.errors import InputError
from cosim.network.layers import Array
from cosim.network.types import Network, Readout

OPEN = -1  # a symbol that never comes, an output that is of no concern


@dataclass(frozen=True, eq=False)
class PartialAutomaton:
    """An automaton that leaves some transitions and outputs open; it starts in state 0.

    symbols, labels: names; next: (states, symbols), the state that each symbol leads to, or OPEN if the symbol never
    comes; output: (states,), index of the label of each state, or OPEN if it does not count.
    """

    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    next: Whole
    output: Whole


def fewest(partial: PartialAutomaton) -> tuple[Automaton, int]:
    """Return an automaton of few states that gives every answer that `partial` specifies, and a lower bound.

    The bound is on the number of states of any automaton that gives these answers.
    """
    small = _equal_states(partial)
    apart = _apart(small)
    group = _merged(small, apart)
    kinds = list(dict.fromkeys(group.tolist()))
    place = {kind: k for k, kind in enumerate(kinds)}
    follow = np.repeat(np.arange(len(kinds))[:, None], len(partial.symbols), axis=1)  # open: it stays
    output = np.zeros(len(kinds), dtype=np.int64)
    for state, kind in enumerate(group.tolist()):
        here = place[kind]
        known = small.next[state] != OPEN
        follow[here, known] = [place[int(group[to])] for to in small.next[state, known]]
        if small.output[state] != OPEN:
            output[here] = small.output[state]
    whole = Automaton(partial.symbols, tuple(map(str, range(len(kinds)))), partial.labels, follow, 0, output)
    found = minimise(whole)
    return replace(found, states=tuple(f"s{k}" for k in range(len(found.states)))), _clique(apart)


def _equal_states(partial: PartialAutomaton) -> PartialAutomaton:
    """Merge the equivalent states of a partial automaton.

    Two states are equivalent here only if their open entries are at the same places as well.
    """
    states, symbols = partial.next.shape
    follow = np.where(partial.next == OPEN, states, partial.next)
    follow = np.concatenate([follow, np.full((1, symbols), states)])
    others = len(partial.labels), len(partial.labels) + 1
    output = np.append(np.where(partial.output == OPEN, others[0], partial.output), others[1])
    names = tuple(map(str, range(states + 1)))
    found = minimise(Automaton(partial.symbols, names, (*partial.labels, "open", "never"), follow, 0, output))
    kept = np.flatnonzero(found.output != others[1])
    place = np.full(len(found.states), OPEN)
    place[kept] = np.arange(len(kept))
    output = found.output[kept]
    return replace(partial, next=place[found.next[kept]], output=np.where(output == others[0], OPEN, output))


def _apart(partial: PartialAutomaton) -> NDArray[np.bool_]:
    """Return which pairs of states give different answers, neither open, after some string, (states, states)."""
    said = partial.output
    apart = (said[:, None] != said[None, :]) & (said[:, None] != OPEN) & (said[None, :] != OPEN)
    while True:
        before = apart.sum()
        for to in partial.next.T:
            known = np.flatnonzero(to != OPEN)
            apart[np.ix_(known, known)] |= apart[np.ix_(to[known], to[known])]
        if apart.sum() == before:
            return apart


def _merged(partial: PartialAutomaton, apart: NDArray[np.bool_]) -> Whole:
    """Merge states greedily into groups without a contradiction; return each state's group, (states,).

    A group is named by the smallest of its states. apart: (states, states), pairs of states that contradict.
    """
    group = np.arange(len(partial.output))
    for state in range(1, len(group)):
        if group[state] != state:
            continue
        for other in np.flatnonzero(group[:state] == np.arange(state)):
            tried = _merge(partial, apart, group, (int(other), state))
            if tried is not None:
                group = tried
                break
    return group


def _merge(partial: PartialAutomaton, apart: NDArray[np.bool_], group: Whole, pair: tuple[int, int]) -> Whole | None:
    """Return the groups of states after a merge of the pair's groups and of all groups that they lead to, (states,).

    Return None if two states of one group contradict.
    """
    group, waiting = group.copy(), [pair]
    while waiting:
        one, other = sorted(int(group[state]) for state in waiting.pop())
        if one == other:
            continue
        ones, others = np.flatnonzero(group == one), np.flatnonzero(group == other)
        if apart[np.ix_(ones, others)].any():
            return None
        group[others] = one
        for to in partial.next[np.concatenate([ones, others])].T:
            known = to[to != OPEN].tolist()
            waiting += [(known[0], after) for after in known[1:]]
    return group


def _clique(apart: NDArray[np.bool_]) -> int:
    """Return the size of a set of states that contradict each other pairwise, found greedily.

    apart: (states, states), whether two states contradict.
    """
    left, count = np.ones(len(apart), dtype=bool), 0
    while left.any():
        inside = np.where(left, (apart & left[None, :]).sum(axis=1), OPEN)
        left &= apart[int(inside.argmax())]
        count += 1
    return count


MOST_PRODUCT = 100_000
KEEP = 2
_SCALES = 1.0, 2.0, 4.0  # of the largest weight of a readout


@dataclass(frozen=True)
class StringTask:
    """A task on strings of symbols, with a right answer after each symbol.

    symbols, labels: names; turns: (period, symbols), which symbols may come at step t modulo period; judged: (period,),
    whether the answer after this step counts; answers: function from strings (n, time) of indices into `symbols` to the
    right answers (n, time), indices into `labels`.
    """

    name: str
    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    turns: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    answers: Callable[[Whole], Whole]

    def draw(self, rng: np.random.Generator, count: int, steps: int) -> Whole:
        """Draw random strings of symbol indices (count, steps); the symbols that may come are equally likely."""
        allowed = self.turns[np.arange(steps) % len(self.turns)]
        choice = rng.integers(0, allowed.sum(axis=1), (count, steps))
        places = np.argsort(~allowed, axis=1, kind="stable")
        return places[np.arange(steps), choice]

    def concerned(self, steps: int) -> NDArray[np.bool_]:
        """Return whether the answer after each step of a string counts, (steps,)."""
        return self.judged[np.arange(steps) % len(self.judged)]


@dataclass(frozen=True, eq=False)
class BlockAutomata:
    """Automata (blocks) that read a string in parallel; their states together decide the answer. All start in state 0.

    next: (blocks, states, symbols), the state that follows; decide: function from states (n, blocks + bits) to indices
    of labels (n,); bits: number of memory bits beside the blocks; write: function from the blocks' states (n, blocks)
    before symbols (n,), and these symbols, to the new value 0, 1 or KEEP of each bit, (n, bits).
    """

    next: Whole
    decide: Callable[[Whole], Whole]
    bits: int = 0
    write: Callable[[Whole, Whole], Whole] | None = None

    @property
    def sizes(self) -> Whole:
        """Return the number of states of each block, then of each bit, (blocks + bits,)."""
        return np.array([self.next.shape[1]] * len(self.next) + [2] * self.bits)

    def step(self, states: Whole, symbols: Whole) -> Whole:
        """Return the states of blocks and bits, (n, blocks + bits), that follow `states` after symbols (n,)."""
        count = len(self.next)
        blocks, bits = states[:, :count], states[:, count:]
        after = self.next[np.arange(count), blocks, symbols[:, None]]
        if self.write is None:
            return after
        written = self.write(blocks, symbols)
        return np.concatenate([after, np.where(written == KEEP, bits, written)], axis=1)

    def run(self, strings: Whole) -> Whole:
        """Return the decision after each symbol of strings (n, time), as indices of labels (n, time)."""
        states = np.zeros((len(strings), len(self.sizes)), dtype=np.int64)
        base = np.concatenate([[1], np.cumprod(self.sizes)[:-1]])
        codes = np.empty(strings.shape, dtype=np.int64)
        for t, symbols in enumerate(strings.T):
            states = self.step(states, symbols)
            codes[:, t] = states @ base
        met, place = np.unique(codes, return_inverse=True)
        return self.decide(met[:, None] // base % self.sizes)[place.reshape(codes.shape)]

    def reached(self, turns: NDArray[np.bool_]) -> tuple[Whole, Whole, Whole]:
        """Find all joint states that strings of a task lead to, the start first; turns: see `StringTask`.

        Return the step modulo period (n,), the states of blocks and bits (n, blocks + bits), and the joint state that
        each symbol leads to (n, symbols), OPEN if it cannot come. Raises InputError beyond MOST_PRODUCT joint states.
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
        return np.array([turn for turn, _ in found]), np.array([states for _, states in found]), np.array(follow)

    def words(self, turns: NDArray[np.bool_]) -> tuple[list[tuple[int, ...]], Whole]:
        """Return a shortest string to each joint state that `reached` finds, and the decision after each string.

        The empty string comes first. Decisions are indices of labels, (strings,). turns: see `StringTask`.
        """
        _, states, follow = self.reached(turns)
        led, first = np.unique(follow, return_index=True)
        words: list[tuple[int, ...]] = [()] * len(states)
        for place in range(1, len(states)):  # nearest first: the front of a word is known before it
            front, symbol = divmod(int(first[np.searchsorted(led, place)]), follow.shape[1])
            words[place] = (*words[front], symbol)
        return words, self.decide(states)

    def product(self, task: StringTask) -> PartialAutomaton:
        """Return the blocks as one automaton on a task's strings, whose states are the joint states.

        Open in it are symbols that never come, decisions that do not count, and the decision before the first symbol.
        """
        turn, states, follow = self.reached(task.turns)
        output = np.where(task.judged[turn - 1], self.decide(states), OPEN)
        follow = np.concatenate([follow[:1], follow])  # before the first symbol nothing is said: a state of its own
        follow = np.where(follow == OPEN, OPEN, follow + 1)
        return PartialAutomaton(task.symbols, task.labels, follow, np.concatenate([[OPEN], output]))


def side_by_side(blocks: BlockAutomata, weight: Array, task: StringTask) -> Network:
    """Return a network with a cell for each state of each block, read out by weights (labels, blocks, states).

    Weights are rounded to the grid. Raises InputError if that changes a decision that counts, and for more than
    MOST_STATES cells.
    """
    turn, met, _ = blocks.reached(task.turns)
    judged = task.judged[turn - 1]
    kept = [(k, i) for k in range(len(blocks.next)) for i in sorted({0, *met[:, k].tolist()})]
    if len(kept) > MOST_STATES:
        raise InputError(f"blocks must have at most {MOST_STATES} states that are reached, not {len(kept)}")
    rounded = _rounded(weight, met[judged], blocks.decide(met[judged]))
    place = {pair: j for j, pair in enumerate(kept)}  # a symbol that leads to none of them never comes there
    follow = np.array([[place.get((k, to), OPEN) for to in blocks.next[k, i].tolist()] for k, i in kept])
    layers = one_hot_layers(follow, np.array([i == 0 for _, i in kept]))
    weights = np.stack([rounded[:, k, i] for k, i in kept], axis=1)
    readout = Readout((STATE,), weights, np.zeros(len(weights)), "last")
    named = AutomatonNames(task.symbols, tuple(f"{k}.{i}" for k, i in kept), task.labels)
    return symbol_network(layers, readout, named, task.name)


def _rounded(weight: Array, met: Whole, right: Whole) -> Array:
    """Return readout weights (labels, blocks, states) scaled and rounded to the grid, as small as decisions allow.

    met: states (n, blocks) that occur; right: the decision (n,) that the weights must give at each. Raises InputError
    where no scale gives all decisions.
    """
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


MOST_DIGITS = 32
OPERATORS = ("+", "-", "x")


def string_task(name: str, count: int) -> StringTask:
    """Return the task sum, even-pair or mod-arith (any other name) on strings of `count` different digits.

    The module's docstring defines the tasks. Raises InputError for a count outside 2 to MOST_DIGITS.
    """
    if not 2 <= count <= MOST_DIGITS:
        raise InputError(f"{name} must have 2 to {MOST_DIGITS} digits, not {count}; give another --modulo")
    digits = tuple(map(str, range(count)))
    any_one, always = np.ones((1, count), dtype=bool), np.ones(1, dtype=bool)
    if name == "sum":
        return StringTask(name, digits, digits, any_one, always, lambda u: np.cumsum(u, axis=1) % count)
    if name == "even-pair":
        labels = "no", "yes"
        return StringTask(name, digits, labels, any_one, always, lambda u: (u == u[:, :1]).astype(np.int64))
    turns = np.zeros((2, count + len(OPERATORS)), dtype=bool)
    turns[0, :count] = turns[1, count:] = True
    return StringTask(name, (*digits, *OPERATORS), digits, turns, np.array([True, False]), _values(count))


def _values(count: int) -> Callable[[Whole], Whole]:
    """Return the function that computes the right answers of mod-arith: the values of expressions modulo count.

    It takes strings (n, time) and returns the value so far after each digit, 0 after operators, (n, time).
    """

    def answers(strings: Whole) -> Whole:
        found = np.zeros_like(strings)
        total, factor = np.zeros(len(strings), dtype=np.int64), np.ones(len(strings), dtype=np.int64)
        for t, symbols in enumerate(strings.T):
            if t % 2 == 0:
                factor = factor * symbols % count
                found[:, t] = (total + factor) % count
            else:
                times = symbols == count + OPERATORS.index("x")
                total = np.where(times, total, (total + factor) % count)
                factor = np.where(times, factor, np.where(symbols == count + OPERATORS.index("-"), count - 1, 1))
        return found

    return answers
