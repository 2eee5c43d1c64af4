"""Cascades of bits: each follows its automaton, by rows that are limited, in software and by the cells' equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.automaton import Automaton, minimise, modulo
from cosim.automata.chains import BITS, MOST_CASCADED, cascades, cheapest_row, network_of_cascade, terms_of
from cosim.automata.network import one_hot
from cosim.automata.regex import automaton_of as automaton_of_regex
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral
from cosim.network.ir.states import software_states
from cosim.network.reference import run_reference
from cosim.verbs.automaton.structure import forms, smallest, tour


def first_again(count):
    """Whether the last of these symbols is the first one."""
    states = [(-1, -1), *((first, last) for first in range(count) for last in range(count))]
    follow = [
        [states.index((symbol if first < 0 else first, symbol)) for symbol in range(count)] for first, _ in states
    ]
    names = tuple(map(str, states))
    output = np.array([int(first == last) for first, last in states])
    return minimise(Automaton(tuple(map(str, range(count))), names, ("no", "yes"), np.array(follow), 0, output))


def follows(automaton, network, steps):
    """Whether decisions are right behind each symbol of a tour of all transitions, and of a random string."""
    strings = [*tour(automaton, 40), np.random.default_rng(0).integers(0, len(automaton.symbols), steps)]
    x, lengths = one_hot(len(automaton.symbols), strings)
    said = run_reference(network, x, lengths).readout.argmax(axis=2)
    rows = zip(said, strings, strict=True)
    return all((row[: len(string)] == automaton.output[automaton.run(string)]).all() for row, string in rows)


@st.composite
def drawn(draw):
    """Automata of 2 to 8 states: any, or a front of which the symbols that keep and set states behind it depend."""
    rng, symbols = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(1, 3))
    front, back = draw(st.sampled_from([(1, 4), (1, 6), (2, 2), (2, 3), (3, 2), (4, 2)]))
    ahead = rng.integers(0, front, (front, symbols))
    acts = rng.integers(-1, back, (front, symbols))  # -1 keeps
    if front == 1:
        follow = rng.integers(0, back, (back, symbols))
    else:
        pairs = [(i, j) for i in range(front) for j in range(back)]
        follow = np.array(
            [[ahead[i, a] * back + (j if acts[i, a] < 0 else acts[i, a]) for a in range(symbols)] for i, j in pairs]
        )
    names, states = tuple(map(str, range(symbols))), tuple(map(str, range(len(follow))))
    output = rng.integers(0, 2, len(follow))
    return minimise(Automaton(names, states, ("0", "1"), follow, 0, output))


@settings(max_examples=6, deadline=None)
@given(drawn())
def test_every_cascade_follows_the_automaton(automaton):
    for cascade in cascades(automaton):
        if (network := network_of_cascade(automaton, cascade, "it")) is not None:
            assert follows(automaton, network, 300), cascade.words


@pytest.mark.parametrize(
    ("automaton", "transistors", "share"),
    [
        pytest.param(first_again(5), 210, 0.6, marks=pytest.mark.slow),  # 11 states: 426 one-hot
        (automaton_of_regex("(a|b)*abb", None), 80, 0.85),
        (automaton_of_regex("[ab]*a..", "ab"), 120, 0.65),  # the symbols of three frames
    ],
    ids=["first symbol again", "ends with abb", "a third from the end"],
)
def test_cascades_are_smaller(automaton, transistors, share, technology, calibration):
    """At 10^4 random steps as right as one-hot, of that share of its area; each state the same on the chip's cells."""
    found = forms(automaton, "it")
    form = smallest(found)
    assert form.transistors <= transistors and form.area < share * found[0].area
    assert form.network.recurrent_layers[0].name == BITS
    assert follows(automaton, form.network, 10_000)
    strings = [*tour(automaton, 40), np.random.default_rng(1).integers(0, len(automaton.symbols), 40)]
    x, lengths = one_hot(len(automaton.symbols), strings)
    design = compile_network(form.network, technology, calibration)
    trace = run_behavioral(design, x)
    states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
    wanted = software_states(design.graph, run_reference(form.network, x, lengths))
    for k, length in enumerate(lengths):
        np.testing.assert_array_equal(states[k, :length], wanted[k, :length])


def test_levels_in_front_need_none_behind():
    """Rows of a level read its own bits and those in front: where those agree, so do they a step later."""
    automaton = first_again(3)
    for cascade in cascades(automaton):
        for k in range(len(cascade.levels)):
            bits = cascade.bits[:, : sum(map(len, cascade.levels[: k + 1]))]
            codes = np.unique(bits, axis=0, return_inverse=True)[1].reshape(-1)
            for block in range(codes.max() + 1):
                after = codes[automaton.next[codes == block]]
                assert (after == after[0]).all()


def test_a_row_that_keeps_and_one_that_there_is_not():
    """Symbol 0 keeps, 1 and 2 reset and set it. A bit that turns over at a symbol would need more current in one row
    than is allowed."""
    latch = Automaton(("i", "0", "1"), ("0", "1"), ("0", "1"), np.array([[0, 0, 1], [1, 0, 1]]), 0, np.arange(2))
    bit = np.array([[False], [True]])
    row = cheapest_row(latch, terms_of(bit, 3), bit[:, 0])
    assert row is not None
    assert cheapest_row(modulo(2), terms_of(bit, 2), bit[:, 0]) is None


def test_large_automata_have_none():
    assert cascades(modulo(MOST_CASCADED + 1)) == []
