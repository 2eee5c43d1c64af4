"""Ladders, counters and toggles three ways: software, behavioral equations and transistors on the same inputs.

A counter's transistors are the most, and the batch engine's; the others' are ngspice's.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import read_plan
from cosim.engines.simulation.simulated import sample_benches
from cosim.network.layers import SignedLayer
from cosim.network.reference import measure_state_ranges, run_reference, threshold_distances
from cosim.network.types import check_network
from cosim.tasks.testset import TestSet
from cosim.units.counter import Counter
from cosim.units.ladder import Ladder
from cosim.units.reflector import Reflector
from cosim.units.toggle import Toggle
from cosim.verbs.compare.agreement import compare_engines

FRAMES, MARGIN = 9, 0.06


def one_signed(layer):
    """Two toggles: updates of the first are all positive, of the second all negative; 0 <= x <= 1."""
    weight, bias = np.array([[1.0, 0.5, 0.25], [-0.5, -1.25, -0.75]]), np.array([0.25, -0.125])
    return SignedLayer(layer.name, layer.sources, weight, bias, np.array([1.1, 1.3]), layer.alpha, epsilon=-1.0)


@pytest.fixture(scope="module", params=["ladder", "counter", "toggle", "reflector"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def samples(kind, make_network):
    """(network with measured ranges, test set): one sequence without a candidate nearer than MARGIN to a threshold.

    Drawn frame by frame from a seed. MARGIN: candidates of the circuit err by up to 1 % of gain of up to 4 units, and
    0.1 V of node swing at 2.5 %/V.
    """
    network = make_network(3, "signed", widths=(2,), outputs=2, alphas=(1.0,))
    (layer,) = network.layers
    layer = one_signed(layer) if kind == "toggle" else replace(layer, epsilon=-1.0 if kind == "reflector" else 1.0)
    network, rng = check_network(replace(network, layers=(layer,))), np.random.default_rng(5)
    x = np.empty((1, 0, 3))
    while x.shape[1] < FRAMES:
        longer = np.concatenate([x, rng.uniform(size=(1, 1, 3))], axis=1)
        if threshold_distances(network, run_reference(network, longer)).min() > MARGIN:
            x = longer
    lengths = np.array([FRAMES])
    network = replace(network, state_ranges=measure_state_ranges(network, x, lengths))
    return network, TestSet(x, np.zeros(1, dtype=np.int64), lengths, np.arange(1))


@pytest.fixture(scope="module")
def design(samples, kind, technology, calibration):
    cell = "counter" if kind == "counter" else "auto"
    return compile_network(samples[0], technology, calibration, CompilerSettings(cell=cell))


@pytest.fixture(scope="module")
def outcome(design, samples, kind, request):
    """One inference; its power is the mean from frame 1 on."""
    timing = Timing()
    plan = read_plan(design, FRAMES)
    plan = replace(plan, window=(timing.start + timing.t_step, plan.window[1]))
    (bench,) = sample_benches(design, samples[1], Run())
    found = run_inference(
        bench, plan, request.getfixturevalue("batch").name if kind in ("counter", "reflector") else "ngspice"
    )
    assert isinstance(found, Inference), found
    return found


@pytest.fixture(scope="module")
def comparison(design, samples, outcome):
    return compare_engines(design, samples[1], [outcome])


@pytest.mark.ngspice
def test_the_memories_are_native_and_move(design, kind, comparison):
    kinds = {"ladder": Ladder, "counter": Counter, "toggle": Toggle, "reflector": Reflector}
    found = [type(node) for node in design.graph.memories]
    assert found == ([Reflector, Toggle] if kind == "reflector" else [kinds[kind]] * 2)  # one of its units has one sign
    states = comparison.engines["software"].states[0]
    assert (np.ptp(states, axis=0) >= [1 if node is Toggle else 2 for node in found]).all()
    assert comparison.saturated == 0


@pytest.mark.ngspice
@pytest.mark.parametrize("engine", ["behavioral", "ngspice"])
def test_levels_agree_in_every_frame(comparison, engine):
    states = comparison.engines
    np.testing.assert_array_equal(states[engine].states, states["software"].states)


@pytest.mark.ngspice
def test_readout_is_that_of_the_software(comparison, design):
    """Gains within 0.5 % up to 4 nA and the level's fit error, of all that flows through an output."""
    error = 5e-3 + 2e-3 + design.calibration.schmitt.error
    graph, traffic = design.graph, 0.0
    for node in graph.of(Ladder, Counter, Toggle):
        top = node.level * node.most
        traffic += max(abs(graph.mirrors[node.name, f"readout.{k}"].realised) for k in range(2)) * top
    traffic += max(abs(graph.mirrors["one", f"readout.{k}"].realised) for k in range(2))
    difference = np.abs(comparison.engines["software"].readout - comparison.engines["ngspice"].readout)
    assert difference.max() < error * traffic


@pytest.mark.ngspice
def test_power_within_five_percent(design, samples, outcome):
    """The estimate leaves out mirror gains of 2 % a copy, what moving gate lines take, 1 %, and the DPIs' transients.

    From frame 1 on; frame 0 is below.
    """
    _, test_set = samples
    blocks = behavioral_power(design, run_behavioral(design, test_set.x))
    assert outcome.power_w == pytest.approx(sum(blocks.values())[0, 1:].mean(), rel=0.05, abs=0)


def test_power_of_a_frame_does_not_depend_on_later_ones(make_network, technology, calibration):
    """Frame 0 retains, and begins on the start level, whether resets follow or not."""
    network = make_network(3, "signed", widths=(1,), outputs=2, alphas=(1.0,))
    (layer,) = network.layers
    layer = replace(
        layer, epsilon=1.0, weight=np.array([[-1.0, 0.0, 0.0]]), bias=np.zeros(1), bias_beta=np.full(1, 0.5)
    )
    network = replace(network, layers=(layer,), state_ranges={"layer0": np.array([[-4.0], [0.0]])})
    design = compile_network(network, technology, calibration)
    inputs = np.zeros((2, 4, 3))
    inputs[1, 1:, 0] = 1.0
    trace = run_behavioral(design, inputs)
    assert trace.states["layer0.0"].tolist() == [[4, 4, 4, 4], [4, 3, 2, 1]]
    for block, power in behavioral_power(design, trace).items():
        assert power[1, 0] == pytest.approx(power[0, 0], rel=1e-12, abs=0), block
