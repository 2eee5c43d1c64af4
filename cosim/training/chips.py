"""Chips drawn at random: a network's weights, thresholds and levels as local mismatch makes them; gradients pass.

Every transistor of the compiled circuit that carries a signal's size deviates on its own, ln-normally, see
cosim.variation.mismatch. What shares a transistor shares its deviation (N = units per weight 1.0, k = |w| N):

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

from dataclasses import dataclass

import torch
from torch import Tensor

from cosim.variation.mismatch import MismatchModel


@dataclass(frozen=True)
class Lines:
    """ln of the factors on the gate lines p and n of some signals, (chips, width) each; zero (width,): the software
    value that a current of 0 stands for, -1 for the state of a signed unit."""

    chips: "Chips"
    p: Tensor
    n: Tensor
    zero: Tensor

    @staticmethod
    def join(parts: "list[Lines]") -> "Lines":
        """Join the gate lines of several groups of signals on the chips of a training, side by side."""
        return Lines(
            parts[0].chips,
            torch.cat([part.p for part in parts], dim=1),
            torch.cat([part.n for part in parts], dim=1),
            torch.cat([part.zero for part in parts]),
        )


class Chips:
    """`count` chips; each call draws further transistors of all of them, so equal calls in equal order give equal
    chips from equal generators."""

    def __init__(self, model: MismatchModel, count: int, rng: torch.Generator) -> None:
        self.model, self.count, self.rng = model, count, rng
        self.one = self.draw_lines(1)
        self.gain_diode = self.draw(model.cell_n, 1)

    def draw(self, sigma: float, *shape: int) -> Tensor:
        """Draw ln-deviations of devices on the training's chips, (count, *shape)."""
        return sigma * torch.randn((self.count, *shape), generator=self.rng)

    def draw_lines(self, width: int) -> Lines:
        """Draw the diodes and copies of `width` signals on the training's chips."""
        model, root = self.model, self.model.units**0.5
        diode, copy = (self.draw(model.mirror_p / root, width) for _ in range(2))
        negative, positive = -diode, copy - diode - self.draw(model.mirror_n / root, width)
        return Lines(self, negative, positive, torch.zeros(width))

    def draw_state_lines(self, zero: Tensor) -> Lines:
        """Draw the lines of states, the level of each included; zero (width,): see `Lines`."""
        width = len(zero)
        level = self.draw(self.model.cell_n, width) - self.gain_diode
        lines = self.draw_lines(width)
        return Lines(self, lines.p + level, lines.n + level, zero)

    def draw_weights(self, w: Tensor, lines: Lines) -> Tensor:
        """Draw w (outputs, inputs) as mirrors on these lines give it, (count, outputs, inputs)."""
        model, positive = self.model, (w > 0).detach()
        counts = (w.detach().abs() * model.units).clamp(min=1.0)
        sigma = torch.where(positive, model.mirror_n, model.mirror_p) / counts.sqrt()
        line = torch.where(positive, lines.n[:, None], lines.p[:, None])
        return w * torch.exp(line + sigma * self.draw(1.0, *w.shape))

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor, lines: Lines, offset: Tensor | None = None) -> Tensor:
        """Compute W x + b + offset as the mirrors give it, (n, time, outputs), for x (n, time, inputs) in units.

        n is a multiple of `count`. Currents are x - zero, and the bias carries what that takes away.
        """
        bias = bias + weight @ lines.zero
        bias = bias if offset is None else bias + offset
        weights, biases = self.draw_weights(weight, lines), self.draw_weights(bias[:, None], self.one)
        n, steps, inputs = x.shape
        grouped = (x - lines.zero).reshape(self.count, -1, inputs)
        return torch.baddbmm(biases.mT, grouped, weights.mT).reshape(n, steps, -1)

    def compare(self, u: Tensor, lo: Tensor, hi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return candidate (n, time, width) and thresholds (n, 1, width) as the cells find them, from u, lo and hi.

        The candidate is rectified where it matters: a lower threshold that mismatch drives below 0 is never reached.
        """
        model, width = self.model, u.shape[2]
        gain = torch.exp(self.draw(model.cell_p, width) - self.draw(model.cell_p, width))
        upper = hi * torch.exp(self.draw(model.cell_n, width) - self.draw(model.cell_n, width))
        pair_n = self.draw(model.cell_n, width) - self.draw(model.cell_n, width)
        pair_p = self.draw(model.cell_p, width) - self.draw(model.cell_p, width)
        lower = upper - (hi - lo) * torch.exp(pair_n + pair_p)
        gain, upper, lower = (
            value.repeat_interleave(len(u) // self.count, 0)[:, None] for value in (gain, upper, lower)
        )
        u = u * gain
        return torch.where(lower < 0, torch.relu(u), u), lower, upper
