"""Unit devices per weight 1.0: which numbers build a grid of weights exactly."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cosim.base.errors import MappingError
from cosim.compiler.passes import compile_network
from cosim.technology.scale import MAX_UNITS, check_units


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 10, 16, 64])
def test_accepted_are_the_units_that_make_every_weight_whole(steps):
    for units in range(1, MAX_UNITS + 1):
        if Fraction(units, steps).denominator == 1:
            check_units(1 / steps, units, "net.pt")
        else:
            with pytest.raises(MappingError, match=rf"net\.pt: weights on a grid of 1/{steps} need {steps} unit dev"):
                check_units(1 / steps, units, "net.pt")


@pytest.mark.parametrize("grid", [None, 1 / 128, 0.3, 1.5])
def test_what_no_number_of_units_builds_is_rounded_by_any(grid):
    check_units(grid, 7, "net.pt")


def test_a_calibration_for_other_units_than_the_grid_is_refused(make_network, technology, calibration):
    """Twice as many build the grid as well; 12 would round every odd weight on 1/8."""
    network = replace(make_network(3), weight_grid=1 / 8)
    text = r"not 12, with which 1/8 would be 1\.5 devices; leave --units out, or in Python use find_calib.*, units=8\)"
    with pytest.raises(MappingError, match=text):
        compile_network(network, technology, replace(calibration, units=12))
    graph = compile_network(network, technology, replace(calibration, units=16)).graph
    rounding = [graph.mirrors[edge].realised - weight.target for edge, weight in graph.weights.items()]
    assert np.abs(rounding).max() == 0
