"""An automaton read back from weights: what was written, whatever history says; and networks that follow none."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.automaton import Automaton, modulo
from cosim.automata.network import automaton_in, coded_in, network_of, one_hot
from cosim.automata.regex import automaton_of
from cosim.base.errors import InputError
from cosim.base.resources import models_path
from cosim.exchange.checkpoint import load_network
from cosim.network.layers import AndLayer, FirstQuadrantLayer, ReluLayer
from cosim.network.reference import symbols_in
from cosim.network.software_only import stays_software
from cosim.network.types import DelayedSignal
from cosim.tasks.testset import load_test_set
from cosim.verbs.automaton.structure import forms


@st.composite
def automata(draw):
    """Any: of states that nothing leads to, and of labels that no state has."""
    states, symbols, labels = draw(st.integers(1, 9)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    state = st.integers(0, states - 1)
    follow = draw(st.lists(st.lists(state, min_size=symbols, max_size=symbols), min_size=states, max_size=states))
    said = draw(st.lists(st.integers(0, labels - 1), min_size=states, max_size=states))
    names = tuple(f"s{k}" for k in range(states))
    return Automaton(
        tuple("abcd"[:symbols]), names, tuple("xyz"[:labels]), np.array(follow), draw(state), np.array(said)
    )


def assert_same(found, wanted):
    assert found is not None
    assert (found.symbols, found.states, found.labels) == (wanted.symbols, wanted.states, wanted.labels)
    assert found.start == wanted.start
    np.testing.assert_array_equal(found.next, wanted.next)
    np.testing.assert_array_equal(found.output, wanted.output)


@settings(max_examples=150, deadline=None)
@given(automata(), st.sampled_from([AndLayer, ReluLayer]))
def test_what_is_written_is_read(automaton, products):
    assert_same(automaton_in(network_of(automaton, "it", products)), automaton)


@settings(max_examples=50, deadline=None)
@given(automata(), st.data())
def test_it_is_that_of_the_weights(automaton, data):
    """One transition is led elsewhere, and history still says what it said."""
    network = network_of(automaton, "it")
    products, state = network.layers
    states, symbols = automaton.next.shape
    place = data.draw(st.integers(0, states * symbols - 1))
    to = data.draw(st.integers(0, states - 1))
    weight = state.weight.copy()
    weight[:, place] = np.arange(states) == to
    follow = automaton.next.copy()
    follow.flat[place] = to
    found = automaton_in(replace(network, layers=(products, replace(state, weight=weight))))
    assert_same(found, replace(automaton, next=follow))


def test_cells_that_follow_by_hysteresis():
    """A flip-flop of two cells, set and reset by bits, that nothing feeds back."""
    cells = FirstQuadrantLayer(
        "cell", ("input",), np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]), np.zeros(2), np.full(2, 0.35),
        np.full(2, 0.55), np.ones(2), initial=np.array([0.0, 1.0]),
    )  # fmt: skip
    two = network_of(modulo(3), "it")
    readout = replace(two.readout, sources=("cell",), weight=np.eye(2), bias=np.zeros(2))
    found = automaton_in(replace(two, layers=(cells,), readout=readout, labels=(), late={}, history={}))
    assert found is not None
    assert found.next.tolist() == [[0, 1, 0], [0, 1, 1]] and found.start == 1 and found.output.tolist() == [0, 1]
    assert (found.symbols, found.states, found.labels) == (("0", "1", "2"), ("0", "1"), ("0", "1"))


@pytest.mark.parametrize(
    "held", [None, 3, {}, {"states": 3}, {"states": ["a", "b"]}, {"states": ["a", "a", "b"]}, {"states": ["a", 1, "b"]}]
)
def test_a_history_of_anything(held):
    found = automaton_in(replace(network_of(modulo(3), "it"), history={"automaton": held}))
    assert found is not None and found.states == ("0", "1", "2")


def modulo_of_ones(count):
    follow = np.stack([np.arange(count), (np.arange(count) + 1) % count], axis=1)
    names = tuple(map(str, range(count)))
    return Automaton(("0", "1"), names, names, follow, 0, np.arange(count))


def first_and_last(symbols):
    """Whether the last symbol is the first."""
    return automaton_of("|".join(f"{a}([a-{chr(96 + symbols)}]*{a})?" for a in "abcdefg"[:symbols]))


def changed(**fields):
    """Sum(3) with another layer of states."""
    network = network_of(modulo(3), "it")
    products, state = network.layers
    return replace(network, layers=(products, replace(state, **fields)))


def with_readout(**fields):
    network = network_of(modulo(3), "it")
    return replace(network, readout=replace(network.readout, **fields))


DAMAGED = (
    changed(initial=None),
    changed(initial=np.ones(3)),
    changed(beta_hi=np.full(3, 1.5)),  # no cell is ever set
    changed(beta_lo=np.full(3, -0.5)),  # none is ever reset
    changed(weight=np.ones((3, 9))),
)


@pytest.mark.parametrize(("network", "states"), [*zip(DAMAGED, (1, 1, 2, 4, 2), strict=True)])
def test_damage_shows_as_another_automaton(network, states):
    """Of what the cells stand in then, by numbers."""
    found = coded_in(network)
    assert found is not None
    automaton, codes = found
    assert automaton.states == tuple(map(str, range(states)))
    assert codes.shape == (states, 3) and len(np.unique(codes, axis=0)) == states


@pytest.mark.parametrize("automaton", [automaton_of("(a|b)*abb"), modulo(6), modulo_of_ones(8), first_and_last(3)])
def test_every_form_is_read(automaton):
    """Products and cascades: the same automaton with the same names, but for the order of its states."""
    for form in forms(automaton, "it"):
        found = automaton_in(form.network)
        assert found is not None and found.symbols == automaton.symbols and set(found.states) == set(automaton.states)
        place = [automaton.states.index(name) for name in found.states]
        np.testing.assert_array_equal(np.array(place)[found.next], automaton.next[place])
        assert place[found.start] == automaton.start
        labels = [found.labels.index(automaton.labels[k]) for k in automaton.output[place]]
        np.testing.assert_array_equal(found.output, labels)


@pytest.mark.parametrize(
    "network",
    [
        *(replace(one, history={}) for one in DAMAGED),
        with_readout(pooling="mean"),
        with_readout(sources=("products",), weight=np.ones((3, 9))),
        replace(network_of(modulo(3), "it"), late={"state_1": DelayedSignal("state", 2)}),
        replace(network_of(modulo(3), "it"), late={"state_1": DelayedSignal("products")}),
        replace(network_of(modulo(3), "it"), encoding=replace(network_of(modulo(3), "it").encoding, levels=None)),
        replace(network_of(modulo(3), "it"), encoding=replace(network_of(modulo(3), "it").encoding, offset=np.ones(3))),
    ],
)
def test_what_follows_none(network):
    assert automaton_in(network) is None


def test_no_trained_network_that_is_shipped_is_one():
    paths = [path for path in sorted((models_path() / "trained").glob("*.pt")) if not stays_software(path)]
    assert len(paths) > 5
    assert all(automaton_in(load_network(path)) is None for path in paths)


def test_symbols_of_inputs():
    automaton = automaton_of("(a|b)*abb")
    x, _ = one_hot(2, [[0, 1, 1], [1]])
    x[0, 1] = 1.0  # both at once
    assert symbols_in(network_of(automaton, "it").encoding, x).tolist() == [[0, -1, 1], [1, -1, -1]]


def test_a_frame_that_is_no_symbol_is_refused(tmp_path):
    """The network would take two symbols at once, and be in two states; padding may be anything."""
    network = network_of(modulo(3), "")
    x = np.eye(3)[[[0, 1, 2, 0], [2, 2, 1, 0]]]
    x[1, 3] = 7.0
    data = {"y_test": np.array([0, 2]), "len_test": np.array([4, 3])}
    np.savez(tmp_path / "right.npz", x_test=x, **data)
    assert len(load_test_set(network, tmp_path / "right.npz").y) == 2
    x[1, 2, 0] = 1.0
    np.savez(tmp_path / "wrong.npz", x_test=x, **data)
    with pytest.raises(
        InputError, match=r"x_test\[1, 2\] must be one of the symbols 0, 1, 2, .* not \[1.0, 1.0, 0.0\]"
    ):
        load_test_set(network, tmp_path / "wrong.npz")
