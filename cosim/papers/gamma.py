"""Dispersive delays: gamma kernels, what a line of n equal first-order filters does to its input.

    k(t) = t^(n-1) e^(-t / tau) / ((n - 1)! tau^n),   mean p = n tau,   standard deviation s = sqrt(n) tau

A position p and a width s therefore ask for n = (p / s)^2 filters with tau = p / n. In frames: an input that stands for
a frame and an output that is read at the end of one are k[m] = P(n, (m + 1) / tau) - P(n, m / tau), with P the
regularised incomplete gamma function; that is exact, and a delay of p - 1/2 whole frames in the mean where p is some
frames long. On the chip p is a bias current (`cosim.cells.gamma_line.line_bias`).
"""

import torch
from torch import Tensor, nn

from cosim.base.errors import InputError
from cosim.training.cells import convolve

SHORTEST = 0.5  # frames; of a position


def order_of(position: float, width: float) -> int:
    """Return the number of filters of a line whose delay is `position` and spreads by `width`, alike in unit.

    It is at least 1. Raises InputError where one of both is not positive.
    """
    if not (position > 0 and width > 0):
        raise InputError(f"position and width of a dispersive delay must be positive, not {position:g} and {width:g}")
    return max(1, round((position / width) ** 2))


def gamma_kernel(positions: Tensor, order: int, reach: int) -> Tensor:
    """Return k (..., reach + 1) of positions (...), frames, cut after `reach` frames and then divided by its sum."""
    edges = torch.arange(reach + 2, dtype=positions.dtype) * (order / positions[..., None])
    below = torch.special.gammainc(torch.full_like(edges, order), edges)
    kernel = below.diff(dim=-1)
    return kernel / kernel.sum(dim=-1, keepdim=True)


class GammaDelays(nn.Module):
    """K lines of `order` filters a channel, weighted; the mean delay of each is learned, in [1/2, reach / 2] frames."""

    def __init__(self, width: int, taps: int, order: int, reach: int) -> None:
        super().__init__()
        if min(taps, order, reach) < 1:
            raise InputError(f"taps, order and reach must be at least 1, not {taps}, {order} and {reach}")
        self.order, self.reach = order, reach
        self.weight = nn.Parameter(torch.randn(width, taps) / taps**0.5)
        self.positions = nn.Parameter(SHORTEST + (reach / 2 - SHORTEST) * torch.rand(width, taps))

    def kernel(self) -> Tensor:
        """Return the kernel k, (H, reach + 1)."""
        positions = self.positions.clamp(SHORTEST, self.reach / 2)
        return (self.weight[..., None] * gamma_kernel(positions, self.order, self.reach)).sum(dim=1)

    def forward(self, u: Tensor) -> Tensor:
        """Convolve u (n, time, H) to x (n, time, H)."""
        return convolve(u, self.kernel())

    @torch.no_grad()
    def clip_(self) -> None:
        """Pull positions back into their range; call after each optimiser step."""
        self.positions.clamp_(SHORTEST, self.reach / 2)
