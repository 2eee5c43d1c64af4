"""An automaton learned from an oracle, which gives an answer after each symbol of any string.

Two strings lead to one state if the oracle's answers are equal after any common ending. So a table is kept: a row for
every string that leads to a new state, and a column for every ending that told two states apart. It grows until its
automaton answers test strings as the oracle does. A differing answer reveals an ending that the table lacks.
Source: D. Angluin, Information and Computation 75 (1987) 87; endings from counterexamples: R. L. Rivest and R. E.
Schapire, Information and Computation 103 (1993) 299.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from cosim.automata.automaton import Automaton, minimise
from cosim.automata.network import one_hot
from cosim.base.errors import InputError
from cosim.network.reference import run_reference
from cosim.network.types import Network

Word = tuple[int, ...]
Oracle = Callable[[Sequence[Word]], list[Word]]  # words -> what is said behind each of their symbols
_BEFORE = -1  # nothing is said before the first symbol


def network_oracle(network: Network, origin: str) -> Oracle:
    """Return an oracle: a function that gives a network's decision after each symbol of words, in software.

    Symbol k sets input feature k to 1 and the others to 0. origin: the network's file, for the error. Raises InputError
    for a network whose readout is pooled over more than the last step.
    """
    if network.readout.pooling != "last":
        raise InputError(
            f"{origin}: readout.pooling must be last, not {network.readout.pooling}: an automaton decides behind each "
            "symbol; train with --pooling last"
        )

    def say(words: Sequence[Word]) -> list[Word]:
        x, _ = one_hot(network.encoding.features, words)
        decided = run_reference(network, x).readout.argmax(axis=2)
        return [tuple(row[: len(word)].tolist()) for row, word in zip(decided, words, strict=True)]

    return say


def learn(
    oracle: Oracle, names: tuple[Sequence[str], Sequence[str]], strings: Sequence[Word], most: int
) -> tuple[Automaton, int, int]:
    """Learn the automaton that an oracle follows, from the oracle's answers.

    Return the minimal automaton, the number of words that the oracle was asked, and the number of test words on which
    automaton and oracle differ at the end. names: names of the symbols and of the answers; strings: test words of
    symbol indices. Learning ends when automaton and oracle agree on all test words, or when the automaton has more than
    `most` states: an oracle that drifts has no finite automaton.
    """
    symbols, labels = map(tuple, names)
    asked = _AnswerCache(oracle)
    asked.all_of(strings)
    table = _Table(asked, len(symbols))
    table.close()
    while len(table.states) <= most:
        wrong = next((word for word in strings if table.answer(word) != asked.behind(word)), None)
        if wrong is None:
            break
        table.split(wrong)
        table.close()
    follow = np.array([[table.after(word, k) for k in range(len(symbols))] for word in table.access], dtype=np.int64)
    said = np.array([max(asked.last(word), 0) for word in table.access], dtype=np.int64)
    states = tuple(f"s{k}" for k in range(len(table.access)))
    whole = Automaton(symbols, states, labels, follow, 0, said)
    # nothing is said before the first symbol: the start may say whatever makes it one with another state
    firsts = (replace(whole, output=np.array([first, *said[1:]])) for first in range(len(labels)))
    differing = sum(table.answer(word) != asked.behind(word) for word in strings)
    return min(map(minimise, firsts), key=lambda one: len(one.states)), asked.count, differing


class _AnswerCache:
    """A cache of the oracle's answers: each word is asked once, and answers its beginnings as well."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle, self._known, self.count = oracle, dict[Word, int](), 0

    def all_of(self, words: Sequence[Word]) -> None:
        """Ask the oracle, in one call, for all words whose answers are not known."""
        unknown = [word for word in dict.fromkeys(words) if word and word not in self._known]
        if not unknown:
            return
        self.count += len(unknown)
        for word, said in zip(unknown, self._oracle(unknown), strict=True):
            self._known.update({word[: k + 1]: one for k, one in enumerate(said)})

    def last(self, word: Word) -> int:
        """Return the oracle's answer behind the last symbol of a word."""
        self.all_of([word])
        return self._known[word] if word else _BEFORE

    def behind(self, word: Word) -> Word:
        """Return the oracle's answer behind each symbol of a word."""
        self.all_of([word])
        return tuple(self._known[word[: k + 1]] for k in range(len(word)))


class _Table:
    """The observation table of Angluin's algorithm.

    access: a word that leads to each state; endings: words that tell states apart; states: row (the answers after each
    ending) -> number of the state.
    """

    def __init__(self, asked: _AnswerCache, symbols: int) -> None:
        self._asked, self._symbols = asked, range(symbols)
        self.access: list[Word] = [()]
        self.endings: list[Word] = [()]
        self.states: dict[Word, int] = {}

    def close(self) -> None:
        """Add a word for every new state, until each symbol leads from every known state to a known state."""
        self.states = {self._row(word): k for k, word in enumerate(self.access)}
        for word in self.access:  # it grows
            self._asked.all_of([(*word, k, *ending) for k in self._symbols for ending in self.endings])
            for k in self._symbols:
                if (row := self._row((*word, k))) not in self.states:
                    self.states[row] = len(self.access)
                    self.access.append((*word, k))

    def after(self, word: Word, symbol: int) -> int:
        """Return the state that a word leads to when a symbol is appended."""
        return self.states[self._row((*word, symbol))]

    def answer(self, word: Word) -> Word:
        """Return the table's answer behind each symbol of a word."""
        return tuple(self._asked.last(self.access[state]) for state in self._run(word))

    def split(self, wrong: Word) -> None:
        """Add the ending that tells two states apart, from a word that the table answers wrongly.

        It is the rest of the word from where replacing its beginning by that state's access word changes the answer.
        """
        said, answered = self._asked.behind(wrong), self.answer(wrong)
        first = next(k for k, pair in enumerate(zip(said, answered, strict=True)) if pair[0] != pair[1])
        word = wrong[: first + 1]
        words = [(), *(self.access[state] for state in self._run(word))]
        kept = [self._asked.last((*access, *word[k:])) for k, access in enumerate(words)]
        place = next(k for k in range(len(word)) if kept[k] != kept[k + 1])
        self.endings.append(word[place + 1 :])

    def _run(self, word: Word) -> list[int]:
        states, state = list[int](), 0
        for symbol in word:
            state = self.after(self.access[state], symbol)
            states.append(state)
        return states

    def _row(self, word: Word) -> Word:
        return tuple(self._asked.last((*word, *ending)) for ending in self.endings)
