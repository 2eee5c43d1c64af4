"""Measures of smooth signals between the points of a transient, against formulas."""

import numpy as np
import pytest

from cosim.circuit.bench import Voltage
from cosim.circuit.measures import Crossing, Find, Signal, When, Window, evaluate_measures
from cosim.engines.batch.interpolation import SMOOTH

H = 1 / 21
SINE_TIME = np.linspace(0.0, 1.0, 22)
SINE = {Voltage("a"): np.sin(2 * np.pi * SINE_TIME)}


def smooth(measure, time=SINE_TIME, waves=SINE):
    return evaluate_measures([measure], time, waves, SMOOTH)["m"]


def test_a_smooth_signal_is_a_polynomial_through_six_points():
    """It errs by 225/64 h^6 f^(6) / 6! in their middle, a line by h^2 f'' / 8, 3,200 times as much."""
    most = 225 / 64 / 720 * H**6 * (2 * np.pi) ** 6
    a = Signal(Voltage("a"))
    assert abs(smooth(Find("m", a, 0.31)) - np.sin(2 * np.pi * 0.31)) < most
    slope = 2 * np.pi * (1 - 0.3**2) ** 0.5
    assert abs(smooth(When("m", Crossing(a, 0.3, "rise"))) - np.arcsin(0.3) / (2 * np.pi)) < most / slope
    assert abs(smooth(When("m", Crossing(a, 0.3, "fall"))) - (0.5 - np.arcsin(0.3) / (2 * np.pi))) < most / slope


def test_a_smooth_signal_has_its_extreme_between_points():
    """Three points err by h^3 f''' / (9 sqrt(3)), where f''' is that of 1.5 h beside the extreme at most."""
    third = (2 * np.pi) ** 3 * np.sin(2 * np.pi * 1.5 * H)
    for extract, at, value in (("max", 0.25, 1.0), ("min", 0.75, -1.0)):
        found = smooth(Window("m", extract, Signal(Voltage("a")), 0.0, 1.0))
        assert abs(found - value) < third * H**3 / (9 * 3**0.5)
        assert abs(smooth(Window("m", f"{extract}_at", Signal(Voltage("a")), 0.0, 1.0)) - at) < H / 4
    assert smooth(Window("m", "pp", Signal(Voltage("a")), 0.0, 1.0)) == pytest.approx(2.0, abs=2e-3)


def test_an_integral_of_a_smooth_signal_is_of_a_higher_order():
    """The trapezoidal rule errs by h^2 / 12 (f'(b) - f'(a)); what is left is of order h^4, but for the two ends."""
    window = Window("m", "integ", Signal(Voltage("a")), 2 * H, 9 * H)
    exact = (np.cos(4 * np.pi * H) - np.cos(18 * np.pi * H)) / (2 * np.pi)
    plain = evaluate_measures([window], SINE_TIME, SINE)["m"]
    assert abs(smooth(window) - exact) < 0.2 * abs(plain - exact)


def test_no_curve_is_drawn_across_a_corner():
    """A triangle, with short steps behind its corner as the batched engine has them: straight lines are exact."""
    time = np.array([0.0, 0.3, 0.6, 1.0, 1.001, 1.003, 1.01, 1.03, 1.1, 1.3, 1.6, 2.0])
    waves = {Voltage("a"): 1 - np.abs(time - 1)}
    a = Signal(Voltage("a"))
    assert smooth(When("m", Crossing(a, 0.9, "rise")), time, waves) == pytest.approx(0.9, abs=1e-12)
    assert smooth(When("m", Crossing(a, 0.998, "fall")), time, waves) == pytest.approx(1.002, abs=1e-12)
    assert smooth(Window("m", "max", a, 0.0, 2.0), time, waves) == pytest.approx(1.0, abs=1e-12)
