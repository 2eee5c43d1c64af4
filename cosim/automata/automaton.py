"""A deterministic, complete automaton with an output in every state (E. F. Moore's), as data and as a file.

{"symbols": ["0", "1"], "start": "even",
 "states": {"even": {"output": "0", "next": {"0": "even", "1": "odd"}},
            "odd":  {"output": "1", "next": {"0": "odd", "1": "even"}}}}
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.text import check_plain, read_json, shown, shown_path, typed

MOST_STATES = 128  # beyond it a digital block is smaller by orders of magnitude
_REPAIR = "see docs/explanation/memory-in-time.md for a table that works"
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton with an output in every state (Moore machine).

    symbols, states, labels: names; next: (states, symbols), index of the state that each symbol leads to; start: index
    of a state; output: (states,), index of each state's label.
    """

    symbols: tuple[str, ...]
    states: tuple[str, ...]
    labels: tuple[str, ...]
    next: Whole
    start: int
    output: Whole

    def run(self, string: Whole) -> Whole:
        """Return the automaton's state after each symbol of a string; both are indices, (time,)."""
        found, state = np.empty(len(string), dtype=np.int64), self.start
        for t, symbol in enumerate(string.tolist()):
            state = found[t] = self.next[state, symbol]
        return found

    def places(self, string: Sequence[str]) -> Whole:
        """Return a string of symbols as their indices, (time,).

        Raises InputError for a symbol that is not in the automaton's alphabet.
        """
        place = {symbol: k for k, symbol in enumerate(self.symbols)}
        strange = next((symbol for symbol in string if symbol not in place), None)
        if strange is not None:
            raise InputError(f"symbol {shown(strange)} is not in the alphabet, which is {' '.join(self.symbols)}")
        return np.array([place[symbol] for symbol in string], dtype=np.int64)


@dataclass(frozen=True)
class _State:
    output: str
    next: dict[str, str]


@dataclass(frozen=True)
class _Table:
    symbols: tuple[str, ...]
    start: str
    states: dict[str, _State]


def read_table(path: Path) -> Automaton:
    """Read an automaton from a JSON file, whose form the module's docstring shows.

    Raises InputError for a missing or unknown state or symbol, and for a state that no string reaches.
    """
    where = shown_path(path)
    table = typed(check_plain(read_json(path, _REPAIR), where, _REPAIR), _Table, where, _REPAIR)
    names, symbols = tuple(table.states), table.symbols
    if not symbols or len(set(symbols)) < len(symbols) or not all(one and one.isprintable() for one in symbols):
        raise InputError(f"{where}: symbols must be one or more texts, each once, not {list(symbols)}; {_REPAIR}")
    if table.start not in table.states:
        raise InputError(f"{where}: start must be one of the states, not {shown(table.start)}; {_REPAIR}")
    place = {name: k for k, name in enumerate(names)}
    follow = np.empty((len(names), len(symbols)), dtype=np.int64)
    for name, state in table.states.items():
        for k, symbol in enumerate(symbols):
            if symbol not in state.next:
                raise InputError(
                    f"{where}: states.{name}.next must say where symbol {shown(symbol)} leads; an automaton is "
                    "complete: add it, perhaps to a state of its own that nothing leaves"
                )
            if state.next[symbol] not in place:
                raise InputError(
                    f"{where}: states.{name}.next.{symbol} must be one of the states, not {shown(state.next[symbol])}"
                )
            follow[place[name], k] = place[state.next[symbol]]
        if strange := next((symbol for symbol in state.next if symbol not in symbols), None):
            raise InputError(f"{where}: states.{name}.next names {shown(strange)}, which is not among symbols")
    labels = tuple(dict.fromkeys(state.output for state in table.states.values()))
    output = np.array([labels.index(state.output) for state in table.states.values()], dtype=np.int64)
    found = Automaton(symbols, names, labels, follow, place[table.start], output)
    apart = sorted(set(range(len(names))) - set(reached(found)))
    if apart:
        raise InputError(f"{where}: states.{names[apart[0]]} is reached by no string from {table.start}; remove it")
    return found


def reached(automaton: Automaton) -> list[int]:
    """Return the states that some string leads to, in the order of the shortest strings; the start is first."""
    found, known = [automaton.start], {automaton.start}
    for state in found:
        new = [one for one in dict.fromkeys(automaton.next[state].tolist()) if one not in known]
        found += new
        known.update(new)
    return found


def minimise(automaton: Automaton) -> Automaton:
    """Return the equivalent automaton with the fewest states, in the order in which the shortest strings reach them.

    States that no string tells apart become one (E. F. Moore, Gedanken-experiments on sequential machines, 1956). It
    takes time n log n (J. E. Hopcroft, An n log n algorithm for minimizing states in a finite automaton, 1971).
    """
    block = _blocks(automaton)
    order = list(dict.fromkeys(block[reached(automaton)].tolist()))
    first = [int(np.flatnonzero(block == one)[0]) for one in order]
    place = {one: k for k, one in enumerate(order)}
    follow = np.array([[place[int(block[to])] for to in automaton.next[state]] for state in first], dtype=np.int64)
    names = tuple(automaton.states[state] for state in first)
    return Automaton(automaton.symbols, names, automaton.labels, follow, 0, automaton.output[first])


def _blocks(automaton: Automaton) -> Whole:
    """Return the block of each state, (states,): states of one block give the same outputs after every string."""
    columns = list(dict.fromkeys(map(tuple, automaton.next.T.tolist())))  # symbols that all states take alike are one
    before = [list[list[int]]() for _ in columns]  # by column and state: the states that lead there
    for column, into in zip(columns, before, strict=True):
        into += [[] for _ in column]
        for state, to in enumerate(column):
            into[to].append(state)
    block = np.unique(automaton.output, return_inverse=True)[1].reshape(-1).tolist()
    members = [set[int]() for _ in range(max(block) + 1)]
    for state, one in enumerate(block):
        members[one].add(state)
    waiting = {(one, column) for one in range(len(members)) for column in range(len(columns))}
    while waiting:
        splitter, column = waiting.pop()
        reaching = dict[int, list[int]]()  # block -> its states that lead into the splitter
        for state in [one for to in members[splitter] for one in before[column][to]]:
            reaching.setdefault(block[state], []).append(state)
        for old, states in reaching.items():
            if len(states) == len(members[old]):
                continue
            new = len(members)
            members.append(set(states))
            members[old].difference_update(states)
            for state in states:
                block[state] = new
            smaller = min(new, old, key=lambda one: len(members[one]))
            waiting |= {(new if (old, k) in waiting else smaller, k) for k in range(len(columns))}
    return np.array(block, dtype=np.int64)


def modulo(count: int) -> Automaton:
    """Return an automaton whose symbols are the digits 0 to count - 1 and whose output is their sum modulo count.

    Raises InputError for a count outside 2 to MOST_STATES.
    """
    if not 2 <= count <= MOST_STATES:
        raise InputError(f"--modulo must lie in 2 to {MOST_STATES}, not {count}")
    digits = tuple(map(str, range(count)))
    follow = (np.arange(count)[:, None] + np.arange(count)[None, :]) % count
    return Automaton(digits, digits, digits, follow, 0, np.arange(count))
