"""The toy of leaky.py in torch."""

import numpy as np
import torch
from leaky import FLOOR, LeakyLayer
from torch import Tensor, nn

from cosim.training.cells import CellOutput, RecurrentCell
from cosim.training.config import Architecture
from cosim.training.hardware import GridLinear


class LeakyCell(RecurrentCell):
    """y_t = v / (1 + (v / y_{t-1} - 1) exp(-v rate)), v = max(W x + b, 0) + f; the rate is learned."""

    def __init__(self, inputs: int, architecture: Architecture) -> None:
        super().__init__()
        self.linear = GridLinear(inputs, architecture.cells, architecture.grid, 1.0, (0.1, 0.3))
        self.ln_rate = nn.Parameter(torch.empty(architecture.cells).uniform_(0.5, 1.5))

    @property
    def start(self) -> Tensor:
        return torch.zeros_like(self.ln_rate)

    def forward(self, x: Tensor, noise=0.0, rng=None, lines=None) -> CellOutput:
        v, rate = torch.relu(self.linear(x, noise, rng, lines)) + FLOOR, self.ln_rate.exp()
        y, states = torch.full_like(v[:, 0], FLOOR), []
        for t in range(v.shape[1]):
            y = v[:, t] / (1.0 + (v[:, t] / y - 1.0) * torch.exp(-v[:, t] * rate))
            states.append(y - FLOOR)
        h = torch.stack(states, dim=1)
        return CellOutput(h, torch.full_like(h, np.inf))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> LeakyLayer:
        weight, bias = (value.detach().numpy().astype(np.float64) for value in self.linear.rounded())
        return LeakyLayer(name, sources, weight, bias, self.ln_rate.exp().detach().numpy().astype(np.float64))
