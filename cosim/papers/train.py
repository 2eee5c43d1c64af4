"""Train backbones: AdamW, warm-up and cosine, epsilon annealing, the best checkpoint by validation; several seeds.

As in the seed paper (arXiv 2605.11855, appendix D and F.8). Iteration i of a seed draws its batch from a generator
seeded with both, so that nothing of the past but the state on disk decides what comes next.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cosim.base.bounds import check_memory
from cosim.base.claim import clear_work, own_file
from cosim.base.errors import InputError, naming_memory
from cosim.base.text import parsing
from cosim.papers.backbone import Backbone
from cosim.papers.file import Model, Plain, save_model
from cosim.papers.measure import TensorBatch, loss_of, measure, score_of, to_tensors
from cosim.papers.settings import Training
from cosim.papers.setup import Figures, SeedSelection, Setup, find_finished, history_of, load_kept
from cosim.papers.shape import BackboneShape, count_parameters
from cosim.papers.sources import BackboneData, Samples, shifted
from cosim.papers.start import begin
from cosim.training.config import seed_path, state_path
from cosim.training.history import Recorder, join_columns
from cosim.training.interrupts import deferred_signals
from cosim.training.schedule import epsilon_at, epsilon_is_final, learning_rate_at
from cosim.training.state import State, check_state, read_state, write_state

GRADIENT_NORM = 1.0
ADAM_BETAS, ADAM_EPSILON, WEIGHT_DECAY = (0.9, 0.99), 1e-8, 1e-4
SAVES = 20  # of the resume state, over the whole run

Progress = Callable[[int, int, dict[str, float]], None]


def train_backbone(
    setup: Setup, path: Path, progress: Progress | None = None, *, resume: bool = False
) -> SeedSelection:
    """Train a backbone for each seed and write the best of them, by validation, to `path` (.pt).

    An interrupted run (SIGINT, SIGTERM) finishes its iteration and leaves state and finished seeds beside `path`.
    `resume` goes on from there, or begins where there is nothing, and ends in the same bytes as an unbroken run; it
    trains nothing where `path` is what such a run has left. `progress(done, total, values)` is called after each
    iteration, the setup's `passing` at each point of the curve. Raises InputError for unusable settings, a resume with
    the state of others, and files that cannot be written; MissingToolError without the device; OutOfMemoryError.
    """
    setup = setup.checked()
    if path.suffix != ".pt":
        raise InputError(f"--output must end in .pt, not {path.name!r}")
    threads = torch.get_num_threads()
    if setup.training.device == "cpu":
        torch.set_num_threads(1)  # more threads may change sums, and two trainings would wait for each other
    repair = "take a smaller --batch or --width, or shorter samples"
    try:
        with own_file(path), naming_memory("training", repair):
            if not resume:
                clear_work(path)
            found = find_finished(setup, path) if resume else None
            found = found or _train_seeds(setup, path, progress, resume=resume)
            clear_work(path)
            return found
    finally:
        torch.set_num_threads(threads)


def _train_seeds(setup: Setup, path: Path, progress: Progress | None, *, resume: bool) -> SeedSelection:
    seeds, iterations = setup.seeds, setup.training.iterations
    kept = {seed: seed_path(path, seed) for seed in seeds}
    found: dict[int, Model] = {}
    for i, seed in enumerate(seeds):
        run = _Run(setup, seed)

        def tell(done: int, values: Figures, before: int = i * iterations) -> None:
            if progress is not None:
                progress(before + done, len(seeds) * iterations, values)

        done = load_kept(setup, kept[seed], seed) if resume and kept[seed].is_file() else None
        found[seed] = done or _train(run, kept[seed], tell, resume=resume)
    figures = {seed: history_of(model).figures for seed, model in found.items()}
    best = max(seeds, key=lambda seed: (score_of(_of(figures[seed], "validation_")), -seed))
    chosen = found[best]
    history: Plain = dict(chosen.history)
    if len(seeds) > 1:
        history["seeds"] = {str(seed): figures[seed] for seed in seeds}
        history["curve"] = join_columns(history_of(one).curve for one in found.values())
    model = replace(chosen, history=history)
    save_model(path, model)
    return SeedSelection(model, figures, path)


def _of(figures: Figures, prefix: str) -> Figures:
    """Return the figures of one set of samples, without the set's name."""
    return {name.removeprefix(prefix): value for name, value in figures.items() if name.startswith(prefix)}


def _train(run: "_Run", path: Path, tell: Callable[[int, Figures], None], *, resume: bool) -> Model:
    state = state_path(path)
    if resume and state.is_file():
        run.load(state)
    check_state(state, run.state())
    save_every = max(1, run.training.iterations // SAVES)
    while not run.done:
        with deferred_signals() as interrupted:
            while not run.done and not interrupted():
                values = run.step()
                if run.iteration % save_every == 0 and not run.done:
                    write_state(state, run.state())
                tell(run.iteration, values)
            if interrupted():
                write_state(state, run.state())
    model = run.best_model()
    save_model(path, model)
    state.unlink(missing_ok=True)
    return model


class _Run:
    """The whole state of the training of one seed."""

    def __init__(self, setup: Setup, seed: int) -> None:
        shape, training, source = setup.shape, setup.training, setup.source
        self.setup, self.training, self.source, self.seed = setup, training, source, seed
        self.epsilon = training.epsilon if shape.anneals else 0.0  # which without a CMRU changes nothing
        self.device, self.classes = torch.device(training.device), bool(source.labels)
        check_memory(_least_memory(shape, training, source), "training", "take a smaller --batch, --width or --state")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = Backbone(shape)
        if not shape.tokens:
            self.model.offset.copy_(torch.from_numpy(source.offset))
            self.model.scale.copy_(torch.from_numpy(source.scale))
        if setup.start is not None:
            begin(self.model, setup.start)
        self.model.to(self.device)
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), training.learning_rate, ADAM_BETAS, ADAM_EPSILON, WEIGHT_DECAY, fused=True
        )
        self.held = source.validation(training.validations * training.batch, seed)
        self.iteration = self.streak = 0
        self.score = [-np.inf, -np.inf]
        self.best: dict[str, Tensor] | None = None
        self.recorder = Recorder(training.iterations, seed, setup.passing)

    @property
    def done(self) -> bool:
        """At the last iteration, or after `patience` looks in a row that found everything right."""
        return self.iteration >= self.training.iterations or self.streak >= self.training.patience

    def step(self) -> Figures:
        """Run one iteration, validate when due, and return the figures so far."""
        i, total = self.iteration, self.training.iterations
        rate = learning_rate_at(i, total, self.training.learning_rate)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        epsilon = epsilon_at(i, total, self.epsilon)
        self.model.set_epsilon(epsilon)
        rng = np.random.default_rng([self.seed, i])
        samples = self.source.batch(rng, self.training.batch)
        if self.training.shift:
            samples = shifted(samples, self.training.shift, rng)
        loss = self._loss(to_tensors(samples, self.device))
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)
        self.optimiser.step()
        self.iteration += 1
        if self.iteration == total or self.iteration % self.training.validate_every == 0:
            self._validate()
        found = {"loss": loss.item()} | ({"epsilon": epsilon} if self.model.shape.anneals else {})
        self.recorder.add_loss(self.iteration, found["loss"])
        if self.recorder.is_due(self.iteration) or self.done:
            self.model.set_epsilon(epsilon_at(self.iteration, total, self.epsilon))
            score, loss_held = score_of(self._measure(self.held))
            self.recorder.add_point(self.iteration, (-loss_held, abs(score)), epsilon, rate)
        return found | ({"validation": abs(self.score[0])} if self.best is not None else {})

    def _loss(self, batch: TensorBatch) -> Tensor:
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices, enabled=self.model.shape.dropout > 0):
            if self.model.shape.dropout > 0:
                torch.manual_seed(int(np.random.default_rng([self.seed, self.iteration, 1]).integers(2**62)))
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.training.mixed):
                scores = self.model.train()(batch.x, batch.lengths)
        return loss_of(*batch.rows(scores), classes=self.classes)

    def _validate(self) -> None:
        total = self.training.iterations
        if self.iteration < total and not epsilon_is_final(self.iteration, total, self.epsilon):
            return
        self.model.set_epsilon(epsilon_at(total, total, self.epsilon))
        figures = self._measure(self.held)
        self.streak = self.streak + 1 if figures.get("accuracy") == 1.0 else 0
        if self.best is None or score_of(figures) > self.score:
            self.score = score_of(figures)
            self.best = {name: value.clone() for name, value in self.model.state_dict().items()}

    def _measure(self, samples: Samples) -> Figures:
        return measure(self.model, samples, classes=self.classes, mixed=self.training.mixed)

    def best_model(self) -> Model:
        """Return the best model by validation, with its figures on held-out and test samples."""
        assert self.best is not None  # the last iteration always validates
        self.model.load_state_dict(self.best)
        epsilon = epsilon_at(self.training.iterations, self.training.iterations, self.epsilon)
        self.model.set_epsilon(epsilon)
        figures: Figures = {"iterations": self.iteration}
        for name, samples in (("validation", self.held), ("test", self.source.test())):
            figures |= {f"{name}_{figure}": value for figure, value in self._measure(samples).items()}
            figures[f"{name}_samples"] = len(samples.lengths)
        history = {
            "settings": self.setup.identity(self.seed),
            "figures": figures,
            "curve": self.recorder.columns("accuracy" if self.classes else "mae"),
        }
        return Model(self.model.cpu().eval(), self.source.name, self.source.labels, epsilon, history)

    def state(self) -> State:
        """Return everything that the next iteration depends on, on the CPU."""
        return {
            "config": self.setup.described(self.seed),
            "data": self.source.fingerprint(),
            "iteration": self.iteration,
            "backbone": _on_cpu(self.model.state_dict()),
            "optimiser": _on_cpu(self.optimiser.state_dict()),
            "streak": self.streak,
            "score": list(self.score),
            "best": _on_cpu(self.best),
            "curve": self.recorder.rows,
        }

    def load(self, path: Path) -> None:
        """Go on from a saved state; raises InputError when there is none or it belongs to another run."""
        moved = [value.detach().cpu().requires_grad_(value.requires_grad) for value in self.model.parameters()]
        state = read_state(path, self.state(), moved)
        with parsing(str(path), "the state of such a training", "begin anew with --fresh"):
            self.model.load_state_dict(state["backbone"])
            self.optimiser.load_state_dict(state["optimiser"])
        self.iteration, self.streak, self.score = state["iteration"], state["streak"], state["score"]
        self.recorder.rows, best = state["curve"], state["best"]
        self.best = best and {name: value.to(self.device) for name, value in best.items()}


def _least_memory(shape: BackboneShape, training: Training, source: BackboneData) -> float:
    """Return how many byte a training takes at least: parameters with gradient, two moments and the best ones, and the
    features of a batch in front of each block."""
    steps = source.validation(1, 0).x.shape[1]
    return 4.0 * (5 * count_parameters(shape) + training.batch * steps * shape.width * shape.blocks)


def _on_cpu(value: Any) -> Any:  # noqa: ANN401
    """Return a nested value with all tensors on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return type(value)((key, _on_cpu(inner)) for key, inner in value.items())
    return [_on_cpu(inner) for inner in value] if isinstance(value, list) else value
