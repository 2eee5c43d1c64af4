"""Train backbones: AdamW, warm-up and cosine, epsilon annealing, the best checkpoint by validation; several seeds.

As in the seed paper (arXiv 2605.11855, appendix D and F.8). Iteration i of a seed draws its batch from a generator
seeded with both, so that nothing of the past but the state on disk decides what comes next.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cosim.base.bounds import check_memory
from cosim.base.claim import clear_work, own_file
from cosim.base.errors import InputError, naming_memory
from cosim.papers.backbone import Backbone
from cosim.papers.file import Model, Plain, save_model
from cosim.papers.measure import loss_of, measure, rank_of, to_tensors
from cosim.papers.settings import Training
from cosim.papers.setup import Figures, SeedSelection, Setup, find_finished, history_of, load_kept
from cosim.papers.shape import BackboneShape, count_parameters
from cosim.papers.sources import BackboneData, Samples, shifted
from cosim.papers.start import begin
from cosim.training.config import seed_path, state_path
from cosim.training.history import Recorder, is_point, join_columns
from cosim.training.loop import Descent, LoopProgress, Measurement, Problem, Rank, TrainingLoop, one_thread
from cosim.training.schedule import epsilon_at, epsilon_is_final
from cosim.training.state import State

GRADIENT_NORM = 1.0
ADAM_BETAS, WEIGHT_DECAY = (0.9, 0.99), 1e-4

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
    repair = "take a smaller --batch or --width, or shorter samples"
    threads = one_thread() if setup.training.device == "cpu" else nullcontext()
    with threads, own_file(path), naming_memory("training", repair):
        if not resume:
            clear_work(path)
        found = find_finished(setup, path) if resume else None
        found = found or _train_seeds(setup, path, progress)
        clear_work(path)
        return found


def _train_seeds(setup: Setup, path: Path, progress: Progress | None) -> SeedSelection:
    seeds, iterations = setup.seeds, setup.training.iterations
    kept = {seed: seed_path(path, seed) for seed in seeds}
    found: dict[int, Model] = {}
    for i, seed in enumerate(seeds):

        def tell(done: int, values: Figures, before: int = i * iterations) -> None:
            if progress is not None:
                progress(before + done, len(seeds) * iterations, values)

        done = load_kept(setup, kept[seed], seed) if kept[seed].is_file() else None
        found[seed] = done or _train(BackboneProblem(setup, seed), kept[seed], tell)
    figures = {seed: history_of(model).figures for seed, model in found.items()}
    best = min(seeds, key=lambda seed: (rank_of(_of(figures[seed], "validation_")), seed))
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


def _train(problem: "BackboneProblem", path: Path, tell: LoopProgress) -> Model:
    loop = TrainingLoop(problem, problem.setup.passing)
    loop.run(state_path(path), tell)
    loop.take_best()
    model = problem.judged(loop.iteration, loop.recorder)
    save_model(path, model)
    state_path(path).unlink(missing_ok=True)
    return model


class BackboneProblem(Problem[Backbone]):
    """The training of a backbone by one seed. Of two models on held-out samples the one of better accuracy or smaller
    error is the better one, then that of smaller loss; a CMRU is one once its epsilon has the final value."""

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
        self.descent = Descent(
            training.iterations, training.learning_rate, betas=ADAM_BETAS, weight_decay=WEIGHT_DECAY,
            gradient_norm=GRADIENT_NORM, fused=True,
        )  # fmt: skip
        self.settings, self.data = setup.described(seed), source.fingerprint()
        self.held = source.validation(training.validations * training.batch, seed)
        self.streak = 0  # looks in a row that found everything right

    def prepare(self, iteration: int, epsilon: float) -> None:
        self.model.set_epsilon(epsilon)

    def loss(self, iteration: int) -> Tensor:
        rng = np.random.default_rng([self.seed, iteration])
        samples = self.source.batch(rng, self.training.batch)
        if self.training.shift:
            samples = shifted(samples, self.training.shift, rng)
        batch = to_tensors(samples, self.device)
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices, enabled=self.model.shape.dropout > 0):
            if self.model.shape.dropout > 0:
                torch.manual_seed(int(np.random.default_rng([self.seed, iteration, 1]).integers(2**62)))
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.training.mixed):
                scores = self.model.train()(batch.x, batch.lengths)
        return loss_of(*batch.rows(scores), classes=self.classes)

    def measure(self, iteration: int, loss: float, best: Rank) -> Measurement:
        total, rank, validation = self.training.iterations, None, None
        look = iteration == total or iteration % self.training.validate_every == 0
        if look and (iteration == total or epsilon_is_final(iteration, total, self.epsilon)):
            self.model.set_epsilon(epsilon_at(total, total, self.epsilon))
            figures = self._measure(self.held)
            self.streak = self.streak + 1 if figures.get("accuracy") == 1.0 else 0
            rank = rank_of(figures)
        finished = self.streak >= self.training.patience
        if finished or is_point(iteration, total):
            self.model.set_epsilon(epsilon_at(iteration, total, self.epsilon))
            judged, loss_held = rank_of(self._measure(self.held))
            validation = loss_held, abs(judged)
        return Measurement(validation, rank, finished)

    def shown(self, epsilon: float, best: Rank | None) -> Figures:
        found = {"epsilon": epsilon} if self.model.shape.anneals else {}
        return found if best is None else found | {"validation": abs(best[0])}

    def state(self) -> State:
        return {"streak": self.streak}

    def load(self, state: State) -> None:
        self.streak = state["streak"]

    def _measure(self, samples: Samples) -> Figures:
        return measure(self.model, samples, classes=self.classes, mixed=self.training.mixed)

    def judged(self, iterations: int, recorder: Recorder) -> Model:
        """Return the model as it is, with its figures on held-out and test samples."""
        epsilon = epsilon_at(self.training.iterations, self.training.iterations, self.epsilon)
        self.model.set_epsilon(epsilon)
        figures: Figures = {"iterations": iterations}
        for name, samples in (("validation", self.held), ("test", self.source.test())):
            figures |= {f"{name}_{figure}": value for figure, value in self._measure(samples).items()}
            figures[f"{name}_samples"] = len(samples.lengths)
        history = {
            "settings": self.setup.identity(self.seed),
            "figures": figures,
            "curve": recorder.columns("accuracy" if self.classes else "mae"),
        }
        return Model(self.model.cpu().eval(), self.source.name, self.source.labels, epsilon, history)


def _least_memory(shape: BackboneShape, training: Training, source: BackboneData) -> float:
    """Return how many byte a training takes at least: parameters with gradient, two moments and the best ones, and the
    features of a batch in front of each block."""
    steps = source.validation(1, 0).x.shape[1]
    return 4.0 * (5 * count_parameters(shape) + training.batch * steps * shape.width * shape.blocks)
