"""Delayed memory unit: a gate that sends each state to one or more moments of the future, down a delay line.

    h~_t = cell(x_t, h_{t-1})                          RNN: tanh(Wh x_t + Uh h_{t-1} + bh)                (1)
    e_t  = Wd x_t + Ud hd_{t-1} + bd ;  d_t = softmax(e_t) ;  hd_t = tanh(e_t)        n delays            (2)
    h_t  = h~_t + sum_{k=1..n} d_{t - k tau}[k] h~_{t - k tau}                                            (3)

P. Sun et al., "Delayed Memory Unit: Modelling Temporal Dependency Through Delay Gate". One gate for all N units. Rows
of weights read h_{t-1} with what has arrived; the memory of a gated cell is its own. The memory form sends h~_t d_t[k]
into a slot k tau steps away and shifts all slots by one a step; delay 1 arrives at the next step, as (3) says. Gates
may be cut at inference, without a new norm: those below a threshold (8), or all but the largest.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from cosim.tasks.memory import generate_delayed_product
from cosim.training.loop import Descent, LoopProgress, Problem, TrainingLoop

Inner = Literal["rnn", "gru", "lstm", "indrnn"]
Cut = Callable[[Tensor], Tensor]  # from a DMU's gates (..., n) to those that stay, the others 0
_ROWS: dict[Inner, int] = {"rnn": 1, "gru": 3, "lstm": 4, "indrnn": 1}  # rows of weights, in units of N


def prune_gates(gates: Tensor, threshold: float = 0.0, kept: int | None = None) -> Tensor:
    """Return a DMU's gates (..., n) with those set to 0 that are below `threshold` or not among the `kept` largest;
    kept: None for no such limit."""
    found = torch.where(gates >= threshold, gates, 0.0)
    if kept is None or kept >= gates.shape[-1]:
        return found
    places = gates.topk(kept, dim=-1).indices
    return torch.zeros_like(found).scatter(-1, places, found.gather(-1, places))


def parameters_of(inputs: int, width: int, delays: int, cell: Inner = "rnn") -> int:
    """Return the number of parameters of a delayed memory unit (DMU, Table I).

    There are N^2 + M N + N for each row of the cell (IndRNN: M N + 2 N), and M n + n^2 + n for the gate.
    """
    recurrent = width if cell == "indrnn" else width * width
    return _ROWS[cell] * (recurrent + inputs * width + width) + delays * (inputs + delays + 1)


class InnerCell(nn.Module):
    """The cell in front of the line; `u` (rows N, N), of an IndRNN (N,). One bias for each row."""

    def __init__(self, inputs: int, width: int, kind: Inner) -> None:
        super().__init__()
        self.kind: Inner = kind
        rows = _ROWS[kind] * width
        self.w = nn.Parameter(_kaiming(rows, inputs))
        self.u = nn.Parameter(_kaiming(1, width)[0] if kind == "indrnn" else _kaiming(rows, width))
        self.b = nn.Parameter(torch.zeros(rows))

    def forward(self, drive: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the DMU's h~ and its memory c, both (batch, N), from W x + b (batch, rows N), h and c of the step
        before.

        c of a GRU is h~ itself: what has arrived is seen by rows, and does not go round once more.
        """
        match self.kind:
            case "rnn":
                return torch.tanh(drive + h @ self.u.T), c
            case "indrnn":
                return torch.tanh(drive + self.u * h), c
            case "gru":
                reset, update, candidate = drive.chunk(3, dim=-1)
                from_reset, from_update, from_candidate = (h @ self.u.T).chunk(3, dim=-1)
                z = torch.sigmoid(update + from_update)
                found = torch.tanh(candidate + torch.sigmoid(reset + from_reset) * from_candidate)
                c = z * c + (1 - z) * found
                return c, c
            case "lstm":
                i, f, g, o = (drive + h @ self.u.T).chunk(4, dim=-1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                return torch.sigmoid(o) * torch.tanh(c), c


class DelayGate(nn.Module):
    """The delay gates of a DMU, eq. (2): gates (batch, time, n) of x (batch, time, M)."""

    def __init__(self, inputs: int, delays: int) -> None:
        super().__init__()
        self.w, self.u = nn.Parameter(_kaiming(delays, inputs)), nn.Parameter(_kaiming(delays, delays))
        self.b = nn.Parameter(torch.zeros(delays))

    def forward(self, x: Tensor) -> Tensor:
        drive = nn.functional.linear(x, self.w, self.b)
        before, found = torch.zeros_like(drive[:, 0]), list[Tensor]()
        for t in range(x.shape[1]):
            found.append(drive[:, t] + before @ self.u.T)
            before = torch.tanh(found[-1])
        return torch.stack(found, dim=1).softmax(dim=-1)


class DelayedMemoryUnit(nn.Module):
    """The delayed memory unit (DMU): maps x (batch, time, M) to h (batch, time, N).

    delays: number n of gated delays, `dilation` = tau steps apart; 0 for the inner cell alone.
    """

    def __init__(self, inputs: int, width: int, delays: int, cell: Inner = "rnn", dilation: int = 1) -> None:
        super().__init__()
        if min(inputs, width, dilation) < 1 or delays < 0:
            raise ValueError(
                f"inputs, width and dilation must be 1 at least, delays 0, not {inputs}, {width}, {dilation}, {delays}"
            )
        self.width, self.delays, self.dilation = width, delays, dilation
        self.cell = InnerCell(inputs, width, cell)
        self.gate = DelayGate(inputs, delays) if delays else None

    def forward(self, x: Tensor, cut: Cut = prune_gates) -> Tensor:
        drive = nn.functional.linear(x, self.cell.w, self.cell.b)
        gates = None if self.gate is None else self._spread(cut(self.gate(x)))
        slots = x.new_zeros(len(x), self.delays * self.dilation, self.width)  # slot j arrives j + 1 steps from now
        h = c = x.new_zeros(len(x), self.width)
        found = list[Tensor]()
        for t in range(x.shape[1]):
            inner, c = self.cell(drive[:, t], h, c)
            if gates is None:
                h = inner
            else:
                sent = gates[:, t, :, None] * inner[:, None]
                h = inner + slots[:, 0]
                slots = sent + nn.functional.pad(slots[:, 1:], (0, 0, 0, 1))
            found.append(h)
        return torch.stack(found, dim=1)

    def _spread(self, gates: Tensor) -> Tensor:
        """Return for each slot the gate that writes it, (batch, time, n tau), 0 for none: delay k writes slot
        k tau - 1."""
        spread = gates.new_zeros(*gates.shape, self.dilation)
        spread[..., -1] = gates
        return spread.flatten(2)


def _kaiming(rows: int, inputs: int) -> Tensor:
    """Draw a DMU's weights, uniform with standard deviation 1 / sqrt(3 inputs): Kaiming's with a slope of sqrt 5."""
    return nn.init.kaiming_uniform_(torch.empty(rows, inputs), a=5**0.5)


RATE, BATCH, TESTED = 3e-3, 32, 1000
_TEST_SEED = 2**32


class ProductUnit(nn.Module):
    """A DMU and its linear readout of one score: whether two inputs of the delayed product meet."""

    def __init__(self, width: int, delays: int, cell: Inner) -> None:
        super().__init__()
        self.unit, self.readout = DelayedMemoryUnit(1, width, delays, cell), nn.Linear(width, 1)

    def forward(self, x: Tensor, cut: Cut = prune_gates) -> Tensor:
        """Compute the score (batch, time) of x (batch, time, 1); cut: which delay gates stay."""
        return self.readout(self.unit(x, cut))[..., 0]

    def count_parameters(self) -> int:
        """Return the number of parameters of the DMU, without its readout."""
        return sum(p.numel() for p in self.unit.parameters())

    @torch.no_grad()
    def accuracy(self, cut: Cut = prune_gates) -> float:
        """Return the share of right answers on fixed test sequences of the delayed product; cut: which delay gates
        stay."""
        x, y, counts = _batch(np.random.default_rng(_TEST_SEED), TESTED)
        said = self(x, cut) > 0
        return float((said == (y == 1))[counts].double().mean())


class ProductProblem(Problem[ProductUnit]):
    """The training of a delayed memory unit on the delayed product; a seed determines the result."""

    def __init__(self, cell: Inner, delays: int, seed: int, iterations: int = 800, width: int = 24) -> None:
        self.seed, self.rng = seed, np.random.default_rng(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = ProductUnit(width, delays, cell)
        self.descent = Descent(iterations, RATE, constant=True)
        self.settings = {"cell": cell, "delays": delays, "seed": seed, "iterations": iterations, "width": width}

    def loss(self, iteration: int) -> Tensor:
        x, y, counts = _batch(self.rng, BATCH)
        score = self.model(x)
        return nn.functional.binary_cross_entropy_with_logits(score[counts], y[counts].float())


def train_delayed_product(
    problem: ProductProblem, path: Path | None = None, progress: LoopProgress | None = None
) -> ProductUnit:
    """Train a DMU by Adam with the cross entropy of all steps that have an answer, and return it.

    path, progress: see `TrainingLoop.run`.
    """
    TrainingLoop(problem).run(path, progress)
    return problem.model


def _batch(rng: np.random.Generator, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Generate a batch of the DMU's delayed products: x, y, and which of y count."""
    found = generate_delayed_product(count, seed=rng)
    return torch.from_numpy(found.x), torch.from_numpy(found.y), torch.from_numpy(found.mask)
