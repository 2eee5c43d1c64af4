"""A network with its noise figures and inputs, for what is counted in noise."""

import numpy as np
import pytest

from cosim.compiler.passes import compile_network
from cosim.verbs.calibrate.noise import find_noise


@pytest.fixture(scope="module")
def fit(technology):
    return find_noise(technology)


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(26, hidden=5), technology, calibration)


@pytest.fixture(scope="module")
def inputs():
    return np.random.default_rng(9).uniform(size=(7, 11, 3))
