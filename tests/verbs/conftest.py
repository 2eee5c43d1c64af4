"""A small trial: a tiny network on made-up samples."""

import numpy as np
import pytest

from cosim.compiler.passes import compile_network
from cosim.tasks.testset import TestSet
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.trial import Trial


@pytest.fixture(scope="session")
def trial(make_network, technology, calibration) -> Trial:
    """20 chips, 40 samples of 5 frames; classes as the trained network decides, so that its accuracy is 1."""
    design = compile_network(make_network(11, hidden=3), technology, calibration)
    rng = np.random.default_rng(4)
    x = rng.uniform(size=(40, 5, 3))
    blank = TestSet(x, np.zeros(40, dtype=np.int64), np.full(40, 5), np.arange(40))
    _, decisions = Trial(design, blank, VariationPlan("none", 0, 1)).software
    return Trial(design, TestSet(x, decisions, blank.lengths, blank.indices), VariationPlan("local", 2, 20))
