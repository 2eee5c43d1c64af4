"""Registers of bits in place of a line of numbers: memories, correlators, matched filters."""

import itertools

import numpy as np
import pytest

from cosim.automata.recall import correlator, matched_filter, memory, to_bits
from cosim.base.errors import InputError, MappingError, NetworkError
from cosim.compiler.passes import compile_network
from cosim.network.reference import run_reference

EVERY = np.array(list(itertools.product((0, 1), repeat=8)))


@pytest.mark.parametrize(("symbols", "frames"), [(2, 1), (3, 7), (5, 2), (8, 30), (13, 9)])
def test_a_memory_has_the_symbol_of_so_many_frames_ago(symbols, frames):
    strings = np.random.default_rng(symbols).integers(0, symbols, (4, 60))
    trace = run_reference(memory(symbols, frames), to_bits(symbols, strings))
    recalled = trace.readout.argmax(axis=2)
    np.testing.assert_array_equal(recalled[:, frames:], strings[:, :-frames])
    assert not recalled[:, :frames].any()
    assert (trace.readout.max(axis=2) == (symbols - 1).bit_length()).all()


def test_a_correlator_knows_its_pattern_among_all():
    """Of 8 bits: each of the 256 fires behind its own string and behind no other, in the last frame."""
    x = EVERY[:, :, None].astype(float)
    for k, pattern in enumerate(EVERY):
        fired = run_reference(correlator(pattern), x).signals["match"][:, :, 0]
        np.testing.assert_array_equal(np.flatnonzero(fired[:, -1]), [k])


@pytest.mark.parametrize("length", [1, 3, 20])
def test_a_correlator_in_a_stream(length):
    """Zeros stand in front of the first frame."""
    rng = np.random.default_rng(length)
    stream = rng.integers(0, 2, 400)
    pattern = stream[200 : 200 + length]
    trace = run_reference(correlator(pattern), stream[None, :, None])
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([np.zeros(length - 1), stream]), length)
    passed = (windows == pattern).all(axis=1)
    assert passed[199 + length]
    np.testing.assert_array_equal(trace.signals["match"][0, :, 0], passed)
    np.testing.assert_array_equal(trace.readout[0].argmax(axis=1), passed)


def test_a_matched_filter_counts():
    rng = np.random.default_rng(2)
    patterns, stream = rng.integers(0, 2, (5, 11)), rng.integers(0, 2, 90)
    scores = run_reference(matched_filter(patterns), stream[None, :, None]).readout[0]
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([np.zeros(10), stream]), 11)
    np.testing.assert_array_equal(scores, (windows[:, None, :] == patterns[None]).sum(axis=2))


def test_a_long_memory_is_refused(technology, calibration):
    """2 bits and 128 frames are 256 shift cells."""
    compile_network(memory(4, 128), technology, calibration)
    with pytest.raises(MappingError, match="at most 256 shift cells, not more: that is a memory, .* a digital one"):
        compile_network(memory(4, 129), technology, calibration)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: memory(1, 3), "a memory must have 2 symbols at least, not 1"),
        (lambda: memory(2, 0), "late.bit_0.frames must lie in 1 to 4096, not 0"),
        (lambda: correlator([]), "equally long, 1 bit at least"),
        (lambda: correlator([0, 2, 1]), "a pattern must be of bits, 0 or 1, not 2"),
        (lambda: matched_filter([[0, 1], [1]]), "equally long"),
    ],
)
def test_what_is_no_register(build, text):
    with pytest.raises((InputError, NetworkError), match=text):
        build()
