"""Software, behavioral equations and transistors on the same inputs, three ways to the same answer."""

import numpy as np
import pytest

from cosim.compiler.passes import compile_network
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import read_plan
from cosim.engines.simulation.simulated import sample_benches
from cosim.network.ir.nodes import PEDESTAL, Output
from cosim.network.reference import run_reference, threshold_distances
from cosim.tasks.testset import TestSet
from cosim.verbs.compare.agreement import compare_engines

pytestmark = pytest.mark.ngspice

FRAMES, SAMPLES, MARGIN = 6, 2, 0.06


@pytest.fixture(scope="module", params=["first", "signed"])
def network(request, make_network):
    return make_network(31, request.param, widths=(5, 2), alphas=(1.0,))


def decision_gap(network, x):
    """Distance of the two largest scores, in units, over all frames and over all but the last."""
    scores = [run_reference(network, x, np.array([length])).scores[0] for length in (FRAMES - 1, FRAMES)]
    return min(float(np.diff(np.sort(score)[-2:])[0]) for score in scores)


@pytest.fixture(scope="module")
def samples(network):
    """Sequences in which no candidate comes nearer than MARGIN to a threshold, so that no state may differ.

    Drawn frame by frame from a seed. MARGIN: candidates of the circuit err by up to 1 % of gain of up to 4 units, and
    0.1 V of node swing at 2.5 %/V.
    """
    rng, found = np.random.default_rng(1), []
    while len(found) < SAMPLES:
        x = np.empty((1, 0, 3))
        while x.shape[1] < FRAMES:
            longer = np.concatenate([x, rng.uniform(size=(1, 1, 3))], axis=1)
            if threshold_distances(network, run_reference(network, longer)).min() > MARGIN:
                x = longer
        if decision_gap(network, x) > 0.1:  # far more than readouts err, so that decisions may not differ either
            found.append(x[0])
    return TestSet(np.stack(found), np.arange(SAMPLES), np.array([FRAMES, FRAMES - 1]), np.arange(SAMPLES))


@pytest.fixture(scope="module")
def design(network, technology, calibration):
    return compile_network(network, technology, calibration)


@pytest.fixture(scope="module")
def comparison(design, samples):
    plans = [read_plan(design, int(length)) for length in samples.lengths]
    outcomes = [run_inference(*pair) for pair in zip(sample_benches(design, samples, Run()), plans, strict=True)]
    assert all(isinstance(outcome, Inference) for outcome in outcomes), outcomes
    found = compare_engines(design, samples, outcomes)
    assert found is not None
    return found


def test_the_networks_do_something(comparison):
    states = comparison.engines["software"].states[comparison.valid]
    assert 0.1 < states.mean() < 0.9
    assert (states.any(axis=0) & ~states.all(axis=0)).sum() >= 3  # cells that were seen in both states


@pytest.mark.parametrize("engine", ["behavioral", "ngspice"])
def test_states_agree_in_every_frame(comparison, engine):
    assert comparison.state_errors("software", engine) == 0
    assert comparison.state_agreement("software", engine) == 1.0
    assert comparison.task_agreement("software", engine) == 1.0


def traffic(design):
    """Largest sum of |weight| times signal over the outputs, in units."""
    largest = 0.0
    for node in design.graph.of(Output):
        total = 0.0
        for source, _ in design.graph.into(node.name):
            level = getattr(design.graph.nodes[source], "level", 1.0)
            level = design.graph.i_pedestal / design.i_unit if source == PEDESTAL else level
            total += abs(design.graph.mirrors[source, node.name].realised) * level
        largest = max(largest, total)
    return largest


def test_behavioral_readout_is_that_of_the_transistors(comparison, design):
    difference = np.abs(comparison.engines["behavioral"].readout - comparison.engines["ngspice"].readout)
    # reltol 1e-4 of the inference options, the level's fit error, gate lines settled: exp(-frame / 1 ms) is nil
    bound = (1e-3 + design.calibration.schmitt.error + 1e-3) * traffic(design)
    assert difference[comparison.valid].max() < bound


def test_readout_is_that_of_the_software(comparison, design):
    mirror = design.calibration.mirror
    gain = max(abs(g - 1) for gains in (mirror.gain_n, mirror.gain_p) for g in gains[:8])  # up to 4 nA
    bound = (gain + 2e-3 + design.calibration.schmitt.error) * traffic(design)
    difference = np.abs(comparison.engines["software"].readout - comparison.engines["ngspice"].readout)
    assert difference[comparison.valid].max() < bound
    correlation, rmse = comparison.readout_error()
    assert correlation > 0.999
    assert rmse < bound


def test_power_within_five_percent(comparison):
    """The estimate leaves out 3 %/V of output conductance in the cells, and the charge of moving gate lines, 1 %."""
    np.testing.assert_allclose(comparison.power_w["behavioral"], comparison.power_w["ngspice"], rtol=0.05)
