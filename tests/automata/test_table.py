"""Tables: files, the fewest states, tours; and the network of an automaton, exact at any length."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.automaton import Automaton, minimise, modulo, read_table
from cosim.automata.network import network_of, one_hot
from cosim.automata.regex import automaton_of
from cosim.base.errors import InputError
from cosim.network.layers import AndLayer, ReluLayer
from cosim.network.reference import run_reference
from cosim.verbs.automaton.structure import tour

PARITY = {
    "symbols": ["0", "1"], "start": "even",
    "states": {"even": {"output": "0", "next": {"0": "even", "1": "odd"}},
               "odd": {"output": "1", "next": {"0": "odd", "1": "even"}}},
}  # fmt: skip


def random_automaton(seed, states, symbols, labels=2):
    """Not minimal, and perhaps with states that nothing leads to."""
    rng = np.random.default_rng(seed)
    names = tuple(f"s{k}" for k in range(states))
    return Automaton(
        tuple("abcd"[:symbols]), names, tuple("xyz"[:labels]), rng.integers(0, states, (states, symbols)),
        int(rng.integers(states)), rng.integers(0, labels, states),
    )  # fmt: skip


automata = st.builds(random_automaton, st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 4), st.integers(1, 3))


def write(path, **changes):
    path.write_text(json.dumps({**PARITY, **changes}))
    return path


def test_a_file(tmp_path):
    automaton = read_table(write(tmp_path / "parity.json"))
    assert automaton.states == ("even", "odd") and automaton.labels == ("0", "1")
    assert automaton.run(automaton.places("1101")).tolist() == [1, 0, 0, 1]


def states_with(**changes):
    return {**PARITY["states"], **changes}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"states": states_with(odd={"output": "1", "next": {"0": "odd"}})},
            "odd.next must say where symbol '1' leads",
        ),
        (
            {"states": states_with(odd={"output": "1", "next": {"0": "odd", "1": "gone"}})},
            "one of the states, not 'gone'",
        ),
        ({"states": states_with(odd={"output": "1", "next": {"0": "odd", "1": ["even", "odd"]}})}, "must be text"),
        (
            {"states": states_with(odd={"output": "1", "next": {"0": "odd", "1": "odd", "2": "odd"}})},
            "names '2', which is",
        ),
        ({"states": states_with(far={"output": "1", "next": {"0": "far", "1": "far"}})}, "states.far is reached by no"),
        ({"start": "nowhere"}, "start must be one of the states, not 'nowhere'"),
        ({"symbols": []}, "symbols must be one or more texts, each once"),
        ({"symbols": ["0", "0"]}, "symbols must be one or more texts, each once"),
    ],
)
def test_what_is_no_table(tmp_path, changes, text):
    with pytest.raises(InputError, match=text):
        read_table(write(tmp_path / "parity.json", **changes))


def test_an_unknown_symbol():
    with pytest.raises(InputError, match="symbol '7' is not in the alphabet, which is 0 1 2"):
        modulo(3).places("0172")


@settings(max_examples=200, deadline=None)
@given(automata, st.integers(0, 2**32))
def test_the_fewest_states_have_the_same_outputs(automaton, seed):
    """On random strings; and any two of its states are told apart by some string."""
    small = minimise(automaton)
    string = np.random.default_rng(seed).integers(0, len(automaton.symbols), 300)
    np.testing.assert_array_equal(small.output[small.run(string)], automaton.output[automaton.run(string)])
    assert minimise(small).states == small.states and small.start == 0
    apart = small.output[:, None] != small.output[None, :]
    for _ in small.states:
        for symbol in range(len(small.symbols)):
            to = small.next[:, symbol]
            apart = apart | apart[to[:, None], to[None, :]]
    assert (apart | np.eye(len(small.states), dtype=bool)).all()


@settings(max_examples=200, deadline=None)
@given(automata, st.integers(1, 60))
def test_a_tour_takes_every_transition(automaton, longest):
    automaton = minimise(automaton)
    taken = set()
    for string in tour(automaton, longest):
        states = [automaton.start, *automaton.run(string).tolist()]
        taken |= set(zip(states, string.tolist(), strict=False))
        assert len(string) <= max(longest, len(automaton.states))
    assert len(taken) == automaton.next.size


def test_a_tour_of_a_counter_takes_each_once():
    assert [len(string) for string in tour(modulo(5), 60)] == [25]


@settings(max_examples=80, deadline=None)
@given(automata, st.integers(0, 2**32), st.sampled_from([AndLayer, ReluLayer]))
def test_its_network_follows_it(automaton, seed, products):
    """The state of every frame of two thousand, one cell on."""
    automaton = minimise(automaton)
    strings = np.random.default_rng(seed).integers(0, len(automaton.symbols), (40, 50))
    x, lengths = one_hot(len(automaton.symbols), list(strings))
    trace = run_reference(network_of(automaton, "it", products), x, lengths)
    wanted = np.stack([automaton.run(string) for string in strings])
    np.testing.assert_array_equal(trace.signals["state"], np.eye(len(automaton.states))[wanted])
    np.testing.assert_array_equal(trace.readout.argmax(axis=2), automaton.output[wanted])


def test_ten_thousand_symbols():
    automaton = automaton_of("(a|b)*a(a|b)(a|b)")
    string = np.random.default_rng(3).integers(0, 2, 10_000)
    x, lengths = one_hot(len(automaton.symbols), [string])
    trace = run_reference(network_of(automaton, "it"), x, lengths)
    np.testing.assert_array_equal(trace.readout[0].argmax(axis=1), automaton.output[automaton.run(string)])


def test_too_many_states():
    with pytest.raises(InputError, match="256 states must have at most 128: .* a digital block"):
        network_of(automaton_of("(a|b)*a" + "(a|b)" * 7), "it")
    with pytest.raises(InputError, match="--modulo must lie in 2 to 128"):
        modulo(200)
