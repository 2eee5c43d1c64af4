"""Gradients across the die: what they are, how far pairs differ, and that they are off where none is asked for."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.tasks.testset import TestSet
from cosim.variation.draws import Gradient, VariationPlan, VaryingDevice, draw_chip, graded
from cosim.verbs.montecarlo.run import check_contributions, run_settings
from cosim.verbs.montecarlo.trial import Trial

UM = 1e-6
SINGLE = 2.0**-24  # relative error of what a store keeps


def device(name, polarity="n", sigma=0.0):
    return VaryingDevice(name, polarity, sigma, sigma)


@pytest.fixture(scope="module")
def trial(make_network, technology, calibration):
    """A small network whose transistors stand on a lattice of 10 um."""
    from cosim.compiler.passes import compile_network

    design = compile_network(make_network(11, hidden=3), technology, calibration)
    x = np.zeros((1, 2, 3))
    blank = TestSet(x, np.zeros(1, dtype=np.int64), np.full(1, 2), np.arange(1))
    found = Trial(design, blank, VariationPlan("none", 5, 40))
    places = {one.name: (k % 20 * 10 * UM, k // 20 * 10 * UM) for k, one in enumerate(found.devices)}
    return replace(found, gradient=Gradient(4.0, 2.0, places))


def test_a_pure_gradient_is_linear(trial):
    """A plane through the places leaves nothing but rounding, and has the sides' own slopes."""
    chip = trial.chip(3)
    places = np.array([trial.gradient.places[one.name] for one in chip.devices])
    slopes = {}
    for side in ("n", "p"):
        mine = np.array([one.polarity == side for one in chip.devices])
        plane = np.column_stack([places[mine], np.ones(mine.sum())])
        for values, largest in ((chip.vt_shift, np.abs(chip.vt_shift).max()), (np.log(chip.beta_factor), 1.0)):
            found, *_ = np.linalg.lstsq(plane, values[mine], rcond=None)
            assert np.abs(plane @ found - values[mine]).max() < 2 * SINGLE * largest
            slopes[side, len(slopes)] = tuple(found[:2])
    assert len(set(slopes.values())) == 4


@pytest.mark.parametrize("apart", [(300.0, 0.0), (180.0, 240.0)])
def test_pairs_differ_as_pelgrom_says(technology, apart):
    """Both terms as large: 1.2 mV of sqrt(2) sigma, 4 uV/um over 300 um. The variance of n = 4,000 normal numbers has
    the standard error sqrt(2 / n) = 2.2 %; 9 % are four of it."""
    plan, sigma = VariationPlan("local", 1, 4000), 1.2e-3 / 2**0.5
    devices = (device("a", sigma=sigma), device("b", sigma=sigma))
    gradient = Gradient(4.0, 0.0, {"a": (0.0, 0.0), "b": (apart[0] * UM, apart[1] * UM)})
    chips = [graded(draw_chip(devices, technology, plan, k), gradient, plan) for k in range(plan.chips)]
    differences = np.array([chip.vt_shift[1] - chip.vt_shift[0] for chip in chips])
    wanted = 2 * sigma**2 + (4.0 * 300 * UM) ** 2
    assert np.mean(differences**2) == pytest.approx(wanted, rel=0.09)
    assert abs(differences.mean()) < 4 * (wanted / plan.chips) ** 0.5


def test_n_and_p_have_gradients_of_their_own(technology):
    """The correlation of 1,000 independent pairs has the standard error 0.032; 0.13 is four of it."""
    plan = VariationPlan("none", 1, 1000)
    devices = (device("a"), device("b", "p"), device("c"))
    gradient = Gradient(4.0, 2.0, {"a": (0.0, 0.0), "b": (0.0, 0.0), "c": (1e-4, 1e-4)})
    chips = [graded(draw_chip(devices, technology, plan, k), gradient, plan) for k in range(plan.chips)]
    n, p, far = np.array([chip.vt_shift for chip in chips]).T
    assert abs(np.corrcoef(n, p)[0, 1]) < 0.13
    np.testing.assert_allclose(n, -far, rtol=2 * SINGLE)  # mirrored at the middle of all places


def test_transistors_draw_what_they_draw_without(trial):
    local = replace(trial, plan=replace(trial.plan, kind="local"))
    with_it, without, alone = local.chip(7), replace(local, gradient=None).chip(7), trial.chip(7)
    np.testing.assert_allclose(with_it.vt_shift, without.vt_shift + alone.vt_shift, rtol=0, atol=4 * SINGLE * 0.1)
    np.testing.assert_allclose(with_it.beta_factor, without.beta_factor * alone.beta_factor, rtol=4 * SINGLE)


def test_a_chip_depends_on_seed_and_number_alone(trial):
    """Not on how many there are, nor on the process that draws it."""
    other = pickle.loads(pickle.dumps(replace(trial, plan=replace(trial.plan, chips=4000))))
    np.testing.assert_array_equal(trial.chip(9).vt_shift, other.chip(9).vt_shift)
    assert not np.array_equal(trial.chip(9).vt_shift, trial.chip(10).vt_shift)


def test_off_by_default(trial):
    without = replace(trial, gradient=None)
    assert not without.chip(0).vt_shift.any()
    assert not trial.nominal_chip.vt_shift.any()
    assert "gradient" not in run_settings(without)
    known = {name: value for name, value in run_settings(trial).items() if name != "gradient"}
    assert known == run_settings(without)


def test_shares_of_a_common_gradient_are_refused(trial):
    with pytest.raises(InputError, match="leave out --gradient or --contributions"):
        check_contributions(trial)
