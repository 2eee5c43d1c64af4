"""Derivatives of a circuit's currents and thresholds by what its network learned, bias pins and areas.

Against central differences of the batched engine, of whole circuits: compiled anew, biased or drawn otherwise. A weight
moves by a step of the grid, 1/8, in which a row's currents are linear but for the voltage of its node (0.2 % of a
weight on 0.6 nA and more); a threshold by 1/128, half the gap between two candidates, so that it stays in the middle of
one; a pin by 3 %, in which its mirror's currents are linear to 2e-4. Steps of the transients differ, which leaves up to
1e-12 A in a sum; over twice a pin's step that is 2e-11 A, and the derivatives compared here are 2e-9 A and more.
Together: 1 %, as in the batched engine's own test.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, MappingError
from cosim.compiler.passes import compile_network
from cosim.engines.batch.gradients import SimulatedCircuit, _bias_slopes
from cosim.network.ir.graph import ScaledGraph
from cosim.network.layers import FirstQuadrantLayer, SignedLayer
from cosim.network.types import InputEncoding, Network, Readout, check_network
from cosim.tasks.testset import load_test_set
from cosim.units.sizing import SizingInput
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices

pytestmark = pytest.mark.ngspice  # device tables are measured in it


@pytest.fixture(scope="module")
def circuit(digits_circuit):
    return digits_circuit


@pytest.fixture(scope="module")
def samples(circuit):
    """A test sample all of whose decisions are 140 pA or more from their thresholds: no state flips here."""
    return [load_test_set(circuit.design.network, None).inputs(51)]


class Sum:
    """J = sum R readout + sum U candidate + sum T thresholds; U is 0 for candidates that their rows do not move."""

    def __init__(self, run, *, thresholds=True):
        rng = np.random.default_rng(0)
        self.readout, candidate = (rng.normal(size=one.shape) for one in (run.readout, run.candidate))
        self.candidate = candidate * (run.candidate > 0.6 * run.i_unit)
        self.thresholds = rng.normal(size=run.thresholds.shape) * thresholds
        self.states = run.states

    def of(self, run):
        assert np.array_equal(run.states, self.states)
        pairs = (self.readout, run.readout), (self.candidate, run.candidate), (self.thresholds, run.thresholds)
        return float(sum((weight * value).sum() for weight, value in pairs))

    def by(self, run):
        return run.pull_back(self.readout, self.candidate, self.thresholds)


def difference(circuit, samples, total, values, step):
    more, less = (total.of(circuit.simulate(samples, *values(sign * step))) for sign in (1, -1))
    return (more - less) / (2 * step)


def moved(circuit, name, where):
    def values(step):
        value = circuit.arrays[name].copy()
        value[where] += step
        return {name: value}, {}, {}

    return values


def largest(values):
    """The place of the largest derivative, which two simulations resolve best."""
    return tuple(int(k) for k in np.unravel_index(np.argmax(np.abs(values)), np.shape(values)))


ROWS = ["layer1.weight", "layer1.bias", "layer2.weight", "layer2.bias", "readout.weight", "readout.bias"]


@pytest.mark.parametrize("name", ROWS)
def test_weights_and_biases(circuit, samples, name):
    """Without thresholds, which move with the row's grid of candidates where the compiler centres them."""
    run = circuit.simulate(samples, {}, {}, {})
    total = Sum(run, thresholds=False)
    by = total.by(run).learned[name]
    expected = difference(circuit, samples, total, moved(circuit, name, largest(by)), 1 / 8)
    assert by[largest(by)] == pytest.approx(expected, rel=0.01)


def test_a_weight_of_zero_has_the_derivative_of_its_row(circuit, samples):
    """The row's equation knows no gain of mirrors and no voltage of the node: 3 %."""
    run = circuit.simulate(samples, {}, {}, {})
    total = Sum(run, thresholds=False)
    found = total.by(run).learned
    zeros = {name: np.where(circuit.arrays[name] == 0, found[name], 0.0) for name in ROWS}
    name = max(zeros, key=lambda name: np.abs(zeros[name]).max())
    where = largest(zeros[name])
    expected = difference(circuit, samples, total, moved(circuit, name, where), 1 / 8)
    assert zeros[name][where] == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("name", ["layer1.beta_hi", "layer1.beta_lo", "layer2.beta_hi", "layer2.beta_lo"])
def test_thresholds(circuit, samples, name):
    run = circuit.simulate(samples, {}, {}, {})
    total = Sum(run)
    by = total.by(run).learned[name]
    expected = difference(circuit, samples, total, moved(circuit, name, largest(by)), 1 / 128)
    assert by[largest(by)] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("chips", [(), (3,)])
def test_bias_pins(circuit, samples, chips):
    on_chip = circuit.on_chips(chips, 3)
    run = on_chip.simulate(samples, {}, {}, {})
    total = Sum(run)
    by = total.by(run).pins
    for pin in sorted(by, key=lambda pin: -abs(by[pin]))[:4]:
        expected = difference(on_chip, samples, total, lambda step, pin=pin: ({}, {pin: np.exp(step)}, {}), 0.03)
        assert by[pin] == pytest.approx(expected, rel=0.01), pin


def test_areas(circuit, samples):
    """The deviations of all transistors of a role shrink together, by 10 %: by their cube that is wrong by 0.2 %."""
    on_chip = circuit.on_chips((3,), 3)
    run = on_chip.simulate(samples, {}, {}, {})
    total = Sum(run)
    by = total.by(run).area
    for role in sorted(by, key=lambda role: -abs(by[role]))[:4]:
        expected = difference(on_chip, samples, total, lambda step, role=role: ({}, {}, {role: np.exp(step)}), 0.2)
        assert by[role] == pytest.approx(expected, rel=0.01), role


def test_pins_multiply_those_of_the_condition(circuit, samples):
    trimmed = replace(circuit, condition=replace(circuit.condition, pins={"bias_gain_0": 1.1}))
    both = trimmed.simulate(samples, {}, {"bias_gain_0": 1.1}, {})
    assert both.job.condition.pins["bias_gain_0"] == pytest.approx(1.21)


def test_chips_are_those_of_monte_carlo_and_share_the_samples(circuit, samples):
    plan = VariationPlan("local", 0, 2)
    design = circuit.design
    devices = varying_devices(design.assembly.circuit, design.technology, plan)
    drawn = draw_chip(devices, design.technology, plan, 1)
    run = circuit.on_chips((0, 1), 0).simulate(samples * 2, {}, {}, {})
    first = circuit.on_chips((0,), 0).simulate(samples, {}, {}, {})
    assert run.readout[0] == pytest.approx(first.readout[0], rel=0.01)  # other steps beside the other chip
    assert not np.allclose(run.thresholds[0], run.thresholds[1], rtol=1e-3, atol=0.0)
    assert np.array_equal(run.job.chips[1].vt_shift, drawn.vt_shift)
    with pytest.raises(InputError, match="3 samples must be a multiple of the 2 chips"):
        circuit.on_chips((0, 1), 0).simulate(samples * 3, {}, {}, {})


def test_the_circuit_is_compiled_anew_for_other_arrays_only(circuit, samples):
    own = circuit.simulate(samples, dict(circuit.arrays), {}, {})
    assert own.job.design is circuit.design
    other = circuit.simulate(samples, {"readout.bias": circuit.arrays["readout.bias"] + 1 / 8}, {}, {})
    assert other.job.design.network.readout.bias == pytest.approx(circuit.arrays["readout.bias"] + 1 / 8)


def test_a_signed_unit(batch, technology, calibration):
    """A learned weight on a state of -1 and 1 is a transistor on 0 and 2, and a bias; its beta moves two thresholds."""
    weights = np.array([[1.5, -0.5], [-1.0, 2.0]])
    first = SignedLayer("layer1", ("input",), weights, np.array([-0.25, 0.25]), np.array([0.4, -0.3]), np.ones(2))
    second = SignedLayer("layer2", ("layer1",), weights, np.zeros(2), np.array([0.5, 0.25]), np.ones(2))
    readout = Readout(("layer2",), np.array([[1.0, -0.5]]), np.array([1.5]))
    encoding = InputEncoding(np.zeros(2), np.ones(2))
    network = check_network(Network(encoding, (first, second), readout, weight_grid=1 / 8))
    circuit = SimulatedCircuit(design := compile_network(network, technology, calibration), design.nominal)
    x = [np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])]
    run = circuit.simulate(x, {}, {}, {})
    fixed, total = Sum(run, thresholds=False), Sum(run)
    total.readout, total.candidate = 0 * total.readout, 0 * total.candidate
    for name, where in (("layer2.weight", (0, 0)), ("layer1.weight", (0, 0)), ("readout.weight", (0, 1))):
        expected = difference(circuit, x, fixed, moved(circuit, name, where), 1 / 8)
        assert fixed.by(run).learned[name][where] == pytest.approx(expected, rel=0.02), name
    for name, where in (("layer1.bias_beta", (0,)), ("layer1.bias_beta", (1,))):
        expected = difference(circuit, x, total, moved(circuit, name, where), 1 / 64)
        assert total.by(run).learned[name][where] == pytest.approx(expected, rel=0.02), name


def test_a_cell_left_out_as_constant_has_its_derivative_in_the_bias(batch, technology, calibration):
    """The first unit is always set, so it is not built, and who reads it has its 1 in the bias."""
    ones, weights = np.ones(2), np.array([[0.0, 0.0], [1.5, 0.5]])
    first = FirstQuadrantLayer("layer1", ("input",), weights, np.array([2.0, 0.0]), 0.3 * ones, ones, ones)
    readout = Readout(("layer1",), np.array([[0.5, 1.0]]), np.array([0.25]))
    encoding = InputEncoding(np.zeros(2), np.ones(2), levels=16)
    network = check_network(Network(encoding, (first,), readout, weight_grid=1 / 8))
    circuit = SimulatedCircuit(design := compile_network(network, technology, calibration), design.nominal)
    x = [np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])]
    run = circuit.simulate(x, {}, {}, {})
    assert run.cells == ("layer1.1",)
    total = Sum(run, thresholds=False)
    found = total.by(run).learned
    expected = difference(circuit, x, total, moved(circuit, "readout.weight", (0, 0)), 1 / 8)
    assert found["readout.weight"][0, 0] == pytest.approx(expected, rel=0.01)
    assert not found["layer1.weight"][0].any()


def test_the_compiler_sets_pins_as_the_derivatives_say(circuit):
    """At the design's own thresholds the bias currents are those of its sizing: the slopes are of the same row."""
    graph = circuit.design.graph
    for node in graph.memories:
        slopes = _bias_slopes(circuit.design, node)
        step = 1e-3 * circuit.design.i_unit
        asked = graph.currents[node.name]
        weights = {edge: weight for edge, weight in graph.weights.items() if edge[0] != "zero"}
        moved = {**graph.currents, node.name: replace(asked, i_rise=asked.i_rise + step)}
        sized = ScaledGraph(graph.nodes, weights, graph.i_unit, moved)
        bias = node.solve_bias(SizingInput(sized, circuit.design.calibration))
        before = graph.biases[node.name]
        change = np.log([bias.i_thresh / before.i_thresh, bias.i_width / before.i_width])
        assert change == pytest.approx(slopes[:, 0] * step, rel=0.01, abs=1e-6)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (({"layer9.weight": np.zeros(1)}, {}, {}), "no learned array 'layer9.weight'; there are .*layer1.weight"),
        (({"layer1.bias": np.zeros(3)}, {}, {}), r"layer1.bias must have the shape \(4,\), not \(3,\)"),
        (({}, {"bias_x": 1.0}, {}), "no bias pin 'bias_x'; there are .*bias_thresh_0"),
        (({}, {"bias_gain_0": -1.0}, {}), "pins: bias_gain_0 must be a positive factor, not -1"),
        (({"readout.bias": np.zeros(10)}, {"bias_gain_0": 1.1}, {}), "give other `learned` arrays or `pins`, not both"),
        (({}, {}, {"weight": float("nan")}), "area: weight must be a positive factor, not nan"),
        (({}, {}, {"wings": 1.0}), "no role 'wings'; there are "),
    ],
)
def test_what_there_is_not(circuit, samples, values, text):
    with pytest.raises(InputError, match=text):
        circuit.on_chips((0,), 0).simulate(samples, *values)


def test_units_without_derivatives(circuit):
    layers = tuple(replace(layer, epsilon=1.0) for layer in circuit.design.network.layers)
    ranges = {layer.name: np.array([[0.0] * 4, [3.0] * 4]) for layer in layers}
    network = replace(circuit.design.network, layers=layers, state_ranges=ranges)
    design = compile_network(network, circuit.design.technology, circuit.design.calibration)
    with pytest.raises(MappingError, match=r"layer1.0 has no derivatives through transistors: .* \(epsilon 0\)"):
        SimulatedCircuit(design, design.nominal)
