"""Dispersive delays in torch: rows of mirrors, rectified, each into a line whose mean delay is learned.

Source: `cosim.network.gamma`; learned positions: mGRADE, whose taps are whole frames here (cosim.papers.delays).
"""

import math

import numpy as np
import torch
from torch import Tensor, nn

from cosim.network.gamma import LEAST_RATE, MOST_RATE, GammaLayer
from cosim.training.cells import CellOutput, RecurrentCell, as_array
from cosim.training.chips import Lines
from cosim.training.config import Architecture
from cosim.training.convolution import convolve
from cosim.training.hardware import GridLinear

ORDER = 4  # tau-cells of a line: a width of half the delay
SHORTEST, LONGEST = 2.0, 200.0  # frames, of a position at this order
_FIRST, _LAST = 2.5, 8.0  # frames, between which the positions of an untrained layer lie
assert (SHORTEST, LONGEST) == (ORDER / MOST_RATE, ORDER / LEAST_RATE)


class GammaCell(RecurrentCell):
    """h = k * max(W x, 0) over the steps, k the kernel of a line of ORDER filters; x (n, time, inputs).

    It compares nothing, so its distance from a threshold is infinite everywhere.
    """

    def __init__(self, inputs: int, architecture: Architecture) -> None:
        super().__init__()
        width = architecture.cells
        self.linear = GridLinear(inputs, width, architecture.grid, gain=1.5)
        self.linear.bias = nn.Parameter(torch.zeros(width), requires_grad=False)
        self.log_position = nn.Parameter(torch.linspace(math.log(_FIRST), math.log(_LAST), width))

    @property
    def start(self) -> Tensor:
        """h before the first step, (width,)."""
        return torch.zeros_like(self.linear.bias)

    @property
    def positions(self) -> Tensor:
        """Mean delays, frames, (width,)."""
        return self.log_position.clamp(math.log(SHORTEST), math.log(LONGEST)).exp()

    def kernel(self, steps: int) -> Tensor:
        """Return the kernel k, (width, steps)."""
        edges = torch.arange(steps + 1) * (ORDER / self.positions[:, None])
        return torch.special.gammainc(torch.full_like(edges, ORDER), edges).diff(dim=1)

    def forward(
        self, x: Tensor, noise: float = 0.0, rng: torch.Generator | None = None, lines: Lines | None = None
    ) -> CellOutput:
        """Compute the states of x (n, time, inputs)."""
        candidate = torch.relu(self.linear(x, noise, rng, lines))
        h = convolve(candidate, self.kernel(x.shape[1]))
        return CellOutput(h, torch.full_like(h, math.inf))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> GammaLayer:
        """Return the layer as numpy data, float64."""
        weight, bias = map(as_array, self.linear.rounded())
        return GammaLayer(name, sources, weight, bias, as_array(self.positions), np.full(len(bias), float(ORDER)))
