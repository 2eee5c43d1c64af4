"""Differential pair integrator in ngspice: its gain, its two times, and what it is made of."""

import math

import numpy as np
import pytest

from cosim.cells.benches import DpiDrive, dpi_bench
from cosim.cells.dpi import DPI, INTEGRATION_NODE, dpi, dpi_capacitance, dpi_fall_time
from cosim.circuit.elements import Capacitor, Mos
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_bench
from cosim.units.ladder import TAU_SHARE
from cosim.verbs.calibrate.native import measure_dpi_output, measure_dpi_times

UNITS = 8
ALPHA = 0.5e-9
# F: what the transistors at vc add to C. Gates of 25 um2 in weak inversion, where the depletion layer is in series with
# the oxide, about 1 fF/um2: M2, each output, and the swing of vs that couples in through M2.
STRAY = 0.1e-12


@pytest.fixture
def output(technology, calibration):
    """(I_in, I_tau, I_g) -> settled output, ampere."""
    return lambda *currents: measure_dpi_output(technology, UNITS, currents, calibration.v_node)


@pytest.mark.parametrize("outputs", [1, 2])
def test_made_of_five_transistors_and_a_capacitor(technology, outputs):
    cell = dpi(technology, UNITS, outputs, 3e-12)
    transistors = {mos.name: mos for mos in cell.elements if isinstance(mos, Mos)}
    assert len(transistors) == 4 + outputs
    assert [element.value for element in cell.elements if isinstance(element, Capacitor)] == [3e-12]
    assert cell.name == f"{DPI}_{outputs}"
    # the differential pair stands in a well of its own, all other bulks are at the rails
    assert {name for name, mos in transistors.items() if mos.bulk == "vs"} == {"1", "2"}
    assert all(mos.bulk == {"n": "0", "p": "vdd"}[mos.polarity] for mos in transistors.values() if mos.bulk != "vs")
    for k in range(outputs):
        assert (transistors[f"out{k}"].gate, transistors[f"out{k}"].drain) == (INTEGRATION_NODE, f"out{k}")


def test_capacitance_of_ten_milliseconds(technology):
    """tau = C U_T / (kappa I_tau): 10 ms at 1 pA of I_tau cost 10 ms 1 pA / (1.32 25.9 mV) = 0.29 pF."""
    assert dpi_capacitance(technology, 10e-3, 1e-12) == pytest.approx(
        0.293e-12, rel=2e-3, abs=0
    )  # three digits by hand
    assert dpi_capacitance(technology, 5e-3, 4e-12) == pytest.approx(
        2 * dpi_capacitance(technology, 10e-3, 1e-12), rel=1e-12, abs=0
    )


@pytest.mark.ngspice
@pytest.mark.parametrize("alpha", [0.1e-9, 0.18e-9, 0.5e-9, 0.7e-9, 1.4e-9])
def test_settles_on_alpha_with_the_calibrated_ratio(output, calibration, alpha):
    """Measured at some of these alphas; between them the ratio is a straight line over log alpha.

    Its second derivative there is at most 0.012 per e-fold squared (second differences of the ratios), the alphas are
    at most 0.92 e-folds apart: 0.012 0.92^2 / 8 = 0.0013 of the ratio, hence of the output.
    """
    i_tau = TAU_SHARE * alpha
    assert output(alpha, i_tau, calibration.dpi.ratio(alpha) * i_tau) == pytest.approx(alpha, rel=0.0013, abs=0)


@pytest.mark.ngspice
def test_without_the_ratio_the_output_is_too_small(output):
    """With I_g = I_tau the equation settles on 0.98 alpha, and output conductance takes 2 % more."""
    assert output(ALPHA, TAU_SHARE * ALPHA, TAU_SHARE * ALPHA) < 0.97 * ALPHA


@pytest.mark.ngspice
def test_output_is_linear_in_the_input_and_follows_i_g(output):
    """I_out = (I_g / I_tau) (I_in - I_tau): steps of I_in, not I_in itself, are in proportion.

    The gain at 2 alpha and at alpha differs by what calibration found over a factor of 2 in current: under 2.5 %.
    """
    i_tau = TAU_SHARE * ALPHA
    low, middle, high = (output(i_in, i_tau, i_tau) for i_in in (0.5 * ALPHA, ALPHA, 1.5 * ALPHA))
    assert (high - middle) / (middle - low) == pytest.approx(1.0, rel=0.025)
    assert middle / (middle - low) == pytest.approx((1 - TAU_SHARE) / 0.5, rel=0.025)
    # vc stands a fixed voltage above vg, so I_out goes as I_g^(n(vg) / n(vc)); the diodes' slope factor is 1.296 from
    # 10 to 20 pA and 1.352 from 0.5 to 1 nA: 2^0.96, and half of the difference between n there as the tolerance
    assert output(ALPHA, i_tau, 2 * i_tau) / middle == pytest.approx(2**0.96, rel=0.02)


@pytest.mark.ngspice
def test_input_of_i_tau_leaves_no_output(output):
    """At I_in = I_tau the equation settles on 0; what is left is under I_g."""
    i_tau = TAU_SHARE * ALPHA
    assert 0 <= output(i_tau, i_tau, i_tau) < i_tau


@pytest.mark.ngspice
def test_times_are_the_calibrated_ones(technology, calibration):
    """The bench that the factors come from: equal but for their 9 digits and another ngspice, 1e-3."""
    rise, fall = measure_dpi_times(technology, UNITS, calibration.dpi, (ALPHA, 10e-3), calibration.v_node)
    assert rise == pytest.approx(calibration.dpi.rise, rel=1e-3)
    assert fall == pytest.approx(calibration.dpi.fall, rel=1e-3)


@pytest.mark.ngspice
@pytest.mark.parametrize(("alpha", "tau"), [(0.5e-9, 2.5e-3), (0.5e-9, 30e-3), (1e-9, 5e-3)])
def test_times_elsewhere_differ_by_stray_charge_alone(technology, calibration, alpha, tau):
    """The factors belong to 10 ms at 0.5 nA, C = 2.9 pF. Elsewhere STRAY is another part of C."""
    measured = np.array(measure_dpi_times(technology, UNITS, calibration.dpi, (alpha, tau), calibration.v_node))
    there, here = (dpi_capacitance(technology, t, TAU_SHARE * a) for t, a in ((10e-3, 0.5e-9), (tau, alpha)))
    allowed = STRAY * max(1 / there, 1 / here)
    np.testing.assert_allclose(measured, [calibration.dpi.rise, calibration.dpi.fall], atol=allowed, rtol=0)


def fall_time(technology, calibration, capacitance, alpha=ALPHA):
    """Time from alpha to alpha / e after the input has gone, second."""
    i_tau = TAU_SHARE * alpha
    i_g, tau = i_tau * calibration.dpi.ratio(alpha), 10e-3 * capacitance / dpi_capacitance(technology, 10e-3, i_tau)
    step = ((0.0, alpha), (tau, alpha), (1.001 * tau, 0.0))
    waves = run_bench(
        dpi_bench(technology, UNITS, DpiDrive(step, i_tau, i_g, capacitance, 5 * tau), calibration.v_node)
    )
    assert not isinstance(waves, Failure), waves.detail
    time, out = waves.time, np.abs(waves.through("out"))
    after = time > tau
    return float(np.interp(-out[0] / math.e, -out[after], time[after])) - tau


@pytest.mark.ngspice
def test_a_capacitor_more_costs_its_own_time(technology, calibration):
    """Stray charge drops out of a difference: t2 - t1 = (C2 - C1) U_T / (kappa I_tau), ln of e being 1.

    1 %: the slope factor of the diodes is 1.319 to 1.334 between alpha / e and alpha, against 1.32 of the technology.
    """
    first, second = (fall_time(technology, calibration, c) for c in (2e-12, 5e-12))
    expected = 10e-3 * 3e-12 / dpi_capacitance(technology, 10e-3, TAU_SHARE * ALPHA) * dpi_fall_time(math.e, 1.0)
    assert second - first == pytest.approx(expected, rel=0.01)
