"""What a plan may say, and what is said of one that is wrong."""

import pytest

from cosim.base.errors import InputError
from cosim.verbs.signoff.plan import CHECK_NAMES, SignoffPlan, format_plan, read_plan


def plan_of(tmp_path, text):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return read_plan(path)


def test_without_a_file_it_is_the_default_one():
    assert read_plan(None) == SignoffPlan()


def test_what_a_run_writes_is_read_back_the_same(tmp_path):
    plan = plan_of(tmp_path, 'skip = ["noise"]\n[spec]\npower = "<= 400 nW"\n[supply]\nfrequencies_hz = [50, 2000]\n')
    again = plan_of(tmp_path, format_plan(plan))
    assert again == plan
    assert format_plan(again) == format_plan(plan)
    assert plan.supply.frequencies_hz == (50.0, 2000.0)
    assert plan.skip == ("noise",)


def test_a_check_has_the_common_limits_unless_it_has_its_own(tmp_path):
    plan = plan_of(
        tmp_path, '[spec]\naccuracy = ">= 80 %"\ntask_agreement = ">= 90 %"\n[corners]\naccuracy = ">= 70 %"\n'
    )
    nominal, corners = ({one.metric: one.limit for one in plan.specs(name)} for name in ("nominal", "corners"))
    assert nominal == {"accuracy": 0.8, "task_agreement": 0.9, "state_agreement": 0.995}
    assert corners == {"accuracy": 0.7, "task_agreement": 0.95, "state_agreement": 0.99}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[noize]\n", ["'noize'", *CHECK_NAMES]),
        ('skip = "noise"\n', ["skip", "list", "'noise'"]),
        ('skip = ["nose"]\n', ["skip", "'nose'"]),
        ("noise = 3\n", ["noise", "[noise]", "3"]),
        ("[spec]\naccuracy = 0.9\n", ["spec.accuracy", ">=", "0.9"]),
        ('[spec]\naccuracy = ">= 900 %"\n', ["spec.accuracy", "900"]),
        ("[spec]\nchips = 3\n", ["spec.chips", "accuracy"]),
        ("[mismatch]\nchip = 3\n", ["mismatch.chip", "chips"]),
        ('[mismatch]\nchips = "many"\n', ["mismatch.chips", "whole number"]),
        ("[mismatch]\nchips = 0\n", ["mismatch.chips must lie in 1 to 1000000, not 0"]),
        ("[clocks]\nedges = [0.5]\n", ["clocks.edges must lie in (0, 0.1], not 0.5"]),
        ("[supply]\nfrequencies_hz = [1e9]\n", ["supply.frequencies_hz must lie in 0.001 to 1e+06 Hz, not 1e+09 Hz"]),
        ("[supply]\nripple_v = nan\n", ["ripple_v"]),
        ("[frame]\nshortest = 1.5\n", ["frame.shortest must lie in 0.001 to 1, not 1.5"]),
        ("[start]\nramp = 0.9\n", ["start.ramp", "0.9"]),
        ("[start]\nreset = 0.1\n", ["start.reset", "0.5", "0.1"]),
        ("[corners]\ncelsius = []\n", ["corners.celsius", "list"]),
        ("[corners]\nsupplies = [0]\n", ["corners.supplies must lie in (0, 2), not 0"]),
        ("[mismatch]\ncelsius = []\n", ["mismatch.celsius must be a list of one or more numbers, not empty"]),
        ("[mismatch]\nsupplies = [2]\n", ["mismatch.supplies must lie in (0, 2), not 2"]),
        ("[mismatch]\ncelsius = [-40, 125]\n", ["mismatch.celsius", 'variation = "local"', '"all"']),
        ("[noise\n", ["TOML"]),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, named):
    with pytest.raises(InputError) as found:
        plan_of(tmp_path, text)
    assert all(word in str(found.value) for word in ["plan.toml", *named])
    assert len(str(found.value)) < 400


def test_a_plan_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="missing"):
        read_plan(tmp_path / "none.toml")
