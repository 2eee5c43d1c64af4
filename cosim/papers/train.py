"""Train backbones: AdamW, warm-up and cosine, epsilon annealing, the best checkpoint by validation; several seeds.

As in the seed paper (arXiv 2605.11855, appendix D and F.8). Iteration i of a seed draws its batch from a generator
seeded with both, so that nothing of the past but the state on disk decides what comes next.
"""

import hashlib
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cosim.base.bounds import SEED, check_memory
from cosim.base.claim import clear_work, own_file
from cosim.base.errors import InputError, MissingToolError, naming_memory
from cosim.base.text import shown, typed
from cosim.network.software_only import stays_software
from cosim.papers.backbone import Backbone, judged_rows, loss_of, measure, rank_of, to_tensors
from cosim.papers.file import Model, Plain, load_model, model_bytes, save_model
from cosim.papers.shape import BackboneShape, Training, check_shape, check_training, count_parameters
from cosim.papers.sources import BackboneData, Samples, shifted
from cosim.training.config import seed_path, state_path
from cosim.training.history import Columns, Passing, Recorder, history_of_seeds, is_point
from cosim.training.loop import (
    LoopProgress,
    Measurement,
    Problem,
    Rank,
    SeedsProgress,
    State,
    TrainingLoop,
    epsilon_at,
    epsilon_is_final,
    one_thread,
    other_training,
    over_seeds,
    seed_paper_descent,
)

Figures = dict[str, float]


@dataclass(frozen=True)
class History:
    """The settings, the figures and the validation curve of a backbone's training; seeds: the figures of all seeds, if
    several."""

    settings: Plain
    figures: Figures
    curve: Columns
    seeds: dict[str, Figures] | None = None


@dataclass(frozen=True)
class Setup:
    """A training to do, of one backbone for each seed. Inputs and outputs of the shape are those of the source.
    passing: hears the points of the curves. start: whose weights every seed begins with, but for the last Linear, and
    whose inputs are scaled as there."""

    shape: BackboneShape
    training: Training
    source: BackboneData
    seeds: tuple[int, ...] = (0,)
    passing: Passing | None = None
    start: Model | None = None

    def checked(self) -> "Setup":
        """Return the backbone's setup with its shape completed from the source of samples.

        Raises InputError for what has no usable value, MissingToolError without the device.
        """
        source, training = self.source, check_training(self.training)
        shape = replace(self.shape, inputs=source.inputs, outputs=source.outputs, tokens=source.tokens)
        if len(set(self.seeds)) != len(self.seeds) or not self.seeds or any(seed not in SEED for seed in self.seeds):
            raise InputError(f"seeds must be different, at least one, from {SEED}, not {list(self.seeds)}")
        if source.stepwise != (shape.pooling == "none"):
            wanted = "none, it has a target at each step" if source.stepwise else "last or mean, it has one a sequence"
            raise InputError(f"--pooling of {source.name} must be {wanted}; it is {shape.pooling}")
        if training.device == "cuda" and not torch.cuda.is_available():
            raise MissingToolError("--device cuda needs a CUDA device and a torch built for it; take --device cpu")
        if self.start is not None:
            check_start(self.start, shape)
        if shape.levels is not None and "cmru" in shape.cells and training.epsilon != 1:
            raise InputError(
                "--levels of a cmru are those of a count, and its states are counts with --epsilon 1; give it"
            )
        if shape.levels is not None and "alphacmru" in shape.cells and training.epsilon not in (None, 0):
            raise InputError(
                "--levels of an alphacmru are those of a register, which replaces what it holds; give --epsilon anneal "
                f"or 0, not {training.epsilon:g}"
            )
        return replace(self, shape=check_shape(shape))

    def described(self, seed: int) -> Plain:
        """Return the settings that decide the training with this seed, without the data, as plain values."""
        begun: Plain = {} if self.start is None else {"from": hashlib.sha256(model_bytes(self.start)).hexdigest()}
        epsilon = self.training.epsilon if self.shape.anneals else 0.0  # which without a CMRU changes nothing
        return asdict(self.shape) | asdict(self.training) | {"epsilon": epsilon, "seed": seed} | begun

    def identity(self, seed: int) -> Plain:
        """Return all that decides the training with this seed, data included, as the training's history records it."""
        return self.described(seed) | {"data": self.source.fingerprint()}


def train_backbone(setup: Setup, path: Path, progress: SeedsProgress | None = None, *, resume: bool = False) -> Model:
    """Train a backbone for each seed, write the best of them, by validation, to `path` (.pt), and return it.

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


def _train_seeds(setup: Setup, path: Path, progress: SeedsProgress | None) -> Model:
    seeds, iterations = setup.seeds, setup.training.iterations
    found: dict[int, Model] = {}
    for seed, tell in over_seeds(seeds, iterations, progress):
        kept = seed_path(path, seed)
        if not kept.is_file():
            found[seed] = _train(BackboneProblem(setup, seed), kept, tell)
            continue
        found[seed] = load_model(kept)
        if found[seed].history.get("settings") != setup.identity(seed):
            raise other_training(kept)
    histories = {seed: history_of(model) for seed, model in found.items()}
    figures = {seed: one.figures for seed, one in histories.items()}
    best = found[min(seeds, key=lambda seed: (rank_of(_of(figures[seed], "validation_")), seed))]
    if len(seeds) > 1:
        curves = [one.curve for one in histories.values()]
        best = replace(best, history=history_of_seeds(best.history, figures, curves))
    save_model(path, best)
    return best


def _of(figures: Figures, prefix: str) -> Figures:
    """Return the figures on one set of samples, with the set's name, `prefix`, removed from their keys."""
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
        self.descent = seed_paper_descent(training.iterations, training.learning_rate)
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
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices, enabled=self.model.shape.dropout > 0):
            if self.model.shape.dropout > 0:
                torch.manual_seed(int(np.random.default_rng([self.seed, iteration, 1]).integers(2**62)))
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.training.mixed):
                scores = self.model.train()(*to_tensors(samples, self.device))
        return loss_of(*judged_rows(samples, scores), classes=self.classes)

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
        """Return the backbone as it is, with its figures on held-out and test samples."""
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


_READOUT = "output."
_FREE = ("outputs", "pooling", "dropout", "start", "levels")  # of the shape, which no other weight depends on


def check_start(start: Model, shape: BackboneShape) -> None:
    """Check that the model to start from has this shape; raises InputError that names the first part that differs."""
    mine, its = asdict(shape), asdict(start.backbone.shape)
    for name, value in its.items():
        if name not in _FREE and value != mine[name]:
            repair = "take a task with as many" if name in ("inputs", "tokens") else f"give --{name} as there"
            raise InputError(f"--from: the backbone there has {name} {value}, and this one {mine[name]}; {repair}")


def begin(model: Backbone, start: Model) -> None:
    """Copy all parameters of `start` into a backbone, except those of the last Linear, which stays as it is."""
    taken = {name: value for name, value in start.backbone.state_dict().items() if not name.startswith(_READOUT)}
    model.load_state_dict(model.state_dict() | taken)


def history_of(model: Model) -> History:
    """Return the training history, figures and curve, that a backbone's checkpoint contains.

    Raises InputError if the checkpoint has no such history.
    """
    return typed(model.history, History, "history", "train it again")


def figures_of(model: Model) -> dict[int, Figures]:
    """Return seed -> figures of a backbone's training, for all seeds among which it was chosen, in order.

    Raises InputError if the checkpoint has no such history.
    """
    history = history_of(model)
    seeds = history.seeds or {str(history.settings["seed"]): history.figures}
    if not all(seed.isdecimal() for seed in seeds):
        raise InputError(f"history: seeds must be whole numbers, not {shown(', '.join(seeds))}; train it again")
    return {int(seed): seeds[seed] for seed in sorted(seeds, key=int)}


def metric_of(model: Model) -> str:
    """Return the name of the figure that a backbone's task is judged by."""
    return "test_accuracy" if model.labels else "test_mae"


def find_finished(setup: Setup, path: Path) -> Model | None:
    """Return the backbone that an earlier training of this checked setup has left in a file; None where that is of
    another one, or not there."""
    if not path.is_file() or not stays_software(path):
        return None
    model = load_model(path)
    if all(model.history.get("settings") != setup.identity(seed) for seed in setup.seeds):
        return None
    return model if set(figures_of(model)) == set(setup.seeds) else None
