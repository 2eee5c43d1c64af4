"""Agreement statistics on comparisons made by hand."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from cosim.base.text import json_object
from cosim.compiler.design import Condition
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.engines.engine import Failure, FailureKind, Inference, Run
from cosim.network.ir.states import software_states
from cosim.network.reference import run_reference, threshold_distances
from cosim.results.intervals import interval
from cosim.tasks.testset import TestSet
from cosim.verbs.compare.agreement import (
    Comparison,
    Divergence,
    EngineResult,
    compare_engines,
    summarize_comparison,
)
from cosim.verbs.compare.page import comparison_cards, engine_blocks, say_source

SAMPLES, FRAMES, CELLS, OUTPUTS = 3, 5, 2, 7


@pytest.fixture
def comparison():
    """Three samples of 5, 4 and 5 frames. ngspice differs from the software in 3 valid bits and one padding bit."""
    rng = np.random.default_rng(6)
    states = rng.random((SAMPLES, FRAMES, CELLS)) < 0.5
    readout = rng.normal(size=(SAMPLES, FRAMES, OUTPUTS))
    valid = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], bool)
    rounding, behavioral, ngspice = states.copy(), states.copy(), states.copy()
    rounding[0, 4, 1] ^= True
    behavioral[0, 4, 1] ^= True
    behavioral[2, 1, 0] ^= True
    ngspice[0, 4, 1] ^= True  # rounding
    ngspice[2, 1, 0] ^= True  # statics
    ngspice[2, 3, 1] ^= True  # dynamics
    ngspice[1, 4, 0] ^= True  # padding: never counted
    return Comparison(
        engines={
            "software": EngineResult(states, readout, np.array([1, 2, 3])),
            "behavioral": EngineResult(behavioral, readout + 0.25, np.array([1, 2, 0])),
            "ngspice": EngineResult(ngspice, readout + 0.5, np.array([1, 0, 0])),
        },
        rounding=EngineResult(rounding, readout, np.array([1, 0, 3])),
        margins=np.arange(SAMPLES * FRAMES * CELLS, dtype=float).reshape(SAMPLES, FRAMES, CELLS) / 100,
        cells=("layer0.0", "layer0.1"),
        valid=valid,
        y=np.array([1, 2, 0]),
        indices=np.array([4, 9, 11]),
        power_w={"behavioral": np.array([1e-9, 2e-9, 6e-9]), "ngspice": np.array([2e-9, 3e-9, 10e-9])},
        failures=(Failure(FailureKind.TIMEOUT, "after 1 s", "deck"),),
        transistors=123,
    )


def test_state_agreement_counts_valid_bits(comparison):
    assert comparison.state_errors("software", "ngspice") == 3
    assert comparison.state_agreement("software", "ngspice") == pytest.approx(1 - 3 / (14 * 2), rel=1e-15)
    assert comparison.state_errors("behavioral", "ngspice") == 1
    assert comparison.state_agreement("software", "software") == 1.0


def test_task_agreement_and_accuracy_differ(comparison):
    assert comparison.task_agreement("software", "ngspice") == pytest.approx(1 / 3)
    assert comparison.task_agreement("behavioral", "ngspice") == pytest.approx(2 / 3)
    assert [comparison.accuracy(engine)[0] for engine in ("software", "behavioral", "ngspice")] == pytest.approx(
        [2 / 3, 1.0, 2 / 3]
    )


def test_balanced_accuracy_leads_where_classes_are_unequal(comparison):
    """Always "other" is 80 % right of 50 samples with 40 of it, and half right by classes."""
    assert summarize_comparison(comparison).balanced_accuracy is None
    y = np.array([0] * 40 + [1] * 10)
    decided = {"software": np.zeros(50, int), "behavioral": y, "ngspice": np.r_[np.zeros(45, int), np.ones(5, int)]}
    engines = {
        name: EngineResult(np.zeros((50, 2, 1), np.int16), np.zeros((50, 2, 2)), decisions)
        for name, decisions in decided.items()
    }
    unequal = replace(
        comparison, engines=engines, rounding=engines["software"], y=y, valid=np.ones((50, 2), bool), cells=("a",),
        margins=np.zeros((50, 2, 1)),
    )  # fmt: skip
    summary = summarize_comparison(unequal)
    assert summary.balanced_accuracy == {"software": 0.5, "behavioral": 1.0, "ngspice": 0.75}
    table, *_ = engine_blocks(summary)
    assert table.head[:3] == ("engine", "balanced", "accuracy")
    assert [row[1] for row in table.rows] == ["50.0 %", "100.0 %", "75.0 %"]
    shown = [(value, text.partition(" of")[0]) for value, text in comparison_cards(summary)]
    assert shown.index(("75.0 %", "balanced accuracy")) < shown.index(("90.0 %", "accuracy"))


def test_first_divergence(comparison):
    assert comparison.first_divergence().tolist() == [4, -1, 1]


def test_error_sources(comparison):
    assert comparison.error_sources() == {"rounding": 1, "statics": 1, "dynamics": 1}
    assert comparison.decision_sources() == {"rounding": 1, "statics": 2, "dynamics": 1}


def test_a_near_tie_changes_without_any_state(comparison):
    """Same states, other decisions: the dominant source is that of the decisions."""
    software = comparison.engines["software"]
    tipped = replace(software, decisions=np.array([1, 0, 0]))
    engines = {"software": software, "behavioral": tipped, "ngspice": tipped}
    summary = summarize_comparison(replace(comparison, engines=engines, rounding=software))
    assert summary.error_sources == {"rounding": 0, "statics": 0, "dynamics": 0}
    assert summary.decision_sources == {"rounding": 0, "statics": 2, "dynamics": 0}
    assert summary.dominant_error_source == "statics"


def test_readout_error_over_valid_frames(comparison):
    correlation, rmse = comparison.readout_error()
    assert rmse == pytest.approx(0.5, rel=1e-12)
    assert correlation == pytest.approx(1.0, abs=1e-12)
    spoilt = comparison.engines["ngspice"].readout.copy()
    spoilt[1, 4] = 1e6  # padding
    engines = {**comparison.engines, "ngspice": replace(comparison.engines["ngspice"], readout=spoilt)}
    assert replace(comparison, engines=engines).readout_error()[1] == pytest.approx(0.5, rel=1e-12)


def test_a_constant_readout_has_no_correlation(comparison):
    still = replace(comparison.engines["ngspice"], readout=np.ones_like(comparison.engines["ngspice"].readout))
    flat = replace(comparison, engines={**comparison.engines, "ngspice": still})
    assert flat.readout_error()[0] is None
    summary = summarize_comparison(flat)
    json.dumps(json_object(summary), allow_nan=False)
    *_, said = engine_blocks(summary)
    assert re.match(r"The readout has an RMSE of \d+\.\d{3} units against software\.", said)


def test_summary(comparison):
    summary = summarize_comparison(comparison)
    assert summary.samples == 3
    assert summary.failed == 1
    assert summary.state_bits == 28
    assert summary.state_agreement == pytest.approx(25 / 28)
    assert summary.task_agreement == pytest.approx(1 / 3)
    assert summary.task_agreement_interval == pytest.approx(list(interval(1, 3)[1:]))
    assert summary.accuracy == pytest.approx({"software": 2 / 3, "behavioral": 1.0, "ngspice": 2 / 3})
    assert summary.power_w == {
        "software": None,
        "behavioral": pytest.approx(3e-9, rel=1e-9, abs=0),
        "ngspice": pytest.approx(5e-9, rel=1e-9, abs=0),
    }
    assert summary.first_divergence == Divergence(2, earliest_frame=1)
    # wrong bits: [0,4,1] = 9, [2,1,0] = 22, [2,3,1] = 27 hundredths
    assert summary.largest_margin_of_a_wrong_bit == pytest.approx(0.27)
    assert summary.transistors == 123
    content = json_object(summary)  # of classes, without noise: these are left out, what is known of nothing is null
    assert not {"errors", "noise"} & content.keys() and content["audit"] is None and content["analog_tolerance"] == 0


def test_summary_of_a_perfect_run(comparison):
    same = replace(comparison, engines=dict.fromkeys(comparison.engines, comparison.engines["software"]))
    same = replace(same, rounding=same.engines["software"])
    summary = summarize_comparison(same)
    assert summary.first_divergence == Divergence(0, earliest_frame=None)
    assert summary.dominant_error_source == "none"
    assert summary.largest_margin_of_a_wrong_bit is None


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [
        # 100 of 100: (0.025)^(1/100), by hand; 0 of 100 is its mirror image
        (100, 100, 0.9637833, 1.0),
        (0, 100, 0.0, 1 - 0.9637833),
        # 9 of 10: 55.50 to 99.75 %, the table of Clopper and Pearson
        (9, 10, 0.5549839, 0.9974714),
    ],
)
def test_known_intervals(right, total, low, high):
    assert interval(right, total) == pytest.approx((right / total, low, high), abs=5e-7)


@pytest.mark.parametrize(("right", "total"), [(1, 7), (85, 100), (353, 360)])
def test_interval_is_the_beta_quantile(right, total):
    low = beta.ppf(0.025, right, total - right + 1)
    high = beta.ppf(0.975, right + 1, total - right)
    assert interval(right, total)[1:] == pytest.approx((low, high), rel=1e-9)


def test_margins_are_distances_to_the_nearer_threshold(make_network):
    for kind in ("first", "signed"):
        network = make_network(3, kind, widths=(5,))
        reference = run_reference(network, np.random.default_rng(1).uniform(size=(2, 3, 3)))
        margins = threshold_distances(network, reference)
        candidate, layer = reference.candidates["layer0"], network.layers[0]
        for unit in range(5):
            if kind == "first":
                thresholds = (layer.beta_lo[unit], layer.beta_hi[unit])
            else:
                thresholds = (-layer.bias_beta[unit], layer.bias_beta[unit])
            value = candidate[1, 2, unit]
            assert margins[1, 2, unit] == pytest.approx(min(abs(value - t) for t in thresholds), rel=1e-12)


def test_a_wrong_bit_of_a_shift_cell_has_the_margin_of_the_bit_it_takes_over(late, technology, calibration):
    """A 0 is 0.35 below the lower threshold, a 1 is 0.45 above the upper one; the unit has the same thresholds."""
    design, x = (
        compile_network(late.register(2), technology, calibration),
        np.array([1.0, 0.0, 1.0, 1.0])[None, :, None],
    )
    states = software_states(design.graph, run_reference(design.network, x))[0]
    assert states.T.tolist() == [[1, 0, 1, 1], [0, 1, 0, 1]]
    test_set = TestSet(x, np.zeros(1, dtype=int), np.array([4]), np.array([0]))
    for wrong, margin in (((0, 1), 0.35), ((1, 1), 0.45)):
        turned = states.copy()
        turned[wrong] ^= 1
        found = compare_engines(design, test_set, [Inference(turned, np.zeros((4, 2)), 1e-9)], Run())
        assert found is not None
        assert summarize_comparison(found).largest_margin_of_a_wrong_bit == pytest.approx(margin)


def test_a_comparison_keeps_the_samples_whose_simulation_succeeded(make_network, technology, calibration):
    """Three of four samples, of 5, 4 and 3 frames. What the simulator gave, 10 % too large, is padded to 5."""
    design, run = compile_network(make_network(11), technology, calibration), Run(condition=Condition(technology, 1.1))
    rng, lengths = np.random.default_rng(3), np.array([5, 2, 4, 3])
    test_set = TestSet(rng.uniform(size=(4, 5, 3)), np.array([2, 3, 5, 6]), lengths, np.array([7, 11, 13, 17]))
    units = [rng.normal(size=(length, 7)) for length in lengths]
    states = [rng.integers(0, 2, (length, 7)).astype(np.int16) for length in lengths]
    failure = Failure(FailureKind.CRASH, "exit code 9", "deck")
    outcomes = [Inference(states[k], 1.1 * design.i_unit * units[k], (k + 1) * 1e-9) for k in range(4)]
    outcomes[1] = failure
    found = compare_engines(design, test_set, outcomes, run)
    assert found is not None
    good = [0, 2, 3]
    assert found.y.tolist() == [2, 5, 6] and found.indices.tolist() == [7, 13, 17]
    assert found.failures == (failure,) and found.transistors == design.assembly.transistors and found.saturated == 0
    assert found.cells == (*(f"layer0.{k}" for k in range(5)), "layer1.0", "layer1.1")
    assert found.valid.tolist() == [[frame < length for frame in range(5)] for length in (5, 4, 3)]
    assert found.power_w["ngspice"] == pytest.approx([1e-9, 3e-9, 4e-9])
    reference = run_reference(design.network, test_set.x[good], lengths[good])
    software, behavioral, ngspice = found.engines.values()
    assert list(found.engines) == ["software", "behavioral", "ngspice"]
    np.testing.assert_array_equal(software.readout, reference.readout)
    np.testing.assert_array_equal(software.decisions, reference.decisions)
    np.testing.assert_array_equal(software.states, software_states(design.graph, reference))
    np.testing.assert_array_equal(found.margins, threshold_distances(design.network, reference))
    trace, ideal = (run_behavioral(design, test_set.x[good], run.condition, ideal=ideal) for ideal in (False, True))
    np.testing.assert_allclose(behavioral.readout, trace.readout / design.i_unit, rtol=1e-12)
    np.testing.assert_allclose(found.rounding.readout, ideal.readout / design.i_unit, rtol=1e-12)
    for k, cell in enumerate(found.cells):
        np.testing.assert_array_equal(behavioral.states[:, :, k], trace.states[cell])
        np.testing.assert_array_equal(found.rounding.states[:, :, k], ideal.states[cell])
    watts = sum(behavioral_power(design, trace, condition=run.condition).values())
    for row, (k, length) in enumerate(zip(good, (5, 4, 3), strict=True)):
        np.testing.assert_array_equal(ngspice.states[row, :length], states[k])
        np.testing.assert_allclose(ngspice.readout[row, :length], units[k], rtol=1e-12)
        assert not ngspice.states[row, length:].any() and not ngspice.readout[row, length:].any()
        assert ngspice.decisions[row] == units[k].mean(axis=0).argmax()
        assert found.power_w["behavioral"][row] == pytest.approx(watts[row, :length].mean(), rel=1e-12)


def test_intervals_of_a_summary(comparison):
    summary = summarize_comparison(comparison)
    right = {"software": 2, "behavioral": 3, "ngspice": 2}
    for engine, count in right.items():
        assert summary.accuracy_interval[engine] == pytest.approx(interval(count, 3)[1:])


def test_all_failed_is_no_comparison(make_network, technology, calibration):
    design = compile_network(make_network(11), technology, calibration)
    test_set = TestSet(np.zeros((2, 3, 3)), np.array([0, 1]), np.array([3, 3]), np.arange(2))
    failure = Failure(FailureKind.CRASH, "exit code 9", "deck")
    assert compare_engines(design, test_set, [failure, failure]) is None


def test_the_page_says_what_helps():
    assert say_source("dynamics", 5e-3, 8).endswith("What helps: longer frames (--t-step 10m).")
    assert say_source("rounding", 5e-3, 8).endswith("What helps: --units 16.")
    assert say_source("rounding", 5e-3, 16).endswith("What helps: training on the grid of the mirrors, --grid.")
    assert say_source("none", 5e-3, 8) == "No state and no decision differs."
