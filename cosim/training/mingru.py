"""The minGRU in torch, with the gate that its circuit has: z = 1 - exp(-max(W_gate x + b_gate, 0)).

Both rows are mirrors, so weights lie on their grid; the recurrence is linear in h and runs as a parallel scan.
Source of the unit: L. Feng et al., arXiv 2410.01201 (minGRU, with a logistic gate).
"""

import math

import torch
from torch import Tensor

from cosim.network.layers import MinGruLayer
from cosim.training.cells import CellOutput, RecurrentCell, as_array
from cosim.training.chips import Lines
from cosim.training.config import Architecture
from cosim.training.hardware import GridLinear
from cosim.training.scan import linear_scan


class MinGruCell(RecurrentCell):
    """h_t = exp(-r_t) h_{t-1} + (1 - exp(-r_t)) max(W x + b, 0) from h = 0 on; x (n, time, inputs).

    It compares nothing, so its distance from a threshold is infinite everywhere.
    """

    def __init__(self, inputs: int, architecture: Architecture) -> None:
        super().__init__()
        width, grid = architecture.cells, architecture.grid
        self.linear = GridLinear(inputs, width, grid, gain=1.5, bias_range=(0.1, 0.5))
        self.gate = GridLinear(inputs, width, grid, gain=0.75, bias_range=(0.1, 0.5))

    @property
    def start(self) -> Tensor:
        """h before the first step, (width,)."""
        return torch.zeros_like(self.linear.bias)

    def forward(
        self, x: Tensor, noise: float = 0.0, rng: torch.Generator | None = None, lines: Lines | None = None
    ) -> CellOutput:
        """x (n, time, inputs)."""
        candidate = torch.relu(self.linear(x, noise, rng, lines))
        kept = torch.exp(-torch.relu(self.gate(x, noise, rng, lines)))
        h = linear_scan(kept, (1.0 - kept) * candidate, self.start)
        return CellOutput(h, torch.full_like(h, math.inf))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> MinGruLayer:
        """The layer as numpy data, float64."""
        arrays = (as_array(value) for linear in (self.linear, self.gate) for value in linear.rounded())
        return MinGruLayer(name, sources, *arrays)
