"""Recurrent cells in torch: BMRU, CMRU, alphaCMRU (arXiv 2605.11855) and first-quadrant unit (arXiv 2605.15216).

The BMRU (eq. 2-5) is the CMRU (eq. 7) at epsilon = 0, so one class serves both; the alphaCMRU (eq. 10-11) is the signed
cell with `scale_weight`. All run over time with a parallel scan. alpha is fixed at 1: it folds into the next layer's
weights, which then stay on the mirror grid.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from cosim.network.types import FirstQuadrantLayer, SignedLayer
from cosim.training.chips import Lines
from cosim.training.hardware import GridLinear, perturb, round_to_grid
from cosim.training.scan import linear_scan
from cosim.training.surrogate import heaviside, sign

OFFSET_MARGIN, OFFSET_STEP = 0.25, 0.125  # as in cosim.ir.lower, which stands below this package
BETA_MIN = 0.1  # lowest reset threshold of a first-quadrant unit: at zero input the unit must be off


@dataclass(frozen=True)
class CellOutput:
    """h: (n, time, width) states; distance: (n, time, width), |candidate - the threshold that could flip the unit|."""

    h: Tensor
    distance: Tensor


class FirstQuadrantCell(nn.Module):
    """u = W x + b; set at u >= beta_hi, reset at u <= beta_lo, else keep; h = (1 + q) / 2 with q_{-1} = -1.

    q_t = z (S(u - c) + epsilon q_{t-1}) + (1 - z) q_{t-1}, z = H(|u - c| - w) with centre c and half width w.
    beta_lo >= 0.1 and beta_hi - beta_lo >= width_min hold by construction. x (n, time, inputs). The rectifier on u is
    left out here: no threshold is below 0, so it changes no decision and would only block the gradient.
    """

    start = 0.0  # state before the first step

    def __init__(self, inputs: int, width: int, grid: float | None, width_min: float) -> None:
        super().__init__()
        self.epsilon = 0.0
        self.width_min = width_min
        self.linear = GridLinear(inputs, width, grid, gain=1.5, bias_range=(0.0, 0.5))
        self.lo_free = nn.Parameter(torch.empty(width).uniform_(0.0, 0.5))
        self.width_free = nn.Parameter(torch.empty(width).uniform_(0.0, 0.4))

    def thresholds(self) -> tuple[Tensor, Tensor]:
        """beta_lo and beta_hi, (width,) each."""
        lo = BETA_MIN + _positive(self.lo_free)
        return lo, lo + self.width_min + _positive(self.width_free)

    def forward(
        self, x: Tensor, noise: float = 0.0, rng: torch.Generator | None = None, lines: Lines | None = None
    ) -> CellOutput:
        """x (n, time, inputs); `lines`: of x on chips that vary."""
        u = self.linear(x, noise, rng, lines)
        lo, hi = (perturb(beta, noise, rng) for beta in self.thresholds())
        if lines is not None:
            u, lo, hi = lines.chips.compare(u, lo, hi)
        sets, resets = heaviside(u - hi), heaviside(lo - u)
        start = -torch.ones_like(self.lo_free) if lines is None else _start_on_chips(lo)
        # sets - resets is z S(u - c), and sets + resets is z, without the rounding of centre and half width.
        q = linear_scan(1.0 - (1.0 - self.epsilon) * (sets + resets), sets - resets, start)
        return CellOutput((1.0 + q) / 2.0, _flip_distance(u, lo, hi, q))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> FirstQuadrantLayer:
        """The layer as numpy data, float64."""
        weight, bias = map(_array, self.linear.rounded())
        lo, hi = map(_array, self.thresholds())
        return FirstQuadrantLayer(name, sources, weight, bias, lo, hi, np.ones(len(bias)), float(self.epsilon))


class SignedCell(nn.Module):
    """h_hat = W x + b, beta = |W_beta x + b_beta|, z = H(|h_hat| - beta), h = z (S(h_hat) a + epsilon h') + (1 - z) h'.

    a = 1, or a = W_alpha x + 1 with `scale_weight` (alphaCMRU). h_{-1} = -1. x (n, time, inputs). `threshold_weight`
    False keeps beta constant in time and at least width_min / 2 by construction; with it the hysteresis width 2 beta
    depends on the input and only the margin term of the loss keeps it open. A constant beta is a free bias current;
    with a threshold weight b_beta is a mirror weight like any other, on the grid.
    """

    start = -1.0  # state before the first step

    def __init__(
        self, inputs: int, width: int, grid: float | None, width_min: float, threshold_weight: bool, scale_weight: bool
    ) -> None:
        super().__init__()
        self.epsilon = 0.0
        self.width_min = width_min
        self.linear = GridLinear(inputs, width, grid, gain=1.5, bias_range=(-0.5, 0.5))
        self.beta_free = nn.Parameter(torch.empty(width).uniform_(0.0, 0.4))
        self.beta_weight = _extra_weight(inputs, width) if threshold_weight else None
        self.scale_weight = _extra_weight(inputs, width) if scale_weight else None

    def bias_beta(self) -> Tensor:
        """b_beta, (width,)."""
        bias = self.width_min / 2 + _positive(self.beta_free)
        return bias if self.beta_weight is None else round_to_grid(bias, self.linear.grid)

    def forward(
        self, x: Tensor, noise: float = 0.0, rng: torch.Generator | None = None, lines: Lines | None = None
    ) -> CellOutput:
        """x (n, time, inputs); `lines`: of x on chips that vary, for constant thresholds and epsilon from 0 to 1."""
        if lines is not None:
            return self._on_chips(x, noise, rng, lines)
        candidate = self.linear(x, noise, rng)
        drive = perturb(self.bias_beta(), noise, rng)
        if self.beta_weight is not None:
            drive = drive + x @ perturb(round_to_grid(self.beta_weight, self.linear.grid), noise, rng).T
        beta = drive.abs()
        scale = torch.ones(())
        if self.scale_weight is not None:
            scale = 1.0 + x @ perturb(round_to_grid(self.scale_weight, self.linear.grid), noise, rng).T
        z = heaviside(candidate.abs() - beta)
        h = linear_scan(1.0 - (1.0 - self.epsilon) * z, z * sign(candidate) * scale, -torch.ones_like(self.beta_free))
        distance = _flip_distance(candidate, -beta, beta, h)
        if self.beta_weight is not None:
            distance = torch.minimum(distance, beta)  # a window that closes is as bad as a candidate on its edge
        return CellOutput(h, distance)

    def _on_chips(self, x: Tensor, noise: float, rng: torch.Generator | None, lines: Lines) -> CellOutput:
        """On one cell as compiled: candidate and thresholds ride on a common-mode offset."""
        beta = self.bias_beta()
        offset = common_mode_offset(beta.detach())
        beta = perturb(beta, noise, rng)
        candidate = self.linear(x, noise, rng, lines, offset)
        candidate, lo, hi = lines.chips.compare(candidate, offset - beta, offset + beta)
        sets, resets = heaviside(candidate - hi), heaviside(lo - candidate)
        h = linear_scan(1.0 - (1.0 - self.epsilon) * (sets + resets), sets - resets, _start_on_chips(lo))
        return CellOutput(h, _flip_distance(candidate, lo, hi, h))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> SignedLayer:
        """The layer as numpy data, float64."""
        weight, bias = map(_array, self.linear.rounded())
        beta, scale = (
            None if w is None else _array(round_to_grid(w, self.linear.grid))
            for w in (self.beta_weight, self.scale_weight)
        )
        ones = np.ones(len(bias))
        return SignedLayer(
            name, sources, weight, bias, _array(self.bias_beta()), ones, beta, scale, float(self.epsilon)
        )


def common_mode_offset(beta: Tensor) -> Tensor:
    """What the compiler adds to candidate and thresholds of a signed unit, (width,), see cosim.ir.lower."""
    return ((beta + OFFSET_MARGIN) / OFFSET_STEP).ceil() * OFFSET_STEP


def _start_on_chips(lower: Tensor) -> Tensor:
    """State before the first step, (n, width): off, but on where the lower threshold (n, 1, width) lies below 0.

    The circuit resets its cells by a candidate of 0, which such a cell does not follow: it may have come up on.
    """
    return 2.0 * heaviside(-lower[:, 0]) - 1.0


def _extra_weight(inputs: int, width: int) -> nn.Parameter:
    bound = (1.0 / inputs) ** 0.5
    return nn.Parameter(torch.empty(width, inputs).uniform_(-bound, bound))


def _positive(free: Tensor) -> Tensor:
    """|free|: reaches its floor of 0 exactly and never loses its gradient there."""
    return free.abs()


def _flip_distance(candidate: Tensor, lo: Tensor, hi: Tensor, state: Tensor) -> Tensor:
    """Distance to the upper threshold where the unit was off before, to the lower one where it was on."""
    before = torch.cat([-torch.ones_like(state[:, :1]), state[:, :-1]], dim=1).detach()
    return torch.where(before > 0, (candidate - lo).abs(), (candidate - hi).abs())


def _array(value: Tensor) -> np.ndarray:
    return value.detach().cpu().numpy().astype(np.float64)
