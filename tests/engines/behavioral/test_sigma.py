"""Decisions in standard deviations: mismatch against chips that are drawn, noise against the model, growth."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.evaluate import cell_of, evaluate_held
from cosim.engines.behavioral.model import run_behavioral, run_noisy
from cosim.engines.behavioral.sigma import decision_spread, devices_of, training_noise
from cosim.engines.chip import deviations_of
from cosim.exchange.checkpoint import load_network
from cosim.network.reference import later
from cosim.tasks.testset import TestSet, load_test_set
from cosim.units.table import unit_of
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
from cosim.variation.noise import NoiseSimulation
from cosim.variation.sigma import (
    LEFT,
    ErrorAfterCalibration,
    SigmaParts,
    WeightedRows,
    candidate_variance,
    derive_mismatch,
    left_by,
    noise_variance,
    threshold_variance,
)
from cosim.verbs.compile.margins import NEAR, study_margins

CHIPS = 400


@pytest.fixture(scope="module")
def trace(design, inputs):
    return run_behavioral(design, inputs)


@pytest.fixture(scope="module")
def decided(design, fit, trace):
    return decision_spread(design, trace, NoiseSimulation(fit))


def distances_on(design, trace, chip):
    """Each memory's distance from the threshold that counts, on a chip whose states are held on the nominal ones, A."""
    fixed = deviations_of(design, design.nominal, chip)
    held = evaluate_held(design.graph, design.calibration, trace, trace.states, fixed)
    return {node.name: _distance(design, trace, held, fixed, node) for node in design.graph.memories}


def _distance(design, trace, held, fixed, node):
    cell, own = (cell_of(design.graph, node, design.calibration, *few) for few in ((fixed.cells.get(node.name),), ()))
    turns, nominal = unit_of(node).switching_thresholds(cell, ()), unit_of(node).switching_thresholds(own, ())
    was_on = later(trace.states[node.name], 1, node.start) > 0
    off, on = (
        _of_nearest(trace.candidates[node.name], held.candidates[node.name], *edges)
        for edges in ((nominal.while_off, turns.while_off), (nominal.while_on, turns.while_on))
    )
    return np.where(was_on, on, off)


def _of_nearest(candidate, held, nominal, edges):
    """held minus the edge that is the nearest to the nominal candidate where edges are nominal."""
    nearest = np.abs(candidate - np.reshape(nominal, (-1, 1, 1))).argmin(axis=0)
    return np.choose(nearest, [held - edge for edge in edges])


def test_mismatch_is_that_of_chips_that_are_drawn(design, trace, decided):
    """The standard deviation over 400 chips has a standard error of 1 / sqrt(800), 3.5 %; the mean over 5 cells and 77
    decisions of each, which share devices, is taken to have half of that. 8 %: to first order, and rectifiers alone."""
    ratios = mismatch_ratios(design, trace, decided)
    assert len(ratios) >= 3
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.08)


def native(name, technology, calibration, samples):
    """A design of a network that comes with the package, and its trace."""
    network = load_network(trained_network_path(name))
    design = compile_network(network, technology, calibration)
    return design, run_behavioral(design, load_test_set(network, None).take(samples, 0).x)


def test_comparators_of_ladders_have_thresholds_of_their_own(technology, calibration, fit):
    """The standard deviation over 200 chips has a standard error of 5 %, the mean over cells that share devices about
    half of that; 10 % are four. With the lower threshold as the upper one less a width, as a 9T cell has it, the ratio
    is under 0.8."""
    design, trace = native("digits_native_d8", technology, calibration, 2)
    ratios = mismatch_ratios(design, trace, decision_spread(design, trace, NoiseSimulation(fit)), CHIPS // 2)
    assert len(ratios) == len(list(design.graph.memories))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)


def test_the_threshold_of_a_toggle_is_that_of_chips_that_are_drawn(technology, calibration, fit):
    """Candidates of parity are far from it, where the comparison's own spread grows with them; at the threshold it is
    2 s_cp^2. 400 chips have a standard error of 3.5 %, and 11 % are three of it."""
    design, _ = native("parity_d2", technology, calibration, 1)
    model, cell = derive_mismatch(design.technology, 1 / 8), next(iter(design.graph.memories))
    turns = np.array([
        unit_of(cell)
        .switching_thresholds(cell_of(design.graph, cell, calibration, chip.cells.get(cell.name)), ())
        .while_off[0]
        for chip in (deviations_of(design, design.nominal, one) for one in drawn_chips(design, CHIPS))
    ])  # fmt: skip
    edge = turns.mean() / design.i_unit
    wanted = threshold_variance(edge, 0.0, SigmaParts(8, None, mismatch=model)) + 2 * (edge * model.cell_p) ** 2
    assert turns.std() / design.i_unit == pytest.approx(np.sqrt(wanted), rel=0.11)


def drawn_chips(design, count):
    plan = VariationPlan("local", seed=4, chips=count)
    devices = varying_devices(design.assembly.circuit, design.technology, plan)
    return (draw_chip(devices, design.technology, plan, number) for number in range(count))


def mismatch_ratios(design, trace, decided, count=CHIPS):
    """Of each memory, the standard deviation of its distance over drawn chips over the equations'."""
    nodes = list(design.graph.memories)
    found = {node.name: [] for node in nodes}
    for chip in drawn_chips(design, count):
        for name, distance in distances_on(design, trace, chip).items():
            found[name].append(distance)
    ratios = []
    for node in nodes:
        far = trace.candidates[node.name] > 0.3 * design.i_unit  # not cut at 0
        if far.any():
            # of a distance over its chip's gain of the comparison, which scales both sides and turns nothing
            ratios.append((np.std(found[node.name], axis=0) / decided[node.name].mismatch)[far].mean())
    return ratios


def test_noise_is_the_models(design, inputs, trace, decided, fit):
    noisy = run_noisy(design, inputs, NoiseSimulation(fit, flat=0.0))
    for cell, one in decided.items():
        same = (noisy.states[cell] == trace.states[cell]).all()
        if same:
            np.testing.assert_allclose(one.noise, noisy.sigmas[cell], rtol=0.2)


def test_all_parts_grow_with_what_a_row_adds():
    """+2 and -2 beside the same sum of 1: the candidate is the same, its variance is not."""
    spread = SigmaParts(8, ErrorAfterCalibration(1e-3, 1e-3))
    few = WeightedRows(np.array([[1.0, 0.0, 0.0]]), np.ones((1, 3)), np.zeros((1, 3)))
    more = replace(few, weight=np.array([[1.0, 2.0, -2.0]]))
    one, other = (candidate_variance(row, np.ones((1, 1)), spread).item() for row in (few, more))
    assert one == pytest.approx(1e-6)
    assert other == pytest.approx(9e-6)


def test_noise_of_a_row_without_time_for_covariances_is_near_that_of_the_model(technology, fit):
    """A diode of 1 nA alone, S g_m / (4 C) with S = 2 q I thermal twice, its own and that of the weight's device."""
    noise = replace(training_noise(technology, fit), share=1.0, line=0.0, gate=0.0)
    row = WeightedRows(np.array([[1.0]]), np.ones((1, 1)), np.zeros((1, 1)))
    device = fit.devices["cell_p"]
    siemens = 1e-9 / (float(device.slope(1e-9)) * technology.thermal_voltage)
    wanted = 2 * 2 * 1.602176634e-19 * 1e-9 * float(device.physical(1e-9)) * siemens / (4 * noise.farad)
    assert 1e-18 * noise_variance(row, np.ones((1, 1)), 8, noise).item() == pytest.approx(wanted, rel=1e-3)


def test_what_a_training_counts_by_has_the_technologys_devices(technology, fit):
    circuit, chips = (devices_of(technology, fit, 8, chips=one) for one in (False, True))
    assert circuit.mismatch is None
    assert chips.mismatch is not None
    assert circuit.noise == chips.noise
    assert 0.3 < circuit.noise.share < 0.6  # of 1 nA in generic180, 0.34 of what is frozen and what the node tracked
    assert left_by("generic180") == LEFT["generic180"]
    assert left_by("another").threshold == max(one.threshold for one in LEFT.values())


def test_margins_of_a_layer_are_those_of_its_decisions(design, inputs, decided, fit):
    lengths = np.full(len(inputs), inputs.shape[1])
    lengths[0] = 4
    found = study_margins(design, TestSet(inputs, np.zeros(7, int), lengths, np.arange(7)), NoiseSimulation(fit))
    valid = np.arange(inputs.shape[1])[None, :] < lengths[:, None]
    assert [one.layer for one in found.layers] == list(dict.fromkeys(node.layer for node in design.graph.memories))
    for one in found.layers:
        own = [decided[node.name] for node in design.graph.memories if node.layer == one.layer]
        sigmas = np.stack([each.distance / np.hypot(each.noise, each.left) for each in own], axis=2)
        assert one.decisions == len(own) * lengths.sum()
        assert one.circuit.fewest == pytest.approx(sigmas[valid].min())
        by_sample = [(sigmas[k, :length] <= NEAR).mean() for k, length in enumerate(lengths)]
        assert one.circuit.within.mean == pytest.approx(np.mean(by_sample))
        assert one.chips.fewest < one.circuit.fewest
