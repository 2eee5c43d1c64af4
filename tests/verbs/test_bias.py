"""Bias currents from a reference: the cell, and what a network makes of it."""

import numpy as np
import pytest

import cosim.verbs.bias
from cosim.base.errors import InputError, SimulationError
from cosim.circuit.bench import Current
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.engines.engine import Waveforms
from cosim.engines.ngspice.simulator import Ngspice
from cosim.engines.simulation.testbench import control_elements, input_elements
from cosim.technology.conditions import at
from cosim.verbs.bias import biased, measure_reference


@pytest.fixture(scope="module")
def design(technology, calibration, make_network):
    return compile_network(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), technology, calibration)


@pytest.mark.ngspice
def test_reference_starts_and_follows_the_temperature(technology):
    current, total = measure_reference(technology)
    # docs/reference/cells.md: 4.28 nA, four branches of it; the last digit of both.
    assert current == pytest.approx(4.28e-9, abs=0.01e-9)
    assert total == pytest.approx(4 * current, rel=0.01, abs=0)
    hot, cold = (measure_reference(at(technology, celsius=celsius))[0] / current for celsius in (60.0, 0.0))
    # I goes with T^m, m about 0.5 (beta with T^-1.5, U_T^2 with T^2): (333/300)^0.5 = 1.054, (273/300)^0.5 = 0.954
    assert 1.02 < hot < 1.09
    assert 0.91 < cold < 0.98
    low = measure_reference(at(technology, supply=1.71))[0]
    assert low == pytest.approx(current, rel=0.02, abs=0)


@pytest.fixture
def ten_percent_hot(monkeypatch):
    """A reference that gives 10 % more where it is hot."""
    found = {27.0: (4e-9, 16e-9), 60.0: (4.4e-9, 17.6e-9)}
    monkeypatch.setattr(cosim.verbs.bias, "_measured", {})  # what a process measured before is no part of this
    monkeypatch.setattr(cosim.verbs.bias, "measure_reference", lambda technology, _: found[technology.celsius])


def currents(design, condition):
    inputs = np.full((2, 3), 0.5)
    elements = control_elements(design, condition, 2, Timing())
    elements += input_elements(design, condition, inputs, Timing())
    return {element.name: element.value for element in elements if element.kind == "i"}


@pytest.mark.parametrize(
    ("bias", "pins", "inputs"), [("constant", 1, 1), ("reference", 1.1, 1), ("tracking", 1.1, 1.1)]
)
def test_what_scales(design, technology, ten_percent_hot, bias, pins, inputs):
    before = currents(design, design.nominal)
    there = biased(design, at(technology, "ss", 60.0), bias)
    assert there.technology.corner == "ss"
    after = currents(design, there)
    for name, value in before.items():
        if isinstance(value, tuple):
            points = [level for _, level in value]
            assert [level for _, level in after[name]] == pytest.approx(
                [inputs * level for level in points], rel=1e-12, abs=0
            )
        else:
            assert after[name] == pytest.approx(pins * value, rel=1e-12, abs=0), name
    assert {"unit", "pedestal"} < set(before)


def test_nothing_changes_at_the_nominal_point(design, technology, ten_percent_hot):
    assert biased(design, technology, "tracking") == design.nominal


def test_behavioral_states_follow_the_ratio_of_inputs_and_pins(design, technology, ten_percent_hot):
    rng = np.random.default_rng(5)
    inputs = rng.uniform(size=(40, 6, 3))
    nominal = run_behavioral(design, inputs)
    hot = at(technology, celsius=60.0)
    tracking, fixed = (biased(design, hot, bias) for bias in ("tracking", "reference"))
    np.testing.assert_array_equal(run_behavioral(design, inputs, tracking).readout, nominal.readout)
    np.testing.assert_array_equal(
        run_behavioral(design, inputs, fixed).readout, run_behavioral(design, inputs / 1.1).readout
    )  # smaller against its thresholds
    np.testing.assert_array_equal(
        run_behavioral(design, inputs, fixed, ideal=True).readout, run_behavioral(design, inputs, ideal=True).readout
    )  # a bias that changes is no rounding
    power, more = (sum(behavioral_power(design, nominal, condition=one).values()) for one in (None, tracking))
    np.testing.assert_allclose(more, 1.1 * power, rtol=1e-12)


def test_a_reference_at_rest_is_refused_with_its_condition(technology, monkeypatch):
    """Its other operating point: no current."""
    waves = Waveforms(np.zeros(1), {Current("out"): np.array([3e-12]), Current("dd"): np.array([-9e-12])})
    monkeypatch.setattr(Ngspice, "run", lambda self, bench, timeout: waves)
    text = "current reference of generic180, ss, 0 C, 1.8 V: it does not start and gives 3e-12 A; use --bias constant"
    with pytest.raises(SimulationError, match=text):
        measure_reference(at(technology, "ss", 0.0))


def test_a_library_without_devices_of_the_stacks(technology, monkeypatch):
    def refuse(technology, end):
        raise InputError("generic180.lib: no model of w 0.5 um, l 10 um; change this size in the technology")

    monkeypatch.setattr(cosim.verbs.bias, "reference_bench", refuse)
    text = (
        r"generic180, tt, 27 C, 1.8 V: generic180.lib: no model .*; without devices of its stacks, use --bias constant"
    )
    with pytest.raises(InputError, match=text):
        measure_reference(technology)
