"""Train a hardware network: AdamW, warm-up and cosine, epsilon annealing, noise and margins; resumable to the bit.

A candidate for the checkpoint is taken only once epsilon has its final value, and the best one is chosen on samples held
out of the training set. Test samples are used once, for the figures at the end.
"""

import io
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cosim.errors import InputError
from cosim.network.checkpoint import save_checkpoint, write_atomically
from cosim.network.types import Network
from cosim.training.backbone import Architecture, Backbone, BackboneOutput, pool
from cosim.training.figures import measure_figures
from cosim.training.hardware import margin_penalty
from cosim.training.schedule import epsilon_at, epsilon_is_final, learning_rate_at
from cosim.training.tasks.task import Task, stratified_holdout

VALIDATION_FRACTION = 0.1
VALIDATIONS = 200  # over the whole run; only those with the final epsilon are used
GRADIENT_NORM = 1.0
ADAM_BETAS = (0.9, 0.99)
WEIGHT_DECAY = 1e-4
LABEL_SMOOTHING = 0.05
SAVES = 20  # of the resume state, over the whole run

Progress = Callable[[int, dict[str, float]], None]


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that decides the result, together with the task.

    epsilon None anneals from 1 to 0, a number is constant. noise: relative standard deviation of weights and thresholds
    during training. margin: distance, in units, that candidates should keep from thresholds; 0 switches the term off.
    """

    architecture: Architecture = field(default_factory=Architecture)
    iterations: int = 6000
    batch: int = 128
    learning_rate: float = 2e-2
    epsilon: float | None = None
    noise: float = 0.05
    margin: float = 0.05
    seed: int = 0


@dataclass(frozen=True)
class TrainingResult:
    """The chosen network, its figures (see `measure_figures`) and the file that holds it."""

    network: Network
    figures: dict[str, Any]
    path: Path


def check_config(config: TrainingConfig) -> None:
    """Raises InputError naming the option that has no usable value."""
    for option, value in (("iterations", config.iterations), ("batch", config.batch)):
        if value < 1:
            raise InputError(f"--{option} must be at least 1, not {value}")
    if not config.learning_rate > 0:
        raise InputError(f"--lr must be positive, not {config.learning_rate:g}")
    if config.epsilon is not None and not -1 <= config.epsilon <= 1:
        raise InputError(f"--epsilon must be 'anneal' or a number in [-1, 1], not {config.epsilon:g}")
    if config.architecture.cell == "bmru" and config.epsilon != 0:
        raise InputError("--cell bmru is the unit with epsilon 0 throughout; add --epsilon 0, or train --cell cmru")
    for option, value in (("noise", config.noise), ("margin", config.margin)):
        if not 0 <= value < 1:
            raise InputError(f"--{option} must lie in [0, 1), not {value:g}")


def state_path(path: Path) -> Path:
    """Where the resume state of a checkpoint is kept while its training runs."""
    return path.with_suffix(".state.pt")


def train(
    config: TrainingConfig, task: Task, path: Path, progress: Progress | None = None, resume: bool = False
) -> TrainingResult:
    """Train, write the checkpoint `path` (.pt or .npz) and return it.

    `progress(iteration, values)` is called after each iteration. An interrupted run leaves its state beside `path`;
    `resume` goes on from there and ends in the same bytes as an unbroken run. Raises InputError for unusable settings,
    a resume without state, or one with other settings.
    """
    check_config(config)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the tensors are tiny: more threads only wait for each other, and may change the sums
    try:
        return _train(config, task, Path(path), progress, resume)
    finally:
        torch.set_num_threads(threads)


def _train(config: TrainingConfig, task: Task, path: Path, progress: Progress | None, resume: bool) -> TrainingResult:
    run = _Run(config, task)
    if resume:
        run.load(state_path(path))
    save_every = max(1, config.iterations // SAVES)
    while run.iteration < config.iterations:
        values = run.step()
        if run.iteration % save_every == 0 and run.iteration < config.iterations:
            run.save(state_path(path))
        if progress is not None:
            progress(run.iteration, values)
    network = run.best_network()
    figures = measure_figures(network, task) | {"validation_loss": run.best_loss}
    network = replace(network, history={"settings": asdict(config), "figures": figures})
    save_checkpoint(path, network)
    state_path(path).unlink(missing_ok=True)
    return TrainingResult(network, figures, path)


class _Run:
    """The whole state of one training run."""

    def __init__(self, config: TrainingConfig, task: Task) -> None:
        self.config, self.task = config, task
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.backbone = Backbone(config.architecture, task.encoding(config.architecture.ramp), task.outputs)
        self.rng = torch.Generator().manual_seed(config.seed)
        # One flat list of small parameters: the fused kernel updates them in one call.
        self.optimiser = torch.optim.AdamW(
            self.backbone.parameters(), config.learning_rate, ADAM_BETAS, weight_decay=WEIGHT_DECAY, fused=True
        )
        held = stratified_holdout(task.y_train, max(1, round(VALIDATION_FRACTION * len(task.y_train))), config.seed)
        self.fit, self.held = _samples(task, ~held), _samples(task, held)
        self.weights = _sampling_weights(task.y_train[~held])
        self.iteration = 0
        self.best_loss = float("inf")
        self.best: dict[str, Tensor] | None = None

    def step(self) -> dict[str, float]:
        """One iteration; validates when due."""
        config, i = self.config, self.iteration
        rate = learning_rate_at(i, config.iterations, config.learning_rate)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        epsilon = epsilon_at(i, config.iterations, config.epsilon)
        self.backbone.set_epsilon(epsilon)
        chosen = torch.multinomial(self.weights, config.batch, replacement=True, generator=self.rng)
        x, y, lengths = (part[chosen] for part in self.fit)
        loss = self.loss(self.backbone(x, lengths, config.noise, self.rng), y, lengths)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.backbone.parameters(), GRADIENT_NORM)
        self.optimiser.step()
        self.backbone.clip_()
        self.iteration += 1
        last = self.iteration == config.iterations
        if last or self.iteration % max(1, config.iterations // VALIDATIONS) == 0:
            self._validate(last)
        return {"loss": loss.item(), "epsilon": epsilon, "validation": self.best_loss}

    def _validate(self, last: bool) -> None:
        if not last and not epsilon_is_final(self.iteration, self.config.iterations, self.config.epsilon):
            return
        self.backbone.set_epsilon(epsilon_at(self.iteration, self.config.iterations, self.config.epsilon))
        x, y, lengths = self.held
        with torch.no_grad():
            loss = self.loss(self.backbone(x, lengths), y, lengths).item()
        if loss < self.best_loss or self.best is None:
            self.best_loss = loss
            self.best = {name: value.clone() for name, value in self.backbone.state_dict().items()}

    def loss(self, output: BackboneOutput, y: Tensor, lengths: Tensor) -> Tensor:
        """Task loss plus margin penalty."""
        # Votes have no gradient: a voting network is trained on its mean readout.
        voting = self.config.architecture.pooling == "vote"
        scores = pool(output.readout, lengths, "mean") if voting else output.scores
        if self.task.labels:
            loss = torch.nn.functional.cross_entropy(scores, y, label_smoothing=LABEL_SMOOTHING)
        else:
            loss = torch.nn.functional.mse_loss(scores, y)
        if self.config.margin > 0:
            loss = loss + sum(margin_penalty(d, self.config.margin) for d in output.distances.values())
        return loss

    def best_network(self) -> Network:
        """The network with the smallest validation loss."""
        assert self.best is not None  # the last iteration always validates
        self.backbone.load_state_dict(self.best)
        self.backbone.set_epsilon(epsilon_at(self.config.iterations, self.config.iterations, self.config.epsilon))
        return self.backbone.to_network(self.task.name, self.task.labels)

    def save(self, path: Path) -> None:
        """Write everything that the next iteration depends on."""
        buffer = io.BytesIO()
        state = {
            "config": asdict(self.config),
            "samples": self.task.x_train.shape,
            "iteration": self.iteration,
            "backbone": self.backbone.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "rng": self.rng.get_state(),
            "best_loss": self.best_loss,
            "best": self.best,
        }
        torch.save(state, buffer)
        write_atomically(path, buffer.getvalue())

    def load(self, path: Path) -> None:
        """Go on from a saved state; raises InputError when there is none or it belongs to another run."""
        if not path.is_file():
            raise InputError(f"{path}: no training state to resume; start without --resume")
        try:
            state = torch.load(path, weights_only=True)
            wanted = {"config": asdict(self.config), "samples": tuple(self.task.x_train.shape)}
            found = {"config": state["config"], "samples": tuple(state["samples"])}
        except Exception as error:
            raise InputError(f"{path}: the training state cannot be read ({error}); delete it and start anew") from error
        if found != wanted:
            raise InputError(
                f"{path}: the training state belongs to other settings: {_difference(found, wanted)}; "
                "resume with the settings of the first run, or delete the state and start anew"
            )
        self.backbone.load_state_dict(state["backbone"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.rng.set_state(state["rng"])
        self.iteration, self.best_loss, self.best = state["iteration"], state["best_loss"], state["best"]


def _samples(task: Task, mask: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    parts = task.x_train[mask], task.y_train[mask], task.len_train[mask]
    return torch.from_numpy(parts[0]), torch.from_numpy(parts[1]), torch.from_numpy(parts[2])


def _sampling_weights(y: np.ndarray) -> Tensor:
    """Chance of each sample to be drawn: every class equally likely, so that a rare class is learned as well."""
    if y.ndim != 1:
        return torch.ones(len(y))
    counts = np.bincount(y)
    return torch.from_numpy(1.0 / counts[y])


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    old, new = ({**side["config"], **side["config"]["architecture"], "samples": side["samples"]} for side in (found, wanted))
    return ", ".join(f"{key} {old.get(key)} not {new[key]}" for key in new if key != "architecture" and old.get(key) != new[key])
