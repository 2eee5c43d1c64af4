"""A ladder on a chip: a rung that fails to count, by the equations and on transistors."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.evaluate import cell_of
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.network.layers import FirstQuadrantLayer
from cosim.network.types import InputEncoding, Network, Readout, check_network
from cosim.tasks.testset import TestSet
from cosim.units.ladder import LadderFactors
from cosim.units.table import unit_of
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices

UP, KEEP, DOWN = 1.0, 0.375, 0.0  # twice that arrives, beside thresholds at 0.5 and 1
INPUTS = [UP] * 4 + [KEEP, DOWN, DOWN]


@pytest.fixture
def design(technology, calibration):
    layer = FirstQuadrantLayer(
        "layer0", ("input",), 2 * np.eye(1), np.zeros(1), np.array([0.5]), np.array([1.0]), np.ones(1), epsilon=1.0
    )
    encoding = InputEncoding(np.zeros(1), np.ones(1))
    ranges = {"layer0": np.array([[0.0], [4.0]])}
    network = Network(encoding, (layer,), Readout(("layer0",), np.eye(1) / 8, np.zeros(1), "last"), state_ranges=ranges)
    return compile_network(check_network(network), technology, calibration)


def test_crossed_thresholds_hold(design):
    """Above the upper and not above the lower one, the driver adds its step up to the reset current: retain."""
    node = next(iter(design.graph.memories))
    nominal = (1.0,) * node.rungs
    factors = LadderFactors(
        0.7, 1.5, levels=nominal, driven=nominal, compared=nominal, thresholds=nominal, widths=nominal,
        upward=nominal[1:], downward=nominal[1:],
    )  # fmt: skip
    cell = cell_of(design.graph, node, design.calibration, factors)
    rise, fall = (float(one[0]) for one in switching(node, cell))
    assert rise < fall
    between, above = (rise + fall) / 2, 1.1 * fall
    states = unit_of(node).compute_states(cell, np.array([[between, above, between, 0.9 * rise]]))
    np.testing.assert_array_equal(states[0] - node.start, [0, 1, 1, 0])


def switching(node, cell):
    found = unit_of(node).switching_thresholds(cell, ())
    return found.while_on[:1], found.while_on[1:]


@pytest.mark.ngspice
@pytest.mark.parametrize(
    ("device", "factor", "expected"),
    [
        ("rung3.2", 1.0, [1, 2, 3, 4, 4, 3, 2]),
        # its threshold, 1.02 nA, is beyond the set current
        pytest.param("rung3.2", 1.2, [1, 1, 1, 1, 1, 0, -1], marks=pytest.mark.slow),
        ("rung3.2", 0.8, [1, 3, 4, 5, 5, 4, 3]),  # turns on with rung 2 before the next pulse
        # has as much at retain as the others of a set current
        pytest.param("rung2.in", 1.5, [2, 3, 4, 5, 5, 4, 3], marks=pytest.mark.slow),
        ("dpi2.out1", 0.7, [1, 1, 1, 1, 1, 0, -1]),  # opens the window of rung 3 too little
    ],
)
def test_a_rung_that_does_not_count(batch, design, device, factor, expected):
    """One transistor of a chip carries `factor` times its current: both engines have the states that follow."""
    plan = VariationPlan("local", 0, 1)
    devices = varying_devices(design.assembly.circuit, design.technology, plan)
    drawn = draw_chip(devices, design.technology, plan, 0)
    factors = np.array([factor if one.name.endswith(f".{device}") else 1.0 for one in devices])
    chip = replace(drawn, vt_shift=np.zeros(len(devices)), beta_factor=factors)
    x = np.array(INPUTS)[None, :, None]
    test_set = TestSet(x, np.zeros(1, dtype=np.int64), np.full(1, len(INPUTS)), np.arange(1))
    first = next(iter(design.graph.memories)).start
    equations = run_behavioral(design, x, None, chip).states["layer0.0"][0] - first
    (found,) = simulate_samples(design, test_set, Run(engine="batch", chip=chip))
    transistors = found.states[:, 0] - first
    assert (equations.tolist(), transistors.tolist()) == (expected, expected)
