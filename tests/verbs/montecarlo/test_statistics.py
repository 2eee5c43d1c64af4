"""Statistics against closed forms and coverage by simulation."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.base.text import json_object
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.chips import ChipRecord, Figures
from cosim.verbs.montecarlo.spec import parse_spec
from cosim.verbs.montecarlo.statistics import (
    checkpoints,
    count_spec_yield,
    count_unreset,
    count_yield,
    describe,
    describe_metrics,
    is_precise,
    pair,
    pair_engines,
    stop_confidence,
)

PLAN = VariationPlan("local", 0, 100)


def figures(accuracy, power=1e-7):
    return Figures(accuracy, accuracy, 1.0, power, decisions=(), unreset=())


def chip(number, accuracy, status="ok"):
    found = ChipRecord(number, status, 1.8, 27.0, "", figures(accuracy), "", figures(accuracy - 0.01))
    return found if status == "ok" else replace(found, reason="no convergence", detail="")


def yield_of(records, *specs, engine="behavioral", confidence=0.95):
    outcomes = [record.outcome(engine) for record in records]
    return count_spec_yield(outcomes, PLAN, [parse_spec(text) for text in specs], confidence)


def stuck(record, engine, *cells):
    """The record with cells that do not reset by one engine."""
    return replace(record, **{engine: replace(record.by(engine), unreset=cells)})


def test_all_pass_has_the_closed_form():
    found = count_yield([True] * 100, PLAN)
    assert found.interval == pytest.approx((0.025**0.01, 1.0), rel=1e-12)


def test_interval_covers_the_true_yield():
    """Clopper-Pearson covers at least 95 %; of 2,000 runs of 60 chips at least 95 % - 4 sigma (1.95 %) must hold it."""
    runs = np.random.default_rng(1).binomial(60, 0.8, size=2000)
    found = {passed: count_yield([True] * passed + [False] * (60 - passed), PLAN) for passed in set(runs.tolist())}
    held = sum(found[passed].interval.low <= 0.8 <= found[passed].interval.high for passed in runs.tolist())
    assert held / 2000 > 0.93


def test_replicates_give_the_interval_of_their_means():
    plan = VariationPlan("local", 0, 100, "lhs", 10)
    passes = ([True] * 10 + [True, False] * 5) * 5
    found = count_yield(passes, plan)
    half = 2.2621571627409915 * np.std([1, 0.5] * 5, ddof=1) / 10**0.5  # t of 9 degrees of freedom at 97.5 %
    assert found.value == 0.75 and found.method == "Student's t over replicates"
    assert found.interval == pytest.approx((0.75 - half, 0.75 + half), rel=1e-9)


@pytest.mark.parametrize(
    ("replicates", "failing"),
    [(2, 20), (10, 0), (10, 19), (50, 60)],  # few replicates; none, or fewer than 2 a replicate, that fail
)
def test_few_replicates_or_few_failures_give_the_binomial_interval(replicates, failing):
    """Replicates that agree by chance had an interval of width 0: [100 %, 100 %] of 20 chips."""
    passes = [True] * (100 - failing) + [False] * failing
    found, independent = (
        count_yield(passes, VariationPlan("local", 0, 100, "lhs", replicates)),
        count_yield(passes, PLAN),
    )
    assert (found.interval, found.method) == (independent.interval, "Clopper-Pearson")
    assert found.interval.high - found.interval.low > 0.03


def test_failed_chips_count_both_ways():
    records = [chip(0, 1.0), chip(1, 0.5), chip(2, 1.0, "failed"), chip(3, 1.0)]
    found = yield_of(records, "accuracy>=0.9")
    assert (found.passed, found.chips) == (2, 4)
    assert (found.without_failed.passed, found.without_failed.chips) == (2, 3)


def test_a_chip_whose_cell_does_not_reset_does_not_count():
    """Whatever its figures are; only the engine of the run is asked."""
    records = [chip(k, accuracy) for k, accuracy in enumerate((1.0, 1.0, 0.5, 1.0))]
    records[1] = stuck(records[1], "behavioral", "layer0.2")
    records[2] = stuck(records[2], "behavioral", "layer0.1", "layer0.2")
    records[3] = stuck(records[3], "simulated", "layer0.0")
    assert yield_of(records, "accuracy>=0.9").passed == 2
    unreset = count_unreset([record.behavioral for record in records], [parse_spec("accuracy>=0.9")])
    assert json_object(unreset) == {"chips": 2, "meet_spec": 1, "cells": {"layer0.2": 2, "layer0.1": 1}}


def test_several_specs_must_all_hold():
    records = [chip(0, 1.0), chip(1, 0.95)]
    assert yield_of(records, "accuracy>=0.9", "task_agreement>=97%").passed == 1


def test_pairs_of_a_run():
    records = [chip(k, value) for k, value in enumerate((0.7, 0.8, 0.85, 0.9, 1.0))]
    paired = pair_engines(records, "ngspice")["accuracy"]
    assert paired.correlation == pytest.approx(1.0, rel=1e-12)
    assert paired.bias == pytest.approx(0.01, rel=1e-9)


def test_correlation_is_none_without_spread():
    assert pair(np.ones(9), np.linspace(0, 1, 9)).correlation is None
    constant = np.full(10, 20 / 30)  # its mean is not 20/30 to the last digit, so its standard deviation is not 0
    assert constant.std() > 0
    assert pair(constant, np.linspace(0, 1, 10)).correlation is None


def test_describe():
    found = describe([1.0, 2.0, 3.0, 4.0])
    assert (found.mean, found.quantiles["50"], found.quantiles["0"]) == (2.5, 2.5, 1.0)
    assert found.sd == pytest.approx(np.std([1, 2, 3, 4], ddof=1), rel=1e-12)
    assert describe([1.0]).mean_interval is None
    shares = describe([1.0, 0.9, 0.2], share=True).mean_interval
    assert shares is not None and shares.low == 0.0 and shares.high == 1.0


def test_intervals_by_hand():
    """t of 3 and of 4 degrees of freedom at 97.5 %; Fisher's z of 5 pairs has the width 1.96 / sqrt(2)."""
    found = describe([1.0, 2.0, 4.0, 8.0])
    half = 3.182446305284263 * np.std([1, 2, 4, 8], ddof=1) / 2
    assert found.mean_interval == pytest.approx([3.75 - half, 3.75 + half], rel=1e-9)
    assert found.quantiles == pytest.approx(
        {"0": 1.0, "5": 1.15, "25": 1.75, "50": 3.0, "75": 5.0, "95": 7.4, "100": 8.0}
    )
    assert describe([1.0]).sd == 0.0
    assert describe([1.0, 2.0]).mean_interval == pytest.approx([1.5 - 12.706204736174698 / 2, 1.5 + 12.706204736 / 2])
    x, y = np.array([1.0, 2.0, 4.0, 8.0, 9.0]), np.array([0.5, 2.5, 3.0, 6.0, 8.0])
    found, r = pair(x, y), np.corrcoef(x, y)[0, 1]
    half = 2.7764451051977987 * np.std(x - y, ddof=1) / 5**0.5
    assert (found.chips, found.bias) == (5, pytest.approx(0.8, rel=1e-12))
    assert found.bias_interval == pytest.approx([0.8 - half, 0.8 + half], rel=1e-9)
    assert found.difference_sd == pytest.approx(np.std(x - y, ddof=1), rel=1e-12)
    assert found.correlation == pytest.approx(r, rel=1e-12)
    z = 1.959963984540054 / 2**0.5
    assert found.correlation_interval == pytest.approx([np.tanh(np.arctanh(r) - z), np.tanh(np.arctanh(r) + z)])
    assert pair(x[:4], y[:4]).correlation is not None
    assert pair(x[:3], y[:3]).correlation is pair(x, 0 * y).correlation is None


def test_a_yield_in_a_file():
    found = count_yield([True, True, False, True], VariationPlan("local", 0, 4), 0.9)
    low, high = found.interval
    assert low < 0.75 < high < 1 and found.method == "Clopper-Pearson"
    assert json_object(found) == {
        "value": 0.75, "interval": [low, high], "confidence": 0.9, "passed": 3, "chips": 4, "method": "Clopper-Pearson",
    }  # fmt: skip
    wider = count_yield([True, True, False, True], VariationPlan("local", 0, 4))
    assert wider.interval.low < low and high < wider.interval.high and wider.confidence == 0.95


def test_pairs_need_three_good_chips_and_the_simulator():
    records = [chip(k, value) for k, value in enumerate((0.7, 0.8, 0.9))]
    assert pair_engines(records, "ngspice")["accuracy"].chips == 3
    assert pair_engines(records, "behavioral") is None
    assert pair_engines(records[:2], "ngspice") is None
    found = yield_of(records, "accuracy>=0.75", engine="ngspice", confidence=0.9)
    assert (found.passed, found.confidence) == (2, 0.9)
    assert found.without_failed.confidence == 0.9 and found.spec == ("accuracy>=0.75",)
    failed = yield_of([chip(k, 1.0, "failed") for k in range(2)], "accuracy>=0.75", engine="ngspice")
    assert failed.passed == 0 and failed.without_failed is None
    assert describe_metrics([]) == {} and "without_failed" not in json_object(failed)


@pytest.mark.parametrize(
    ("sampling", "replicates", "failing", "chips", "student"),
    [
        ("lhs", 10, 20, 100, True),  # two failing chips in each replicate, and ten of them, are just enough
        ("lhs", 10, 80, 100, True),
        ("lhs", 10, 81, 100, False),
        ("lhs", 9, 30, 99, False),
        ("random", 10, 20, 100, False),
        ("lhs", 10, 20, 90, False),  # an unfinished run
    ],
)
def test_when_replicates_speak(sampling, replicates, failing, chips, student):
    passes = ([False] * failing + [True] * (chips - failing))[:chips]
    planned = 99 if replicates == 9 else 100
    found = count_yield(passes, VariationPlan("local", 0, planned, sampling, replicates))
    assert (found.method == "Student's t over replicates") is student
    assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1


def test_looks_before_the_last_chip():
    assert checkpoints(50) == [50] and checkpoints(51) == [50, 51] and checkpoints(300) == [50, 100, 200, 300]
    assert checkpoints(10_001) == [50, 100, 200, 500, 1000, 2000, 5000, 10_000, 10_001]
    assert stop_confidence(VariationPlan("local", 0, 50)) == pytest.approx(0.95, rel=1e-12)
    assert stop_confidence(VariationPlan("local", 0, 200)) == pytest.approx(1 - 0.05 / 3, rel=1e-12)


def test_an_interval_of_the_width_is_precise():
    passes = [True] * 95 + [False] * 5
    found = count_yield(passes, VariationPlan("local", 0, 40))
    assert is_precise(passes, VariationPlan("local", 0, 40), found.interval.high - found.interval.low)


def test_looks_share_the_confidence():
    """95 of 100 pass: 0.0964 wide at 95 %, wider at 1 - 0.05 / 2 with a second look planned."""
    passes = [True] * 95 + [False] * 5
    single, planned = VariationPlan("local", 0, 40), VariationPlan("local", 0, 100)
    assert checkpoints(100) == [50, 100] and checkpoints(40) == [40]
    assert is_precise(passes, single, 0.0965) and not is_precise(passes, planned, 0.0965)


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [("accuracy>=0.9", 0.9, True), ("state_agreement >= 99 %", 0.989, False), ("power<=400nW", 3.9e-7, True)],
)
def test_specs(text, value, holds):
    spec = parse_spec(text)
    assert spec.holds(replace(figures(0.5), **{spec.metric: value})) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "accuracy",
            "must be one of accuracy, task_agreement, state_agreement, .*, then >= or <=, .*not 'accuracy'",
        ),
        ("speed>=3", "must be one of"),
        ("accuracy>=1.2", "--spec accuracy must be a fraction between 0 and 1, or a percentage, not 1.2"),
        ("accuracy>=x", "--spec accuracy must be a number"),
        ("power<=4V", "--spec power must be a number in W"),
        (
            "power<=200",
            "--spec power is in W and must be positive and at most 0.001 W, not 200; 400 nanowatt are 400nW",
        ),
    ],
)
def test_specs_that_are_wrong(text, message):
    with pytest.raises(InputError, match=message):
        parse_spec(text)
