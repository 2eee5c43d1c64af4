"""Automata of which not all is of concern: symbols that never come, outputs that nobody reads.

What is left open may be filled in so that states become one. Finding the fewest is NP-hard (C. P. Pfleeger, IEEE Trans.
Computers C-22 (1973) 1099), so states are merged greedily, each into the nearest one that contradicts it nowhere, with
whatever else must be merged then; and as many states as contradict each other pairwise are needed in any case.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.network.automaton import Automaton, Whole, minimise

OPEN = -1  # a symbol that never comes, an output that is of no concern


@dataclass(frozen=True, eq=False)
class Partial:
    """An automaton that is partly open. next: (states, symbols) and output: (states,) may be OPEN; the start is state
    0."""

    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    next: Whole
    output: Whole


@dataclass(frozen=True)
class Fewest:
    """automaton: what was found; least: states that any automaton of the same answers has."""

    automaton: Automaton
    least: int


def fewest(partial: Partial) -> Fewest:
    """Return an automaton of few states that answers as `partial` wherever that is not open, and a lower bound."""
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
    return Fewest(replace(found, states=tuple(f"s{k}" for k in range(len(found.states)))), _clique(apart))


def _equal_states(partial: Partial) -> Partial:
    """With what is open taken for a state and an output of their own: equal states become one."""
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


def _apart(partial: Partial) -> NDArray[np.bool_]:
    """Pairs of states that some string contradicts, (states, states)."""
    said = partial.output
    apart = (said[:, None] != said[None, :]) & (said[:, None] != OPEN) & (said[None, :] != OPEN)
    while True:
        before = apart.sum()
        for to in partial.next.T:
            known = np.flatnonzero(to != OPEN)
            apart[np.ix_(known, known)] |= apart[np.ix_(to[known], to[known])]
        if apart.sum() == before:
            return apart


def _merged(partial: Partial, apart: NDArray[np.bool_]) -> Whole:
    """Return the group of each state, (states,), named by the smallest of its states."""
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


def _merge(partial: Partial, apart: NDArray[np.bool_], group: Whole, pair: tuple[int, int]) -> Whole | None:
    """Groups with two states in one, and all that must be one then; None where any contradict each other."""
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
    """Return the size of a set of states that contradict each other pairwise, found greedily; apart: all pairs."""
    left, count = np.ones(len(apart), dtype=bool), 0
    while left.any():
        inside = np.where(left, (apart & left[None, :]).sum(axis=1), OPEN)
        left &= apart[int(inside.argmax())]
        count += 1
    return count
