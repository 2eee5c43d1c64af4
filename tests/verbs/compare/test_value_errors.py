"""Errors of real-valued answers against closed forms, and what right means of them."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.tasks.target import check_tolerance, default_tolerance, same_answers
from cosim.tasks.testset import TestSet
from cosim.verbs.compare.value_errors import measure_errors


def test_closed_forms():
    """An error of 0.3 everywhere against targets of variance 1: rms 0.3, R2 1 - 0.09; no spread of the rms error."""
    y = np.array([[1.0], [-1.0]] * 20)
    found = measure_errors({"software": y, "ngspice": y + 0.3}, y, 0.2)
    own = found.engines["ngspice"]
    assert own.rmse == pytest.approx(0.3) and own.rmse_interval == pytest.approx((0.3, 0.3))
    assert (own.nrmse, own.r2) == pytest.approx((0.3, 0.91))
    assert found.software_rmse == {"ngspice": pytest.approx(0.3)}
    assert found.engines["software"].r2 == 1.0


def test_the_interval_covers():
    """400 sets of 60 normal errors: the 95 % bootstrap of the rms covers 93 % of large sets, some less of 60; the
    binomial deviation of 400 is 1.5 %, so 0.86 lies 4 of them below."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        y = rng.normal(size=(60, 1))
        low, high = measure_errors({"software": y + rng.normal(size=y.shape)}, y, 1).engines["software"].rmse_interval
        held += low <= 1 <= high
    assert 0.86 < held / 400 < 0.99


def test_targets_that_do_not_vary_have_no_r2_and_one_sample_no_interval():
    y = np.ones((3, 2))
    own = measure_errors({"software": y}, y, 1).engines["software"]
    assert (own.rmse, own.r2, own.nrmse, own.r2_interval) == (0.0, None, None, None)
    assert measure_errors({"software": y[:1]}, y[:1], 1).engines["software"].rmse_interval is None


def test_right_and_same():
    pooled = np.array([[0.1, 0.5], [0.4, 0.2]])
    y, two = np.array([1, 1]), np.full(2, 2)
    classes = TestSet(pooled[:, None], y, two, two)
    assert classes.answers(pooled).tolist() == [1, 0] and classes.same(y, np.array([1, 0])).tolist() == [True, False]
    assert replace(classes, y=pooled, tolerance=0.1).answers(pooled) is pooled
    assert same_answers(pooled, pooled + np.array([[0.05, -0.09], [0.0, 0.11]]), 0.1).tolist() == [True, False]
    assert default_tolerance(np.array([[-1.0], [3.0]])) == pytest.approx(0.4)
    with pytest.raises(InputError, match="--tolerance must be positive and finite, in the unit of the targets, not 0"):
        check_tolerance(0.0, "--tolerance")
