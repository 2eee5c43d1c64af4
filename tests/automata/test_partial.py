"""Automata of which not all is of concern: answers that count are kept, and states are as few as can be shown."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.automaton import Automaton, minimise, modulo
from cosim.automata.blocks import OPEN, PartialAutomaton, fewest


def random_partial(seed, states, symbols, share):
    """A share of it open."""
    rng = np.random.default_rng(seed)
    follow, output = rng.integers(0, states, (states, symbols)), rng.integers(0, 2, states)
    follow[rng.random(follow.shape) < share] = OPEN
    output[rng.random(states) < share] = OPEN
    return PartialAutomaton(tuple("abcd"[:symbols]), ("x", "y"), follow, output)


partials = st.builds(
    random_partial, st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 3), st.sampled_from([0.0, 0.2, 0.5])
)


def reached(partial):
    found = [0]
    for state in found:
        found += [to for to in dict.fromkeys(partial.next[state].tolist()) if to != OPEN and to not in found]
    return found


@settings(max_examples=300, deadline=None)
@given(partials)
def test_it_answers_alike_wherever_that_is_of_concern(partial):
    """By all pairs of states that one string leads to."""
    automaton, least = fewest(partial)
    found = [(0, automaton.start)]
    for state, place in found:
        assert partial.output[state] in (OPEN, automaton.output[place])
        for symbol, to in enumerate(partial.next[state].tolist()):
            pair = to, int(automaton.next[place, symbol])
            if to != OPEN and pair not in found:
                found.append(pair)
    assert least <= len(automaton.states) <= max(1, len(reached(partial)))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 10))
def test_with_nothing_open_it_is_the_minimal_one(seed, states):
    partial = random_partial(seed, states, 2, 0.0)
    names = tuple(map(str, range(states)))
    small = minimise(Automaton(partial.symbols, names, partial.labels, partial.next, 0, partial.output))
    automaton, least = fewest(partial)
    np.testing.assert_array_equal(automaton.next, small.next)
    np.testing.assert_array_equal(automaton.output, small.output)
    assert least <= len(small.states)


def test_all_states_of_a_counter_are_needed():
    """Any two sums differ, so the bound is the number itself."""
    counter = modulo(7)
    assert fewest(PartialAutomaton(counter.symbols, counter.labels, counter.next, counter.output))[1] == 7


def test_what_nobody_reads_costs_no_state():
    """Behind a the answer is x, behind b y, and the start, of which nothing is said, is one with either."""
    partial = PartialAutomaton(("a", "b"), ("x", "y"), np.array([[1, 2]] * 3), np.array([OPEN, 0, 1]))
    automaton, least = fewest(partial)
    assert len(automaton.states) == 2 == least
