"""Delayed memory units on the delayed product: trained alike, with a line and without one."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from cosim.papers.dmu import ALL, DelayedMemoryUnit, GatePruning, Inner
from cosim.tasks.delayed_product import generate_delayed_product
from cosim.training.loss import check_loss

RATE, BATCH, TESTED = 3e-3, 32, 1000
_TEST_SEED = 2**32


@dataclass(frozen=True)
class TrainedUnit:
    """A unit and its linear readout of one score; loss: of the last iteration."""

    unit: DelayedMemoryUnit
    readout: nn.Linear
    loss: float

    @property
    def parameters(self) -> int:
        """Return the number of the unit's parameters."""
        return sum(p.numel() for p in self.unit.parameters())

    @torch.no_grad()
    def accuracy(self, cut: GatePruning = ALL) -> float:
        """Return the share of right answers on sequences of their own, with these gates."""
        x, y, counts = _batch(np.random.default_rng(_TEST_SEED), TESTED)
        said = self.readout(self.unit(x, cut))[..., 0] > 0
        return float((said == (y == 1))[counts].double().mean())


def train_delayed_product(cell: Inner, delays: int, seed: int, iterations: int = 800, width: int = 24) -> TrainedUnit:
    """Train by Adam and cross entropy from the first step that has an answer on; a seed determines the result."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in `cosim.training.trainer.train`
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            unit, readout = DelayedMemoryUnit(1, width, delays, cell), nn.Linear(width, 1)
        optimiser = torch.optim.Adam([*unit.parameters(), *readout.parameters()], RATE)
        rng, loss = np.random.default_rng(seed), torch.tensor(float("nan"))
        for iteration in range(iterations):
            x, y, counts = _batch(rng, BATCH)
            score = readout(unit(x))[..., 0]
            loss = nn.functional.binary_cross_entropy_with_logits(score[counts], y[counts].float())
            check_loss(loss.item(), iteration + 1)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return TrainedUnit(unit, readout, loss.item())
    finally:
        torch.set_num_threads(threads)


def _batch(rng: np.random.Generator, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """x, y, and which of y count."""
    found = generate_delayed_product(count, seed=rng)
    return torch.from_numpy(found.x), torch.from_numpy(found.y), torch.from_numpy(found.mask)
