"""The delayed memory unit of one bit: its equations, its network, and its states on transistors."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.lines import SteeredLine, inputs_of, lag_detector, run_steered, steered_network
from cosim.automata.train_bits import generate_chosen_lag
from cosim.base.errors import NetworkError
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.simulated import engine_named
from cosim.network.ir.states import software_states
from cosim.network.reference import run_reference
from cosim.tasks.testset import TestSet


def random_unit(seed, delays, step=0.5, divided=0, units=3, inputs=2):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.integers(-4, 5, shape) * step

    rows = draw(units, inputs), draw(units, units), draw(units) + 0.5
    gate = draw(delays, inputs), draw(delays, delays), draw(delays)
    return SteeredLine(*rows, *gate, draw(2, units), draw(2), ("a", "b"), divided, step)


def bits_of(seed, inputs=2, count=4, steps=50):
    return np.random.default_rng(seed).integers(0, 2, (count, steps, inputs)).astype(float)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 6), st.sampled_from([0.5, 0.125]), st.integers(0, 3))
def test_the_network_is_the_unit(seed, delays, step, divided):
    unit, x = random_unit(seed, delays, step, divided), bits_of(seed)
    found, trace = run_steered(unit, x), run_reference(steered_network(unit, "it"), inputs_of(unit, x))
    np.testing.assert_array_equal(trace.signals["state"], found.state)
    np.testing.assert_array_equal(trace.signals["arrived"], found.arrived)
    np.testing.assert_array_equal(trace.signals["gate"], np.eye(delays)[found.gate])
    np.testing.assert_array_equal(trace.readout, found.scores)  # sums of eighths


@pytest.mark.parametrize("seed", range(5))
def test_what_arrives_was_sent_so_long_ago(seed):
    """(3), from states and gates alone: delay k arrives k frames later, in a line of any past."""
    found = run_steered(random_unit(seed, 5), bits_of(seed))
    arrived = np.zeros_like(found.arrived)
    for t, k in itertools.product(range(50), range(1, 6)):
        if t >= k:
            sent = found.state[:, t - k] * (found.gate[:, t - k] == k - 1)[:, None]
            arrived[:, t] = np.maximum(arrived[:, t], sent)
    np.testing.assert_array_equal(found.arrived, arrived)
    assert 0 < arrived.mean() < 1


@pytest.mark.parametrize("divided", [1, 2, 3])
def test_a_dilated_line_moves_at_every_tick(divided):
    """With delay j sent at frame t, M_1 holds the bit from the j-th move on that is not before its own frame's, for tau
    frames; what has arrived shows it a frame later."""
    tau, delays = 2**divided, 3
    for delay, at in itertools.product(range(1, delays + 1), range(2 * tau)):
        x = np.zeros((1, 6 * tau, 1 + delays))
        x[0, at, 0] = x[0, 0, delay] = 1.0
        found = run_steered(lag_detector(delays, divided), x).arrived[0, :, 0]
        moves = (at + 1) // tau + delay - 1  # in front of the last one that it waits for
        expected = np.zeros(6 * tau)
        first = at + 1 if delay == 1 else moves * tau
        expected[first : (moves + 1) * tau] = 1.0
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("delays", [2, 3, 8, 16])
def test_a_lag_detector_is_told_its_lag(delays):
    x, y = generate_chosen_lag(20, tuple(range(1, delays + 1)), steps=80, seed=1)
    found = run_steered(lag_detector(delays), x.astype(float))
    np.testing.assert_array_equal(found.scores.argmax(axis=2), y)
    assert y.any()


@pytest.mark.parametrize(
    ("delays", "step", "divided"), [(2, 0.5, 0), (4, 0.5, 0), (4, 0.125, 0), (4, 0.5, 2), (16, 0.5, 0)]
)
def test_cells_by_their_equations(delays, step, divided, technology, calibration):
    unit, x = random_unit(7, delays, step, divided, units=2), bits_of(1)
    design = compile_network(steered_network(unit, "it"), technology, calibration)
    trace = run_behavioral(design, inputs_of(unit, x))
    states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
    wanted = software_states(design.graph, run_reference(design.network, inputs_of(unit, x)))
    np.testing.assert_array_equal(states, wanted)


def test_on_transistors(batch, technology, calibration):
    """A lag detector of three delays, all states of all frames."""
    unit = lag_detector(3)
    x = generate_chosen_lag(3, (1, 2, 3), steps=16, seed=2)[0].astype(float)
    design = compile_network(steered_network(unit, "it"), technology, calibration)
    wanted = software_states(design.graph, run_reference(design.network, x))
    test_set = TestSet(x, np.zeros(3, dtype=np.int64), np.full(3, 16), np.arange(3))
    found = engine_named("batch").infer(design, test_set, Run(jobs=0, engine="batch"), lambda done, total: None)
    for one, right in zip(found, wanted, strict=True):
        assert isinstance(one, Inference)
        np.testing.assert_array_equal(one.states, right)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"bias": np.array([0.3])}, "bias must be of multiples of 0.5, not 0.3; round it to the grid"),
        ({"divided": 4}, "divided must lie in 0 to 3, not 4"),
        ({"gate_bias": np.zeros(17)}, "a steered line must have 2 to 16 delays, not 17"),
    ],
)
def test_what_is_refused(change, text):
    with pytest.raises(NetworkError, match=text):
        steered_network(replace(lag_detector(3), **change), "it")
