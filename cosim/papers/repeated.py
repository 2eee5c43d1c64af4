"""Sequences in which few steps differ: what acts on a step alone is computed once for each of those.

Two kinds of step make up every string of bits, 256 an image read pixel by pixel, and an item or a quiet value to copy
is followed by zeros. Encoder, perceptron and normalisation act on each step alone, so they run on the different steps;
the maps into a cell are linear, so a position is added behind them, W (x + p) = W x + W p:

    x[i, t] = rows[index[i, t]] + places[t]        W x + b = (W rows + b)[index] + W places

Results are those of the whole sequence but for rounding. For bits, MNIST and copied items this makes the paper's width
a matter of minutes to hours on one core (docs/reproduced.md).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

WORTH = 4  # times as many steps as different ones, at least: below, gathering costs what it saves


@dataclass(frozen=True)
class Repeated:
    """x (n, time, features): rows (k, features), index (n, time) whole numbers, places (time, features) or none."""

    rows: Tensor
    index: Tensor
    places: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the shape of the whole sequence of a backbone."""
        return (*self.index.shape, self.rows.shape[1])  # type: ignore[return-value]

    def project(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Compute W x + b of each step of a backbone's sequence, (n, time, outputs)."""
        found = embedding(self.index, linear(self.rows, weight, bias))
        return found if self.places is None else found + linear(self.places, weight)


Steps = Tensor | Repeated
"""A sequence, (n, time, features)."""


def repeated(x: Tensor) -> Repeated | None:
    """Return a backbone's x (n, time, features), or tokens (n, time), as few rows; None where over a quarter differ."""
    flat = x.reshape(-1, *x.shape[2:])
    keys = flat if flat.ndim == 1 else flat[:, 0] if flat.shape[1] == 1 else flat.double() @ _mixture(flat)
    found, index = torch.unique(keys, return_inverse=True)
    if WORTH * len(found) > len(flat):
        return None
    where = torch.empty_like(found, dtype=torch.long).scatter_(0, index, torch.arange(len(flat), device=x.device))
    rows = flat[where]
    return Repeated(rows, index.view(x.shape[:2])) if torch.equal(rows[index], flat) else None


def _mixture(steps: Tensor) -> Tensor:
    """Weights whose sums tell steps apart; where two different ones have the same, `repeated` finds out."""
    drawn = torch.randn(steps.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return drawn.to(steps.device)


def each(act: Callable[[Tensor], Tensor], x: Steps) -> Steps:
    """Apply a function of single steps to a sequence without places: once for each step that differs."""
    return act(x) if isinstance(x, Tensor) else Repeated(act(x.rows), x.index)


def project(layer: nn.Linear, x: Steps) -> Tensor:
    """Apply a backbone's linear layer to each step of a sequence; returns (n, time, outputs)."""
    return layer(x) if isinstance(x, Tensor) else x.project(layer.weight, layer.bias)


def times(weight: Tensor, x: Steps) -> Tensor:
    """Multiply each step of a backbone's sequence by a weight, (n, time, outputs)."""
    return x @ weight.T if isinstance(x, Tensor) else x.project(weight)


def joined(layer: nn.Linear, x: Steps, places: Tensor) -> Steps:
    """Compute layer([x ; places]) at each step, of a sequence without places; places (time, features)."""
    if isinstance(x, Tensor):
        return layer(torch.cat([x, places.expand(len(x), -1, -1)], dim=2))
    of_step, of_place = layer.weight.split([x.shape[2], places.shape[1]], dim=1)
    return Repeated(linear(x.rows, of_step, layer.bias), x.index, linear(places, of_place))


def in_full(x: Steps) -> Steps:
    """Return a backbone's sequence in single precision where it was in half."""
    if isinstance(x, Repeated):
        return Repeated(_in_full(x.rows), x.index, x.places if x.places is None else _in_full(x.places))
    return _in_full(x)


def _in_full(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def whole(x: Steps) -> Tensor:
    """Return every step, (n, time, features), of a backbone's sequence without places."""
    return x if isinstance(x, Tensor) else embedding(x.index, x.rows)


def take_step(x: Steps, step: Tensor) -> Tensor:
    """Return step (n,) of each sample, (n, 1, features), of a backbone's sequence without places."""
    if isinstance(x, Repeated):
        return x.rows[take_step(x.index, step)]
    return x[torch.arange(len(x), device=x.device), step][:, None]
