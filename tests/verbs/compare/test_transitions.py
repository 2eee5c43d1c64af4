"""What a run did of an automaton: counted by hand, and on transistors."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.automaton import modulo
from cosim.automata.network import network_of, one_hot
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure, FailureKind, Inference, Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.tasks.testset import TestSet
from cosim.verbs.automaton.section import say_transitions
from cosim.verbs.automaton.structure import tour
from cosim.verbs.compare.transitions import count_transitions, find_transitions

THREE, UNIT = modulo(3), 1e-9
CODED = THREE, np.eye(3)
NOTHING = np.empty((0, 0))


def frames(symbols, states, margins=NOTHING):
    """Of a counter of three: states by number, -1 for none, 9 for all."""
    cells = np.concatenate([np.eye(3, dtype=np.int16), np.zeros((1, 3)), np.ones((1, 3))])
    places = [{-1: 3, 9: 4}.get(state, state) for state in states]
    return np.array(symbols), cells[places], np.asarray(margins)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=20), min_size=1, max_size=6), st.integers(0, 2**32))
def test_every_frame_is_one_of_its_transition(strings, seed):
    rng = np.random.default_rng(seed)
    wanted, least, runs = Counter(), {}, []
    for string in strings:
        margins = rng.uniform(size=(len(string), 3))
        state = 0
        for symbol, few in zip(string, margins, strict=True):
            wanted[str(state), str(symbol)] += 1
            least[str(state), str(symbol)] = min(few.min(), least.get((str(state), str(symbol)), np.inf))
            state = (state + symbol) % 3
        runs.append(frames(string, THREE.run(np.array(string)), margins))
    found = count_transitions(*CODED, runs, UNIT)
    assert {(row.state, row.symbol): row.taken for row in found.rows if row.taken} == wanted
    assert {(row.state, row.symbol): row.margin_a for row in found.rows if row.margin_a is not None} == least
    assert (found.taken, found.wrong, found.astray) == (len(wanted), 0, 0) and found.margin_a == min(least.values())
    assert all(int(row.next) == (int(row.state) + int(row.symbol)) % 3 for row in found.rows) and len(found.rows) == 9


def row(found, state, symbol):
    return next(one for one in found.rows if (one.state, one.symbol) == (state, symbol))


def test_behind_a_wrong_state_their_own_way_counts():
    """0 by 1 leads to 2 where it should lead to 1; from there 2 by 1 is taken, and is right."""
    found = count_transitions(*CODED, [frames([1, 1], [2, 0], [[3e-10, 5e-10, 4e-10], [1e-10, 2e-10, np.inf]])], UNIT)
    assert (row(found, "0", "1").taken, row(found, "0", "1").wrong) == (1, 1)
    assert (row(found, "2", "1").taken, row(found, "2", "1").wrong) == (1, 0)
    assert row(found, "1", "1").taken == 0 and row(found, "1", "1").margin_a is None
    assert [row(found, state, "1").margin_a for state in "02"] == [3e-10, 1e-10]
    assert say_transitions(found) == "2 of 9 taken, smallest margin 100 pA, 1 led to a wrong state"


def test_frames_that_belong_to_none():
    """Behind no cell, behind all of them, and by no symbol; what leads there is wrong."""
    found = count_transitions(*CODED, [frames([0, 0, 0, -1, 1], [-1, 9, 0, 0, 1])], UNIT)
    assert (found.astray, found.wrong, found.taken, found.margin_a) == (3, 1, 2, None)
    assert say_transitions(found) == "2 of 9 taken, 1 led to a wrong state, 3 frames astray"


@pytest.fixture(scope="module")
def counter(technology, calibration):
    """A design, and samples that take every transition, and then one that fails."""
    design = compile_network(network_of(THREE, "sum"), technology, calibration)
    x, lengths = one_hot(3, [*tour(THREE, 5), np.array([1])])
    return design, TestSet(x, np.zeros(len(x), dtype=np.int64), lengths, np.arange(len(x)))


def test_samples_of_a_design(counter):
    design, test_set = counter
    strings = test_set.x.argmax(axis=2)
    outcomes = [
        Inference(np.eye(3, dtype=np.int16)[THREE.run(string[:length])], np.zeros((length, 3)), 1e-9)
        for string, length in zip(strings[:-1], test_set.lengths, strict=False)
    ]
    found = find_transitions(design, test_set, [*outcomes, Failure(FailureKind.CRASH, "", "")], Run())
    assert found is not None and found.unit_a == design.i_unit
    assert (found.taken, found.wrong, found.astray, found.margin_a) == (9, 0, 0, None)
    assert sum(one.taken for one in found.rows) == test_set.lengths[:-1].sum()
    assert say_transitions(found) == "9 of 9 taken"


def test_a_network_that_follows_none(counter, make_network, technology, calibration):
    _, test_set = counter
    design = compile_network(make_network(3), technology, calibration)
    assert find_transitions(design, replace(test_set, x=np.zeros((1, 2, 3))), [], Run()) is None


@pytest.mark.ngspice
def test_on_transistors(batch, counter):
    """Every transition of a tour, and margins of no more than the level: a candidate is 0 or 1, and thresholds are
    at 0.35 and 0.55 of it."""
    design, test_set = counter
    run = Run(jobs=0, engine="batch")
    found = find_transitions(design, test_set, simulate_samples(design, test_set, run), run)
    assert found is not None
    assert (found.taken, found.wrong, found.astray) == (9, 0, 0)
    assert all(
        row.margin_a is not None and 0.2 * found.unit_a < row.margin_a < 0.65 * found.unit_a for row in found.rows
    )
