"""Schedules: epsilon reaches exactly 0 for the last quarter, the learning rate warms up and ends at its floor."""

import pytest

pytest.importorskip("torch")

from cosim.training.loop import epsilon_at, epsilon_is_final, learning_rate_at

TOTAL = 2000


def test_epsilon_anneals_from_exactly_one_to_exactly_zero() -> None:
    values = [epsilon_at(i, TOTAL, None) for i in range(TOTAL)]
    assert values[:101] == [1.0] * 101
    assert values[101] < 1.0
    assert values[800] == pytest.approx(0.5)
    assert values[1499] > 0.0
    assert values[1500:] == [0.0] * 500
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("total", [1, 2, 3, 7, 64, 1009])
def test_the_last_iteration_always_runs_at_the_final_epsilon(total: int) -> None:
    assert epsilon_is_final(total, total, None)
    assert epsilon_at(total, total, None) == 0.0


def test_constant_epsilon_is_constant_and_final_at_once() -> None:
    assert {epsilon_at(i, TOTAL, -0.5) for i in range(TOTAL)} == {-0.5}
    assert epsilon_is_final(0, TOTAL, 1.0)


def test_a_checkpoint_is_allowed_only_when_epsilon_is_final() -> None:
    assert not epsilon_is_final(1499, TOTAL, None)
    assert epsilon_is_final(1500, TOTAL, None)


def test_learning_rate() -> None:
    rates = [learning_rate_at(i, TOTAL, 0.02) for i in range(TOTAL)]
    assert rates[0] == pytest.approx(0.02 / 20)
    assert rates[19] == pytest.approx(0.02) == max(rates)
    assert rates[20:] == sorted(rates[20:], reverse=True)
    assert rates[1010] == pytest.approx(0.02 * 0.505, rel=1e-6)
    assert 2e-4 <= rates[-1] < 2.01e-4
    assert learning_rate_at(0, 1, 0.02) == 0.02
