"""Steps are exact forward and have the surrogate derivative 1 / (1 + (pi x)^2) backward."""

import math

import pytest

torch = pytest.importorskip("torch")

from cosim.training.scan import heaviside, sign  # noqa: E402

POINTS = [-3.0, -0.2, 0.0, 0.1, 5.0]


def test_values_at_and_beside_the_step() -> None:
    x = torch.tensor(POINTS)
    assert heaviside(x).tolist() == [0, 0, 1, 1, 1]
    assert sign(x).tolist() == [-1, -1, 1, 1, 1]


@pytest.mark.parametrize("step", [heaviside, sign])
def test_gradient_is_the_surrogate(step) -> None:
    x = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    (step(x) * torch.tensor([2.0, 3.0, 5.0, 7.0, 11.0])).sum().backward()
    expected = [c / (1 + (math.pi * p) ** 2) for c, p in zip([2, 3, 5, 7, 11], POINTS, strict=True)]
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx(expected, rel=1e-12)
