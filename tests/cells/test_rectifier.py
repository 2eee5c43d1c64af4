"""Rectifier in ngspice: max(pull - push, 0), a soft corner, and a residue that output conductance explains."""

import numpy as np
import pytest

from cosim.cells.mirror import weight
from cosim.cells.rectifier import CANDIDATE
from cosim.circuit.elements import Circuit, Instance

pytestmark = pytest.mark.ngspice

RATIOS = np.arange(0.0, 2.01, 0.1)  # pull over push


@pytest.fixture(params=[0.1e-9, 1e-9])
def push(request):
    return request.param


@pytest.fixture
def rectified(run_bench, supply, signal_blocks, signals, technology, push):
    """Diode current over pull = RATIOS * push."""
    elements = (
        supply,
        *signals(push=push, pull=0.0),
        *weight("neg", "push_p", "node", -8, technology),
        *weight("pos", "pull_n", "node", 8, technology),
        Instance("cand", ("node", "vdd"), CANDIDATE),
    )
    sweep = f".dc ipull 0 {2 * push:e} {0.1 * push:e}"
    waves = run_bench(Circuit("rectifier", signal_blocks, elements), sweep, "@m.xcand.mdiode[id]")
    return np.abs(waves["@m.xcand.mdiode[id]"])


def test_above_the_corner_it_is_the_difference(rectified, push, calibration):
    mirror = calibration.mirror
    above = RATIOS > 1.05
    pulled = RATIOS[above] * push
    drop = mirror.node_drop(rectified[above])
    gain_n, gain_p = (mirror.interpolate(gains, pulled) for gains in (mirror.gain_n, mirror.gain_p))
    gain_p = mirror.interpolate(mirror.gain_p, np.float64(push))
    expected = pulled * gain_n * (1 - mirror.slope_n * drop) - push * gain_p * (1 + mirror.slope_p * drop)
    # The slopes are those at the node's voltage for 1 nA. Over the node's +-0.2 V they vary by +-0.4 %/V (the card's
    # header: 2.1 to 2.9 %/V): 0.1 % of what flows. The interpolation of gains and reltol are below.
    np.testing.assert_allclose(rectified[above], expected, atol=2e-3 * push, rtol=0)
    # What the network means, max(pull - push, 0): 1 % of gain and 0.2 V times both slopes, 2 x 2.5 %/V
    np.testing.assert_allclose(rectified[above], pulled - push, atol=0.02 * push, rtol=0)


def test_below_the_corner_only_leakage_is_left(rectified, push, technology):
    below = RATIOS < 0.95
    # The pushing device leaves saturation until 1 - exp(-V/u_t) = pull/push; the diode then carries I_0 exp(V/(n u_t)).
    i_0 = 1e-14  # the card's header bounds the off current of a device
    bound = i_0 * (1 - RATIOS[below]) ** (-1 / technology.pfet.slope_factor)
    assert (rectified[below] < bound).all()


def test_residue_at_the_corner(rectified, push, calibration):
    """At pull = push the node stands high, pulls give more and pushes less: r = dg + (a_n + a_p) swing ln(1 nA / r)."""
    mirror = calibration.mirror
    gain_n, gain_p = (mirror.interpolate(gains, np.float64(push)) for gains in (mirror.gain_n, mirror.gain_p))
    difference = gain_n - gain_p
    residue = 0.01
    for _ in range(50):
        rise = mirror.swing * np.log(1e-9 / (residue * push))  # of the node above where it stands at 1 nA, V
        residue = float(difference + (mirror.slope_n + mirror.slope_p) * rise)
    measured = rectified[np.argmin(np.abs(RATIOS - 1))] / push
    # The slope of the pushing device grows from 2.0 to 2.9 %/V as its drain nears the supply: +-20 % of the pMOS half.
    assert measured == pytest.approx(residue, rel=0.1, abs=0)
    assert measured < 0.015


def test_it_never_falls(rectified):
    assert (np.diff(rectified) > 0).all()
