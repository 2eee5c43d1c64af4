"""Choice among an automaton's circuits: the one of smallest drawn area, in the default technology."""

from collections import deque
from dataclasses import dataclass
from itertools import chain

import numpy as np

from cosim.automata.automaton import Automaton, Whole
from cosim.automata.chains import cascades, network_of_cascade
from cosim.automata.network import network_of
from cosim.automata.parts import describe, network_of_product, products
from cosim.compiler.design import block_areas
from cosim.compiler.passes import compile_network
from cosim.network.types import Network
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.scale import units_for
from cosim.verbs.calibrate.find import shipped_path


@dataclass(frozen=True)
class CircuitSize:
    """A circuit of an automaton, and its size.

    words: its parts in words; area: gates and capacitors as drawn, m2.
    """

    words: str
    network: Network
    transistors: int
    area: float


def forms(automaton: Automaton, task: str) -> list[CircuitSize]:
    """Return the possible circuits of an automaton with their sizes.

    The one-hot circuit, a cell for each state, is first; then come others whose readout works, smallest first. Raises
    InputError as `network_of`.
    """
    one_hot = network_of(automaton, task)
    plain, *others = products(automaton)
    found = [(describe(plain), one_hot)]
    built = ((describe(product), network_of_product(automaton, product, task)) for product in others)
    built = chain(built, ((one.words, network_of_cascade(automaton, one, task)) for one in cascades(automaton)))
    found += [(words, network) for words, network in built if network is not None]
    first, *rest = (_form(words, network) for words, network in found)
    return [first, *sorted(rest, key=lambda form: form.area)]


def smallest(found: list[CircuitSize]) -> CircuitSize:
    """Return the circuit of smallest area that has no more transistors than the first, the one-hot circuit."""
    return min((form for form in found if form.transistors <= found[0].transistors), key=lambda form: form.area)


def _form(words: str, network: Network) -> CircuitSize:
    technology = load_technology(DEFAULT_TECHNOLOGY)
    calibration = load_calibration(shipped_path(technology.name, units_for(network.weight_grid)))
    design = compile_network(network, technology, calibration)
    return CircuitSize(words, network, design.assembly.transistors, sum(map(sum, block_areas(design).values())))


def tour(automaton: Automaton, longest: int) -> list[Whole]:
    """Return test strings that together take every transition of an automaton, each of at most `longest` symbols.

    A string always goes on to the nearest transition that is left, and ends where none can be reached or the string
    would be too long. A transition farther than `longest` from the start gets its own string, as long as necessary.
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
    """Return the symbols of the shortest path from a state to a transition in `left`; empty if there is none."""
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
