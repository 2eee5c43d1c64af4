"""What would raise a yield, tried on the same draws."""

from dataclasses import replace

import pytest

from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.run import LARGER_AREA, default_spec, try_cures
from cosim.verbs.montecarlo.spec import passes_specs
from cosim.verbs.montecarlo.trial import Trial, run_behavioral_chip


@pytest.fixture(scope="module")
def poor(trial):
    """The module's network on devices of a tenth of the area, so that chips fail."""
    return Trial(trial.design, trial.test_set, VariationPlan("local", 3, 200, area=0.1))


def count(trial, chips, spec):
    return sum(passes_specs(run_behavioral_chip(trial, trial.chip(number)), [spec]) for number in range(chips))


def test_a_cure_counts_the_same_chips_with_it(poor):
    """Larger devices: the count is that of a run with that area. Fifty chips are tried, the run's first."""
    spec = default_spec(poor)
    cures = {cure.name: cure for cure in try_cures(poor, [spec])}
    assert set(cures) == {"area", "trim"} and {cure.chips for cure in cures.values()} == {50}
    larger = replace(poor, plan=replace(poor.plan, area=0.1 * LARGER_AREA))
    assert cures["area"].passed == count(larger, 50, spec) > count(poor, 50, spec)
    for cure in cures.values():
        assert cure.low <= cure.value == cure.passed / 50 <= cure.high


def test_what_does_not_apply_is_left_out(poor):
    """A whole chip that is off is no better with larger devices."""
    shifted = replace(poor, plan=replace(poor.plan, kind="global", chips=4))
    assert [cure.name for cure in try_cures(shifted, [default_spec(poor)])] == ["trim"]
