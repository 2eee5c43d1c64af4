"""Dispersive delays: the kernel is what a line of filters does, its mean is the position, positions are learned."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import InputError  # noqa: E402
from cosim.papers.mgrade import GammaDelays, gamma_kernel  # noqa: E402


@pytest.mark.parametrize(("position", "order"), [(4.0, 1), (6.0, 4), (10.0, 9)])
def test_kernel_is_a_line_of_filters(position, order):
    """Answer of `order` filters of tau p / n to a step of one frame, integrated in steps of 1/400 frame."""
    fine, reach = 400, 79
    decay = math.exp(-1 / fine / (position / order))
    signal = np.zeros((reach + 1) * fine)
    signal[:fine] = 1.0
    for _ in range(order):
        out, y = np.empty_like(signal), 0.0
        for k, u in enumerate(signal):
            y = decay * y + (1 - decay) * u
            out[k] = y
        signal = out
    kernel = gamma_kernel(torch.tensor([position], dtype=torch.float64), order, reach)[0].numpy()
    # each filter holds its input for a step of 1/400, half a step late in the mean: 9/800 frame in all, times the
    # steepest slope of a kernel here, 0.07 a frame
    assert np.abs(signal[fine - 1 :: fine] - kernel).max() < 1e-3


@pytest.mark.parametrize("order", [1, 4, 16])
def test_mean_and_width(order):
    """n tau - 1/2 whole frames, as an input stands for a frame and is read at its end; sqrt(n) tau.

    The frame of the input adds 1/12 to the variance, which that of the reading takes a like amount from.
    """
    position = torch.tensor([12.0], dtype=torch.float64)
    kernel = gamma_kernel(position, order, 400)[0]
    m = torch.arange(401, dtype=torch.float64)
    mean = float((kernel * m).sum())
    # the sum over whole frames of a smooth density misses its integral by less than its width allows: 1/100 frame, and
    # at n = 1, which jumps at 0, 1 / (12 tau)
    assert mean == pytest.approx(11.5, abs=0.01)
    assert float((kernel * (m - mean) ** 2).sum()) == pytest.approx(144 / order, abs=0.1)
    assert float(kernel.sum()) == pytest.approx(1.0)


def test_a_line_without_filters():
    with pytest.raises(InputError, match="at least 1"):
        GammaDelays(1, 1, 0, 8)


def test_a_position_is_learned():
    """A line at 4 frames finds the 9 of another, from a random signal, by gradient."""
    wanted = gamma_kernel(torch.tensor([[9.0]]), 4, 40)[:, 0]
    delays = GammaDelays(1, 1, 4, 40)
    with torch.no_grad():
        delays.positions.fill_(4.0)
        delays.weight.fill_(1.0)
    optimiser = torch.optim.Adam(delays.parameters(), lr=0.1)
    for _ in range(300):
        optimiser.zero_grad()
        ((delays.kernel() - wanted) ** 2).sum().backward()
        optimiser.step()
        delays.clip_()
    assert delays.positions.item() == pytest.approx(9.0, abs=0.05)


def test_causal_and_within_reach():
    delays = GammaDelays(2, 3, 4, 24).double()
    u = torch.zeros(1, 60, 2, dtype=torch.float64)
    u[0, 20] = 1.0
    x = delays(u)
    assert x[:, :20].abs().max() == 0
    torch.testing.assert_close(x[0, 20:45].T, delays.kernel())
    assert x[:, 45:].abs().max() == 0
