"""What a backbone's batches are made of."""

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.papers.sources import Samples, shifted


def test_samples_are_moved_and_what_comes_in_is_their_end():
    x = np.arange(1.0, 7.0)[None, :, None] * np.array([1.0, 10.0])[:, None, None]
    samples = Samples(x, np.array([0, 1]), np.array([6, 4]))
    found = {tuple(shifted(samples, 2, np.random.default_rng(seed)).x[1, :, 0] / 10) for seed in range(40)}
    assert found == {
        (3, 4, 4, 4, 5, 6),
        (2, 3, 4, 4, 5, 6),
        (1, 2, 3, 4, 5, 6),
        (1, 1, 2, 3, 5, 6),
        (1, 1, 1, 2, 5, 6),
    }
    assert np.array_equal(samples.x, x)


@pytest.mark.parametrize(
    "samples",
    [
        Samples(np.zeros((2, 5), np.int64), np.zeros(2), np.full(2, 5)),
        Samples(np.zeros((2, 5, 1)), np.zeros((2, 5)), np.full(2, 5), np.ones((2, 5), bool)),
    ],
)
def test_what_has_no_place_in_time_to_move_is_refused(samples):
    with pytest.raises(InputError, match="--shift is for sequences of numbers with one target each; leave it out"):
        shifted(samples, 1, np.random.default_rng(0))
