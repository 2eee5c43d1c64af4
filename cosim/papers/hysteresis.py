"""BMRU, CMRU and alphaCMRU of the seed paper (arXiv 2605.11855, eq. 2 to 12): states that hold until a candidate
crosses a threshold.

    h^ = Wx x + bx ;  beta = |Wb x + bb| ;  z = H(|h^| - beta)                                          (2)-(4)
    h_t = z (S(h^) alpha + epsilon h_{t-1}) + (1 - z) h_{t-1}                                               (7)

epsilon 0 is the BMRU (5), 1 a selective integrator (9), -1 a reflection (12). alpha in R^state is learned from 1 on; of
an alphaCMRU alpha_t = Wa x + ba (10), (11). A fixed threshold is |bb| alone: the 9T cell's bias current. The paper
begins at h_{-1} = 0, which no 9T cell holds: one that was reset begins low, at -alpha. H and S have the gradient of
cosim.training.surrogate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from cosim.papers.cells import Recurrence, SoftwareCell
from cosim.papers.repeated import Steps, project
from cosim.training.scan import linear_scan
from cosim.training.surrogate import heaviside, sign

Threshold = Literal["input", "fixed"]
Start = Literal["zero", "low"]


@dataclass(frozen=True)
class Drive:
    """The input's drive of the memory: candidate h^, threshold beta >= 0 and level alpha, (n, time, state) each."""

    candidate: Tensor
    threshold: Tensor
    level: Tensor


class HysteresisCell(SoftwareCell):
    """x to states, in two parts: `drive` has all the weights, `decide` all the memory.

    `memory`, if not None, stands for `decide`: a Drive to states (n, time, state). A circuit, or what records both
    sides, goes there.
    """

    def __init__(self, inputs: int, state: int, *, threshold: Threshold = "input", scaled: bool = False) -> None:
        super().__init__(inputs, state)
        self.epsilon = 1.0
        self.settled = False  # whether epsilon stays as it is, as of a BMRU
        self.start: Start = "zero"
        self.memory: Callable[[Drive], Tensor] | None = None
        self.candidate = nn.Linear(inputs, state)
        least = inputs**-0.5  # of a bias as nn.Linear begins it
        self.threshold = nn.Linear(inputs, state) if threshold == "input" else None
        self.bias = nn.Parameter(torch.empty(state).uniform_(-least, least)) if threshold == "fixed" else None
        self.scale = nn.Linear(inputs, state) if scaled else None
        self.alpha = None if scaled else nn.Parameter(torch.ones(state))

    def drive(self, x: Steps) -> Drive:
        """Compute candidate, threshold and level at each step, from x (n, time, inputs)."""
        candidate = project(self.candidate, x)
        free = self.bias if self.threshold is None else project(self.threshold, x)
        level = self.alpha if self.scale is None else project(self.scale, x)
        assert free is not None
        assert level is not None
        return Drive(candidate, free.abs().expand_as(candidate), level.expand_as(candidate))

    def updates(self, drive: Drive) -> Recurrence:
        """Return eq. (7) as a linear recurrence."""
        z = heaviside(drive.candidate.abs() - drive.threshold)
        return Recurrence(1.0 - (1.0 - self.epsilon) * z, z * sign(drive.candidate) * drive.level)

    def decide(self, drive: Drive) -> Tensor:
        """Compute the states, (n, time, state)."""
        step = self.updates(drive)
        start = -drive.level[:, 0] if self.start == "low" else step.b.new_zeros(self.state)
        return linear_scan(step.a, step.b, start)

    def recurrence(self, x: Steps) -> Recurrence:
        return self.updates(self.drive(x))

    def forward(self, x: Steps) -> Tensor:
        return (self.memory or self.decide)(self.drive(x))
