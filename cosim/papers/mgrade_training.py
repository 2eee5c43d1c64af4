"""Training of an mGRADE: positions and weights by gradient, with a width of the taps and an epsilon that are annealed.

Half of the training narrows the taps. In its last quarter the taps stand at whole delays, as deployed, and the weights
adapt to that; epsilon is 0 by then (cosim.training.schedule). AdamW for weights, no decay for biases and positions.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from cosim.base.errors import InputError
from cosim.papers.delays import LearnedDelays, sigma_at
from cosim.papers.mgrade import Mgrade, MgradeShape
from cosim.tasks.lorenz import Lorenz, mase, neighbour_overlap
from cosim.tasks.steps import StepTargets
from cosim.training.loop import Descent, LoopProgress, Problem, TrainingLoop

WHOLE_FROM = 0.75  # of the training
DECAY = 1e-2


@dataclass(frozen=True)
class Fit:
    """Settings of the training. sigma: of the learned taps at first; None for half their reach."""

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
    """Train a network on a new batch in each iteration and return it in eval mode; a seed determines the result.

    The loss is the cross entropy of classes, or the mean absolute error of targets. path, progress: see
    `TrainingLoop.run`.
    """
    if fit.iterations < 1 or not fit.learning_rate > 0:
        raise InputError(f"iterations must be at least 1 and the learning rate positive: {fit}")
    problem = MgradeProblem(shape, draw, fit)
    TrainingLoop(problem).run(path, progress)
    return problem.model.eval()


class MgradeProblem(Problem[Mgrade]):
    """The training of an mGRADE whose taps narrow; weights decay, biases and positions do not."""

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
    """Compute the loss over the steps that count: cross entropy of classes, else mean absolute error."""
    mask = torch.from_numpy(batch.mask)
    wanted = torch.from_numpy(batch.y)[mask]
    if batch.y.ndim == 2:
        return nn.functional.cross_entropy(outputs[mask], wanted)
    return (outputs[mask] - wanted).abs().mean()


@torch.no_grad()
def accuracy_of(model: Mgrade, steps: StepTargets) -> float:
    """Return the share of the steps that count whose class is right."""
    found = model(torch.from_numpy(steps.x)).argmax(dim=2).numpy()
    return float((found == steps.y)[steps.mask].mean())


@dataclass(frozen=True)
class Reconstruction:
    """Measures of how a trained network follows the system: MASE of x, y, z one step ahead, y and z by a linear readout
    of the states; overlap: share of neighbours that stay neighbours."""

    x: float
    y: float
    z: float
    overlap: float


@torch.no_grad()
def reconstruct(model: Mgrade, train: Lorenz, test: Lorenz, skip: int, points: int = 4000) -> Reconstruction:
    """Measure how well a network follows the system, with a readout of its states that is fitted on `train`.

    The first `skip` steps of each trajectory do not count. The overlap is that of `points` points of the test
    trajectories, evenly taken.
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
    return Reconstruction(mase(x, after[1][:, 0], now[:, 0]), y, z, overlap)
