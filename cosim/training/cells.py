"""Recurrent cells in torch: BMRU, CMRU, alphaCMRU (arXiv 2605.11855) and first-quadrant unit (arXiv 2605.15216).

The BMRU (eq. 2-5) is the CMRU (eq. 7) at epsilon = 0, so one class serves both; the alphaCMRU (eq. 10-11) is the signed
cell with `scaled`. All run over time with a parallel scan. A constant alpha is fixed at 1: it folds into the next
layer's weights, which then stay on the mirror grid.

Which threshold decides. By eq. 7 an update turns the state h' into S alpha + epsilon h'; without an update h' stays. So
a candidate that crosses the upper threshold changes the next state by alpha - (1 - epsilon) h', one that crosses the
lower threshold by -alpha - (1 - epsilon) h'. A threshold decides where this is more than half of alpha:

    epsilon 0           h' = alpha: the lower one alone; h' = -alpha: the upper one alone
    epsilon 1           both, always: +alpha and -alpha
    epsilon -1          both, always: h' is a whole multiple of alpha, so this is at least alpha in size
    between             both, but for the one that further updates of the sign before would cross: they bring h' to
                        alpha / (1 - epsilon) or its negative, where one more changes nothing

The minGRU in torch, with the gates that its circuit has: z = 1 - exp(-r), r = a = max(W_gate x + b_gate, 0), or
r = TOP a / (TOP + a) behind a ratio gate.

Both rows are mirrors, so weights lie on their grid; the recurrence is linear in h and runs as a parallel scan.
Source of the unit: L. Feng et al., arXiv 2410.01201 (minGRU, with a logistic gate).

Dispersive delays in torch: rows of mirrors, rectified, each into a line whose mean delay is learned.

Source: `cosim.network.gamma`; learned positions: mGRADE, whose taps are whole frames here (cosim.papers.mgrade).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from cosim.base.errors import NetworkError
from cosim.network.gamma import LEAST_RATE, MOST_RATE, GammaLayer
from cosim.network.layers import (
    FULL_SCALE,
    FirstQuadrantLayer,
    Layer,
    MinGruLayer,
    RecurrentLayer,
    ReluLayer,
    SignedLayer,
    common_mode_offset,
    largest_beta,
)
from cosim.network.types import Readout
from cosim.training.config import Architecture
from cosim.training.hardware import (
    GridLinear,
    LayerDevices,
    Lines,
    bound_excess,
    largest_threshold,
    perturb,
    reset_excess,
)
from cosim.training.scan import heaviside, linear_scan, nearest_level, sign, turn_distance
from cosim.variation.sigma import MismatchModel, WeightedRows

EXTRA_GAIN = 3**-0.5  # initial standard deviation, times sqrt(inputs), of what moves thresholds and alpha
BETA_MIN = 0.1  # lowest reset threshold of a first-quadrant unit: at zero input the unit must be off


@dataclass(frozen=True)
class CellOutput:
    """The states of a recurrent cell for a batch of samples, and their distance from a decision for another state.

    h: states, (n, time, width); distance: of each candidate to the nearest threshold that decides, or if smaller
    of a value that is written to the nearest turn between two levels, (n, time, width), units; sigmas: the candidates'
    distance in standard deviations of each candidate, None where they are not counted.
    """

    h: Tensor
    distance: Tensor
    sigmas: Tensor | None = None


class RecurrentCell(nn.Module, ABC):
    """The base of torch modules that train a recurrent layer, built from (inputs, architecture).

    A cell is called with (x, noise, rng, lines). A cell that is fed back also takes `before`: the states h (n, width)
    before the first step, in place of `start`.
    """

    linear: GridLinear  # W x + b, the candidate
    epsilon: float = 0.0
    increment: float = 1.0  # of h, by an update at epsilon 1
    devices: LayerDevices | None = None

    def excess(self, mismatch: MismatchModel | None = None) -> Tensor:
        """Compute the loss for thresholds near the bounds of what a circuit can have, see `bound_excess`.

        With `mismatch` the loss for cells that would not reset on some chips is added, see `reset_excess`.
        """
        return torch.zeros(())

    def clip_(self) -> None:
        """Clip the cell's trained parameters, except weights, to the range that a circuit can have."""

    def learned(self) -> dict[str, Tensor]:
        """Return what the torch cell has learned, by the names of its layer's arrays, with gradients."""
        weight, bias = self.linear.rounded()
        return {"weight": weight, "bias": bias}

    @property
    def start(self) -> Tensor:
        """Return h before the first step of a sequence in training, (width,): 0."""
        return torch.zeros_like(self.linear.bias)

    @abstractmethod
    def to_layer(self, name: str, sources: tuple[str, ...]) -> RecurrentLayer:
        """Return the trained torch cell as a network layer of numpy data, float64."""


class FirstQuadrantCell(RecurrentCell):
    """The torch cell of a first-quadrant unit, which trains its weights and thresholds.

    u = W x + b; set at u >= beta_hi, reset at u <= beta_lo, else keep; h = (1 + q) / 2 with q_{-1} = -1.

    q_t = z (S(u - c) + epsilon q_{t-1}) + (1 - z) q_{t-1}, z = H(|u - c| - w) with centre c and half width w.
    beta_lo >= 0.1 and beta_hi - beta_lo >= width_min hold by construction. x (n, time, inputs). The rectifier on u is
    left out here: no threshold is below 0, so it changes no decision and would only block the gradient.
    """

    increment = 0.5

    def __init__(self, inputs: int, architecture: Architecture) -> None:
        super().__init__()
        width = architecture.cells
        self.width_min, self.upper = architecture.width_min, largest_threshold(architecture.grid)
        self.linear = GridLinear(inputs, width, architecture.grid, gain=1.5, bias_range=(0.0, 0.5))
        self.lo_free = nn.Parameter(torch.empty(width).uniform_(0.0, 0.5))
        self.width_free = nn.Parameter(torch.empty(width).uniform_(0.0, 0.4))

    def thresholds(self, noise: float = 0.0, rng: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Return a torch cell's beta_lo and beta_hi, (width,) each, units.

        noise: relative, on beta_lo and on the width beta_hi - beta_lo, which keeps their order.
        """
        # |free| reaches its floor of 0 exactly and never loses its gradient there
        lo, width = BETA_MIN + self.lo_free.abs(), self.width_min + self.width_free.abs()
        lo, width = (perturb(value, noise, rng) for value in (lo, width))
        return lo, lo + width

    def excess(self, mismatch: MismatchModel | None = None) -> Tensor:
        lo, hi = self.thresholds()
        return bound_excess(hi, self.upper) + reset_excess(lo, hi, mismatch)

    @torch.no_grad()
    def clip_(self) -> None:
        most = self.upper - BETA_MIN - self.width_min
        self.lo_free.clamp_(-most, most)
        rest = most - self.lo_free.abs()
        self.width_free.copy_(torch.clamp(self.width_free, -rest, rest))

    def forward(
        self,
        x: Tensor,
        noise: float = 0.0,
        rng: torch.Generator | None = None,
        lines: Lines | None = None,
        before: Tensor | None = None,
    ) -> CellOutput:
        """Compute a torch cell's states and distances for x (n, time, inputs).

        lines: of x on chips that vary, None for none; before: states h (n, width) before the first step, None for
        `start`.
        """
        u = self.linear(x, noise, rng, lines)
        lo, hi = self.thresholds(noise, rng)
        if lines is not None:
            u, lo, hi = lines.chips.compare(u, lo, hi)
        decided = _NoisyDecision.by(self, u, x, rng)
        u = decided.candidate
        sets, resets = heaviside(u - hi), heaviside(lo - u)
        start = 2.0 * (self.start if before is None else before) - 1.0
        if lines is not None and not lines.chips.compared:
            start = _start_on_chips(lo)
        # sets - resets is z S(u - c), and sets + resets is z, without the rounding of centre and half width.
        q = linear_scan(1.0 - (1.0 - self.epsilon) * (sets + resets), sets - resets, start)
        kept = (1.0 - self.epsilon) * _before(q, start)
        return CellOutput((1.0 + q) / 2.0, _deciding_distance(_away(u, lo, hi), kept), decided.sigmas(lo, hi, kept))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> FirstQuadrantLayer:
        """Return what a torch cell has learned as a network's layer, numpy data in float64."""
        found = {field: as_array(value) for field, value in self.learned().items()}
        return FirstQuadrantLayer(
            name, sources, **found, alpha=np.ones(len(found["bias"])), epsilon=float(self.epsilon)
        )

    def learned(self) -> dict[str, Tensor]:
        lo, hi = self.thresholds()
        return {**super().learned(), "beta_lo": lo, "beta_hi": hi}

    @torch.no_grad()
    def load_(self, layer: FirstQuadrantLayer) -> None:
        """Set this torch cell to what a network's layer has learned, the inverse of `to_layer`.

        Raises NetworkError where the layer has values that such a cell cannot have.
        """
        _check_learned(layer, "initial", 0.0 if layer.initial is None else layer.initial, 0.0, 0.0)
        _check_learned(layer, "alpha", layer.alpha, 1.0, 1.0)
        _check_learned(layer, "beta_lo", layer.beta_lo, BETA_MIN)
        _check_learned(layer, "beta_hi - beta_lo", layer.beta_hi - layer.beta_lo, self.width_min)
        load_linear_(self.linear, layer)
        self.lo_free.copy_(torch.from_numpy(layer.beta_lo - BETA_MIN))
        self.width_free.copy_(torch.from_numpy(layer.beta_hi - layer.beta_lo - self.width_min))
        self.epsilon = layer.epsilon


class SignedCell(RecurrentCell):
    """The torch cell of a signed unit, which trains its weights and thresholds.

    h_hat = W x + b, beta = |W_beta x + b_beta|, z = H(|h_hat| - beta), h = z (S(h_hat) a + epsilon h') + (1 - z) h'.

    x (n, time, inputs). By default beta is constant in time: a free bias current, at least width_min / 2 by
    construction. With `--beta input`, W_beta and b_beta are mirror weights like any other, and only the margin term of
    the loss keeps the hysteresis width 2 beta open. A CMRU has a = 1 and h_{-1} = -1. An alphaCMRU has
    a = W_alpha x + b_alpha and h_{-1} = -b_alpha, both learned, from b_alpha = 1 on. With `levels` S(h_hat) a is
    rounded to a grid, as in `SignedLayer.stored`, and its gradient passes straight through.
    """

    def __init__(self, inputs: int, architecture: Architecture) -> None:
        super().__init__()
        width, grid = architecture.cells, architecture.grid
        driven, scaled = architecture.beta == "input", architecture.cell == "alphacmru"
        self.width_min, self.levels = architecture.width_min, architecture.levels
        self.largest = largest_beta(largest_threshold(grid))
        self.linear = GridLinear(inputs, width, grid, gain=1.5, bias_range=(-0.5, 0.5))
        least = self.width_min / 2
        self.beta_free = None if driven else nn.Parameter(torch.empty(width).uniform_(0.0, 0.4))
        self.beta = GridLinear(inputs, width, grid, EXTRA_GAIN, (least, least + 0.4)) if driven else None
        self.alpha = GridLinear(inputs, width, grid, EXTRA_GAIN, (1.0, 1.0)) if scaled else None

    @property
    def start(self) -> Tensor:
        """Return a torch cell's state h before the first step, (width,): -b_alpha as it is stored."""
        return self.stored(-self.bias_alpha())

    def bias_alpha(self) -> Tensor:
        """Return the trained b_alpha, (width,), which is 1 for a cell whose alpha is constant."""
        return torch.ones_like(self.linear.bias) if self.alpha is None else self.alpha.rounded()[1]

    def stored(self, value: Tensor) -> Tensor:
        """Return values of any shape as a torch cell stores them: rounded to its grid of levels if the cell has one."""
        return value if self.levels is None else nearest_level(value, self.levels)

    def bias_beta(self) -> Tensor:
        """Return the trained b_beta, (width,)."""
        if self.beta is not None:
            return self.beta.rounded()[1]
        assert self.beta_free is not None
        return self.width_min / 2 + self.beta_free.abs()

    def excess(self, mismatch: MismatchModel | None = None) -> Tensor:
        if self.beta_free is None:
            return torch.zeros(())
        beta, offset = self.bias_beta(), self.offset()
        return bound_excess(beta, self.largest) + reset_excess(offset - beta, offset + beta, mismatch)

    @torch.no_grad()
    def clip_(self) -> None:
        if self.beta_free is not None:
            most = self.largest - self.width_min / 2
            self.beta_free.clamp_(-most, most)

    def forward(
        self,
        x: Tensor,
        noise: float = 0.0,
        rng: torch.Generator | None = None,
        lines: Lines | None = None,
        before: Tensor | None = None,
    ) -> CellOutput:
        """Compute a torch cell's states and distances for x (n, time, inputs).

        lines: gate lines of x on chips that vary, for cells with constant thresholds, None for nominal devices; before:
        states h (n, width) before the first step, None for `start`.
        """
        if lines is not None:
            return self._on_chips(x, noise, rng, lines)
        candidate = self.linear(x, noise, rng)
        beta = perturb(self.bias_beta(), noise, rng) if self.beta is None else self.beta(x, noise, rng).abs()
        offset = 0.0 if self.devices is None else self.offset()
        decided = _NoisyDecision.by(self, candidate, x, rng, (offset, offset))
        candidate = decided.candidate
        step = torch.ones(()) if self.alpha is None else self.alpha(x, noise, rng)
        z = heaviside(candidate.abs() - beta)
        target, start = self.stored(sign(candidate) * step), self.start if before is None else before
        h = linear_scan(1.0 - (1.0 - self.epsilon) * z, z * target, start)
        kept = (1.0 - self.epsilon) * _before(h, start)
        distance = _deciding_distance(_away(candidate, -beta, beta), kept, step)
        if self.beta is not None:
            distance = torch.minimum(distance, beta)  # a window that closes is as bad as a candidate on its edge
        if self.levels is not None:
            distance = torch.minimum(distance, self._turn_distance(sign(candidate).detach() * step, z))
        return CellOutput(h, distance, decided.sigmas(-beta, beta, kept))

    def _turn_distance(self, value: Tensor, z: Tensor) -> Tensor:
        """Return the distance of values that are written (z = 1) from a turn between two levels, (n, time, width).

        It is infinite for a value nearer to a level than to a turn, because a margin may exceed half a level's step.
        """
        assert self.levels is not None
        away = turn_distance(value, self.levels)
        return torch.where((z > 0) & (away < FULL_SCALE / (2 * self.levels)), away, math.inf)

    def offset(self) -> Tensor:
        """Return the common-mode offset of candidate and thresholds in the compiled circuit, units, (width,).

        It is that of constant thresholds.
        """
        return torch.from_numpy(common_mode_offset(self.bias_beta().detach().numpy()))

    def _on_chips(self, x: Tensor, noise: float, rng: torch.Generator | None, lines: Lines) -> CellOutput:
        """Compute a torch cell's states on drawn chips, as compiled: with its common-mode offset."""
        beta, offset = self.bias_beta(), self.offset()
        beta = perturb(beta, noise, rng)
        candidate = self.linear(x, noise, rng, lines, offset)
        candidate, lo, hi = lines.chips.compare(candidate, offset - beta, offset + beta)
        decided = _NoisyDecision.by(self, candidate, x, rng, (offset, 0.0))
        candidate = decided.candidate
        sets, resets = heaviside(candidate - hi), heaviside(lo - candidate)
        start = self.start if lines.chips.compared else _start_on_chips(lo)
        h = linear_scan(1.0 - (1.0 - self.epsilon) * (sets + resets), sets - resets, start)
        kept = (1.0 - self.epsilon) * _before(h, start)
        return CellOutput(h, _deciding_distance(_away(candidate, lo, hi), kept), decided.sigmas(lo, hi, kept))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> SignedLayer:
        """Return what a torch cell has learned as a network's layer, numpy data in float64."""
        found = {field: as_array(value) for field, value in self.learned().items()}
        return SignedLayer(name, sources, **found, epsilon=float(self.epsilon), levels=self.levels)  # pyright: ignore[reportArgumentType] - found has arrays alone

    def learned(self) -> dict[str, Tensor]:
        more = {"weight_beta": self.beta, "weight_alpha": self.alpha}
        weights = {name: linear.rounded()[0] for name, linear in more.items() if linear is not None}
        return {**super().learned(), "bias_beta": self.bias_beta(), "alpha": self.bias_alpha(), **weights}

    @torch.no_grad()
    def load_(self, layer: SignedLayer) -> None:
        """Set this torch cell to what a network's layer has learned, the inverse of `to_layer`.

        Raises NetworkError where the layer has values that such a cell cannot have, or where only one of the two has a
        beta or an alpha that depends on the input.
        """
        for name, weight, own in (("beta", layer.weight_beta, self.beta), ("alpha", layer.weight_alpha, self.alpha)):
            if (weight is None) != (own is None):
                has, lacks = ("the module", "the network") if weight is None else ("the network", "the module")
                raise NetworkError(f"{layer.name}: {name} depends on the input in {has}, and not in {lacks}")
        if layer.levels != self.levels:
            here, there = self.levels or "any", layer.levels or "any"
            raise NetworkError(f"{layer.name} stores {there} levels, and this module {here}")
        if layer.ends is not None or layer.initial is not None:
            raise NetworkError(
                f"{layer.name} has ends or a start of its own, and this module begins at -1 and has no ends"
            )
        load_linear_(self.linear, layer)
        if self.alpha is None or layer.weight_alpha is None:
            _check_learned(layer, "alpha", layer.alpha, 1.0, 1.0)
        else:
            _set_(self.alpha, layer.weight_alpha, layer.alpha)
        if self.beta is not None and layer.weight_beta is not None:
            _set_(self.beta, layer.weight_beta, layer.bias_beta)
        elif self.beta_free is not None:
            _check_learned(layer, "bias_beta", np.abs(layer.bias_beta), self.width_min / 2)
            self.beta_free.copy_(torch.from_numpy(np.abs(layer.bias_beta) - self.width_min / 2))
        self.epsilon = layer.epsilon


def clip_(model: nn.Module) -> None:
    """Clip all grid weights and thresholds of a model to what a circuit can have; call it after each optimiser step."""
    for module in model.modules():
        if isinstance(module, GridLinear | RecurrentCell):
            module.clip_()


def bound_loss(model: nn.Module, mismatch: MismatchModel | None = None) -> Tensor:
    """Sum over a model's recurrent cells the loss for thresholds near the bounds of what a circuit can have.

    Add the sum to the loss: it moves thresholds back before `clip_` cuts them. With `mismatch` it also keeps lower
    thresholds so far above 0 that cells reset on chips.
    """
    found = [module.excess(mismatch) for module in model.modules() if isinstance(module, RecurrentCell)]
    return torch.stack(found).sum() if found else torch.zeros(())


@torch.no_grad()
def load_layer_(name: str, module: nn.Module, layer: Layer | Readout) -> None:
    """Set a torch module to what a trained network's layer or readout has learned.

    name: of the layer, for messages. Raises NetworkError where kinds or shapes differ, or where the layer has a value
    that the module cannot have.
    """
    linear = module.linear if isinstance(module, RecurrentCell) else module
    if isinstance(linear, GridLinear | nn.Linear) and linear.weight.shape != layer.weight.shape:
        here, there = tuple(linear.weight.shape), layer.weight.shape
        raise NetworkError(f"{name}.weight has shape {there} in the network and {here} in the module")
    match module, layer:
        case FirstQuadrantCell(), FirstQuadrantLayer():
            module.load_(layer)
        case SignedCell(), SignedLayer():
            module.load_(layer)
        case MinGruCell(), MinGruLayer():
            module.load_(layer)
        case GammaCell(), GammaLayer():
            module.load_(layer)
        case (GridLinear() | nn.Linear(), ReluLayer() | Readout()):
            if module.bias is None and layer.bias.any():
                raise NetworkError(f"{name} has a bias in the network, and none in the module")
            load_linear_(module, layer)
        case _:
            raise NetworkError(f"a {type(module).__name__} cannot take over {name}, a {type(layer).__name__}")


@torch.no_grad()
def load_linear_(module: GridLinear | nn.Linear, layer: Layer | Readout) -> None:
    """Set a torch module's weight (outputs, inputs) and bias (outputs,) to those of a network's layer or readout."""
    _set_(module, layer.weight, layer.bias)


def _set_(module: GridLinear | nn.Linear, weight: np.ndarray, bias: np.ndarray) -> None:
    module.weight.copy_(torch.from_numpy(weight))
    if module.bias is not None:
        module.bias.copy_(torch.from_numpy(bias))


LEARNED_TOLERANCE = 1e-6  # of single precision, in which cells are trained: sums of two numbers of about 1


def _check_learned(
    layer: RecurrentLayer, field: str, value: np.ndarray | float, lowest: float, highest: float = math.inf
) -> None:
    """Raise NetworkError that names the first unit of a layer whose learned value is outside a torch cell's range."""
    values = np.broadcast_to(value, (layer.width,))
    outside = (values < lowest - LEARNED_TOLERANCE) | (values > highest + LEARNED_TOLERANCE)
    if outside.any():
        unit = int(np.argmax(outside))
        wanted = f"{lowest:g}" if lowest == highest else f"at least {lowest:g}"
        raise NetworkError(f"{layer.name}.{field}[{unit}] is {values[unit]:g}, and that of this module is {wanted}")


def _start_on_chips(lower: Tensor) -> Tensor:
    """Return a torch cell's state q before the first step on chips that vary, (n, width): -1 for off, 1 for on.

    A cell is on where its lower threshold (n, 1, width) is below 0: the circuit resets cells by a candidate of 0, which
    cannot turn such a cell off, and it may have come up on.
    """
    return 2.0 * heaviside(-lower[:, 0]) - 1.0


@dataclass(frozen=True)
class _NoisyDecision:
    """The candidates by which a cell decides, with the noise of its devices if that is drawn.

    base: the part of the row's sum that candidate and thresholds leave out, although its current flows; row: the
    weighted signals that add up to the candidate, None where devices do not count.
    """

    candidate: Tensor
    devices: LayerDevices | None = None
    row: WeightedRows | None = None
    base: Tensor | float = 0.0

    @staticmethod
    def by(
        cell: "FirstQuadrantCell | SignedCell",
        u: Tensor,
        x: Tensor,
        rng: torch.Generator | None,
        offset: tuple[Tensor | float, Tensor | float] = (0.0, 0.0),
    ) -> "_NoisyDecision":
        """Return the candidates u of a cell for x, with noise where it is drawn.

        offset: two currents, units: what the row adds to its bias, and the part of that which u does not contain.
        """
        if cell.devices is None:
            return _NoisyDecision(u)
        row, base = cell.devices.row(x, cell.linear, offset[0]), offset[1]
        return _NoisyDecision(cell.devices.with_noise(row, u + base, rng) - base, cell.devices, row, base)

    def sigmas(self, lo: Tensor, hi: Tensor, kept: Tensor) -> Tensor | None:
        """Return the distance to the nearest threshold that decides, in standard deviations.

        It is None where devices do not count.
        """
        if self.devices is None or self.devices.spread is None or self.row is None:
            return None
        base = self.base
        spread = self.devices.sigmas(self.row, self.candidate + base, lo + base, hi + base)
        to_hi, to_lo = _away(self.candidate, lo, hi)
        return _deciding_distance((to_hi / spread[0], to_lo / spread[1]), kept)


Away = tuple[Tensor, Tensor]  # distances of candidates (n, time, width) from the upper threshold and from the lower one


def _away(candidate: Tensor, lo: Tensor, hi: Tensor) -> Away:
    return (candidate - hi).abs(), (candidate - lo).abs()


def _deciding_distance(away: Away, kept: Tensor, step: Tensor | float = 1.0) -> Tensor:
    """Return how far trained candidates are from the nearest threshold that decides, (n, time, width), units.

    It is infinite where no threshold decides. kept: (1 - epsilon) h', with h' the state before each step; step: alpha,
    by which an update moves the state in eq. 7.
    """
    least = abs(step) / 2
    to_hi = torch.where((kept - step).abs() > least, away[0], math.inf)
    to_lo = torch.where((kept + step).abs() > least, away[1], math.inf)
    return torch.minimum(to_hi, to_lo)


def _before(states: Tensor, start: Tensor) -> Tensor:
    """Return the state before each step, (n, time, width), without gradient, from the states after each step.

    start: the state before the first step, broadcastable to (n, width).
    """
    first = start.expand(len(states), states.shape[2])[:, None]
    return torch.cat([first, states[:, :-1]], dim=1).detach()


def as_array(value: Tensor) -> np.ndarray:
    """Return a trained tensor as a numpy array, float64."""
    return value.detach().cpu().numpy().astype(np.float64)


def convolve(u: Tensor, kernel: Tensor) -> Tensor:
    """Convolve u (n, time, H) with one causal kernel for each channel, (H, G + 1), in the training of delay lines.

    G is the longest delay; zeros precede the first step.
    """
    padded = nn.functional.pad(u.transpose(1, 2), (kernel.shape[1] - 1, 0))
    return nn.functional.conv1d(padded, kernel.flip(1)[:, None], groups=len(kernel)).transpose(1, 2)


TOP = 4.0  # the largest rate: z of 0.98 at most


class MinGruCell(RecurrentCell):
    """The torch cell of a minGRU unit.

    h_t = exp(-r_t) h_{t-1} + (1 - exp(-r_t)) max(W x + b, 0) from h = 0 on; x (n, time, inputs).

    A minGRU compares nothing, so its distance from a threshold is infinite everywhere.
    """

    def __init__(self, inputs: int, architecture: Architecture) -> None:
        super().__init__()
        width, grid = architecture.cells, architecture.grid
        self.linear = GridLinear(inputs, width, grid, gain=1.5, bias_range=(0.1, 0.5))
        self.top = TOP if architecture.gate == "ratio" else None
        self.gate = GridLinear(inputs, width, grid, gain=0.75, bias_range=(0.1, 0.5))

    def forward(
        self, x: Tensor, noise: float = 0.0, rng: torch.Generator | None = None, lines: Lines | None = None
    ) -> CellOutput:
        """Compute a torch cell's states of x (n, time, inputs)."""
        candidate = torch.relu(self.linear(x, noise, rng, lines))
        rate = torch.relu(self.gate(x, noise, rng, lines))
        rate = rate if self.top is None else self.top * rate / (self.top + rate)
        kept = torch.exp(-rate)
        h = linear_scan(kept, (1.0 - kept) * candidate, self.start)
        return CellOutput(h, torch.full_like(h, math.inf))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> MinGruLayer:
        """Return what a torch cell has learned as a network's layer, numpy data in float64."""
        top = None if self.top is None else np.full(len(self.linear.bias), self.top)
        return MinGruLayer(
            name, sources, **{field: as_array(value) for field, value in self.learned().items()}, top=top
        )

    def learned(self) -> dict[str, Tensor]:
        weight, bias = self.gate.rounded()
        return {**super().learned(), "weight_gate": weight, "bias_gate": bias}

    @torch.no_grad()
    def load_(self, layer: MinGruLayer) -> None:
        """Set this torch cell to what a network's layer has learned, the inverse of `to_layer`.

        Raises NetworkError where the two have another form of the rate z.
        """
        own = np.inf if self.top is None else self.top
        there = np.full(layer.width, np.inf) if layer.top is None else layer.top
        if np.any(there != own):
            raise NetworkError(f"{layer.name}.top is {there[there != own][0]:g}, and that of this module is {own:g}")
        load_linear_(self.linear, layer)
        _set_(self.gate, layer.weight_gate, layer.bias_gate)


ORDER = 4  # tau-cells of a line: a width of half the delay
SHORTEST, LONGEST = 2.0, 200.0  # frames, of a position at this order
_FIRST, _LAST = 2.5, 8.0  # frames, between which the positions of an untrained layer lie
assert (SHORTEST, LONGEST) == (ORDER / MOST_RATE, ORDER / LEAST_RATE)


class GammaCell(RecurrentCell):
    """The torch cell of a dispersive delay line.

    h is the convolution over time of max(W x, 0) with k, the kernel of a line of ORDER filters; x (n, time, inputs).

    A delay line compares nothing, so its distance from a threshold is infinite everywhere.
    """

    def __init__(self, inputs: int, architecture: Architecture) -> None:
        super().__init__()
        width = architecture.cells
        self.linear = GridLinear(inputs, width, architecture.grid, gain=1.5)
        self.linear.bias = nn.Parameter(torch.zeros(width), requires_grad=False)
        self.log_position = nn.Parameter(torch.linspace(math.log(_FIRST), math.log(_LAST), width))

    @property
    def positions(self) -> Tensor:
        """Return the learned mean delays, frames, (width,)."""
        return self.log_position.clamp(math.log(SHORTEST), math.log(LONGEST)).exp()

    def kernel(self, steps: int) -> Tensor:
        """Return the learned gamma kernel k, (width, steps)."""
        edges = torch.arange(steps + 1) * (ORDER / self.positions[:, None])
        return torch.special.gammainc(torch.full_like(edges, ORDER), edges).diff(dim=1)

    def forward(
        self, x: Tensor, noise: float = 0.0, rng: torch.Generator | None = None, lines: Lines | None = None
    ) -> CellOutput:
        """Compute a torch cell's states of x (n, time, inputs)."""
        candidate = torch.relu(self.linear(x, noise, rng, lines))
        h = convolve(candidate, self.kernel(x.shape[1]))
        return CellOutput(h, torch.full_like(h, math.inf))

    def to_layer(self, name: str, sources: tuple[str, ...]) -> GammaLayer:
        """Return what a torch cell has learned as a network's layer, numpy data in float64."""
        found = {field: as_array(value) for field, value in self.learned().items()}
        return GammaLayer(name, sources, **found, order=np.full(len(found["bias"]), float(ORDER)))

    def learned(self) -> dict[str, Tensor]:
        return {**super().learned(), "position": self.positions}

    @torch.no_grad()
    def load_(self, layer: GammaLayer) -> None:
        """Set this torch cell to what a network's layer has learned, the inverse of `to_layer`.

        Raises NetworkError where the layer has another order, or a bias.
        """
        _check_learned(layer, "order", layer.order, float(ORDER), float(ORDER))
        _check_learned(layer, "bias", layer.bias, 0.0, 0.0)
        load_linear_(self.linear, layer)
        self.log_position.copy_(torch.from_numpy(np.log(layer.position)))
