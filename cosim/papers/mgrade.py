"""mGRADE: delay convolutions in front of a minimal gated recurrence, with the networks it is compared with.

    encoder   u = W x + b                                        H_in -> H
    layer     x = conv(u) ;  y = x + cell(x) ;  y = y + MLP(y) ;  u = LayerNorm(y)
    MLP       W2 GELU(W1 y + b1) + b2                            H -> 2 H -> H
    decoder   W (y or GELU(y)) + b                               H -> H_out

conv: learned, constant, exponentially growing or dispersive delays (cosim.papers.mgrade), or none. cell: minGRU, none
(a TCN, without the skip around it), or BMRU in its place, the bistable unit that compiles: its threshold depends on the
input, its epsilon is annealed from 1 to 0. MLP and LayerNorm are left out together for single layers, as in the paper's
section 4; the decoder is then linear. The paper names neither the activations nor the form of its "non-linear" decoder:
GELU is a choice here.

Training of an mGRADE: positions and weights by gradient, with a width of the taps and an epsilon that are annealed.

Half of the training narrows the taps. In its last quarter the taps stand at whole delays, as deployed, and the weights
adapt to that; epsilon is 0 by then (`epsilon_at`). AdamW for weights, no decay for biases and positions.

Memory footprint of a network: parameters, and the past that its convolutions read (mGRADE, app. B).

    parameters   encoder, decoder; in each layer K H taps, or 2 K H with learned positions (12),
                 minGRU 2 H^2 + 2 H (14), MLP 4 H^2 + 3 H (15), norm 2 H (16)
    buffer       H S numbers, S = sum over layers of the largest delay in use (19, which has a factor L too many)

On the chip a shift cell delays one bit by one frame, and a channel takes as many shift cells as its largest delay. The
network is therefore counted as deployed, without delays that no tap reads. The encoder is linear and without memory, so
the circuit may delay the inputs, which are bits, in place of the encoder's channels, which are not.

Depthwise causal delay convolutions: a few taps of each channel's past (mGRADE, eq. 1 and 5 to 10).

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

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from cosim.base.errors import InputError
from cosim.papers.cells import SoftwareMinGru
from cosim.tasks.lorenz import Lorenz, mase, neighbour_overlap
from cosim.tasks.task import StepTargets
from cosim.training.cells import SignedCell, convolve
from cosim.training.config import Architecture
from cosim.training.loop import Descent, LoopProgress, Problem, TrainingLoop

Start = Literal["dilated", "uniform"]
SIGMA_LAST = 0.5
ANNEALED = 0.5  # share of the training over which sigma falls


def whole_taps(weight: Tensor, positions: Tensor, reach: int) -> Tensor:
    """Return mGRADE's kernel (H, reach + 1), with weight[h, i] added at the delay positions[h, i].

    weight: (H, K); positions: whole delays, (H, K) int64, steps of time; reach: the largest delay, steps of time.
    """
    return torch.zeros(len(weight), reach + 1, dtype=weight.dtype).scatter_add(1, positions, weight)


def sigma_at(iteration: int, total: int, reach: float) -> float:
    """Return sigma, the width of mGRADE's learned taps in a training iteration, in steps of time.

    It falls geometrically from reach / 2 to 1/2 over the first half of the training. iteration: 0 .. total - 1.
    """
    first = max(reach / 2, SIGMA_LAST)
    return first * (SIGMA_LAST / first) ** min(iteration / (ANNEALED * total), 1.0)


class FixedDelays(nn.Module):
    """A convolution of mGRADE with K taps a channel at the delays 0, d, ..., (K - 1) d; d: `dilation`, time steps."""

    def __init__(self, width: int, taps: int, dilation: int) -> None:
        super().__init__()
        if taps < 1 or dilation < 1:
            raise InputError(f"taps and dilation of a delay convolution must be at least 1, not {taps} and {dilation}")
        self.taps, self.dilation = taps, dilation
        self.weight = nn.Parameter(torch.randn(width, taps) / taps**0.5)

    @property
    def reach(self) -> int:
        """Return the largest delay of mGRADE's convolution, steps of time."""
        return self.dilation * (self.taps - 1)

    def used(self) -> Tensor:
        """Return the largest delay of each channel of mGRADE's convolution, (H,), steps of time."""
        return torch.full((len(self.weight),), self.reach)

    def kernel(self) -> Tensor:
        """Return the convolution kernel k of mGRADE's fixed delays, (H, reach + 1)."""
        positions = self.dilation * torch.arange(self.taps).expand(len(self.weight), -1)
        return whole_taps(self.weight, positions, self.reach)

    def forward(self, u: Tensor) -> Tensor:
        """Convolve u (n, time, H) with mGRADE's fixed taps and return x (n, time, H); delays without tap cost
        nothing."""
        padded = nn.functional.pad(u.transpose(1, 2), (self.reach, 0))
        weight = self.weight.flip(1)[:, None]
        return nn.functional.conv1d(padded, weight, dilation=self.dilation, groups=len(weight)).transpose(1, 2)


class LearnedDelays(nn.Module):
    """A convolution of mGRADE with K taps a channel at learned positions in [0, reach], steps of time."""

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
        """Return the positions of mGRADE's taps rounded to whole delays, as deployed, (H, K) int64, steps of time."""
        return self.positions.detach().clamp(0, self.reach).round().long()

    def used(self) -> Tensor:
        """Return the largest deployed delay of each channel of mGRADE's convolution, (H,), steps of time."""
        return self.whole_positions().amax(dim=1)

    def kernel(self) -> Tensor:
        """Return mGRADE's kernel k, (H, reach + 1).

        In training each tap is a Gaussian around its position; in `eval` mode, or once `rounded` is set, it is one
        whole delay.
        """
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


def gamma_kernel(positions: Tensor, order: int, reach: int) -> Tensor:
    """Return the kernels (..., reach + 1) of gamma delay lines with the mean delays `positions` (...), frames.

    order: filters in a line. Each kernel is cut after the delay `reach`, frames, and then scaled to the sum 1.
    """
    edges = torch.arange(reach + 2, dtype=positions.dtype) * (order / positions[..., None])
    below = torch.special.gammainc(torch.full_like(edges, order), edges)
    kernel = below.diff(dim=-1)
    return kernel / kernel.sum(dim=-1, keepdim=True)


class GammaDelays(nn.Module):
    """A convolution of mGRADE with K gamma delay lines a channel, each a chain of `order` first-order filters.

    The weight of each line and its mean delay, in [1/2, reach / 2] frames, are learned.
    """

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


Delays = Literal["none", "learned", "constant", "exponential", "gamma"]
Cell = Literal["mingru", "bmru", "none"]
Convolution = FixedDelays | LearnedDelays | GammaDelays | None


@dataclass(frozen=True)
class ConvolutionSettings:
    """Settings of the convolutions in all layers of mGRADE: the number of `taps` a channel, and what sets their delays.

    delays: "learned": positions in [0, reach], which begin as `start` says; "constant": taps `dilation` steps apart;
    "exponential": taps dilation 2^l apart in layer l, without further doubling where the largest delay would exceed
    `reach` (0: no limit); "gamma": dispersive lines of `order` filters, kernels cut at `reach`; "none": no convolution.
    """

    delays: Delays = "none"
    taps: int = 1
    reach: int = 0
    dilation: int = 1
    order: int = 4
    start: Start = "dilated"


@dataclass(frozen=True)
class MgradeShape:
    """The sizes and parts of an mGRADE network; grid: step of the weights of BMRU cells, None for no grid."""

    inputs: int
    outputs: int
    width: int = 32
    layers: int = 1
    convolving: ConvolutionSettings = ConvolutionSettings()
    cell: Cell = "mingru"
    deep: bool = True  # MLP and LayerNorm in each layer, GELU in front of the decoder
    grid: float | None = None


def dilation_of(convolving: ConvolutionSettings, layer: int) -> int:
    """Return the distance between taps in layer 0, 1, ... of an mGRADE with constant or exponential delays, time
    steps."""
    doublings = layer if convolving.delays == "exponential" else 0
    span = convolving.dilation * max(convolving.taps - 1, 1)
    while doublings and convolving.reach and span * 2**doublings > convolving.reach:
        doublings -= 1
    return convolving.dilation * 2**doublings


def _convolution(convolving: ConvolutionSettings, width: int, layer: int) -> Convolution:
    match convolving.delays:
        case "none":
            return None
        case "learned":
            return LearnedDelays(width, convolving.taps, convolving.reach, convolving.start)
        case "gamma":
            return GammaDelays(width, convolving.taps, convolving.order, convolving.reach)
        case "constant" | "exponential":
            return FixedDelays(width, convolving.taps, dilation_of(convolving, layer))


class MgradeLayer(nn.Module):
    """A layer of mGRADE: convolution, recurrence, MLP, LayerNorm; maps u (n, time, H) to output and cell states."""

    def __init__(self, shape: MgradeShape, place: int) -> None:
        super().__init__()
        width = shape.width
        self.convolution = _convolution(shape.convolving, width, place)
        self.cell: SoftwareMinGru | SignedCell | None = None
        if shape.cell == "mingru":
            self.cell = SoftwareMinGru(width, width)
        elif shape.cell == "bmru":
            self.cell = SignedCell(width, Architecture(cells=width, unit="signed", beta="input", grid=shape.grid))
        self.mlp = self.norm = None
        if shape.deep:
            self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            self.norm = nn.LayerNorm(width)

    def recur(self, x: Tensor) -> Tensor:
        """Compute the states of the layer's cell, (n, time, H), from x (n, time, H); without a cell, return x."""
        if self.cell is None:
            return x
        return self.cell(x).h if isinstance(self.cell, SignedCell) else self.cell(x)

    def forward(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output of the mGRADE layer and the states of its cell, (n, time, H) each."""
        x = u if self.convolution is None else self.convolution(u)
        h = self.recur(x)
        y = x + h if self.cell is not None else h
        if self.mlp is not None and self.norm is not None:
            y = self.norm(y + self.mlp(y))
        return y, h


class Mgrade(nn.Module):
    """The mGRADE network: maps x (n, time, H_in) to outputs (n, time, H_out)."""

    def __init__(self, shape: MgradeShape) -> None:
        super().__init__()
        if min(shape.inputs, shape.outputs, shape.width, shape.layers) < 1:
            raise InputError(f"inputs, outputs, width and layers of an mGRADE must be at least 1: {shape}")
        self.shape = shape
        self.encoder = nn.Linear(shape.inputs, shape.width)
        self.layers = nn.ModuleList(MgradeLayer(shape, place) for place in range(shape.layers))
        self.decoder = nn.Linear(shape.width, shape.outputs)

    @property
    def convolutions(self) -> list[Convolution]:
        """Return the convolution of each mGRADE layer, None for a layer without a convolution."""
        return [layer.convolution for layer in self.layers if isinstance(layer, MgradeLayer)]

    @property
    def cells(self) -> list[SignedCell]:
        """Return the bistable cells (BMRU) of all mGRADE layers, an empty list for other cells."""
        return [
            layer.cell for layer in self.layers if isinstance(layer, MgradeLayer) and isinstance(layer.cell, SignedCell)
        ]

    def states(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output of mGRADE's last layer and the states of its cell, (n, time, H) each."""
        y = h = self.encoder(x)
        for layer in self.layers:
            y, h = layer(y)
        return y, h

    def forward(self, x: Tensor) -> Tensor:
        """Compute mGRADE's outputs, (n, time, H_out), from x (n, time, H_in)."""
        y, _ = self.states(x)
        return self.decoder(nn.functional.gelu(y) if self.shape.deep else y)

    def set_progress(self, sigma: float | None, epsilon: float) -> None:
        """Set what mGRADE's training anneals: the width of learned taps and the epsilon of bistable cells.

        sigma: width, time steps, None for taps at whole delays; epsilon: share of the old state that an update keeps.
        """
        for one in self.convolutions:
            if isinstance(one, LearnedDelays):
                one.rounded = sigma is None
                one.sigma = one.sigma if sigma is None else sigma
        for cell in self.cells:
            cell.epsilon = epsilon

    @torch.no_grad()
    def clip_(self) -> None:
        """Pull mGRADE's delays and grid weights back into their range; call after each optimiser step."""
        for module in self.modules():
            if module is not self and hasattr(module, "clip_"):
                module.clip_()  # type: ignore[operator]


WHOLE_FROM = 0.75  # of the training
DECAY = 1e-2


@dataclass(frozen=True)
class Fit:
    """Settings of mGRADE's training; sigma: first width of learned taps, steps of time, None for half their reach."""

    iterations: int = 600
    learning_rate: float = 5e-3
    seed: int = 0
    sigma: float | None = None


def train_mgrade(
    shape: MgradeShape,
    draw: Callable[[np.random.Generator], StepTargets],
    fit: Fit,
    path: Path | None = None,
    progress: LoopProgress | None = None,
) -> Mgrade:
    """Train an mGRADE and return it in `eval` mode; `fit.seed` makes the result repeatable.

    draw: returns a new batch for each iteration. The loss is the cross entropy if targets are classes, else the mean
    absolute error. path, progress: see `TrainingLoop.run`. Raises InputError if iterations are below 1 or the learning
    rate is not positive.
    """
    if fit.iterations < 1 or not fit.learning_rate > 0:
        raise InputError(f"iterations must be at least 1 and the learning rate positive: {fit}")
    problem = MgradeProblem(shape, draw, fit)
    TrainingLoop(problem).run(path, progress)
    return problem.model.eval()


class MgradeProblem(Problem[Mgrade]):
    """The training problem of an mGRADE: learned taps narrow; weights decay, biases and tap positions do not."""

    def __init__(self, shape: MgradeShape, draw: Callable[[np.random.Generator], StepTargets], fit: Fit) -> None:
        self.draw, self.fit, self.seed, self.epsilon = draw, fit, fit.seed, None
        self.rng = np.random.default_rng(fit.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(fit.seed)
            self.model = Mgrade(shape).train()
        self.descent = Descent(fit.iterations, fit.learning_rate, gradient_norm=1.0)
        self.settings = asdict(shape) | asdict(fit)

    def parameters(self) -> list[dict[str, list[nn.Parameter] | float]]:
        kept, decayed = [], []
        for name, value in self.model.named_parameters():
            (kept if value.ndim < 2 or name.endswith("positions") else decayed).append(value)
        return [{"params": decayed, "weight_decay": DECAY}, {"params": kept, "weight_decay": 0.0}]

    def prepare(self, iteration: int, epsilon: float) -> None:
        reaches = [one.reach for one in self.model.convolutions if isinstance(one, LearnedDelays)]
        fit, sigma = self.fit, None
        if reaches and iteration < WHOLE_FROM * fit.iterations:
            sigma = sigma_at(iteration, fit.iterations, max(reaches) if fit.sigma is None else 2 * fit.sigma)
        self.model.set_progress(sigma, epsilon)

    def loss(self, iteration: int) -> Tensor:
        batch = self.draw(self.rng)
        return loss_of(self.model(torch.from_numpy(batch.x)), batch)

    def settle(self) -> None:
        self.model.clip_()


def loss_of(outputs: Tensor, batch: StepTargets) -> Tensor:
    """Compute mGRADE's loss over the steps in `batch.mask`: cross entropy for classes, else mean absolute error."""
    mask = torch.from_numpy(batch.mask)
    wanted = torch.from_numpy(batch.y)[mask]
    if batch.y.ndim == 2:
        return nn.functional.cross_entropy(outputs[mask], wanted)
    return (outputs[mask] - wanted).abs().mean()


@torch.no_grad()
def accuracy_of(model: Mgrade, steps: StepTargets) -> float:
    """Return mGRADE's share of right classes, over the time steps in `steps.mask`."""
    found = model(torch.from_numpy(steps.x)).argmax(dim=2).numpy()
    return float((found == steps.y)[steps.mask].mean())


@torch.no_grad()
def reconstruct(model: Mgrade, train: Lorenz, test: Lorenz, skip: int, points: int = 4000) -> dict[str, float]:
    """Measure how well an mGRADE, trained on x alone, follows the Lorenz system; y and z are read from its states.

    A linear readout of the states of the last layer is fitted on `train`. Returns `x`, `y` and `z`, the MASE one step
    ahead on `test` (x from the network's own output), and `overlap`, the share of neighbours in the system's space that
    are neighbours among the states, too, over `points` evenly spaced test points. skip: first steps left out of each
    trajectory.
    """
    hidden = [model.states(torch.from_numpy(one.steps.x))[1][:, skip:].double().numpy() for one in (train, test)]
    after = [one.states[:, skip + 1 :].reshape(-1, 3).astype(float) for one in (train, test)]
    now = test.states[:, skip:-1].reshape(-1, 3).astype(float)
    columns = [np.hstack([h.reshape(-1, h.shape[2]), np.ones((h[..., 0].size, 1))]) for h in hidden]
    readout = np.linalg.lstsq(columns[0], after[0], rcond=None)[0]
    linear = columns[1] @ readout
    x = model(torch.from_numpy(test.steps.x))[:, skip:, 0].double().numpy().ravel()
    y, z = (mase(linear[:, k], after[1][:, k], now[:, k]) for k in (1, 2))
    chosen = np.linspace(0, len(now) - 1, min(points, len(now))).astype(int)
    overlap = neighbour_overlap(now[chosen], columns[1][chosen, :-1])
    return {"x": mase(x, after[1][:, 0], now[:, 0]), "y": y, "z": z, "overlap": overlap}


def memory_footprint(model: Mgrade, *, widths: bool = False) -> tuple[int, int]:
    """Count the numbers that a deployed mGRADE keeps: its parameters, and the past signals that its delays buffer.

    widths: count the width of each learned tap as a parameter, as the paper's tables do. A dispersive delay buffers the
    states of its filters.
    """
    parameters, buffer = sum(value.numel() for value in model.parameters()), 0
    for one in model.convolutions:
        if isinstance(one, LearnedDelays):
            parameters += one.positions.numel() * widths
        if isinstance(one, LearnedDelays | FixedDelays):
            buffer += model.shape.width * int(one.used().max())
        elif isinstance(one, GammaDelays):
            buffer += one.positions.numel() * one.order
    return parameters, buffer
