"""Rounding to the mirror grid, noise, margins."""

import pytest

torch = pytest.importorskip("torch")

from cosim.training.hardware import (  # noqa: E402
    W_MAX,
    GridLinear,
    margin_penalty,
    perturb,
    range_excess,
    round_to_grid,
)


def test_rounding_clips_and_passes_the_gradient() -> None:
    w = torch.tensor([0.05, 0.07, -0.3, 3.99, 7.0, -9.0], requires_grad=True)
    rounded = round_to_grid(w, 0.125)
    assert rounded.tolist() == [0.0, 0.125, -0.25, 4.0, 4.0, -4.0]
    (rounded * torch.tensor([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2, 3, 5, 7, 11, 13]


def test_no_grid_only_clips() -> None:
    w = torch.tensor([0.3, 5.0])
    assert round_to_grid(w, None).tolist() == pytest.approx([0.3, 4.0])


def test_values_stay_on_the_grid_to_the_bit() -> None:
    w = torch.randn(997, generator=torch.Generator().manual_seed(1)) * 3
    multiples = round_to_grid(w, 0.125) / 0.125
    assert torch.equal(multiples, multiples.round())


def test_noise_is_relative_and_has_the_asked_deviation() -> None:
    w = torch.full((10007,), 2.0)
    noisy = perturb(w, 0.05, torch.Generator().manual_seed(3))
    relative = torch.log(noisy / 2)
    # Standard error of a standard deviation from n draws is s / sqrt(2 n); five of them.
    assert float(relative.std()) == pytest.approx(0.05, abs=5 * 0.05 / (2 * 10007) ** 0.5)
    assert float(relative.mean()) == pytest.approx(0.0, abs=5 * 0.05 / 10007**0.5)
    assert (perturb(w, 0.9, torch.Generator().manual_seed(3)) > 0).all()  # no mirror changes its sign
    assert perturb(w, 0.05, None) is w
    assert perturb(w, 0.0, torch.Generator()) is w
    assert perturb(torch.zeros(5), 0.5, torch.Generator()).tolist() == [0.0] * 5  # a missing mirror stays missing


def test_margin_penalty_counts_only_what_is_too_near() -> None:
    distance = torch.tensor([0.0, 0.025, 0.05, 1.0], requires_grad=True)
    penalty = margin_penalty(distance, 0.05)
    assert float(penalty.detach()) == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    penalty.backward()
    assert distance.grad is not None
    assert distance.grad[1] < 0  # more distance, less loss
    assert distance.grad[3] == 0


def test_grid_linear_computes_with_rounded_values_and_clips_free_ones() -> None:
    layer = GridLinear(3, 2, 0.125)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.3, -0.7, 9.0], [1.1, 0.05, -0.2]]))
        layer.bias.copy_(torch.tensor([0.2, -9.0]))
    x = torch.tensor([[2.0, 3.0, 5.0]])
    # rows on the grid: 0.25 -0.75 4 | 1.125 0 -0.25; biases 0.25 -4
    assert layer(x).tolist() == [[2 * 0.25 - 3 * 0.75 + 5 * 4 + 0.25, 2 * 1.125 - 5 * 0.25 - 4]]
    layer.clip_()
    assert layer.weight.abs().max().item() == layer.bias.abs().max().item() == W_MAX


def test_range_excess_counts_from_the_start_and_pulls_at_the_ends() -> None:
    """Units span -1 to 5 (the start is below all states), -4 to 2 and -3 to 1; only the first two exceed 5."""
    states = torch.tensor([[3.0, -4.0, 1.0], [5.0, 0.0, -3.0], [0.0, 2.0, 0.0]], requires_grad=True)
    excess = range_excess(states, torch.full((3,), -1.0), 5.0)
    assert float(excess.detach()) == pytest.approx((1 + 1 + 0) / 3)
    excess.backward()
    assert states.grad is not None
    expected = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) / 3
    torch.testing.assert_close(states.grad, expected)
