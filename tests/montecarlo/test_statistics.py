"""Statistics against closed forms and coverage by simulation."""

import numpy as np
import pytest

from cosim.errors import InputError
from cosim.montecarlo.spec import parse_spec
from cosim.montecarlo.statistics import checkpoints, count_yield, describe, is_precise, pair, summarize_chips
from cosim.variation.draws import Plan

PLAN = Plan("local", 0, 100)


def figures(accuracy, power=1e-7):
    return {"accuracy": accuracy, "task_agreement": accuracy, "state_agreement": 1.0, "power": power}


def chip(number, accuracy, status="ok"):
    found = {"chip": number, "status": status, "behavioral": figures(accuracy), "ngspice": figures(accuracy - 0.01)}
    return found | ({"reason": "no convergence", "detail": ""} if status != "ok" else {})


def test_all_pass_has_the_closed_form():
    found = count_yield([True] * 100, PLAN)
    assert (found.low, found.high) == pytest.approx((0.025**0.01, 1.0), rel=1e-12)


def test_interval_covers_the_true_yield():
    """Clopper-Pearson covers at least 95 %; of 2,000 runs of 60 chips at least 95 % - 4 sigma (1.95 %) must hold it."""
    rng = np.random.default_rng(1)
    held = 0
    for passed in rng.binomial(60, 0.8, size=2000):
        found = count_yield([True] * passed + [False] * (60 - passed), PLAN)
        held += found.low <= 0.8 <= found.high
    assert held / 2000 > 0.93


def test_replicates_give_the_interval_of_their_means():
    plan = Plan("local", 0, 100, "lhs", 10)
    passes = ([True] * 10 + [True, False] * 5) * 5
    found = count_yield(passes, plan)
    half = 2.2621571627409915 * np.std([1, 0.5] * 5, ddof=1) / 10**0.5  # t of 9 degrees of freedom at 97.5 %
    assert found.value == 0.75 and found.method == "Student's t over replicates"
    assert (found.low, found.high) == pytest.approx((0.75 - half, 0.75 + half), rel=1e-9)


@pytest.mark.parametrize(
    ("replicates", "failing"),
    [(2, 20), (10, 0), (10, 19), (50, 60)],  # few replicates; none, or fewer than 2 a replicate, that fail
)
def test_few_replicates_or_few_failures_give_the_binomial_interval(replicates, failing):
    """Replicates that agree by chance had an interval of width 0: [100 %, 100 %] of 20 chips."""
    passes = [True] * (100 - failing) + [False] * failing
    found, independent = count_yield(passes, Plan("local", 0, 100, "lhs", replicates)), count_yield(passes, PLAN)
    assert (found.low, found.high, found.method) == (independent.low, independent.high, "Clopper-Pearson")
    assert found.high - found.low > 0.03


def test_failed_chips_count_both_ways():
    records = [chip(0, 1.0), chip(1, 0.5), chip(2, 1.0, "failed"), chip(3, 1.0)]
    summary = summarize_chips(records, PLAN, "behavioral", [parse_spec("accuracy>=0.9")])
    assert summary["failed"] == 1 and summary["reasons"] == {"no convergence": 1}
    assert (summary["yield"]["passed"], summary["yield"]["chips"]) == (2, 4)
    assert (summary["yield"]["without_failed"]["passed"], summary["yield"]["without_failed"]["chips"]) == (2, 3)


def test_several_specs_must_all_hold():
    records = [chip(0, 1.0), chip(1, 0.95)]
    specs = [parse_spec("accuracy>=0.9"), parse_spec("task_agreement>=97%")]
    assert summarize_chips(records, PLAN, "behavioral", specs)["yield"]["passed"] == 1


def test_pairs_of_a_run():
    records = [chip(k, value) for k, value in enumerate((0.7, 0.8, 0.85, 0.9, 1.0))]
    paired = summarize_chips(records, PLAN, "ngspice", [parse_spec("accuracy>=0.5")])["paired"]["accuracy"]
    assert paired["correlation"] == pytest.approx(1.0, rel=1e-12)
    assert paired["bias"] == pytest.approx(0.01, rel=1e-9)


def test_correlation_is_none_without_spread():
    assert pair(np.ones(9), np.linspace(0, 1, 9))["correlation"] is None
    constant = np.full(10, 20 / 30)  # its mean is not 20/30 to the last digit, so its standard deviation is not 0
    assert constant.std() > 0
    assert pair(constant, np.linspace(0, 1, 10))["correlation"] is None


def test_describe():
    found = describe([1.0, 2.0, 3.0, 4.0])
    assert (found["mean"], found["quantiles"]["50"], found["quantiles"]["0"]) == (2.5, 2.5, 1.0)
    assert found["sd"] == pytest.approx(np.std([1, 2, 3, 4], ddof=1), rel=1e-12)
    assert describe([1.0])["mean_interval"] is None


def test_looks_share_the_confidence():
    """95 of 100 pass: 0.0964 wide at 95 %, wider at 1 - 0.05 / 2 with a second look planned."""
    passes = [True] * 95 + [False] * 5
    single, planned = Plan("local", 0, 40), Plan("local", 0, 100)
    assert checkpoints(100) == [50, 100] and checkpoints(40) == [40]
    assert is_precise(passes, single, 0.0965) and not is_precise(passes, planned, 0.0965)


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [("accuracy>=0.9", 0.9, True), ("state_agreement >= 99 %", 0.989, False), ("power<=400nW", 3.9e-7, True)],
)
def test_specs(text, value, holds):
    spec = parse_spec(text)
    assert spec.holds({spec.metric: value}) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "accuracy",
            "must be one of accuracy, task_agreement, state_agreement, power, then >= or <=, .*not 'accuracy'",
        ),
        ("speed>=3", "must be one of"),
        ("accuracy>=1.2", "--spec accuracy must be a fraction between 0 and 1, or a percentage, not 1.2"),
        ("accuracy>=x", "--spec accuracy must be a number"),
        ("power<=4V", "--spec power must be a number in W"),
        ("power<=200", "--spec power is in watt and must be at most 0.001 W, not 200; 400 nanowatt are 400nW"),
    ],
)
def test_specs_that_are_wrong(text, message):
    with pytest.raises(InputError, match=message):
        parse_spec(text)
