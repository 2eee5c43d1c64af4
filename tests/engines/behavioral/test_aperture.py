"""What a clocked 9T cell decides by: limits of its equations by hand, and the figures that they need."""

import numpy as np
import pytest

from cosim.circuit.waveforms import Timing
from cosim.engines.behavioral.noise import ClockedCells, apertures, gate_lag
from cosim.technology.noise import DECISION_CURRENTS
from cosim.verbs.calibrate.decision import measure_decision
from cosim.verbs.calibrate.noise import find_noise


@pytest.fixture(scope="module")
def fit(technology):
    return find_noise(technology)


def cells_of(technology, thresh, *, on=False, width=0.3, timing=Timing()):
    thresh = np.asarray(thresh)
    edges = np.full(len(thresh), on)
    return ClockedCells(thresh, width * thresh, edges, 2, timing, technology.supply, technology.thermal_voltage)


@pytest.mark.parametrize("on", [False, True])
def test_where_regeneration_has_time_it_is_a_ratio_of_conductances(technology, fit, on):
    """frozen = g_0 / (g_0 + g_x). 5 %: at 0.4 to 5 nA the joined node has more than ten of its time constants, so less
    than exp(-10) of where it began is left; the saddle adds the conductance of J, some percent of g_0 + g_x."""
    thresh, node = np.array([0.4e-9, 1e-9, 5e-9]), fit.decision
    first = thresh * (0.7 if on else 1.0)
    slope = fit.devices["cell_p"].slope(first)
    kicked = node.kick * first / (slope * technology.thermal_voltage)
    wanted = node.output(thresh) / (node.output(thresh) + kicked)
    found = [one.frozen for one in apertures(cells_of(technology, thresh, on=on), fit)]
    np.testing.assert_allclose(found, wanted, rtol=0.05)


def test_the_node_remembers_by_its_own_time_constant(technology, fit):
    """C_0 / g_0 at 1 nA, where it stands clear of the rails; at 2 % of it the node has come to rest, and what it
    tracked and what is frozen make one."""
    (one,) = apertures(cells_of(technology, [1e-9]), fit)
    assert one.lag == pytest.approx(fit.decision.tracking / fit.decision.output(1e-9), rel=0.02)
    assert one.frozen + one.tracked == pytest.approx(1.0, abs=1e-3)
    assert one.ran == pytest.approx(1.0, abs=1e-6)


def test_it_is_the_same_in_a_tenth_of_the_time_at_ten_times_the_current(technology, fit):
    """Capacitances are constant and conductances go with the current: 6 %, for g_0 / I falls by 4 % and g_m / I, which
    counts in g_x, by as much."""
    slow, fast = (
        apertures(cells_of(technology, [current], timing=Timing(t_step)), fit)[0]
        for current, t_step in ((4e-10, 1e-2), (4e-9, 1e-3))
    )
    assert fast.frozen == pytest.approx(slow.frozen, rel=0.06)
    assert fast.lag == pytest.approx(slow.lag / 10, rel=0.05)


@pytest.mark.parametrize("on", [False, True])
def test_a_cell_whose_width_is_all_in_its_rows_is_taken_as_frozen(technology, fit, on):
    (one,) = apertures(cells_of(technology, [1e-9], on=on, width=0.0), fit)
    assert one.frozen == 1.0 and np.isfinite([one.tracked, one.lag, one.ran, one.after]).all()


def test_a_closing_gate_averages(technology, fit):
    """Var = integral of (rate exp(-integral of rate from then on))^2 S / 2, rate = 1 / (lag (1 + exp(t / gate))); by
    quadrature against 1 / (1 + 2 gate / lag), 1e-4 of the sum's step."""
    gate, lag = gate_lag(fit, Timing(), technology.supply, technology.thermal_voltage), 1.5e-5
    t = np.linspace(-40 * lag, 40 * gate, 400_001)
    rate = 1 / (lag * (1 + np.exp(t / gate)))
    rest = gate / lag * np.log1p(np.exp(-t / gate))
    found = 2 * lag * np.trapezoid((rate * np.exp(-rest)) ** 2, t)
    assert found == pytest.approx(1 / (1 + 2 * gate / lag), rel=1e-4)
    assert 1e-6 < gate < 3e-6


@pytest.mark.ngspice
def test_the_figures_of_the_node_are_those_of_ngspice(technology, fit):
    """0.5 %: six digits are kept, and another ngspice converges to its own last digits; a volt at 10 uV."""
    kept, found = fit.decision, measure_decision(technology, float(fit.devices["cell_p"].slope(1e-9)))
    assert len(found.outputs) == len(DECISION_CURRENTS)
    for name in ("outputs", "tracking", "joined", "loop", "kick", "freezes", "joins", "switch"):
        np.testing.assert_allclose(getattr(found, name), getattr(kept, name), rtol=5e-3)
    assert found.pedestal == pytest.approx(kept.pedestal, abs=1e-5)
