"""The minGRU in torch, with the gates that its circuit has: z = 1 - exp(-r), r = a = max(W_gate x + b_gate, 0), or
r = TOP a / (TOP + a) behind a ratio gate.

Both rows are mirrors, so weights lie on their grid; the recurrence is linear in h and runs as a parallel scan.
Source of the unit: L. Feng et al., arXiv 2410.01201 (minGRU, with a logistic gate).
"""

import math

import numpy as np
import torch
from torch import Tensor

from cosim.network.layers import MinGruLayer
from cosim.training.cells import CellOutput, RecurrentCell, as_array
from cosim.training.chips import Lines
from cosim.training.config import Architecture
from cosim.training.hardware import GridLinear
from cosim.training.scan import linear_scan

TOP = 4.0  # the largest rate: z of 0.98 at most


class MinGruCell(RecurrentCell):
    """h_t = exp(-r_t) h_{t-1} + (1 - exp(-r_t)) max(W x + b, 0) from h = 0 on; x (n, time, inputs).

    It compares nothing, so its distance from a threshold is infinite everywhere.
    """

    def __init__(self, inputs: int, architecture: Architecture) -> None:
        super().__init__()
        width, grid = architecture.cells, architecture.grid
        self.linear = GridLinear(inputs, width, grid, gain=1.5, bias_range=(0.1, 0.5))
        self.top = TOP if architecture.gate == "ratio" else None
        self.gate = GridLinear(inputs, width, grid, gain=0.75, bias_range=(0.1, 0.5))

    @property
    def start(self) -> Tensor:
        """h before the first step, (width,)."""
        return torch.zeros_like(self.linear.bias)

    def forward(
        self, x: Tensor, noise: float = 0.0, rng: torch.Generator | None = None, lines: Lines | None = None
    ) -> CellOutput:
        """Compute the states of x (n, time, inputs)."""
        candidate = torch.relu(self.linear(x, noise, rng, lines))
        rate = torch.relu(self.gate(x, noise, rng, lines))
        rate = rate if self.top is None else self.top * rate / (self.top + rate)
        kept = torch.exp(-rate)
        h = linear_scan(kept, (1.0 - kept) * candidate, self.start)
        return CellOutput(h, torch.full_like(h, math.inf))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> MinGruLayer:
        """Return the layer as numpy data, float64."""
        (weight, bias), (weight_gate, bias_gate) = (map(as_array, one.rounded()) for one in (self.linear, self.gate))
        top = None if self.top is None else np.full(len(self.linear.bias), self.top)
        return MinGruLayer(name, sources, weight, bias, weight_gate, bias_gate, top)
