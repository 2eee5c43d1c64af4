"""Small runs as their verbs leave them: a tiny network on made-up samples, by the behavioral model."""

import numpy as np
import pytest

from cosim.base.claim import own_folder
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.tasks.testset import TestSet
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.power.study import run_power
from cosim.verbs.simulate.samples import run_samples


@pytest.fixture(scope="session")
def designs(make_network, technology, calibration):
    """Two networks of one form, as of two seeds of a training."""
    return [compile_network(make_network(seed, hidden=3), technology, calibration) for seed in (11, 12)]


@pytest.fixture(scope="session")
def samples(designs):
    """40 samples of 5 frames; classes as the first network decides, so that its accuracy is 1."""
    x = np.random.default_rng(4).uniform(size=(40, 5, 3))
    blank = TestSet(x, np.zeros(40, dtype=np.int64), np.full(40, 5), np.arange(100, 140))
    _, decisions = Trial(designs[0], blank, VariationPlan("none", 0, 1)).software
    return TestSet(x, decisions, blank.lengths, blank.indices)


@pytest.fixture(scope="session")
def trial(designs, samples):
    """20 chips of a tenth of the drawn area."""
    return Trial(designs[0], samples, VariationPlan("local", 2, 20, area=0.1))


@pytest.fixture
def simulate():
    """(folder, design, samples, chip) -> folder: a run of `cosim simulate`."""

    def make(folder, design, samples, chip=None):
        with own_folder(folder, "simulate"):
            run_samples(design, samples, Run(folder, 0, engine="behavioral", chip=chip), lambda *_: None)
        return folder

    return make


@pytest.fixture
def meter():
    """(folder, design, samples, condition) -> folder: a run of `cosim power --behavioral`."""

    def make(folder, design, samples, condition=None):
        with own_folder(folder, "power"):
            run_power(design, samples, Run(folder, 0, condition=condition), lambda *_: None, simulate=False)
        return folder

    return make
