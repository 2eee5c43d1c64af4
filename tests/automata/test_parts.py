"""Automata as products of parts: each form follows it, in software and by the cells' equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.automaton import Automaton, minimise, modulo
from cosim.automata.network import one_hot
from cosim.automata.parts import MOST_SEARCHED, describe, network_of_product, products
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral
from cosim.network.ir.states import software_states
from cosim.network.reference import run_reference
from cosim.verbs.automaton.structure import forms, smallest


def automaton_of(follow, output, start=0):
    follow = np.array(follow)
    states, symbols = follow.shape
    labels = tuple(map(str, range(max(output) + 1)))
    names = tuple(map(str, range(states)))
    return minimise(Automaton(tuple(map(str, range(symbols))), names, labels, follow, start, np.array(output)))


def last_of(count):
    """Symbol 0 keeps, symbol k leads to state k - 1."""
    keeps = np.arange(count)
    return automaton_of(np.concatenate([keeps[:, None], np.tile(keeps, (count, 1))], axis=1), list(range(count)))


def ones_modulo(count):
    keeps = np.arange(count)
    return automaton_of(np.stack([keeps, (keeps + 1) % count], axis=1), list(range(count)))


@pytest.mark.parametrize(
    ("automaton", "words"),
    [
        (last_of(2), "1 latch"),
        (last_of(4), "2 latches"),
        (last_of(5), "3 latches"),
        (ones_modulo(2), "1 toggle"),
        (ones_modulo(8), "3 toggles"),
        (ones_modulo(6), "1 toggle and 3 states, one-hot"),
        (modulo(6), "1 toggle and 3 states, one-hot"),
    ],
    ids=["set-reset", "4 values", "5 values", "parity", "eight", "six", "sum of six"],
)
def test_the_parts_that_an_automaton_has(automaton, words):
    assert words in map(describe, products(automaton))


def test_what_has_no_parts():
    """A prime counter has no closed partition; a large automaton is not searched."""
    for automaton in (modulo(5), ones_modulo(7), modulo(MOST_SEARCHED + 1)):
        assert [describe(product) for product in products(automaton)] == [f"{len(automaton.states)} states, one-hot"]


@st.composite
def structured(draw):
    """Products of small machines by construction, and random ones."""
    sizes = draw(st.lists(st.sampled_from([2, 2, 3, 4]), min_size=1, max_size=2))
    symbols, rng = draw(st.integers(1, 4)), np.random.default_rng(draw(st.integers(0, 2**32)))
    follow = np.zeros((1, symbols), dtype=np.int64)
    for size in sizes:
        kind = rng.choice(["reset", "ring", "any"])
        own = np.repeat(np.arange(size)[:, None], symbols, axis=1)
        for symbol in range(symbols):
            if kind == "any":
                own[:, symbol] = rng.integers(0, size, size)
            elif rng.random() < 0.7:
                own[:, symbol] = rng.integers(size) if kind == "reset" else (np.arange(size) + 1) % size
        follow = (follow[:, None] * size + own[None]).reshape(-1, symbols)
    return automaton_of(follow, list(range(len(follow))), int(rng.integers(len(follow))))


@settings(max_examples=60, deadline=None)
@given(structured(), st.integers(0, 2**32))
def test_every_form_follows_the_automaton(automaton, seed):
    strings = np.random.default_rng(seed).integers(0, len(automaton.symbols), (20, 50))
    x, lengths = one_hot(len(automaton.symbols), list(strings))
    wanted = np.stack([automaton.output[automaton.run(string)] for string in strings])
    for product in products(automaton):
        if (network := network_of_product(automaton, product, "it")) is not None:
            np.testing.assert_array_equal(run_reference(network, x, lengths).readout.argmax(axis=2), wanted)


@pytest.mark.parametrize("automaton", [last_of(5), ones_modulo(8), modulo(6)], ids=["latches", "toggles", "both"])
def test_the_smallest_form_on_the_chip(automaton, technology, calibration):
    found = forms(automaton, "it")
    form = smallest(found)
    assert form is not found[0] and form.transistors < found[0].transistors and form.area < found[0].area
    strings = np.random.default_rng(1).integers(0, len(automaton.symbols), (5, 60))
    x, lengths = one_hot(len(automaton.symbols), list(strings))
    design = compile_network(form.network, technology, calibration)
    assert design.assembly.transistors == form.transistors
    trace = run_behavioral(design, x)
    states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
    np.testing.assert_array_equal(states, software_states(design.graph, run_reference(form.network, x, lengths)))


def test_labels_that_no_line_parts():
    """Exclusive or of two bits that are set and reset alone: no weighted sum of two cells says it."""
    bits = np.array([[1, 0], [0, 1]])  # set, reset of one bit
    follow = [[2 * one + bits[b, s - 2] if s >= 2 else 2 * bits[b, s] + other for s in range(4)]
              for one in (0, 1) for other in (0, 1) for b in (0,)]  # fmt: skip
    automaton = automaton_of(follow, [0, 1, 1, 0])
    assert len(automaton.states) == 4
    (one_hot_form, *others) = products(automaton)
    latches = next(product for product in others if describe(product) == "2 latches")
    assert network_of_product(automaton, latches, "it") is None
    assert network_of_product(automaton, one_hot_form, "it") is not None
