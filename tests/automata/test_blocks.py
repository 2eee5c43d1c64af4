"""Automata side by side: one automaton and one network of all of them decide as they do."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cosim.automata.blocks import BlockAutomata, StringTask, fewest, side_by_side
from cosim.automata.network import network_of, one_hot
from cosim.base.errors import InputError
from cosim.network.reference import run_reference

SYMBOLS, LABELS = 3, 5
ANY = np.ones((1, SYMBOLS), dtype=bool)
TASK = StringTask("it", tuple("abc"), tuple("vwxyz"), ANY, np.ones(1, dtype=bool), np.zeros_like)


def random_blocks(seed, blocks=2, states=4):
    """Blocks, and weights (labels, blocks, states) that they decide by."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(LABELS, blocks, states))

    def decide(at):
        return weight[:, np.arange(blocks), at].sum(axis=2).argmax(axis=0)

    return BlockAutomata(rng.integers(0, states, (blocks, states, SYMBOLS)), decide), weight


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_one_automaton_and_its_network(seed):
    blocks, _ = random_blocks(seed)
    strings = np.random.default_rng(seed).integers(0, SYMBOLS, (4, 60))
    wanted = blocks.run(strings)
    automaton, _ = fewest(blocks.product(TASK))
    np.testing.assert_array_equal([automaton.output[automaton.run(string)] for string in strings], wanted)
    x, lengths = one_hot(SYMBOLS, list(strings))
    decided = run_reference(network_of(automaton, "it"), x, lengths).readout.argmax(axis=2)
    np.testing.assert_array_equal(decided, wanted)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_side_by_side(seed):
    """Cells show the states of the blocks."""
    blocks, weight = random_blocks(seed, states=3)
    try:
        network = side_by_side(blocks, weight, TASK)
    except InputError:
        assume(False)
        return
    strings = np.random.default_rng(seed).integers(0, SYMBOLS, (4, 60))
    x, lengths = one_hot(SYMBOLS, list(strings))
    trace = run_reference(network, x, lengths)
    np.testing.assert_array_equal(trace.readout.argmax(axis=2), blocks.run(strings))
    assert (trace.signals["state"].sum(axis=2) == len(blocks.next)).all()


def test_weights_that_rounding_would_change():
    """Labels that a thousandth tells apart."""
    weight = np.zeros((LABELS, 1, 2))
    weight[:2, 0, 0] = 1.0, 1.001
    blocks = BlockAutomata(np.zeros((1, 2, SYMBOLS), dtype=int), lambda at: weight[:, 0, at[:, 0]].argmax(axis=0))
    with pytest.raises(InputError, match="1 blocks must decide alike with weights of up to 4 in steps of 0.125"):
        side_by_side(blocks, weight, TASK)


def test_symbols_in_turn():
    """Where a and b alternate, a state that only aa leads to is none."""
    turns = np.array([[True, False, False], [False, True, False]])
    follow = np.array([[[1, 0, 0], [2, 0, 0], [2, 2, 2]]])
    blocks = BlockAutomata(follow, lambda states: states[:, 0])
    task = StringTask("it", tuple("abc"), tuple("xyz"), turns, np.array([True, True]), np.zeros_like)
    turn, states, _ = blocks.reached(turns)
    assert turn.tolist() == [0, 1] and states.tolist() == [[0], [1]]
    words, decided = blocks.words(turns)
    assert words == [(), (0,)] and decided.tolist() == [0, 1]
    assert len(fewest(blocks.product(task))[0].states) == 2


def test_what_is_too_large():
    rng = np.random.default_rng(0)
    many = BlockAutomata(rng.permuted(np.tile(np.arange(16)[:, None], (6, 1, SYMBOLS)), axis=1), lambda s: s[:, 0] % 5)
    with pytest.raises(InputError, match="must reach at most 100000 states together"):
        many.product(TASK)
    wide = BlockAutomata((np.arange(140)[None, :, None] + np.arange(1, 4)) % 140, lambda s: s[:, 0] % 5)
    with pytest.raises(InputError, match="at most 128 states that are reached, not 140"):
        side_by_side(wide, np.zeros((LABELS, 1, 140)), TASK)
