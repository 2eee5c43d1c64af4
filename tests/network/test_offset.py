import math

import numpy as np
import pytest

from cosim.network.layers import OFFSET_MARGIN, OFFSET_STEP, common_mode_offset

RANDOM = np.random.default_rng(0).uniform(0, 40, 20_000)
LATTICE = np.arange(0, 40, 1 / 16)  # of mirror weights times levels of inputs: where rounding up jumps


@pytest.mark.parametrize("beta", [RANDOM, LATTICE, np.nextafter(LATTICE, np.inf), np.array(0.375)])
def test_the_offset_is_the_next_step_above_the_largest_beta(beta):
    offset = common_mode_offset(beta)
    assert np.all(offset - beta >= OFFSET_MARGIN - 1e-12)
    assert np.all(offset - beta < OFFSET_MARGIN + OFFSET_STEP)
    assert np.all(offset % OFFSET_STEP == 0)


def test_one_number_and_many_agree_to_the_bit():
    for beta in (*RANDOM[:2000], *LATTICE):
        exact = math.ceil((float(beta) + OFFSET_MARGIN) / OFFSET_STEP) * OFFSET_STEP
        assert float(common_mode_offset(float(beta))) == exact
    assert common_mode_offset(RANDOM).tolist() == [float(common_mode_offset(beta)) for beta in RANDOM]


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_precision_is_kept_and_computed_with_as_torch_does(precision):
    torch = pytest.importorskip("torch")
    for beta in (RANDOM.astype(precision), LATTICE.astype(precision)):
        ours = common_mode_offset(beta)
        theirs = ((torch.from_numpy(beta) + OFFSET_MARGIN) / OFFSET_STEP).ceil() * OFFSET_STEP
        assert ours.dtype == precision
        assert ours.tobytes() == theirs.numpy().tobytes()
