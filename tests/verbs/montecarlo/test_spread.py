"""What pictures of many chips show: quantiles, bins, running intervals, and the cells that accuracy goes with."""

import numpy as np
import pytest
from scipy.stats import f_oneway, norm, probplot

from cosim.engines.engine import NO_CLASS
from cosim.results.intervals import interval, running_intervals
from cosim.verbs.compare.agreement import Comparison, EngineResult
from cosim.verbs.compare.figures import count_decisions, draw_confusion
from cosim.verbs.montecarlo.statistics import (
    MOST_BINS,
    CellSpread,
    bin_edges,
    explained_share,
    normal_band,
    rank_weak,
)


@pytest.mark.parametrize("count", [8, 50, 300])
def test_quantiles_are_those_of_scipy(count):
    values = np.random.default_rng(3).normal(5.0, 2.0, count)
    found, _, _ = normal_band(values)
    theory, _ = probplot(values, fit=False)
    # scipy takes Filliben's formula for the medians, which is off by less than 0.05 of a rank's distance 1 / n
    np.testing.assert_allclose(norm.cdf(found), norm.cdf(theory), atol=0.05 / count, rtol=0)


def test_the_band_holds_each_order_statistic_in_95_of_100_samples():
    count, samples = 15, 4000
    drawn = np.sort(np.random.default_rng(5).normal(size=(samples, count)), axis=1)
    theory, *band = normal_band(drawn[0])
    low, high = ((end - drawn[0].mean()) / drawn[0].std(ddof=1) for end in band)
    inside = ((drawn >= low) & (drawn <= high)).mean(axis=0)
    # four standard deviations of a share of 0.95 among 4000
    np.testing.assert_allclose(inside, 0.95, atol=4 * np.sqrt(0.95 * 0.05 / samples), rtol=0)
    np.testing.assert_allclose((drawn <= theory).mean(axis=0), 0.5, atol=4 * 0.5 / np.sqrt(samples), rtol=0)


def test_a_sample_of_two_groups_leaves_the_band():
    def outside(values):
        _, low, high = normal_band(values)
        return ((values < low) | (values > high)).mean()

    bimodal = np.concatenate([np.full(50, 40.0), np.full(150, 85.0)]) + np.linspace(0, 1, 200)
    assert outside(bimodal) > 0.5
    assert outside(norm.ppf((np.arange(100) + 0.5) / 100)) == 0.0


def test_few_steps_have_a_bin_each_with_the_value_in_its_middle():
    values = np.array([97.5, 100.0, 95.0, 97.5, 90.0])
    edges = bin_edges(values, 2.5)
    np.testing.assert_allclose((edges[1:] + edges[:-1]) / 2, [90.0, 92.5, 95.0, 97.5, 100.0], rtol=1e-12)
    assert np.histogram(values, edges)[0].tolist() == [1, 0, 1, 2, 1]


def test_many_steps_share_bins_of_equally_many():
    values = np.round(np.random.default_rng(1).normal(600, 60, 2000)) / 10.0
    edges = bin_edges(values, 0.1)
    steps = np.diff(edges) / 0.1
    assert len(edges) <= MOST_BINS + 1
    np.testing.assert_allclose(steps, round(steps[0]), rtol=1e-6)
    assert steps[0] > 1
    assert np.histogram(values, edges)[0].sum() == len(values)
    assert np.abs((edges - 0.05) / 0.1 - np.round((edges - 0.05) / 0.1)).max() < 1e-6  # no value on a border


def test_bins_without_steps_are_those_of_numpy_and_not_too_many():
    values = np.random.default_rng(2).normal(size=300)
    np.testing.assert_array_equal(bin_edges(values), np.histogram_bin_edges(values, "auto"))
    tailed = np.append(np.random.default_rng(2).normal(size=300), 1000.0)
    assert len(bin_edges(tailed)) <= MOST_BINS + 1
    assert np.histogram(tailed, bin_edges(tailed))[0].sum() == 301
    assert np.diff(bin_edges(np.full(5, 3.0))) > 0


@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_running_intervals_are_those_of_each_number(confidence):
    passes = np.random.default_rng(7).random(40) < 0.7
    passes[:3] = True  # none of the first fails: the upper end is 1
    found = running_intervals(passes.tolist(), confidence)
    for count in (1, 3, 17, 40):
        wanted = interval(int(passes[:count].sum()), count, confidence)
        np.testing.assert_allclose(found[count - 1], wanted, rtol=1e-9)
    np.testing.assert_allclose(running_intervals([False])[0], interval(0, 1), rtol=1e-9)


def test_explained_share_is_the_adjusted_one_of_the_f_test():
    rng = np.random.default_rng(9)
    values, groups = rng.normal(size=60), np.array_split(np.arange(60), 5)
    values[groups[2]] += 1.5
    f = f_oneway(*(values[group] for group in groups)).statistic
    assert explained_share(values, groups) == pytest.approx(4 * (f - 1) / (4 * f + 55), rel=1e-9)
    assert explained_share(np.repeat([1.0, 2.0, 3.0], 20), np.array_split(np.arange(60), 3)) == 1.0


@pytest.fixture
def spread():
    rng = np.random.default_rng(11)
    asked = 1e-9 * np.array([[1.0, 0.5, 1.0], [2.0, 0.1, 1.0]])
    return CellSpread(("layer0.0", "layer0.1"), asked, asked + 5e-11 * rng.normal(size=(200, 2, 3)))


def test_the_weakest_is_the_one_that_accuracy_goes_with(spread):
    accuracy = np.where(spread.measured[:, 1, 1] < 0.05e-9, 0.4, 0.9)  # its lower threshold, one sigma below
    first, second, *_ = rank_weak(spread, accuracy)
    assert (first.cell, first.quantity) == ("layer0.1", "lower threshold")
    assert first.share > 0.5 > 0.2 > second.share
    assert first.p < 1e-9
    assert all(one.p > 0.05 for one in rank_weak(spread, np.random.default_rng(1).normal(size=200)))
    assert first.means[0] < 0.55 < 0.89 < first.means[-1]
    assert first.edges[0] == first.deviations.min()
    assert first.edges[-1] == first.deviations.max()
    np.testing.assert_allclose(
        first.deviations,
        (spread.measured[:, 1, 1] - spread.asked[1, 1]) / spread.measured[:, 1, 1].std(ddof=1),
        rtol=1e-12,
    )


def test_nothing_is_weak_of_few_chips_or_of_equal_ones(spread):
    few = CellSpread(spread.cells, spread.asked, spread.measured[:19])
    assert rank_weak(few, np.linspace(0, 1, 19)) == ()
    assert rank_weak(spread, np.full(200, 0.9)) == ()
    still = CellSpread(spread.cells, spread.asked, np.repeat(spread.asked[None], 200, axis=0))
    assert rank_weak(still, np.linspace(0, 1, 200)) == ()


def test_confusion_is_the_softwares_and_what_others_change():
    rng = np.random.default_rng(13)
    y, decisions = rng.integers(0, 4, 90), rng.integers(0, 4, 90)
    other = decisions.copy()
    other[:5] = (other[:5] + 1) % 4
    states, readout = np.zeros((90, 1, 1), bool), np.zeros((90, 1, 4))
    engines = {
        name: EngineResult(states, readout, found)
        for name, found in (("software", decisions), ("behavioral", decisions), ("ngspice", other))
    }
    comparison = Comparison(
        engines, engines["software"], np.zeros((90, 1, 1)), ("a",), np.ones((90, 1), bool), y, np.arange(90), {}, (), 1
    )
    assert (
        "behavioral decides 0 otherwise, ngspice decides 5 otherwise"
        in draw_confusion(comparison, ["0", "1", "2", "3"]).axes[0].get_title()
    )
    found = count_decisions(comparison, 4)
    assert found["software"].sum() == 90
    assert (found["behavioral"] == found["software"]).all()
    assert (found["ngspice"].sum(axis=1) == found["software"].sum(axis=1)).all()  # a class keeps its samples
    for row in range(4):
        for column in range(4):
            assert found["ngspice"][row, column] == ((y == row) & (other == column)).sum()
    other[7] = NO_CLASS  # the chip's own decision shows none: the sample is in no column, not in the last one
    found = count_decisions(comparison, 4)
    assert found["ngspice"].sum() == 89
    assert found["ngspice"][:, 3].sum() == (other == 3).sum()
