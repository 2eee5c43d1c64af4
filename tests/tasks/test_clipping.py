"""Inputs beyond the range of an encoding are counted, up to what rounds to its ends."""

import numpy as np
import pytest

from cosim.network.types import InputEncoding
from cosim.tasks.testset import Clipping, TestSet, find_clipping

OFFSET, SCALE = np.array([-3.0, 10.0]), np.array([5.0, 20.0])  # -3 to 2 and 10 to 30


def sample_set(x, lengths):
    return TestSet(np.array(x), np.zeros(len(x), int), np.array(lengths), np.arange(len(x)))


def test_values_samples_and_the_farthest_are_named():
    """Four values beyond: one as padding, which does not count. -4 is 20 % of 5 below, 31 is 5 % of 20 above."""
    x = [[[2.0, 30.0], [-4.0, 31.0]], [[-3.0, 10.0], [0.0, 99.0]], [[2.5, 15.0], [0.0, 15.0]]]
    found = find_clipping(InputEncoding(OFFSET, SCALE), sample_set(x, [2, 1, 2]))
    assert found == Clipping(3, 10, 2, 3, 2, 0, -4.0, -3.0, 2.0)
    assert str(found) == (
        "3 of 10 values, in 2 of 3 samples and 2 features, lie beyond the range of the network's encoding and are "
        "clipped; the farthest: -4 of feature 0, 20 % beyond -3 to 2"
    )


@pytest.mark.parametrize(("levels", "slack"), [(None, 1e-6), (16, 0.5 / 16), (4, 0.5 / 4)])
def test_what_rounds_to_an_end_is_not_clipped(levels, slack):
    encoding = InputEncoding(OFFSET, SCALE, levels=levels)
    for factor, clipped in ((0.9, 0), (1.1, 4)):
        low, high = OFFSET - factor * slack * SCALE, OFFSET + (1 + factor * slack) * SCALE
        found = find_clipping(encoding, sample_set([[low, high]], [2]))
        assert (0 if found is None else found.values) == clipped


def test_ends_in_single_precision_are_in_the_range():
    encoding = InputEncoding(np.array([0.1, 1e-3]), np.array([0.7, 3.3]))
    ends = np.stack([encoding.offset, encoding.offset + encoding.scale]).astype(np.float32).astype(np.float64)
    assert find_clipping(encoding, sample_set(ends[None], [2])) is None
