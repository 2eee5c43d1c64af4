"""minGRU (mGRADE, eq. 7; L. Feng et al., 2025): a gated memory that is linear in its state, hence a scan over time."""

import torch
from torch import Tensor, nn

from cosim.training.scan import linear_scan


class MinGru(nn.Module):
    """z = sigmoid(W_z x + b_z), h_t = (1 - z) h_{t-1} + z (W_h x + b_h), from h = 0 on."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(inputs, width)
        self.candidate = nn.Linear(inputs, width)

    def forward(self, x: Tensor) -> Tensor:
        """x (n, time, inputs); h (n, time, width)."""
        z = torch.sigmoid(self.gate(x))
        return linear_scan(1.0 - z, z * self.candidate(x), torch.zeros(z.shape[2], dtype=z.dtype))
