"""The native form: epsilon 1 becomes ladders or counters, epsilon -1 toggles; what is refused; timing."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from cosim.base.errors import MappingError
from cosim.cells.dpi import dpi_fall_time, dpi_rise_time
from cosim.compiler.checks import check_set_points
from cosim.compiler.lower import lower
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings, Target
from cosim.compiler.size import scale, size
from cosim.engines.behavioral.effects import effects_of
from cosim.engines.behavioral.evaluate import evaluate
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.network.ir.nodes import UNIT_CURRENT
from cosim.network.ir.states import software_states
from cosim.network.layers import FirstQuadrantLayer, ReluLayer, SignedLayer
from cosim.network.reference import measure_state_ranges, run_reference
from cosim.network.types import InputEncoding, Network, Readout, check_network
from cosim.tasks.testset import TestSet
from cosim.units.counter import Counter
from cosim.units.ladder import (
    ALPHA,
    MAX_RUNGS,
    Ladder,
    LadderTiming,
    check_ladder,
    ladder_currents,
    ladder_timing,
    solve_ladder,
)
from cosim.units.reflector import Reflector
from cosim.units.schmitt import Schmitt
from cosim.units.toggle import Toggle
from cosim.variation.draws import VariationPlan, varying_devices
from cosim.verbs.compare.agreement import compare_engines

I_UNIT = 0.25e-9  # so that every threshold of a random network lies in the calibrated range
SAMPLES, STEPS = 13, 6
# Levels on which W step / level and W zero round exactly: weights are on 1/4, a step is alpha / 2 or alpha.
ALPHAS = {"first": (1.0, 2.0), "signed": (0.5, 1.0), "signed_input": (0.5, 1.0)}


def with_layers(network, change):
    """The network with `change` of every recurrent layer, without ranges."""
    layers = tuple(layer if isinstance(layer, ReluLayer) else change(layer) for layer in network.layers)
    return check_network(replace(network, layers=layers, state_ranges={}))


def measured(network, x):
    """The network with the ranges of its states over x."""
    return replace(network, state_ranges=measure_state_ranges(network, x, np.full(len(x), x.shape[1])))


@pytest.fixture
def ladders(make_network):
    """(seed, kind, ...) -> a random network at epsilon 1, and the samples that its ranges were measured on."""

    def build(seed, kind, steps=STEPS, **options):
        network = make_network(seed, kind, alphas=ALPHAS[kind], **options)
        x = np.random.default_rng(seed + 100).uniform(0, 1, (SAMPLES, steps, 3))
        return measured(with_layers(network, lambda layer: replace(layer, epsilon=1.0)), x), x

    return build


def one_signed(layer, rng):
    """The layer at epsilon -1 with units whose updates are all positive (even units) or all negative (odd ones).

    Inputs lie in [0, 1] and weights are made positive, so the candidate runs from b to b + sum of W.
    """
    sign = np.where(np.arange(layer.width) % 2, -1.0, 1.0)
    weight, bias = np.abs(layer.weight) + 0.25, np.abs(layer.bias) + 0.125
    top = bias + weight.sum(axis=1)
    between = bias + rng.uniform(0.3, 0.6, layer.width) * (top - bias)
    if isinstance(layer, SignedLayer) and layer.weight_beta is not None:
        return replace(layer, weight=sign[:, None] * weight, bias=sign * bias, epsilon=-1.0)
    if isinstance(layer, SignedLayer):
        weight, bias = sign[:, None] * weight, sign * bias
        return replace(layer, weight=weight, bias=bias, bias_beta=between, epsilon=-1.0)
    low, high = np.where(sign > 0, bias / 2, between), np.where(sign > 0, between, top + 0.25)
    return replace(layer, weight=weight, bias=bias, beta_lo=low, beta_hi=high, epsilon=-1.0)


@pytest.fixture
def toggles(make_network):
    """(seed, kind, ...) -> a random network at epsilon -1 whose units update with one sign each, and its samples."""

    def build(seed, kind, steps=11, **options):
        network = make_network(seed, kind, alphas=ALPHAS[kind], widths=(5,), **options)
        rng = np.random.default_rng(seed + 100)
        x = rng.uniform(0, 1, (SAMPLES, steps, 3))
        return measured(with_layers(network, lambda layer: one_signed(layer, rng)), x), x

    return build


@pytest.fixture
def ideal(technology, calibration):
    """(graph, reference) -> states and readout in units of the ideal circuit, and the states that it should have."""

    def run(graph, reference):
        sized = size(scale(graph, I_UNIT), calibration)
        for (source, target), weight in sized.weights.items():
            assert sized.mirrors[source, target].realised == pytest.approx(weight.target, abs=1e-12)
        trace = evaluate(sized, calibration, reference.inputs, ideal=True)
        found = np.stack(list(trace.states.values()), axis=2)
        return found, trace.readout / I_UNIT, software_states(sized, reference)

    return run


@pytest.mark.parametrize("hidden", [0, 5])
@pytest.mark.parametrize("kind", ["first", "signed", "signed_input"])
@pytest.mark.parametrize("seed", range(4))
def test_ideal_ladders_equal_the_network(ladders, ideal, kind, seed, hidden):
    """Weights round exactly, so levels and readouts are the reference's, but for float64 sums of 20 terms of 10.

    Other seeds where thresholds move: in network 1 a row of W_beta is that of W, and every candidate stands on its own.
    """
    seed += 4 * (kind == "signed_input")
    network, x = ladders(seed, kind, hidden=hidden)
    reference = run_reference(network, x)
    graph = lower(network)
    states, readout, expected = ideal(graph, reference)
    np.testing.assert_array_equal(states, expected)
    np.testing.assert_allclose(readout, reference.readout, atol=1e-12, rtol=0)
    for column, node in enumerate(graph.of(Ladder)):
        h = reference.signals[node.layer][:, :, node.index]
        np.testing.assert_allclose(h, node.zero + node.step * expected[:, :, column], atol=1e-12, rtol=0)
        # one rung of headroom at either end of what these very data need
        assert min(expected[:, :, column].min(), node.start) == 1
        assert max(expected[:, :, column].max(), node.start) == node.rungs - 1
    assert len(set(np.unique(expected))) > 4


def evaluate_ideal(graph, reference, calibration):
    """The states of an ideal circuit, (n, time, memories)."""
    trace = evaluate(size(scale(graph, I_UNIT), calibration), calibration, reference.inputs, ideal=True)
    return np.stack(list(trace.states.values()), axis=2)


@pytest.mark.parametrize("kind", ["first", "signed", "signed_input"])
@pytest.mark.parametrize("seed", range(4))
def test_ideal_toggles_equal_the_network(toggles, ideal, kind, seed):
    network, x = toggles(seed, kind)
    reference = run_reference(network, x)
    graph = lower(network)
    states, readout, expected = ideal(graph, reference)
    np.testing.assert_array_equal(states, expected)
    np.testing.assert_allclose(readout, reference.readout, atol=1e-12, rtol=0)
    assert 0.1 < expected.mean() < 0.9
    unit = network.layers[0].alpha / (2 if kind == "first" else 1)
    for node in graph.of(Toggle):
        h = reference.signals[node.layer][:, :, node.index]
        assert len(np.unique(h)) == 2
        assert node.step == pytest.approx(unit[node.index] * (3 if node.index % 2 == 0 else 1))  # 2 alpha, 0 to -alpha
        assert node.zero == pytest.approx(0.0 if kind == "first" else -network.layers[0].alpha[node.index])


@pytest.mark.parametrize("headroom", [0, 1, 3])
def test_rungs_and_start_follow_the_ranges(ladders, headroom):
    """By hand: signed, h from -3 alpha to 4 alpha around its start of -alpha: -2 ... 5 steps."""
    network, _ = ladders(5, "signed", widths=(1,))
    alpha = float(network.layers[0].alpha[0])
    network = replace(network, state_ranges={"layer0": np.array([[-3 * alpha], [4 * alpha]])})
    (node,) = lower(network, headroom=headroom).of(Ladder)
    assert (node.rungs, node.start) == (7 + 2 * headroom, 2 + headroom)
    assert node.zero + node.start * node.step == pytest.approx(-alpha)
    assert (node.step, node.level) == (alpha, ALPHA)
    beta = abs(float(network.layers[0].bias_beta[0]))
    assert (node.rise - node.offset, node.fall - node.offset) == pytest.approx((beta, -beta))


def test_readers_see_step_and_zero(ladders):
    """h = zero + step s and the current is level s: W h + b = (W step / level) (level s) + (b + W zero)."""
    network, _ = ladders(5, "signed", widths=(3,))
    graph = lower(network)
    nodes, readout = list(graph.of(Ladder)), network.readout
    for k in range(readout.width):
        for node in nodes:
            target = graph.weights[node.name, f"readout.{k}"].target
            assert target == pytest.approx(readout.weight[k, node.index] * node.step / node.level)
        zero = np.array([node.zero for node in nodes])
        bias = graph.weights[UNIT_CURRENT, f"readout.{k}"].target
        assert bias == pytest.approx(readout.bias[k] + readout.weight[k] @ zero)


def test_epsilons_mix_layer_by_layer(make_network, ideal):
    """A Schmitt trigger, then ladders that read it, in one network."""
    network = make_network(2, "signed", alphas=(1.0,))
    network = replace(network, layers=(network.layers[0], replace(network.layers[1], epsilon=1.0)))
    x = np.random.default_rng(4).uniform(size=(SAMPLES, STEPS, 3))
    network = measured(network, x)
    assert set(network.state_ranges) == {"layer1"}
    graph = lower(network)
    assert {type(node) for node in graph.of(Schmitt, Ladder)} == {Schmitt, Ladder}
    reference = run_reference(network, x)
    states, readout, expected = ideal(graph, reference)
    np.testing.assert_array_equal(states, expected)
    np.testing.assert_allclose(readout, reference.readout, atol=1e-12, rtol=0)


def refused(network, text, **options):
    with pytest.raises(MappingError, match=text):
        lower(network, "model.pt", **options)


@pytest.mark.parametrize("epsilon", [0.25, 0.999, -0.5])
def test_epsilon_between_is_refused(ladders, epsilon):
    network = with_layers(ladders(3, "signed")[0], lambda layer: replace(layer, epsilon=epsilon))
    text = (
        rf"model\.pt: layer0\.epsilon must be 0 \(Schmitt trigger\), 1 \(ladder\) or -1 \(toggle\), not {epsilon:g}: .*"
        "no finite set of levels .* anneal it to 0 in training"
    )
    refused(network, text)


def test_level_by_input_is_refused(ladders):
    network = with_layers(
        ladders(3, "signed")[0], lambda layer: replace(layer, weight_alpha=np.full_like(layer.weight, 0.25))
    )
    refused(network, r"model\.pt: layer0 is an alphaCMRU without a grid: .*; train with `levels=8`")
    gridded = with_layers(network, lambda layer: replace(layer, levels=8))
    refused(gridded, r"model\.pt: layer0\.epsilon must be 0 for an alphaCMRU, not 1: a register replaces what it holds")


@pytest.mark.parametrize("epsilon", [1.0, -1.0])
def test_unknown_ranges_are_refused(ladders, epsilon):
    network = with_layers(ladders(3, "signed")[0], lambda layer: replace(layer, epsilon=epsilon))
    refused(
        network, r"model\.pt: the range of the states of layer0 is not known, .* give samples with `ranges_from=FILE"
    )


def spanning(network, *steps):
    """The network with the states of its units spanning so many steps of alpha, from their start on."""
    alpha = network.layers[0].alpha
    return replace(network, state_ranges={"layer0": np.stack([-alpha, -alpha + np.array(steps) * alpha])})


def test_a_counter_takes_over_where_a_ladder_has_too_many_rungs(ladders):
    """Unit by unit: with one state of headroom at either end, 30 steps are 32 rungs, 31 are 34 states of 6 bits."""
    network, _ = ladders(3, "signed", widths=(2,))
    few, many = lower(spanning(network, 3, MAX_RUNGS - 2)), lower(spanning(network, 3, MAX_RUNGS - 1))
    assert [node.rungs for node in few.of(Ladder)] == [5, MAX_RUNGS]
    assert [node.rungs for node in many.of(Ladder)] == [5]
    assert [node.bits for node in many.of(Counter)] == [6]
    text = r"model\.pt: layer0\[1\]: a ladder may have 32 rungs at most, not 33: .* spans 31 steps .* `cell=counter`"
    refused(spanning(network, 3, MAX_RUNGS - 1), text, cell="ladder")


@pytest.mark.parametrize("kind", ["first", "signed"])
@pytest.mark.parametrize("seed", range(4))
def test_ideal_counters_equal_the_network(ladders, calibration, kind, seed):
    """One layer, whose states do not depend on how its readers' weights round."""
    network, x = ladders(seed, kind, steps=4 * STEPS, widths=(5,))
    reference, graph = run_reference(network, x), lower(network, cell="counter")
    states = evaluate_ideal(graph, reference, calibration)
    np.testing.assert_array_equal(states, software_states(graph, reference))
    assert {type(node) for node in graph.memories} == {Counter}
    assert np.ptp(states) > 7


@pytest.mark.parametrize(("span", "headroom", "bits"), [(5, 1, 3), (6, 1, 4), (0, 0, 1), (221, 1, 8), (253, 1, 8)])
def test_bits_and_start_follow_the_ranges(ladders, span, headroom, bits):
    """The states of the data and the headroom fit; what is left over is half at either end."""
    network, _ = ladders(5, "signed", widths=(2,))
    node = list(lower(spanning(network, 1, span), cell="counter", headroom=headroom).of(Counter))[1]
    spare = 2**bits - (span + 1 + 2 * headroom)
    assert (node.bits, node.most, node.start) == (bits, 2**bits - 1, headroom + spare // 2)
    assert node.zero + node.start * node.step == pytest.approx(-float(network.layers[0].alpha[1]))
    assert node.level * node.most <= 4.0 * (1 + 1e-12)  # units, of all bits


def test_too_many_states_for_a_counter_are_refused(ladders):
    network, _ = ladders(3, "signed", widths=(2,))
    most = 253 * float(network.layers[0].alpha[1])
    text = rf"model\.pt: layer0\[1\]: a counter may have 8 bits at most, 256 states, not 257: .* `range_max={most:g}`"
    refused(spanning(network, 3, 254), text)


def test_a_frame_too_short_for_a_counter_is_refused(ladders, technology, calibration):
    """67 fF and 0.6 V at 0.12 nA: 0.335 ms, which half a pulse, 0.075 of a frame, must have."""
    network = ladders(3, "signed", widths=(2,))[0]
    compile_network(network, technology, calibration, CompilerSettings(cell="counter", t_step=4.5e-3))
    with pytest.raises(
        MappingError, match=r"a counter or reflector takes 0\.335 ms .* `t_step` of at least 4\.47 ms, or a larger"
    ):
        compile_network(network, technology, calibration, CompilerSettings(cell="counter", t_step=4.4e-3))


@pytest.mark.parametrize(("epsilon", "cell"), [(1, "ladder"), (1, "counter"), (-1, "auto")])
def test_comparators_of_four_devices(ladders, toggles, technology, calibration, epsilon, cell):
    """What a comparator compares has four times the devices, and so half the mismatch; all else is as it was."""
    network = (ladders(3, "signed", widths=(2,)) if epsilon == 1 else toggles(3, "first"))[0]
    one, four = (
        compile_network(network, technology, calibration, CompilerSettings(cell=cell, comparator_devices=m))
        for m in (1, 4)
    )
    before, after = ({mos.name: mos for mos in design.assembly.circuit.flatten()} for design in (one, four))
    assert before.keys() == after.keys()
    larger = {name for name, mos in after.items() if mos.m != before[name].m}
    assert all(after[name].m == 4 * before[name].m for name in larger)
    effects = [effect for effect in effects_of(four) if effect.field in ("upper", "lower")]
    assert larger == {device for effect in effects for device, _ in effect.devices}
    assert all(replace(after[name], m=before[name].m) == before[name] for name in before)
    plan = VariationPlan("local", 0, 1)
    sigmas = [{one.name: one.sigma_vt for one in varying_devices(d.flat, technology, plan)} for d in (one, four)]
    assert all(sigmas[1][name] == pytest.approx(sigmas[0][name] / (2 if name in larger else 1)) for name in before)
    compared = {pin for pins in four.assembly.cell_bias.values() for pin in pins[:2]}
    assert four.assembly.bias_pins != one.assembly.bias_pins
    for pin, current in one.assembly.bias_pins.items():
        # a node that stands 48 mV higher, at 2.5 %/V, moves 0.12 % of what flows through it, up to 4 nA
        assert four.assembly.bias_pins[pin] == (pytest.approx(current, abs=5e-12) if pin in compared else current)


@pytest.mark.ngspice
@pytest.mark.parametrize("cell", ["ladder", "counter"])
def test_comparators_of_four_devices_decide_as_one_does(ladders, technology, calibration, cell):
    pytest.importorskip("numba")
    network, x = ladders(3, "signed", widths=(2,))
    design = compile_network(network, technology, calibration, CompilerSettings(cell=cell, comparator_devices=4))
    samples = TestSet(x[:2], np.zeros(2, np.int64), np.full(2, STEPS), np.arange(2))
    found = simulate_samples(design, samples, Run(engine="batch"))
    trace = run_behavioral(design, samples.x)
    expected = np.stack(list(trace.states.values()), axis=2)
    assert np.array_equal(np.stack([one.states for one in found]), expected) and np.ptp(expected) > 1


def test_a_network_without_comparators_has_none_of_several_devices(make_network, technology, calibration):
    words = (
        r"`comparator_devices` is for units behind comparators, .* registers are, and there is none; leave it out, or"
    )
    for kind in ("first", "mingru"):
        with pytest.raises(MappingError, match=words):
            compile_network(make_network(3, kind), technology, calibration, CompilerSettings(comparator_devices=2))


def test_updates_of_both_signs_become_a_reflector(toggles, ideal):
    network, x = toggles(3, "signed")
    layer = network.layers[0]
    weight = layer.weight.copy()
    weight[2] = [1.0, -1.0, 0.25]  # candidates of either sign
    layer = replace(layer, weight=weight, bias=np.zeros(5), bias_beta=np.full(5, 0.01))
    mixed = measured(replace(network, layers=(layer,)), x)
    reference, graph = run_reference(mixed, x), lower(mixed)
    (node,) = graph.of(Reflector)
    assert node.index == 2
    assert node.zero + node.start * node.step == pytest.approx(-layer.alpha[2])
    states, readout, expected = ideal(graph, reference)
    np.testing.assert_array_equal(states, expected)
    np.testing.assert_allclose(readout, reference.readout, atol=1e-12, rtol=0)
    assert expected[:, :, 2].min() >= 0 and expected[:, :, 2].max() <= node.most


@pytest.mark.parametrize("updates", ["+-", "++-", "-+", "+++-+-", "+", "-", "++", "--", ""])
def test_which_updates_become_a_toggle(updates):
    """Signs of all updates, in order: from -alpha on, + + - visits -1, 2, -1, 0 alpha, with the ends of + alone."""
    x = np.array([[{"+": [1.0], "-": [0.0]}[sign] for sign in updates] + [[0.5]]])  # candidates 1, -1, and 0 at the end
    layer = SignedLayer(
        "layer0", ("input",), np.full((1, 1), 2.0), -np.ones(1), np.full(1, 0.5), np.ones(1), epsilon=-1
    )
    readout = Readout(("layer0",), np.ones((1, 1)), np.zeros(1), "last")
    network = Network(InputEncoding(np.zeros(1), np.ones(1)), (layer,), readout)
    (node,) = lower(measured(network, x)).memories
    assert type(node) is (Reflector if len(set(updates)) == 2 else Toggle)


def test_states_between_the_ends_may_occur_where_the_data_do_not_tell(toggles):
    """Two rows, as files had: 3 steps of alpha are those of a toggle, or of a reflector, which follows either."""
    network, _ = toggles(3, "signed")
    alpha = network.layers[0].alpha
    ranges = np.stack([-alpha, 2 * alpha])
    assert {type(node) for node in lower(replace(network, state_ranges={"layer0": ranges})).memories} == {Reflector}
    ranges = np.stack([-alpha, 2 * alpha, 2 * alpha])
    assert {type(node) for node in lower(replace(network, state_ranges={"layer0": ranges})).memories} == {Toggle}


@pytest.mark.parametrize(("lowest", "highest", "bits"), [(-2, 1, 2), (-3, 0, 3), (0, 3, 3), (-128, 127, 8)])
def test_bits_of_a_reflector(toggles, lowest, highest, bits):
    """2^(bits - 1) steps of alpha below 0, and one less above."""
    node = reflecting(toggles, lowest, highest)
    assert (node.bits, node.start, node.most) == (bits, 2 ** (bits - 1) - 1, 2**bits - 1)


def test_a_unit_that_never_updates_stays_a_toggle(toggles):
    network, _ = toggles(3, "signed")
    start = -network.layers[0].alpha
    graph = lower(replace(network, state_ranges={"layer0": np.stack([start, start])}))
    assert {type(node) for node in graph.memories} == {Toggle}


def test_a_reflector_has_eight_bits_at_most(toggles):
    with pytest.raises(MappingError, match=r"layer0\[0\]: a reflector holds -128 to 127 .* runs from -129 to 0 over"):
        reflecting(toggles, -129, 0)


def reflecting(toggles, lowest, highest):
    """The reflector of a unit whose h runs from `lowest` to `highest` steps of alpha over the data."""
    network, _ = toggles(3, "signed")
    alpha = network.layers[0].alpha
    ranges = np.array([lowest * alpha, highest * alpha])
    graph = lower(replace(network, state_ranges={"layer0": ranges}), headroom=0)
    return next(iter(graph.of(Reflector)))


@pytest.mark.parametrize("alpha", [0.0, -0.5])
def test_level_without_size_is_refused(ladders, alpha):
    network, x = ladders(3, "signed", widths=(3,))
    layer = network.layers[0]
    wrong = replace(layer, alpha=np.array([1.0, alpha, 0.5]))
    refused(measured(replace(network, layers=(wrong,)), x), r"model\.pt: layer0\[1\]: alpha must be positive, not ")


def test_cell_schmitt_needs_epsilon_zero(ladders):
    text = r"model\.pt: layer0\.epsilon must be 0 for a Schmitt trigger, not 1; anneal .* compile with `cell=auto`"
    refused(ladders(3, "first")[0], text, cell="schmitt")


@pytest.mark.parametrize("epsilon", [0.0, -1.0])
def test_cell_ladder_needs_epsilon_one(ladders, epsilon):
    network = with_layers(ladders(3, "first")[0], lambda layer: replace(layer, epsilon=epsilon))
    text = (
        rf"model\.pt: layer0\.epsilon must be 1 for a ladder, which adds to its state, not {epsilon:g}; train with "
        "`epsilon=1`, or compile with `cell=auto`"
    )
    refused(network, text, cell="ladder")


def test_native_currents_must_be_in_range(ladders, technology, calibration):
    network, _ = ladders(3, "first", widths=(2,))
    for i_unit, limit in ((45e-12, "least 10 pA"), (20e-9, "most 8 nA")):
        target = Target(
            network, "model.pt", CompilerSettings(i_unit=i_unit), calibration.units, technology, calibration
        )
        with pytest.raises(
            MappingError, match=rf"^model\.pt: layer0\.[01]: .* must be at {limit}, not .*, the worst of"
        ):
            check_set_points(scale(lower(network), i_unit), target)


def outcomes_of(design, x):
    """What transistors without an error would give, from the behavioral equations."""
    inputs = run_reference(design.network, x).inputs
    trace = evaluate(design.graph, design.calibration, inputs, ideal=True)
    states = np.stack(list(trace.states.values()), axis=2)
    return [Inference(states[k], trace.readout[k], 1e-9) for k in range(len(x))]


@pytest.mark.parametrize("kind", ["first", "signed"])
def test_saturation_is_counted(ladders, technology, calibration, kind):
    """Ranges from tame data, headroom 0: the same data saturate nothing, wild ones as often as the software says."""
    network, _ = ladders(6, kind, widths=(3,))
    rng = np.random.default_rng(8)
    tame, wild = 0.25 * rng.uniform(size=(7, 4, 3)), rng.uniform(size=(7, 11, 3))
    network = measured(network, tame)
    design = compile_network(network, technology, calibration, CompilerSettings(I_UNIT, headroom=0))
    tops = {node.name: node.rungs for node in design.graph.of(Ladder)}
    for x in (tame, wild):
        labels, lengths = np.zeros(7, dtype=np.int64), np.full(7, x.shape[1])
        lengths[3] -= 2  # padding does not count
        found = compare_engines(design, TestSet(x, labels, lengths, np.arange(7)), outcomes_of(design, x))
        states = software_states(design.graph, run_reference(network, x))
        beyond = (states < 0) | (states > np.array(list(tops.values())))
        beyond[3, lengths[3] :] = False
        assert found.saturated == beyond.sum()
        assert (found.saturated > 0) == (x is wild)
        held = found.engines["behavioral"].states
        assert (held >= 0).all() and (held <= np.array(list(tops.values()))).all()


# The timing of a ladder


@given(st.floats(1e-4, 0.5), st.floats(0.05, 0.98), st.floats(0.0, 0.1))
def test_rise_time_solves_the_equation(start, share, i_g):
    """tau (1 + I_g / I) dI/dt + I = I_f, over tau, in units of I_f; solve_ivp at rtol 1e-9 and its interpolation."""
    target = start + share * (1 - start)
    time = dpi_rise_time(start, target, 1.0, i_g)
    found = solve_ivp(
        lambda t, i: (1 - i) / (1 + i_g / i), (0.0, time), [start], method="LSODA", rtol=1e-10, atol=1e-14
    )
    assert found.y[0, -1] == pytest.approx(target, rel=1e-6)


@given(st.floats(1e-3, 0.99), st.floats(1e-4, 0.1))
def test_fall_time_solves_the_equation(target, i_g):
    """The same equation without input: its right side is -I_g, and I_g drops out of the time."""
    time = dpi_fall_time(1.0, target)
    found = solve_ivp(
        lambda t, i: (-i_g - i) / (1 + i_g / i), (0.0, time), [1.0], method="LSODA", rtol=1e-10, atol=1e-14
    )
    assert found.y[0, -1] == pytest.approx(target, rel=1e-6)


def test_times_by_hand():
    assert dpi_rise_time(0.5, 0.75, 1.0, 0.0) == pytest.approx(math.log(2))
    assert dpi_rise_time(1e-6, 0.5, 1.0, 0.02) == pytest.approx(1.02 * math.log(2) + 0.02 * math.log(5e5), rel=1e-5)
    assert dpi_fall_time(1.0, math.exp(-2)) == pytest.approx(2.0)
    assert dpi_rise_time(0.5, 1.0, 1.0, 0.02) == math.inf
    assert dpi_fall_time(1.0, 0.0) == math.inf


def test_set_points_scale_with_the_unit_current():
    one, three = ladder_currents(1e-9), ladder_currents(3e-9)
    assert (one.i_reset, one.i_fall, one.i_retain, one.i_rise, one.i_set) == pytest.approx(
        (0.05e-9, 0.15e-9, 0.25e-9, 0.35e-9, 0.45e-9), rel=1e-12, abs=0
    )
    assert three.alpha == pytest.approx(3 * one.alpha, rel=1e-12, abs=0)
    assert three.i_tau == pytest.approx(0.02 * three.alpha, rel=1e-12, abs=0)


def test_ladder_biases_give_the_set_points(calibration):
    """The calibrated cell at these biases has the thresholds and the level that were asked for; solver: 1e-15 A."""
    currents, fit = ladder_currents(1e-9), calibration.schmitt
    bias = solve_ladder(currents, calibration)
    for shift, pair in ((0.0, (bias.i_thresh_1, bias.i_width_1)), (currents.alpha, (bias.i_thresh, bias.i_width))):
        assert float(fit.i_rise(*pair)) == pytest.approx(currents.i_rise + shift, abs=1e-15, rel=0)
        assert float(fit.i_fall(*pair)) == pytest.approx(currents.i_fall + shift, abs=1e-15, rel=0)
    assert float(fit.i_high(bias.i_gain)) == pytest.approx(currents.alpha, rel=1e-12, abs=0)
    assert bias.i_g / bias.i_tau == pytest.approx(calibration.dpi.ratio(currents.alpha), rel=1e-12)


@pytest.mark.parametrize("t_step", [2e-3, 10e-3, 40e-3])
@pytest.mark.parametrize("factor", [0.6, 1.7])
def test_default_tau_has_room_on_both_sides(t_step, factor):
    """A quarter of a frame: neither 0.6 nor 1.7 times as much doubles or skips, far more than a DPI is off."""
    timing = ladder_timing(t_step, factor * ladder_timing(t_step).tau)
    check_ladder(ladder_currents(1e-9), timing, "model.pt")
    assert timing.tau == pytest.approx(factor * t_step / 4)


TIMING = ladder_timing(10e-3)
CURRENTS = ladder_currents(1e-9)


@pytest.mark.parametrize(
    ("what", "needed", "currents"),
    [
        # D reaches alpha - (set - rise) or fall - reset; the other one of a pair is made slow by its level
        ("double a set", dpi_rise_time(0.01, 0.4, 0.5, 0.01), replace(CURRENTS, i_reset=0.14e-9)),
        ("double a reset", dpi_fall_time(0.5, 0.1), replace(CURRENTS, i_set=0.36e-9)),
    ],
)
def test_doubled_steps_are_refused(what, needed, currents):
    """A little more and a little less than the tau at which the window would arrive with the end of the pulse."""
    limit = TIMING.pulse / needed
    check_ladder(currents, replace(TIMING, tau=1.02 * limit), "model.pt")
    text = (
        rf"model\.pt: the ladder would {what}: the neighbour's window arrives after 1\.47 ms \(tau {980 * limit:.3g} "
        r"ms\), which must be more than 1\.5 ms, the pulse; use a larger tau"
    )
    with pytest.raises(MappingError, match=text):
        check_ladder(currents, replace(TIMING, tau=0.98 * limit), "model.pt")


@pytest.mark.parametrize(
    ("what", "needed", "currents"),
    [
        ("skip a set", dpi_rise_time(0.5e-6, 0.4, 0.5, 0.01), CURRENTS),
        ("skip a reset", dpi_fall_time(0.5, 0.01), replace(CURRENTS, i_reset=0.14e-9)),
    ],
)
def test_skipped_steps_are_refused(what, needed, currents):
    rest = TIMING.step - TIMING.pulse
    limit = rest / needed
    check_ladder(currents, replace(TIMING, tau=0.99 * limit), "model.pt")
    text = (
        rf"model\.pt: the ladder would {what}: the neighbour's window arrives after 8\.5\d+ ms \(tau .* ms\), which "
        r"must be less than 8\.5 ms, the rest of the step; use a smaller tau"
    )
    with pytest.raises(MappingError, match=text):
        check_ladder(currents, replace(TIMING, tau=1.005 * limit), "model.pt")


@pytest.mark.parametrize(
    "change",
    [
        {"i_reset": 0.16e-9},  # reset above the lower threshold
        {"i_fall": 0.26e-9},  # lower threshold above retain
        {"i_retain": 0.36e-9},  # retain above the upper threshold
        {"i_rise": 0.46e-9},  # upper threshold above set
        {"i_set": 0.86e-9},  # set above the next rung's threshold, rise + alpha
        {"alpha": 0.09e-9},  # the same by a small alpha
    ],
)
def test_levels_out_of_order_are_refused(change):
    text = (
        r"model\.pt: a ladder needs reset < lower threshold < retain < upper threshold < set < upper threshold \+ "
        r"alpha, not .* nA with alpha .* nA; move the levels apart"
    )
    with pytest.raises(MappingError, match=text):
        check_ladder(replace(CURRENTS, **change), TIMING, "model.pt")


def test_the_dpis_own_times_count():
    """A DPI that is 10 % slow may not get a tau that just suffices for one of the equation, nor a fast one."""
    skip = (TIMING.step - TIMING.pulse) / dpi_rise_time(0.5e-6, 0.4, 0.5, 0.01)
    check_ladder(CURRENTS, replace(TIMING, tau=0.99 * skip), "model.pt")
    with pytest.raises(MappingError, match="the ladder would skip a set"):
        check_ladder(CURRENTS, replace(TIMING, tau=0.99 * skip), "model.pt", rise=1.1)
    double = TIMING.pulse / dpi_fall_time(0.5, 0.1)
    check_ladder(CURRENTS, replace(TIMING, tau=1.01 * double), "model.pt")
    with pytest.raises(MappingError, match="the ladder would double a reset"):
        check_ladder(CURRENTS, replace(TIMING, tau=1.01 * double), "model.pt", fall=0.95)


def chain(layers, epsilon):
    """A unit at this epsilon, and `layers` - 1 Schmitt triggers that copy it one after the other."""
    found, source = [], "input"
    for k in range(layers):
        one = FirstQuadrantLayer(
            f"l{k}", (source,), np.ones((1, 1)), np.zeros(1), np.full(1, 0.3), np.full(1, 0.7), np.full(1, 2.0)
        )
        found.append(replace(one, epsilon=epsilon) if k == 0 else one)
        source = f"l{k}"
    readout = Readout((source,), np.ones((1, 1)), np.zeros(1))
    return check_network(
        Network(
            InputEncoding(np.zeros(1), np.ones(1)), tuple(found), readout, state_ranges={"l0": np.array([[0.0], [1.0]])}
        )
    )


def test_a_ladder_too_far_in_front_is_refused(technology, calibration):
    """At 4 stages the next one decides 0.7 / 4 = 0.175 of a frame after the ladder, whose pulse ends after 0.23."""
    compile_network(chain(3, 1.0), technology, calibration, CompilerSettings(I_UNIT))
    compile_network(chain(6, 0.0), technology, calibration, CompilerSettings(I_UNIT))
    text = (
        r"model\.pt: l0 has epsilon 1 and stands before the last of 4 recurrent layers .* use at most 3 layers in a row"
    )
    with pytest.raises(MappingError, match=text):
        compile_network(chain(4, 1.0), technology, calibration, CompilerSettings(I_UNIT), "model.pt")


def test_ranges_that_leave_the_start_out():
    """The state before the first step counts, whatever the file says: rungs reach down to it."""
    network = chain(1, 1.0)
    network = replace(network, state_ranges={"l0": np.array([[2.0], [3.0]])})  # two and three steps of alpha / 2
    (node,) = lower(network).of(Ladder)
    assert (node.start, node.rungs) == (1, 5)  # one rung of headroom below the start and above 3


def test_a_unit_that_never_moves_has_a_rung():
    network = replace(chain(1, 1.0), state_ranges={"l0": np.zeros((2, 1))})
    (node,) = lower(network, headroom=0).of(Ladder)
    assert (node.start, node.rungs) == (0, 1)


def test_tau_of_a_compiled_network_is_checked(ladders, technology, calibration):
    network, _ = ladders(3, "first", widths=(1,))
    for tau, text in ((0.5e-3, "would double a"), (8e-3, "would skip a")):
        with pytest.raises(MappingError, match=rf"model\.pt: the ladder {text}"):
            compile_network(network, technology, calibration, CompilerSettings(I_UNIT, tau=tau), "model.pt")
    assert ladder_timing(20e-3) == LadderTiming(20e-3, pytest.approx(3e-3), pytest.approx(5e-3))
    assert ladder_timing(20e-3, 4e-3).tau == 4e-3
