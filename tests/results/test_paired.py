"""Two runs' figures held against each other: against closed forms, published examples and scipy."""

import numpy as np
import pytest
from scipy import stats

from cosim.results.paired import (
    contrast_fractions,
    contrast_fractions_apart,
    contrast_means,
    contrast_means_apart,
    contrast_shares,
    mcnemar,
    newcombe_interval,
    tango_interval,
)

Z2 = stats.norm.ppf(0.975) ** 2
NEAR = 1e-8  # the root finder stops within 1e-9


@pytest.mark.parametrize("n", [1, 10, 360])
def test_tango_without_a_pair_that_turned_is_wilsons_bound_of_none(n):
    """With b = c = 0 the score equation is n d / (1 - d) = z^2, so d = z^2 / (n + z^2), either way."""
    low, high = tango_interval(0, 0, n)
    assert (low, high) == pytest.approx((-Z2 / (n + Z2), Z2 / (n + Z2)), abs=NEAR)


def test_tango_where_every_pair_turned():
    """With b = n it is n (1 - d) = z^2 (1 + d), so d = (n - z^2) / (n + z^2)."""
    assert tango_interval(50, 0, 50) == pytest.approx(((50 - Z2) / (50 + Z2), 1.0), abs=NEAR)
    assert tango_interval(0, 50, 50) == pytest.approx((-1.0, -(50 - Z2) / (50 + Z2)), abs=NEAR)


@pytest.mark.parametrize(("up", "down", "n"), [(12, 2, 50), (3, 3, 6), (1, 0, 44), (9, 4, 100)])
def test_tango_is_where_the_score_test_begins_to_refuse(up, down, n):
    """At an end d, the likeliest table whose difference is d has a score of z: found here by maximising over a grid."""
    for d in tango_interval(up, down, n):
        q = np.linspace(max(0.0, -d), (1 - d) / 2, 400_001)[1:-1]  # of `down`; `up` is q + d, the rest 1 - 2 q - d
        likelihood = (n - up - down) * np.log1p(-2 * q - d)
        likelihood += sum(count * np.log(p) for count, p in ((up, q + d), (down, q)) if count)
        best = q[likelihood.argmax()]
        score = (up - down - n * d) ** 2 / (n * (2 * best + d * (1 - d)))
        # the grid's step of 1.3e-6 in q moves the variance, of 0.02 or more, by 2e-4 of itself at most
        assert score == pytest.approx(Z2, rel=2e-4)


def test_tango_turns_with_the_runs():
    low, high = tango_interval(9, 4, 100)
    assert tango_interval(4, 9, 100) == pytest.approx((-high, -low), abs=NEAR)


def test_tango_covers_what_it_says():
    """2000 pairs of runs of 40 samples whose fractions differ by 0.15: coverage 95 %, its sampling error 0.5 %."""
    rng = np.random.default_rng(0)
    draws = rng.multinomial(40, [0.2, 0.05, 0.75], size=2000)
    kinds, counts = np.unique(draws[:, :2], axis=0, return_counts=True)
    inside = [low <= 0.15 <= high for low, high in (tango_interval(up, down, 40) for up, down in kinds.tolist())]
    covered = np.dot(inside, counts) / 2000
    assert 0.93 < covered < 0.98  # discrete: what can be had steps by about 1 %


def test_newcombe_as_published():
    """R. G. Newcombe, Stat. Med. 17 (1998) 873, table II, example (a): 56/70 - 48/80 is in 0.0524 to 0.3339."""
    assert newcombe_interval(48, 80, 56, 70) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.parametrize(("up", "down", "p"), [(0, 0, 1.0), (5, 0, 2 / 2**5), (6, 2, 2 * (1 + 8 + 28) / 2**8)])
def test_mcnemar_by_hand(up, down, p):
    """Twice the binomial tail of what turned at 1/2."""
    assert mcnemar(up, down) == pytest.approx(p, rel=1e-12)


def test_paired_means_as_scipy_has_them():
    rng = np.random.default_rng(1)
    a = rng.normal(3e-7, 2e-8, 30)
    b = a + rng.normal(1e-9, 3e-9, 30)
    found, wanted = contrast_means(a, b), stats.ttest_rel(b, a)
    assert found.p == pytest.approx(wanted.pvalue, rel=1e-9)
    assert found.interval == pytest.approx(tuple(wanted.confidence_interval(0.95)), rel=1e-9)
    assert (found.pairs, found.up + found.down) == (30, 30)


def test_unpaired_means_as_scipy_has_them():
    rng = np.random.default_rng(2)
    a, b = rng.normal(1, 1, 20), rng.normal(1.4, 3, 33)
    found, wanted = contrast_means_apart(a, b), stats.ttest_ind(b, a, equal_var=False)
    assert (found.p, *found.interval) == pytest.approx((wanted.pvalue, *wanted.confidence_interval(0.95)), rel=1e-9)
    assert found.pairs == 0


def test_shares_flip_all_signs_of_few_pairs():
    """Of 12 pairs that all rise, 2 of the 2^12 flips are as far out: p = 2 / 4096; the mean is 6.5 % by hand."""
    a = np.full(12, 0.1)
    b = a + np.arange(1, 13) / 100
    found = contrast_shares(a, b)
    assert (found.p, found.difference, found.method) == (pytest.approx(2 / 4096), pytest.approx(0.065), "bootstrap")
    assert 0.01 < found.interval.low < 0.065 < found.interval.high < 0.12
    assert found == contrast_shares(a, b)  # seeded


def test_shares_of_which_few_move_are_not_resampled():
    """Three of a hundred that rise prove nothing, and a bootstrap's interval would leave 0 out."""
    a = np.ones(100)
    a[:3] = 0.99, 0.98, 0.97
    found = contrast_shares(a, np.ones(100))
    assert found.method == "student" and found.interval.low < 0 < found.difference


def test_paired_fractions_count_what_turned():
    a = np.array([True, True, False, False, False])
    b = np.array([True, False, True, True, False])
    found = contrast_fractions(a, b)
    assert (found.a, found.b, found.up, found.down) == (0.4, 0.6, 2, 1)
    assert found.p == pytest.approx(1.0)  # 2 of 3: both tails hold all
    assert found.interval.low < 0.2 < found.interval.high
    assert not found.same


def test_unpaired_fractions():
    found = contrast_fractions_apart(np.arange(80) < 48, np.arange(70) < 56)
    assert found.difference == pytest.approx(0.2)
    assert found.p == pytest.approx(stats.fisher_exact([[48, 32], [56, 14]]).pvalue)


def test_what_is_the_same_and_what_is_too_few():
    a = np.array([0.5, 0.75, 1.0])
    assert contrast_shares(a, a).same and contrast_means(a, a).same
    assert (contrast_means(a, a).p, contrast_shares(a, a).p) == (1.0, 1.0)
    assert contrast_means(a[:1], a[1:2]).interval is None
    assert contrast_shares(a[:1], a[1:2]).interval is None
    assert not contrast_shares(a, a[::-1]).same  # the means are, the pairs are not
