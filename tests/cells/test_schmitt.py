"""9T cell in ngspice: hysteresis, calibrated set-points, memory, idle power."""

import numpy as np
import pytest

from cosim.cells.mirror import weight
from cosim.cells.schmitt import SCHMITT, schmitt
from cosim.circuit.elements import Circuit, Instance, Source
from cosim.verbs.calibrate.measure import measure_schmitt

pytestmark = pytest.mark.ngspice

UNITS = 8


def set_points(count, seed):
    """(i_rise, i_fall, i_high) in ampere: rise and level in 0.1 to 1 nA, fall from 0.1 nA, width from 40 pA."""
    rng = np.random.default_rng(seed)
    points = []
    while len(points) < count:
        fall, rise, high = rng.uniform(0.1e-9, 1e-9, 3)
        if rise - fall > 40e-12:
            points.append((float(rise), float(fall), float(high)))
    return points


@pytest.mark.parametrize("point", set_points(10, seed=20), ids=lambda p: "-".join(f"{1e12 * i:.0f}" for i in p))
def test_calibrated_set_points_within_one_percent(technology, calibration, point):
    rise, fall, high = point
    fit = calibration.schmitt
    bias = (*fit.solve_thresholds(rise, fall), fit.solve_gain(high))
    measured = measure_schmitt(technology, UNITS, bias, calibration.v_node)
    # The bar of acceptance. What makes it hold is the fit, whose largest error over its grid stands in the file:
    assert fit.error < 0.01
    assert measured == pytest.approx(point, rel=0.01, abs=0)
    assert measured[0] > measured[1] > 0


@pytest.mark.parametrize("bias", [(0.1e-9, 0.02e-9, 0.5e-9), (0.7e-9, 0.6e-9, 1e-9), (3e-9, 1.1e-9, 0.3e-9)])
def test_upper_above_lower_at_raw_biases(technology, calibration, bias):
    rise, fall, high = measure_schmitt(technology, UNITS, bias, calibration.v_node)
    i_thresh, i_width, i_gain = bias
    assert rise > fall > 0
    # The equations of the cell, 1 : 1 copies; its sources see up to 1 V more than the diodes: 3 %/V of the current, on
    # the difference of two currents for the lower threshold.
    assert rise == pytest.approx(i_thresh, rel=0.04, abs=0)
    assert fall == pytest.approx(i_thresh - i_width, abs=0.03 * (i_thresh + i_width))
    assert high == pytest.approx(i_gain, rel=0.04, abs=0)


BIAS = (0.6e-9, 0.3e-9, 0.9e-9)


@pytest.fixture
def cell_run(run_bench, supply, signal_blocks, technology, calibration, cell_bias):
    """(candidate waveform, end in s) -> waveforms of one cell whose output a weight of -1 copies into vout."""

    def run(candidate, end):
        elements = (
            supply,
            Source("in", "i", "cand", "0", candidate),
            *cell_bias(BIAS),
            Instance("cell", ("cand", "thresh", "width", "gain", "out", "vdd"), SCHMITT),
            *weight("neg", "out", "node", -UNITS, technology),
            Source("out", "v", "node", "load", 0.0),
            Source("load", "v", "vdd", "load", calibration.v_node),
        )
        analysis = f".tran {end / 500:e} {end:e} 0 {end / 500:e}"
        circuit = Circuit("cell", (*signal_blocks, schmitt(technology, UNITS)), elements)
        return run_bench(circuit, analysis, "v(xcell.v0) i(vout) i(vdd)")

    return run


def test_state_is_kept_in_the_band(cell_run, technology):
    """Up over the upper threshold, back into the band, 10 s there; down under the lower, back into the band, 10 s."""
    band, above, below = 0.45e-9, 0.8e-9, 0.2e-9
    corners = ((0, 0), (1, band), (2, band), (3, above), (4, band), (14, band), (15, below), (16, band), (26, band))
    waves = cell_run(tuple((float(time), current) for time, current in corners), 26.0)
    state = np.interp([1.9, 3.0, 4.1, 9.0, 13.9, 15.0, 16.1, 21.0, 25.9], waves["time"], waves["xcell.v0"])
    assert (state > technology.supply / 2).tolist() == [False, True, True, True, True, False, False, False, False]
    output = np.interp([13.9, 25.9], waves["time"], waves["vout#branch"])
    assert output[0] == pytest.approx(BIAS[2], rel=0.04, abs=0)  # as above: 3 %/V
    assert abs(output[1]) < 1e-14  # the header's off current


def supply_current(waves, at):
    """What V_DD delivers; the output's copy returns to it through the load and does not count."""
    return -float(np.interp(at, waves["time"], waves["vdd#branch"]))


def test_idle_power_is_the_three_biases(cell_run):
    """State 0, candidate 0: the bias diodes are all that draws, so P = V_DD (I_thresh + I_width + I_gain)."""
    waves = cell_run(((0.0, 0.0), (1.0, 0.0)), 1.0)
    # 15 devices of at most 1e-14 A each (the card's header), of 1.8 nA; reltol 1e-5 beside it
    assert supply_current(waves, 0.9) == pytest.approx(sum(BIAS), rel=15 * 1e-14 / sum(BIAS) + 2e-5, abs=0)


def test_power_in_state_one(cell_run):
    """Adds the decision branch, the feedback and the output: P = V_DD (2 (I_thresh + I_width + I_gain) + candidate)."""
    band = 0.45e-9
    waves = cell_run(((0.0, 0.0), (1.0, 0.8e-9), (2.0, band), (4.0, band)), 4.0)
    # M2, M5 and M8 see up to 1.3 V more than their diodes, at up to 2.9 %/V: 4 % of their sum
    assert supply_current(waves, 3.9) == pytest.approx(2 * sum(BIAS) + band, abs=0.04 * sum(BIAS))
