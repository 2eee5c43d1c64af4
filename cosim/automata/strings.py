"""Tasks on strings of symbols whose answer behind each symbol is known at any length (arXiv 2309.07412, section 5).

sum        digits 0 to M - 1                       their sum modulo M
even-pair  M symbols                               whether the last one is the first
mod-arith  digits 0 to M - 1 and + - x in turn     the value modulo M, x before + and -; behind operators nothing
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.automata.blocks import Alphabet
from cosim.base.errors import InputError
from cosim.network.automaton import Whole

MOST_DIGITS = 32
OPERATORS = ("+", "-", "x")


@dataclass(frozen=True)
class StringTask:
    """answers: strings (n, time) of symbols' places -> places of labels behind each, alike."""

    name: str
    alphabet: Alphabet
    answers: Callable[[Whole], Whole]

    def draw(self, rng: np.random.Generator, count: int, steps: int) -> Whole:
        """Draw random strings of an automaton's symbols (count, steps), each symbol that may come equally likely."""
        allowed = self.alphabet.turns[np.arange(steps) % len(self.alphabet.turns)]
        choice = rng.integers(0, allowed.sum(axis=1), (count, steps))
        places = np.argsort(~allowed, axis=1, kind="stable")
        return places[np.arange(steps), choice]

    def concerned(self, steps: int) -> NDArray[np.bool_]:
        """Return (steps,) booleans: the automaton's answer behind this step of a string counts."""
        return self.alphabet.judged[np.arange(steps) % len(self.alphabet.judged)]


def string_task(name: str, count: int) -> StringTask:
    """Return the task sum, even-pair or mod-arith of `count` digits. Raises InputError for an impossible count."""
    if not 2 <= count <= MOST_DIGITS:
        raise InputError(f"{name} must have 2 to {MOST_DIGITS} digits, not {count}; give another --modulo")
    digits = tuple(map(str, range(count)))
    any_one, always = np.ones((1, count), dtype=bool), np.ones(1, dtype=bool)
    if name == "sum":
        return StringTask(name, Alphabet(digits, digits, any_one, always), lambda u: np.cumsum(u, axis=1) % count)
    if name == "even-pair":
        same = Alphabet(digits, ("no", "yes"), any_one, always)
        return StringTask(name, same, lambda u: (u == u[:, :1]).astype(np.int64))
    turns = np.zeros((2, count + len(OPERATORS)), dtype=bool)
    turns[0, :count] = turns[1, count:] = True
    alphabet = Alphabet((*digits, *OPERATORS), digits, turns, np.array([True, False]))
    return StringTask(name, alphabet, _values(count))


def _values(count: int) -> Callable[[Whole], Whole]:
    """Values of expressions modulo count, behind each digit; behind operators 0."""

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
