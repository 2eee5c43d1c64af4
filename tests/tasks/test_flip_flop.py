"""The flip-flop language: what its strings are, and that the shipped network follows it.

On transistors: tests/engines/batch/test_late.py.
"""

import numpy as np
import pytest

from cosim.base.resources import trained_network_path
from cosim.exchange.checkpoint import load_network
from cosim.network.reference import run_reference
from cosim.tasks.memory import SYMBOLS, generate_flip_flop_task


def spelled(x, length):
    """The symbols of one string, of which each step holds one."""
    assert x[:length].sum(axis=1).tolist() == [1] * length
    assert not x[length:].any()
    return [SYMBOLS[k] for k in x[:length].argmax(axis=1)]


def recalled(string):
    """By the definition alone: the bit last written at each `r`, by its place."""
    written, found = "", {}
    for place, symbol in enumerate(string):
        if symbol in "01" and string[place - 1] == "w":
            written = symbol
        if symbol == "r":
            found[place] = int(written)
    return found


@pytest.fixture(scope="module")
def task():
    return generate_flip_flop_task(pairs=13, n_train=211, n_test=102, seed=3)


def test_a_read_is_followed_by_the_bit_last_written(task):
    parts = (task.x_train, task.y_train, task.len_train), (task.x_test, task.y_test, task.len_test)
    for x, y, length in (row for part in parts for row in zip(*part, strict=True)):
        string = spelled(x, length)
        assert string[0] == "w" and string[-1] == "r"
        assert set(string[::2]) <= set("wri") and set(string[1::2]) <= set("01")
        reads = recalled(string)
        assert reads.pop(length - 1) == y
        assert all(string[place + 1] == str(bit) for place, bit in reads.items())


def test_lengths_and_shares(task):
    assert set(task.len_train) == {2 * pairs + 1 for pairs in range(1, 14)} and task.x_train.shape == (211, 27, 5)
    assert set(task.len_test) == {2 * 8 * 13 + 1} and task.x_test.shape == (102, 209, 5)
    for part, ignored in ((task.x_test[::2], 0.8), (task.x_test[1::2], 0.98)):
        free = part[:, 2:-1:2].reshape(-1, 5)  # neither the first instruction nor the last
        shares = free.mean(axis=0)[:3]
        expected = np.array([(1 - ignored) / 2, (1 - ignored) / 2, ignored])
        # five standard deviations of a share of so many draws
        assert (np.abs(shares - expected) < 5 * np.sqrt(expected * (1 - expected) / len(free))).all()
    for y in (task.y_train, task.y_test):
        assert abs(y.mean() - 0.5) < 5 * 0.5 / len(y) ** 0.5


def test_the_same_for_the_same_seed(task):
    again, other = (generate_flip_flop_task(pairs=13, n_train=211, n_test=102, seed=seed) for seed in (3, 4))
    np.testing.assert_array_equal(again.x_train, task.x_train)
    np.testing.assert_array_equal(again.x_test, task.x_test)
    assert not np.array_equal(other.x_test, task.x_test)


@pytest.fixture(scope="module")
def network():
    pytest.importorskip("torch")
    return load_network(trained_network_path("flip_flop_d2"))


def test_the_shipped_network_is_right_at_every_read(network):
    """At 8 times the length it was trained on, dense and sparse, in strings that it has not seen."""
    task = generate_flip_flop_task(n_train=0, n_test=600, seed=7)
    told = run_reference(network, task.x_test).readout.argmax(axis=2)
    for x, found, length in zip(task.x_test, told, task.len_test, strict=True):
        reads = recalled(spelled(x, length))
        assert found[list(reads)].tolist() == list(reads.values())
