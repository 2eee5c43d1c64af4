"""Noise of transistors in a run: shares by hand, and benches whose noise is a sample's own."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import Behavioral
from cosim.engines.engine import Failure, FailureKind, Run
from cosim.engines.simulation.simulated import sample_benches
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.compare.noise import compare_noisy, noise_section, study_noise
from cosim.verbs.simulate.samples import tabulate_samples

NETWORK = trained_network_path("digits_d4")


@pytest.fixture(scope="module")
def tried(technology, calibration):
    network = load_network(NETWORK)
    return compile_network(network, technology, calibration), load_test_set(network, None).take(12, 0)


def test_shares_are_of_samples_that_ran_both_ways(tried, technology):
    """Of three samples one fails, one is the same, and of one 2 of its 4 x frames states differ."""
    design, test = tried
    quiet = list(Behavioral().infer(design, test, Run(), lambda *_: None))
    turned = quiet[1].states.copy()
    turned[3, :2] = 1 - turned[3, :2]
    noisy = [*quiet]
    noisy[1] = replace(quiet[1], states=turned)
    noisy[2] = Failure(FailureKind.TIMEOUT, "", "")
    found = compare_noisy(design, test, (quiet, noisy), Run())
    assert (found.samples, found.failed) == (len(quiet) - 1, 1)
    assert found.states.mean == pytest.approx(2 / turned.size / found.samples)
    assert found.answers.mean == 0
    assert found.change.mean == 0
    assert compare_noisy(design, test, (quiet, [noisy[2]] * len(quiet)), Run()) is None
    study = study_noise(design, test, NoiseSimulation(find_noise(technology)), Run(), draws=1)
    rows = noise_section(replace(study, transistors=found))[0].rows
    assert rows[-1] == ("samples; those that did not run", f"{found.samples}; 1")
    assert len(rows) == len(noise_section(study)[0].rows) + 5


def test_a_chip_decides_itself(tried):
    """The class lines say another class than the readout: noisy and tabled decisions are those of the lines."""
    design, test = tried
    quiet = list(Behavioral().infer(design, test, Run(), lambda *_: None))
    other = (int(quiet[0].readout[-1].argmax()) + 1) % 10
    lines = [np.arange(10) == other, np.zeros(10, bool)]  # of two samples; the second one's chip shows no class
    shown = [replace(one, lines=line) for one, line in zip(quiet, lines, strict=False)]
    few = test.select(np.arange(2))
    assert compare_noisy(design, few, (quiet[:2], shown), Run()).accuracy.mean == np.mean(few.y == [other, -1])
    table = tabulate_samples(design, few, {"tt": shown}, "batch")
    assert table["decisions"].tolist() == [[other, -1]]
    assert np.isfinite(table["power_w"]).all()


def test_a_samples_noise_is_its_own(tried, technology):
    """The key follows seed, chip and the sample's index, whatever is run beside it; without noise benches have none."""
    design, test = tried
    noise = NoiseSimulation(find_noise(technology), seed=3)
    keys = [bench.noise.key for bench in sample_benches(design, test, Run(noise=noise))]
    assert len(set(keys)) == len(keys)
    assert keys == [noise.key(index) for index in test.indices.tolist()]
    assert noise.key(5) not in {replace(noise, seed=4).key(5), replace(noise, chip=1).key(5)}
    assert all(bench.noise is None for bench in sample_benches(design, test, Run()))
    step = next(sample_benches(design, test, Run(noise=noise))).noise.step
    assert step == pytest.approx(5e-6)
