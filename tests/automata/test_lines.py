"""Counters by toggles, rings and dilated lines: what they are to do, the same by the cells' equations."""

import numpy as np
import pytest

from cosim.automata.lines import AGAIN, binary_counter, dilated_line, position_code, ring
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.network.ir.states import software_states
from cosim.network.reference import run_reference


def assert_circuit_follows(network, x, technology, calibration):
    design = compile_network(network, technology, calibration)
    trace = run_behavioral(design, x)
    states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
    np.testing.assert_array_equal(states, software_states(design.graph, run_reference(network, x)))
    power = sum(behavioral_power(design, trace).values())
    assert (power > 1e-9).all() and (power < 1e-6).all()


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_a_counter_counts(bits, technology, calibration):
    network = binary_counter(bits)
    x = (np.random.default_rng(bits).random((3, 80, 1)) < 0.7).astype(float)
    count = np.cumsum(x[:, :, 0], axis=1) % 2**bits
    np.testing.assert_array_equal(run_reference(network, x).readout.argmax(axis=2), count)
    assert_circuit_follows(network, x, technology, calibration)


def test_a_position_code_is_the_binary_number_of_the_frame(technology, calibration):
    network, x = position_code(8), np.ones((1, 300, 1))
    number = (np.arange(1, 301)[:, None] >> np.arange(8)) & 1
    np.testing.assert_allclose(run_reference(network, x).readout[0], number, atol=1e-12)  # of whole numbers
    assert_circuit_follows(network, x, technology, calibration)


def test_a_ring_replays_what_was_written(technology, calibration):
    """For a hundred turns, and again after a bit was written over."""
    bits = np.random.default_rng(0).integers(0, 2, 16)
    symbols = np.concatenate([bits, np.full(1600, AGAIN), [1 - bits[0]], np.full(15 + 16, AGAIN)])
    network, x = ring(16), np.eye(3)[symbols][None]
    out = run_reference(network, x).readout[0, :, 0]
    np.testing.assert_array_equal(out[15 : 15 + 1616].reshape(101, 16), np.tile(bits, (101, 1)))
    np.testing.assert_array_equal(out[-17:-1], [1 - bits[0], *bits[1:]])
    assert_circuit_follows(network, x[:, :200], technology, calibration)


@pytest.mark.parametrize("divided", [1, 2, 3])
def test_a_dilated_line_delays_by_whole_periods(divided, technology, calibration):
    period, cells = 2**divided, 5
    bits = np.random.default_rng(divided).integers(0, 2, (2, 120)).astype(float)
    network, x = dilated_line(cells, divided), np.stack([np.ones_like(bits), bits], axis=2)
    ticks = (np.arange(120) + 1) // period * period - 1  # the last one up to each frame
    delayed = ticks[:, None] - period * np.arange(cells)
    wanted = np.where(delayed >= 0, bits[:, np.maximum(delayed, 0)], 0.0)
    np.testing.assert_array_equal(run_reference(network, x).readout, wanted)
    assert_circuit_follows(network, x, technology, calibration)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: binary_counter(5), "bits must lie in 1 to 4, not 5"),
        (lambda: position_code(9), "bits must lie in 1 to 8, not 9"),
        (lambda: ring(1), "cells must lie in 2 to 256, not 1; a longer memory is a digital one"),
        (lambda: dilated_line(0, 1), "cells must lie in 1 to 256, not 0"),
        (lambda: dilated_line(4, 4), "divided must lie in 1 to 3, not 4"),
    ],
)
def test_what_is_too_long(make, text):
    with pytest.raises(ValueError, match=text):
        make()
