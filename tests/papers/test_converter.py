"""The converters at the cut: what they round is decided like what it was rounded from."""

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.network.layers import scan
from cosim.network.reference import encode_inputs, run_reference
from cosim.papers.converter import COVER, FEWEST_BITS, MOST_BITS, calibrate, compared, step_of, steps_of

BITS = range(FEWEST_BITS, MOST_BITS + 1)
UNITS = 6


def near(beta, rng):
    """Candidates in single precision, (40, 50, units): some anywhere, some at a threshold or one step beside it."""
    h = (rng.normal(0, 1, (40, 50, UNITS)) * beta * 3).astype(np.float32)
    at = rng.choice([-1, 1], h.shape).astype(np.float32) * np.broadcast_to(beta, h.shape)
    beside = [
        np.nextafter(at, np.float32(-np.inf)),
        at,
        np.nextafter(at, np.float32(np.inf)),
        np.zeros_like(h),
        1000 * at,
    ]
    kind = rng.integers(0, 9, h.shape)
    for k, values in enumerate(beside):
        h = np.where(kind == k, values, h)
    return h.astype(np.float32)


def equation(h, beta):
    """Eq. (7) at epsilon 0 from low, in single precision: 0 or 1."""
    return scan(np.abs(h) >= beta, np.where(h >= 0, 1.0, 0.0), 0.0, np.zeros(UNITS))


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("moving", [False, True])
def test_no_decision_depends_on_the_converter(bits, moving):
    rng = np.random.default_rng(bits)
    shape = (40, 50, UNITS) if moving else (UNITS,)
    beta = np.float32(10) ** rng.uniform(-3, 2, shape).astype(np.float32)
    h = near(beta, rng)
    g = compared(h, np.broadcast_to(beta, h.shape))
    partition = calibrate("blocks.0.cell", g[:5].reshape(-1, UNITS), bits)
    found = run_reference(partition.network, g).signals["cell"]
    assert (np.abs(h) == beta).any() and (np.abs(g) > partition.ranges).any()
    assert np.array_equal(found > 0, equation(h, beta) > 0)


@pytest.mark.parametrize("bits", BITS)
def test_half_a_step_of_room_on_either_side(bits):
    rng = np.random.default_rng(1)
    g = rng.normal(0, [0.1, 1, 2, 5, 50, 500], (4000, UNITS))
    partition = calibrate("blocks.0.cell", g, bits)
    layer = partition.layer
    candidate = layer.drive(encode_inputs(partition.network.encoding, g[None]).units)
    room = np.abs(np.abs(candidate) - layer.bias_beta)
    assert room.min() == pytest.approx(step_of(bits) / 2, rel=1e-9)
    assert len(np.unique(np.round(candidate / step_of(bits), 6))) <= steps_of(bits) + 1
    assert np.array_equal(partition.thresholds % 1, np.full(UNITS, 0.5))
    assert ((layer.weight / partition.network.weight_grid) % 1 == 0).all()  # whole unit devices
    assert ((layer.bias / partition.network.weight_grid) % 1 == 0).all()


def test_ranges_are_the_smallest_that_hold_the_data():
    rng = np.random.default_rng(2)
    g = rng.normal(0, [0.1, 0.5, 1, 2, 3, 1000], (20000, UNITS))
    partition = calibrate("blocks.0.cell", g, 5)
    reach = np.quantile(np.abs(g), COVER, axis=0)
    smaller = 15 / (partition.thresholds + 1)
    assert (partition.ranges[:5] >= reach[:5]).all() and (smaller[1:] < reach[1:]).all()
    assert partition.ranges[0] == pytest.approx(15 / 14.5)  # 1 must be inside, whatever the data
    assert partition.ranges[5] == pytest.approx(30.0)  # and what is far beyond may be clipped
    assert partition.clipped == pytest.approx((np.abs(g) > partition.ranges).mean())


def test_a_threshold_of_zero_decides_by_the_sign():
    h, beta = np.array([-1e-30, -0.0, 0.0, 1e-30, 5.0]), np.zeros(5)
    assert np.array_equal(compared(h, beta) >= 1, [False, True, True, True, True])
    assert np.isfinite(compared(h, beta)).all()


@pytest.mark.parametrize("bits", [1, 7, 0])
def test_converters_that_cannot_be(bits):
    with pytest.raises(InputError, match=f"--bits must lie in 2 to 6, not {bits}"):
        calibrate("blocks.0.cell", np.ones((3, 2)), bits)


def test_names():
    g = np.ones((3, 2))
    assert calibrate("blocks.0.cell", g).name == "block1"
    assert calibrate("blocks.2.cell.cells.1", g).name == "block3_cell2"
