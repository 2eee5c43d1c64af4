"""Decisions of a layer as its devices make them: their noise, and the distance from a threshold in standard deviations.

The equations are those of cosim.variation.sigma, with the weights and currents of the layer: what it reads, over what a
signal of 0 carries, and its bias on the constant 1.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from cosim.training.hardware import GridLinear
from cosim.variation.sigma import SigmaParts, WeightedRows, candidate_variance, noise_variance, threshold_variance


@dataclass(frozen=True)
class LayerDevices:
    """Devices of a layer. spread: what the distance from thresholds is counted in, None where it is not; drawn: whose
    noise is added to each decision, None for none; zero, states: (inputs,), the software value at a current of 0, and 1
    for a state, 0 for another signal."""

    spread: SigmaParts | None
    drawn: SigmaParts | None
    zero: Tensor
    states: Tensor
    constant: Tensor = field(default_factory=lambda: torch.zeros(1))

    def row(self, x: Tensor, linear: GridLinear, offset: Tensor | float = 0.0) -> WeightedRows:
        """Return the row that the layer adds up for x (n, time, inputs); offset: joins the bias."""
        weight, bias = linear.rounded()
        bias = bias + weight @ self.zero + offset
        current = torch.nn.functional.pad(x - self.zero, (0, 1), value=1.0)
        states = torch.cat([self.states, self.constant])
        return WeightedRows(torch.cat([weight, bias[:, None]], dim=1), current, current * states)

    def with_noise(self, row: WeightedRows, u: Tensor, rng: torch.Generator | None) -> Tensor:
        """Return candidates (n, time, width) with noise drawn for each decision; unchanged without a generator."""
        if self.drawn is None or self.drawn.noise is None or rng is None:
            return u
        variance = noise_variance(row, torch.relu(u.detach()), self.drawn.units, self.drawn.noise)
        return u + variance.detach().sqrt() * torch.randn(u.shape, generator=rng, dtype=u.dtype)

    def sigmas(self, row: WeightedRows, u: Tensor, lo: Tensor, hi: Tensor) -> tuple[Tensor, Tensor]:
        """Return the standard deviations of u - hi and of u - lo, (n, time, width)."""
        assert self.spread is not None
        candidate = candidate_variance(row, torch.relu(u), self.spread)
        sets, resets = (threshold_variance(hi, width, self.spread) for width in (0 * hi, hi - lo))
        return (candidate + sets).sqrt(), (candidate + resets).sqrt()
