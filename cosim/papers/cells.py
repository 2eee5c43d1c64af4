"""Cells of the seed paper (arXiv 2605.11855): what they share, a first-order recurrence that is linear in its state.

    h_t = a_t h_{t-1} + b_t ,  a_t and b_t from the input alone,  h_{-1} = 0

A cell turns x (n, time, features) into a, b and a readout of h. All run over time with one scan; the LRU's h is
complex. Linear maps have the framework's default initialisation, which the paper does not give.

BMRU, CMRU and alphaCMRU of the seed paper (arXiv 2605.11855, eq. 2 to 12): states that hold until a candidate
crosses a threshold.

    h^ = Wx x + bx ;  beta = |Wb x + bb| ;  z = H(|h^| - beta)                                          (2)-(4)
    h_t = z (S(h^) alpha + epsilon h_{t-1}) + (1 - z) h_{t-1}                                               (7)

epsilon 0 is the BMRU (5), 1 a selective integrator (9), -1 a reflection (12). alpha in R^state is learned from 1 on; of
an alphaCMRU alpha_t = Wa x + ba (10), (11). With levels a CMRU's h / alpha stays within its ends, and an alphaCMRU
stores S(h^) alpha on a grid, as circuits do. A fixed threshold is |bb| alone: the 9T cell's bias current. The paper
begins at h_{-1} = 0, which no 9T cell holds: one that was reset begins low, at -alpha. H and S have the gradient of
cosim.training.scan.

Sequences in which few steps differ: what acts on a step alone is computed once for each of those.

Two kinds of step make up every string of bits, 256 an image read pixel by pixel, and an item or a quiet value to copy
is followed by zeros. Encoder, perceptron and normalisation act on each step alone, so they run on the different steps;
the maps into a cell are linear, so a position is added behind them, W (x + p) = W x + W p:

    x[i, t] = rows[index[i, t]] + places[t]        W x + b = (W rows + b)[index] + W places

Results are those of the whole sequence but for rounding. For bits, MNIST and copied items this makes the paper's width
a matter of minutes to hours on one core (docs/papers/tables.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from cosim.training.scan import clamped_count, heaviside, linear_scan, nearest_level, sign

WORTH = 4  # times as many steps as different ones, at least: below, gathering costs what it saves


@dataclass(frozen=True)
class RepeatedSequence:
    """A sequence of inputs in which few different steps occur, stored so that each different step is computed once.

    It represents x (n, time, features) = rows[index] + places. rows: the different steps, (k, features); index: the row
    of each step, (n, time); places: added at each step to every sample, (time, features), or None.
    """

    rows: Tensor
    index: Tensor
    places: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the shape of the represented sequence, (n, time, features)."""
        return (*self.index.shape, self.rows.shape[1])  # type: ignore[return-value]

    def project(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Compute W x + b at each step of the sequence, (n, time, outputs)."""
        found = embedding(self.index, linear(self.rows, weight, bias))
        return found if self.places is None else found + linear(self.places, weight)


Steps = Tensor | RepeatedSequence
"""A sequence, (n, time, features)."""


def repeated(x: Tensor) -> RepeatedSequence | None:
    """Return a sequence as a `RepeatedSequence` of its different steps; None if over a quarter of the steps differ.

    x: (n, time, features), or tokens (n, time).
    """
    flat = x.reshape(-1, *x.shape[2:])
    keys = flat if flat.ndim == 1 else flat[:, 0] if flat.shape[1] == 1 else flat.double() @ _mixture(flat)
    found, index = torch.unique(keys, return_inverse=True)
    if WORTH * len(found) > len(flat):
        return None
    where = torch.empty_like(found, dtype=torch.long).scatter_(0, index, torch.arange(len(flat), device=x.device))
    rows = flat[where]
    return RepeatedSequence(rows, index.view(x.shape[:2])) if torch.equal(rows[index], flat) else None


def _mixture(steps: Tensor) -> Tensor:
    """Draw weights (features,) whose weighted sum tells different steps apart; `repeated` checks for equal sums."""
    drawn = torch.randn(steps.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return drawn.to(steps.device)


def each(act: Callable[[Tensor], Tensor], x: Steps) -> Steps:
    """Apply `act`, a function of single steps, to each step of a sequence; to the rows alone of a `RepeatedSequence`.

    x: without places if it is a `RepeatedSequence`, because `act` need not be linear.
    """
    return act(x) if isinstance(x, Tensor) else RepeatedSequence(act(x.rows), x.index)


def project(layer: nn.Linear, x: Steps) -> Tensor:
    """Apply a backbone's linear layer to each step of a sequence; returns (n, time, outputs)."""
    return layer(x) if isinstance(x, Tensor) else x.project(layer.weight, layer.bias)


def times(weight: Tensor, x: Steps) -> Tensor:
    """Return W x at each step of a sequence, (n, time, outputs); weight: W, (outputs, features)."""
    return x @ weight.T if isinstance(x, Tensor) else x.project(weight)


def joined(layer: nn.Linear, x: Steps, places: Tensor) -> Steps:
    """Apply a linear layer to each step joined with its place, layer([x ; places]); places: (time, features).

    x: without places if it is a `RepeatedSequence`; the result of a `RepeatedSequence` is one again, with places.
    """
    if isinstance(x, Tensor):
        return layer(torch.cat([x, places.expand(len(x), -1, -1)], dim=2))
    of_step, of_place = layer.weight.split([x.shape[2], places.shape[1]], dim=1)
    return RepeatedSequence(linear(x.rows, of_step, layer.bias), x.index, linear(places, of_place))


def in_full(x: Steps) -> Steps:
    """Return a sequence in single precision if it is in half precision, else unchanged."""
    if isinstance(x, RepeatedSequence):
        return RepeatedSequence(_in_full(x.rows), x.index, x.places if x.places is None else _in_full(x.places))
    return _in_full(x)


def _in_full(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def whole(x: Steps) -> Tensor:
    """Return a backbone cell's input sequence as a tensor (n, time, features).

    x: without places if it is a `RepeatedSequence`.
    """
    return x if isinstance(x, Tensor) else embedding(x.index, x.rows)


def take_step(x: Steps, step: Tensor) -> Tensor:
    """Return one step of each sample, (n, 1, features); step: its index, (n,).

    x: without places if it is a `RepeatedSequence`.
    """
    if isinstance(x, RepeatedSequence):
        return x.rows[take_step(x.index, step)]
    return x[torch.arange(len(x), device=x.device), step][:, None]


LEAST_DECAY = 1e-6  # -ln |lambda| at least: single precision then keeps |lambda| below 1, a million steps are kept


class SoftwareCell(nn.Module, ABC):
    """A recurrent cell of the backbone that runs in software: x (n, time, inputs) to (n, time, outputs).

    state: how many numbers the cell keeps from step to step.
    """

    def __init__(self, inputs: int, state: int, outputs: int | None = None) -> None:
        super().__init__()
        self.inputs, self.state = inputs, state
        self.outputs = state if outputs is None else outputs

    @abstractmethod
    def recurrence(self, x: Steps) -> tuple[Tensor, Tensor]:
        """Compute a and b of the recurrence h_t = a_t h_{t-1} + b_t from the input x, (n, time, state) each."""

    def read(self, h: Tensor, x: Steps) -> Tensor:
        """Compute the cell's output, (n, time, outputs), from states h and input x; by default the output is h."""
        return h

    def forward(self, x: Steps) -> Tensor:
        a, b = self.recurrence(x)
        return self.read(linear_scan(a, b, b.new_zeros(self.state)), x)


class SoftwareMinGru(SoftwareCell):
    """Minimal gated recurrent unit: h_t = (1 - z_t) h_{t-1} + z_t h~_t, with z = sigmoid(Wz x + bz), h~ = Wh x + bh.

    Eq. (32) to (34).
    """

    def __init__(self, inputs: int, state: int) -> None:
        super().__init__(inputs, state)
        self.gate = nn.Linear(inputs, state)
        self.candidate = nn.Linear(inputs, state)

    def recurrence(self, x: Steps) -> tuple[Tensor, Tensor]:
        gate = project(self.gate, x)
        return torch.sigmoid(-gate), torch.sigmoid(gate) * project(self.candidate, x)


class Lru(SoftwareCell):
    """Linear recurrent unit: h_t = L h_{t-1} + gamma B x_t over complex numbers, y_t = Re(C h_t) + D x_t.

    L = exp(-exp(nu) + i exp(theta)), gamma = sqrt(1 - |L|^2), eq. (29) to (31); exp(nu) + 1e-6 stands for exp(nu), so
    that |L| is below 1 in single precision, too. |L| begins in [0.9, 0.999], uniform in its square, its phase in
    [0, 2 pi]; B ~ N(0, 1 / (2 inputs)) and C ~ N(0, 1 / state) in each of their two parts. Complex matrices are kept as
    their real and imaginary part, (2, rows, columns).
    """

    SMALLEST, LARGEST = 0.9, 0.999

    def __init__(self, inputs: int, state: int) -> None:
        super().__init__(inputs, state)
        squares = torch.rand(state) * (self.LARGEST**2 - self.SMALLEST**2) + self.SMALLEST**2
        self.nu = nn.Parameter(torch.log(-0.5 * torch.log(squares)))
        self.theta = nn.Parameter(torch.log(2 * torch.pi * (1.0 - torch.rand(state))))  # 1 - rand is never 0
        self.b = nn.Parameter(torch.randn(2, state, inputs) * (2 * inputs) ** -0.5)
        self.c = nn.Parameter(torch.randn(2, self.outputs, state) * state**-0.5)
        self.d = nn.Linear(inputs, self.outputs, bias=False)

    def decay(self) -> Tensor:
        """Return the decay -ln |L| of each state of the LRU, (state,)."""
        return self.nu.exp() + LEAST_DECAY

    def eigenvalues(self) -> Tensor:
        """Return the eigenvalues L of the LRU, (state,), complex."""
        return torch.polar((-self.decay()).exp(), self.theta.exp())

    def recurrence(self, x: Steps) -> tuple[Tensor, Tensor]:
        gamma = torch.sqrt(-torch.expm1(-2.0 * self.decay()))
        drive = torch.complex(*(times(gamma[:, None] * part, x) for part in self.b))
        return self.eigenvalues().expand(drive.shape), drive

    def read(self, h: Tensor, x: Steps) -> Tensor:
        return h.real @ self.c[0].T - h.imag @ self.c[1].T + project(self.d, x)


class ParallelCells(nn.Module):
    """A group of cells that read the same input, with their outputs side by side on the last axis."""

    def __init__(self, cells: Sequence[SoftwareCell]) -> None:
        super().__init__()
        self.cells, self.outputs = nn.ModuleList(cells), sum(cell.outputs for cell in cells)

    def forward(self, x: Steps) -> Tensor:
        return torch.cat([cell(x) for cell in self.cells], dim=2)


Threshold = Literal["input", "fixed"]
Start = Literal["zero", "low"]


@dataclass(frozen=True)
class Drive:
    """The values that a hysteresis cell computes from its input and that decide its next state.

    candidate h^, threshold beta >= 0 and level alpha: (n, time, state) each.
    """

    candidate: Tensor
    threshold: Tensor
    level: Tensor


class HysteresisCell(SoftwareCell):
    """A cell with thresholds (BMRU, CMRU, alphaCMRU): `drive` has all the weights, `decide` all the memory.

    memory: None, or a function from a Drive to states (n, time, state) that replaces `decide`, for example a circuit or
    a recorder.
    """

    def __init__(
        self,
        inputs: int,
        state: int,
        *,
        threshold: Threshold = "input",
        scaled: bool = False,
        levels: int | None = None,
    ) -> None:
        super().__init__(inputs, state)
        self.epsilon, self.levels = 1.0, levels
        self.settled = False  # whether epsilon stays as it is, as of a BMRU
        self.start: Start = "zero"
        self.memory: Callable[[Drive], Tensor] | None = None
        self.candidate = nn.Linear(inputs, state)
        least = inputs**-0.5  # of a bias as nn.Linear begins it
        self.threshold = nn.Linear(inputs, state) if threshold == "input" else None
        self.bias = nn.Parameter(torch.empty(state).uniform_(-least, least)) if threshold == "fixed" else None
        self.scale = nn.Linear(inputs, state) if scaled else None
        self.alpha = None if scaled else nn.Parameter(torch.ones(state))

    @property
    def ends(self) -> tuple[int, int] | None:
        """Return the lowest and highest count of the cell's states, in steps of alpha; None for a cell without
        levels, or whose updates do not add to its states (epsilon 1)."""
        if self.levels is None or self.scale is not None or self.epsilon != 1:
            return None
        return -(self.levels // 2), self.levels - self.levels // 2

    @property
    def counts(self) -> bool:
        """Tell whether the cell's states are counts of steps of alpha: alpha is constant, and epsilon is 1 or -1."""
        return self.scale is None and abs(self.epsilon) == 1

    def drive(self, x: Steps) -> Drive:
        """Compute the cell's candidate, threshold and level at each step from x (n, time, inputs)."""
        candidate = project(self.candidate, x)
        free = self.bias if self.threshold is None else project(self.threshold, x)
        level = self.alpha if self.scale is None else project(self.scale, x)
        assert free is not None
        assert level is not None
        return Drive(candidate, free.abs().expand_as(candidate), level.expand_as(candidate))

    def updates(self, drive: Drive) -> tuple[Tensor, Tensor]:
        """Return the cell's update, eq. (7) of the paper, as a and b of h_t = a_t h_{t-1} + b_t, (n, time, state)
        each."""
        z, value = heaviside(drive.candidate.abs() - drive.threshold), sign(drive.candidate) * drive.level
        if self.scale is not None and self.levels is not None:
            value = nearest_level(value, self.levels)
        return 1.0 - (1.0 - self.epsilon) * z, z * value

    def decide(self, drive: Drive) -> Tensor:
        """Compute the cell's states over all steps from their drive, (n, time, state)."""
        if self.ends is not None:
            steps = heaviside(drive.candidate.abs() - drive.threshold) * sign(drive.candidate)
            return drive.level * clamped_count(steps, -1.0 if self.start == "low" else 0.0, *self.ends)
        a, b = self.updates(drive)
        start = -drive.level[:, 0] if self.start == "low" else b.new_zeros(self.state)
        return linear_scan(a, b, start)

    def recurrence(self, x: Steps) -> tuple[Tensor, Tensor]:
        return self.updates(self.drive(x))

    def forward(self, x: Steps) -> Tensor:
        return (self.memory or self.decide)(self.drive(x))
