"""Strings that take every transition of an automaton at least once, from its start."""

from collections import deque

import numpy as np

from cosim.network.automaton import Automaton, Whole


def tour(automaton: Automaton, longest: int) -> list[Whole]:
    """Return strings of at most `longest` symbols that together take every transition; each begins at the start.

    A string goes on to the nearest transition that is left, and ends where none can be reached or it would be too long.
    A transition that is farther than `longest` from the start is taken by a string of its own, as long as it must be.
    """
    left = {(state, symbol) for state in range(len(automaton.states)) for symbol in range(len(automaton.symbols))}
    found: list[Whole] = []
    while left:
        string: list[int] = []
        state = automaton.start
        while (way := _way(automaton, state, left)) and (not string or len(string) + len(way) <= longest):
            for symbol in way:
                left.discard((state, symbol))
                state = int(automaton.next[state, symbol])
            string += way
        found.append(np.array(string, dtype=np.int64))
    return found


def _way(automaton: Automaton, start: int, left: set[tuple[int, int]]) -> list[int]:
    """Return the shortest string from a state whose last transition is among those left; empty without one."""
    ways, waiting = {start: list[int]()}, deque([start])
    while waiting:
        state = waiting.popleft()
        for symbol in range(len(automaton.symbols)):
            if (state, symbol) in left:
                return [*ways[state], symbol]
        for symbol, after in enumerate(automaton.next[state].tolist()):
            if after not in ways:
                ways[after] = [*ways[state], symbol]
                waiting.append(after)
    return []
