"""Demands of the circuit on trained parameters: a mirror grid, tolerance to mismatch, distance from thresholds.

Also the decisions of a layer with the noise of its devices, and their distance from a threshold in standard deviations.

The equations are those of cosim.variation.sigma. Their weights are those of the layer, with the bias as a weight on the
constant 1; their currents are the signals that the layer reads, minus the value that a current of 0 stands for.

Also chips drawn at random: a network's weights, thresholds and levels as local mismatch changes them; gradients pass.

Every transistor of the compiled circuit that carries a signal's size deviates on its own, ln-normally, see
cosim.variation.sigma. Signals and weights that share a transistor share its deviation (N = units per weight 1.0, k =
|w| N):

    signal   pMOS diode D, copy C, nMOS diode Dn (N units each), one set for all weights that read it:
             line p, read by w < 0: exp(-e_D);   line n, read by w > 0: exp(e_C - e_D - e_Dn)
    weight   w exp(e_W) times the line's factor; e_W of k units, nMOS for w > 0, pMOS for w < 0; 0 stays 0
    bias     a weight on the constant signal 1, whose lines all rows of all layers share
    9T cell  candidate u -> u c,        c = exp(e_M1 - e_Dc)
             upper threshold -> hi t,   t = exp(e_M2 - e_td)
             width -> (hi - lo) v,      v = exp(e_M8 - e_wd + e_M9 - e_M7)
             state level -> exp(e_M5 - e_gd), on its signal's lines; e_gd is one bias diode for all cells

Thresholds and widths have a bias diode each: no two trained ones are equal. Left out: pedestals, 0.05 of a signal, and
everything that does not deviate at random. All standard deviations, those of k units too, are constants to the
gradient. Tensors are (chips, ...); sample i of n runs on chip i // (n / chips).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cosim.technology.scale import I_UNIT, MAX_COUNT, MAX_RISE, units_for
from cosim.training.config import W_MAX
from cosim.variation.sigma import (
    MismatchModel,
    SigmaParts,
    WeightedRows,
    candidate_variance,
    noise_variance,
    threshold_variance,
)


@dataclass(frozen=True)
class Lines:
    """The deviations of the gate lines of some signals on drawn chips.

    p, n: ln of the factor on the current of each signal's gate line p and n, (chips, width); zero: the software value
    that a current of 0 stands for, (width,), such as -1 for the state of a signed unit.
    """

    chips: "Chips"
    p: Tensor
    n: Tensor
    zero: Tensor

    @staticmethod
    def join(parts: "list[Lines]") -> "Lines":
        """Join the gate lines of several groups of signals along the width, all on the same chips of a training."""
        return Lines(
            parts[0].chips,
            torch.cat([part.p for part in parts], dim=1),
            torch.cat([part.n for part in parts], dim=1),
            torch.cat([part.zero for part in parts]),
        )


class Chips:
    """The `count` drawn chips of a training step, on which every transistor deviates.

    Each call of a method draws further transistors of all chips: the same calls in the same order give the same chips
    from generators in the same state. compared: units have a comparator for each threshold, as at epsilon 1 and -1, in
    place of a 9T cell.
    """

    def __init__(self, model: MismatchModel, count: int, rng: torch.Generator, *, compared: bool = False) -> None:
        self.model, self.count, self.rng, self.compared = model, count, rng, compared
        self.one = self.draw_lines(1)
        self.gain_diode = self.draw(model.cell_n, 1)

    def draw(self, sigma: float, *shape: int) -> Tensor:
        """Draw ln-deviations of devices on the training's chips, (count, *shape); sigma: standard deviation."""
        return sigma * torch.randn((self.count, *shape), generator=self.rng)

    def draw_lines(self, width: int) -> Lines:
        """Draw the gate lines of `width` signals on the training's chips, by their diodes and copies."""
        model, root = self.model, self.model.units**0.5
        diode, copy = (self.draw(model.mirror_p / root, width) for _ in range(2))
        negative, positive = -diode, copy - diode - self.draw(model.mirror_n / root, width)
        return Lines(self, negative, positive, torch.zeros(width))

    def draw_state_lines(self, zero: Tensor, steps: Tensor | float = 1.0) -> Lines:
        """Draw the gate lines of states on the training's chips, with the deviation of each state's level.

        zero: (width,), as in `Lines`; steps: from the lowest state to the highest, (width,), where each step has a
        current source of its own and half of them are on.
        """
        width, sources = len(zero), (torch.as_tensor(steps) / 2).clamp(min=1.0)
        level = self.draw(self.model.cell_n, width) / sources.sqrt() - self.gain_diode
        lines = self.draw_lines(width)
        return Lines(self, lines.p + level, lines.n + level, zero)

    def draw_weights(self, w: Tensor, lines: Lines) -> Tensor:
        """Draw the weights w (outputs, inputs) as the mirrors of the training's chips realise them.

        Returns (count, outputs, inputs). lines: the gate lines of the inputs.
        """
        model, positive = self.model, (w > 0).detach()
        counts = (w.detach().abs() * model.units).clamp(min=1.0)
        sigma = torch.where(positive, model.mirror_n, model.mirror_p) / counts.sqrt()
        line = torch.where(positive, lines.n[:, None], lines.p[:, None])
        return w * torch.exp(line + sigma * self.draw(1.0, *w.shape))

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor, lines: Lines, offset: Tensor | None = None) -> Tensor:
        """Compute W x + b + offset on the training's chips for x (n, time, inputs), units: (n, time, outputs).

        n is a multiple of `count`. The currents are x - zero, and the bias is raised by W zero in return.
        """
        bias = bias + weight @ lines.zero
        bias = bias if offset is None else bias + offset
        weights, biases = self.draw_weights(weight, lines), self.draw_weights(bias[:, None], self.one)
        n, steps, inputs = x.shape
        grouped = (x - lines.zero).reshape(self.count, -1, inputs)
        return torch.baddbmm(biases.mT, grouped, weights.mT).reshape(n, steps, -1)

    def compare(self, u: Tensor, lo: Tensor, hi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return candidate (n, time, width) and thresholds (n, 1, width) as the cells of a training's chips have them.

        u, lo, hi: without deviations. The candidate is rectified where the lower threshold is below 0, because a cell
        then never reaches it.
        """
        model, width = self.model, u.shape[2]
        if self.compared:
            diode = self.draw(model.cell_p, width)
            low, high = (
                threshold * torch.exp(diode - self.draw(model.cell_p, width) + self._draw_pair(model.cell_n, width))
                for threshold in (lo, hi)
            )
            return u, self._of_samples(low, len(u)), self._of_samples(high, len(u))
        gain = torch.exp(self._draw_pair(model.cell_p, width))
        upper = hi * torch.exp(self._draw_pair(model.cell_n, width))
        lower = upper - (hi - lo) * torch.exp(
            self._draw_pair(model.cell_n, width) + self._draw_pair(model.cell_p, width)
        )
        gain, upper, lower = (self._of_samples(value, len(u)) for value in (gain, upper, lower))
        u = u * gain
        return torch.where(lower < 0, torch.relu(u), u), lower, upper

    def _draw_pair(self, sigma: float, width: int) -> Tensor:
        """Draw ln of the ratio of two equal devices on the training's chips, (count, width)."""
        return self.draw(sigma, width) - self.draw(sigma, width)

    def _of_samples(self, value: Tensor, n: int) -> Tensor:
        """Return for each of n samples the values (count, width) of its chip in a training, (n, 1, width)."""
        return value.repeat_interleave(n // self.count, 0)[:, None]


RANGE_COST = 0.3  # loss per level that the units of a layer exceed their range by, on average
NEAR_BOUND = 0.875  # of a bound: beyond, a parameter costs
RESET_SIGMAS = 3.0  # standard deviations that a lower threshold keeps above 0, so that a reset turns the cell off


def round_to_grid(w: Tensor, grid: float | None, w_max: float = W_MAX) -> Tensor:
    """Clip weights to [-w_max, w_max] and round them to multiples of `grid`; a training's gradient passes unchanged.

    grid: None only clips; w: any shape; w_max: a multiple of grid.
    """
    clipped = w.detach().clamp(-w_max, w_max)
    return w + ((clipped if grid is None else (clipped / grid).round() * grid) - w.detach())


def perturb(w: Tensor, noise: float, rng: torch.Generator | None) -> Tensor:
    """Multiply each trained weight by exp(noise N(0, 1)), a mirror's relative error, which keeps the sign.

    In weak inversion a deviation of a threshold voltage multiplies the current, see cosim.variation.sigma. Returns w
    unchanged if `rng` is None or noise 0.
    """
    if rng is None or noise == 0:
        return w
    return w * torch.exp(noise * torch.randn(w.shape, generator=rng, dtype=w.dtype))


def margin_penalty(distance: Tensor, margin: float) -> Tensor:
    """Compute the training's margin loss: the mean of max(margin - distance, 0) / margin, in [0, 1].

    distance: |candidate - threshold|, any shape, in the unit of `margin`.
    """
    return torch.relu(margin - distance).mean() / margin


def range_excess(states: Tensor, start: Tensor, range_max: float) -> Tensor:
    """Compute the training's loss for states that exceed the range of their ladders.

    It is the mean over units of max(highest - lowest state - range_max, 0). states: (any, width); start: the states
    before the first step, (width,), which count as well.
    """
    highest, lowest = states.amax(dim=0).clamp(min=start), states.amin(dim=0).clamp(max=start)
    return torch.relu(highest - lowest - range_max).mean()


def largest_threshold(grid: float | None) -> float:
    """Return the largest threshold, and level, with which a trained unit fits a circuit at default options, in software
    units.

    grid: step of the weights. The circuit's limit is lowered by half a step, because the compiler moves a threshold to
    the middle of a gap between candidates, which is at most one step wide.
    """
    return MAX_RISE / I_UNIT - (grid or 0.0) / 2


def largest_weight(grid: float | None) -> float:
    """Return the largest weight of a trained network, which its circuit has at default options; grid: its step."""
    return min(W_MAX, MAX_COUNT / units_for(grid))


def bound_excess(value: Tensor, bound: float) -> Tensor:
    """Compute the training's loss for values beyond NEAR_BOUND times a bound, to pull them back before they are cut.

    value: any shape.
    """
    return torch.relu(value - NEAR_BOUND * bound).mean()


def reset_excess(lower: Tensor, upper: Tensor, mismatch: MismatchModel | None) -> Tensor:
    """Compute the training's loss for cells that do not reset on chips that vary.

    It is the mean of max(K - lower / sigma, 0) / K, in [0, 1] for positive thresholds, with K = RESET_SIGMAS and sigma
    the standard deviation of the lower threshold, see `threshold_variance`; 0 for mismatch None. lower, upper:
    thresholds (width,) as a cell of the circuit has them.
    """
    if mismatch is None:
        return torch.zeros(())
    variance = threshold_variance(upper, upper - lower, SigmaParts(mismatch.units, None, mismatch=mismatch))
    return margin_penalty(lower / variance.sqrt(), RESET_SIGMAS)


class GridLinear(nn.Module):
    """The linear layer W x + b with W and b on the mirror grid.

    `weight` (outputs, inputs) and `bias` (outputs,) hold the free values before rounding. Initial weights are uniform
    with standard deviation `gain` / sqrt(inputs), initial biases uniform in `bias_range`.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        grid: float | None,
        gain: float = 1.0,
        bias_range: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        super().__init__()
        bound = gain * math.sqrt(3.0 / inputs)
        self.grid, self.w_max = grid, largest_weight(grid)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(*bias_range))

    def rounded(self) -> tuple[Tensor, Tensor]:
        """Return trained weight and bias as the mirrors realise them."""
        return round_to_grid(self.weight, self.grid, self.w_max), round_to_grid(self.bias, self.grid, self.w_max)

    def forward(
        self,
        x: Tensor,
        noise: float = 0.0,
        rng: torch.Generator | None = None,
        lines: Lines | None = None,
        offset: Tensor | None = None,
    ) -> Tensor:
        """Compute W x + b in training, rounded to the grid, (n, time, outputs), for x (n, time, inputs).

        noise: relative standard deviation of each parameter; lines: gate lines of x on chips that vary, None for
        nominal devices; offset: added to the bias current, only with `lines`.
        """
        weight, bias = (perturb(value, noise, rng) for value in self.rounded())
        if lines is None:
            return nn.functional.linear(x, weight, bias)
        return lines.chips.linear(x, weight, bias, lines, offset)

    @torch.no_grad()
    def clip_(self) -> None:
        """Clip a training's free values to the range of the mirrors.

        Without it they could grow far beyond the range, where rounding hides them.
        """
        self.weight.clamp_(-self.w_max, self.w_max)
        self.bias.clamp_(-self.w_max, self.w_max)


@dataclass(frozen=True)
class LayerDevices:
    """The devices of a layer in training, for the noise and the spread of its decisions.

    spread: distances from thresholds are counted in its standard deviations, None for no such count; drawn: its noise
    is added to each decision, None for none; zero: the software value of each input at a current of 0, (inputs,);
    states: 1 for an input that is a state, 0 for another signal, (inputs,).
    """

    spread: SigmaParts | None
    drawn: SigmaParts | None
    zero: Tensor
    states: Tensor

    def row(self, x: Tensor, linear: GridLinear, offset: Tensor | float = 0.0) -> WeightedRows:
        """Return the weighted currents that the layer in training adds up for x (n, time, inputs).

        offset: added to the bias.
        """
        weight, bias = linear.rounded()
        bias = bias + weight @ self.zero + offset
        current = torch.nn.functional.pad(x - self.zero, (0, 1), value=1.0)
        states = torch.nn.functional.pad(self.states, (0, 1))
        return WeightedRows(torch.cat([weight, bias[:, None]], dim=1), current, current * states)

    def with_noise(self, row: WeightedRows, u: Tensor, rng: torch.Generator | None) -> Tensor:
        """Add the noise of devices in training to the candidates u (n, time, width), a new draw for each decision.

        Returns u unchanged if `rng` is None or no noise is set.
        """
        if self.drawn is None or self.drawn.noise is None or rng is None:
            return u
        variance = noise_variance(row, torch.relu(u.detach()), self.drawn.units, self.drawn.noise)
        return u + variance.detach().sqrt() * torch.randn(u.shape, generator=rng, dtype=u.dtype)

    def sigmas(self, row: WeightedRows, u: Tensor, lo: Tensor, hi: Tensor) -> tuple[Tensor, Tensor]:
        """Return the standard deviations of u - hi and of u - lo in training, (n, time, width), units."""
        assert self.spread is not None
        candidate = candidate_variance(row, torch.relu(u), self.spread)
        sets, resets = (threshold_variance(hi, width, self.spread) for width in (0 * hi, hi - lo))
        return (candidate + sets).sqrt(), (candidate + resets).sqrt()
