"""Depthwise causal delay convolutions: a few taps of each channel's past (mGRADE, eq. 1 and 5 to 10).

    x_t = sum over n = 0 .. G of k[n] u_{t-n},   k[n] = sum over i of w_i c[n, p_i]

    LearnedDelays   c = exp(-1/2 ((n - p_i) / sigma)^2), divided by its sum over n; p_i trained, kept in [0, G]     (8)
    FixedDelays     c = 1 at n = p_i, else 0; p_i = d i with d the same in all layers, or d 2^l in layer l    (9), (10)

Positions begin at i G / K, or uniformly in [0, G]. sigma is annealed from G / 2 to 1 / 2, so that a tap first feels all
the past and then its neighbours only. What is deployed has taps at whole delays: in `eval` mode, and once `rounded` is
set, positions are those. The paper says neither how c is normalised, nor what sigma is, nor what it deploys: these are
the choices of the method of learnable spacings that it cites (I. Khalfaoui-Hassani et al., 2023).

Dispersive delays: gamma kernels, what a line of n equal first-order filters does to its input.

    k(t) = t^(n-1) e^(-t / tau) / ((n - 1)! tau^n),   mean p = n tau,   standard deviation s = sqrt(n) tau

A position p and a width s therefore ask for n = (p / s)^2 filters with tau = p / n. In frames: an input that stands for
a frame and an output that is read at the end of one are k[m] = P(n, (m + 1) / tau) - P(n, m / tau), with P the
regularised incomplete gamma function; that is exact, and a delay of p - 1/2 whole frames in the mean where p is some
frames long. On the chip p is a bias current (`cosim.cells.gamma_line.line_bias`).
"""

from typing import Literal

import torch
from torch import Tensor, nn

from cosim.base.errors import InputError
from cosim.training.cells import convolve

Start = Literal["dilated", "uniform"]
SIGMA_LAST = 0.5
ANNEALED = 0.5  # share of the training over which sigma falls


def whole_taps(weight: Tensor, positions: Tensor, reach: int) -> Tensor:
    """Return mGRADE's kernel (H, reach + 1) of weights (H, K) at whole positions (H, K); taps at one place add up."""
    return torch.zeros(len(weight), reach + 1, dtype=weight.dtype).scatter_add(1, positions, weight)


def sigma_at(iteration: int, total: int, reach: float) -> float:
    """Return the width of mGRADE's learned taps in iteration 0 .. total - 1, steps.

    It falls geometrically from reach / 2 to 1/2 over the first half.
    """
    first = max(reach / 2, SIGMA_LAST)
    return first * (SIGMA_LAST / first) ** min(iteration / (ANNEALED * total), 1.0)


class FixedDelays(nn.Module):
    """mGRADE's convolution with K taps a channel at fixed delays 0, d, 2 d, ..."""

    def __init__(self, width: int, taps: int, dilation: int) -> None:
        super().__init__()
        if taps < 1 or dilation < 1:
            raise InputError(f"taps and dilation of a delay convolution must be at least 1, not {taps} and {dilation}")
        self.taps, self.dilation = taps, dilation
        self.weight = nn.Parameter(torch.randn(width, taps) / taps**0.5)

    @property
    def reach(self) -> int:
        """Return the largest delay of the convolution, steps."""
        return self.dilation * (self.taps - 1)

    def used(self) -> Tensor:
        """Return the largest delay of each channel of the convolution, (H,), steps."""
        return torch.full((len(self.weight),), self.reach)

    def kernel(self) -> Tensor:
        """Return the convolution kernel k of mGRADE's fixed delays, (H, reach + 1)."""
        positions = self.dilation * torch.arange(self.taps).expand(len(self.weight), -1)
        return whole_taps(self.weight, positions, self.reach)

    def forward(self, u: Tensor) -> Tensor:
        """Convolve u (n, time, H) to x (n, time, H); only the taps are computed."""
        padded = nn.functional.pad(u.transpose(1, 2), (self.reach, 0))
        weight = self.weight.flip(1)[:, None]
        return nn.functional.conv1d(padded, weight, dilation=self.dilation, groups=len(weight)).transpose(1, 2)


class LearnedDelays(nn.Module):
    """mGRADE's convolution with K taps a channel at learned positions in [0, reach]."""

    def __init__(self, width: int, taps: int, reach: int, start: Start = "dilated") -> None:
        super().__init__()
        if taps < 1 or reach < 1:
            raise InputError(f"taps and reach of a delay convolution must be at least 1, not {taps} and {reach}")
        self.reach = reach
        self.sigma = sigma_at(0, 1, reach)
        self.rounded = False
        self.weight = nn.Parameter(torch.randn(width, taps) / taps**0.5)
        dilated = (torch.arange(taps) * (reach / taps)).expand(width, -1)
        self.positions = nn.Parameter(dilated.clone() if start == "dilated" else reach * torch.rand(width, taps))

    def whole_positions(self) -> Tensor:
        """Return the positions of mGRADE's taps as deployed, (H, K) int64, steps."""
        return self.positions.detach().clamp(0, self.reach).round().long()

    def used(self) -> Tensor:
        """Return the largest delay of each channel of the convolution as deployed, (H,), steps."""
        return self.whole_positions().amax(dim=1)

    def kernel(self) -> Tensor:
        """Return the kernel k, (H, reach + 1), which is smooth in the positions in training and not when deployed."""
        if self.rounded or not self.training:
            return whole_taps(self.weight, self.whole_positions(), self.reach)
        distance = torch.arange(self.reach + 1) - self.positions[..., None]
        taps = torch.softmax(-0.5 * (distance / self.sigma) ** 2, dim=2)
        return (self.weight[..., None] * taps).sum(dim=1)

    def forward(self, u: Tensor) -> Tensor:
        """Convolve mGRADE's u (n, time, H) with learned delays to x (n, time, H)."""
        return convolve(u, self.kernel())

    @torch.no_grad()
    def clip_(self) -> None:
        """Pull the learned delays of mGRADE's taps back into [0, reach]; call after each optimiser step."""
        self.positions.clamp_(0, self.reach)


SHORTEST = 0.5  # frames; of a position


def order_of(position: float, width: float) -> int:
    """Return the number of filters of mGRADE's gamma line of delay `position` and spread `width`, alike in unit.

    It is at least 1. Raises InputError where one of both is not positive.
    """
    if not (position > 0 and width > 0):
        raise InputError(f"position and width of a dispersive delay must be positive, not {position:g} and {width:g}")
    return max(1, round((position / width) ** 2))


def gamma_kernel(positions: Tensor, order: int, reach: int) -> Tensor:
    """Return mGRADE's gamma kernels (..., reach + 1) of positions (...), frames; cut at `reach`, then normalised."""
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
        """Return the convolution kernel k of mGRADE's gamma lines, (H, reach + 1)."""
        positions = self.positions.clamp(SHORTEST, self.reach / 2)
        return (self.weight[..., None] * gamma_kernel(positions, self.order, self.reach)).sum(dim=1)

    def forward(self, u: Tensor) -> Tensor:
        """Convolve mGRADE's u (n, time, H) with gamma lines to x (n, time, H)."""
        return convolve(u, self.kernel())

    @torch.no_grad()
    def clip_(self) -> None:
        """Pull the mean delays of mGRADE's gamma lines back into their range; call after each optimiser step."""
        self.positions.clamp_(SHORTEST, self.reach / 2)
