"""Train a hardware network: AdamW, warm-up and cosine, epsilon annealing, noise and margins; resumable to the bit.

A network may become the checkpoint only once epsilon has its final value. The best one is chosen on samples that are
held out of the training set. Test samples are used once, for the figures at the end.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cosim.base.bounds import SEED, Bounds, check_memory
from cosim.base.claim import clear_work, own_file
from cosim.base.errors import InputError, MappingError, NetworkError, naming_memory
from cosim.base.text import listed
from cosim.exchange.checkpoint import is_written_here, load_network, save_checkpoint
from cosim.network.layers import (
    EpsilonLayer,
    FirstQuadrantLayer,
    RecurrentLayer,
    SignedLayer,
)
from cosim.network.reference import (
    Trace,
    measure_state_ranges,
    run_reference,
    threshold_distance,
    valid_steps,
    value_distance,
)
from cosim.network.software_only import stays_software
from cosim.network.types import Network, hash_network
from cosim.tasks.target import balanced_accuracy
from cosim.tasks.task import Task, hold_out
from cosim.training.backbone import BackboneOutput, HardwareNetwork, pool
from cosim.training.cells import bound_loss, clip_
from cosim.training.config import (
    W_MAX,
    Architecture,
    TrainingConfig,
    check_config,
    describe_config,
    seed_path,
    state_path,
)
from cosim.training.hardware import RANGE_COST, Chips, margin_penalty, range_excess
from cosim.training.history import Passing, history_of_seeds, is_point
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
from cosim.training.supply import supply_currents

NEAR = (0.01, 0.02, 0.05)

Figures = dict[str, Any]  # JSON, as a checkpoint keeps it


def measure_figures(network: Network, task: Task) -> Figures:
    """Measure a trained network on a task's test samples: score, margins and size, as plain values for JSON."""
    trace = run_reference(network, task.x_test, task.len_test, "test data")
    figures: Figures = {"test_samples": len(task.x_test)}
    if task.labels:
        figures |= _classification(trace, task.y_test)
    else:
        figures["test_mae"] = float(np.abs(trace.scores - task.y_test).mean())
    if compared := [layer for layer in network.recurrent_layers if trace.layers[layer.name].window is not None]:
        figures["near_threshold"] = _near(compared, trace, deciding=False)
        figures["near_deciding_threshold"] = _near(compared, trace, deciding=True)
    arrays = [layer.arrays() for layer in (*network.layers, network.readout)]
    weights = [
        array for found in arrays for name, array in found.items() if name.startswith("weight") or name == "bias"
    ]
    figures["nonzero_weights"] = sum(int(np.count_nonzero(w)) for w in weights)
    return figures


def _classification(trace: Trace, y: np.ndarray) -> Figures:
    top = np.sort(trace.scores, axis=1)
    gap = top[:, -1] - top[:, -2]
    return {
        "test_accuracy": float((trace.decisions == y).mean()),
        "test_balanced_accuracy": balanced_accuracy(trace.decisions, y),
        "near_tie": {f"{limit:g}": float((gap < limit).mean()) for limit in NEAR},
    }


def _near(layers: Sequence[RecurrentLayer], trace: Trace, *, deciding: bool) -> dict[str, float]:
    """Return for each limit in NEAR the share of a trained network's candidates that are closer to a threshold.

    A candidate is one of (sample, valid step, unit).
    """
    valid = valid_steps(trace.lengths, trace.readout.shape[1])
    flat = np.concatenate([_distance(layer, trace, deciding=deciding)[valid].ravel() for layer in layers])
    return {f"{limit:g}": float((flat < limit).mean()) for limit in NEAR}


def _distance(layer: RecurrentLayer, trace: Trace, *, deciding: bool) -> np.ndarray:
    """Return the distance of a trained layer's candidates from their nearest threshold, (n, time, width), units.

    With `deciding` a threshold counts only where crossing it changes the next state by more than half a step, see
    cosim.training.cells. A value that is rounded to levels has the distance to the nearest turn, where the level
    changes. The distance is infinite for a layer that compares nothing.
    """
    found = trace.layers[layer.name]
    if not deciding or found.window is None or not isinstance(layer, EpsilonLayer):
        return threshold_distance(layer, trace)
    to_lo, to_hi = (np.abs(found.candidate - threshold) for threshold in found.window)
    states, start = found.h, layer.start
    if isinstance(layer, FirstQuadrantLayer):  # its q, which moves by 1
        states, step, start = 2 * states / layer.alpha - 1, np.ones(layer.width), -np.ones(layer.width)
    else:
        assert isinstance(layer, SignedLayer)
        step = layer.step(trace.read(layer.sources))
    before = np.concatenate([np.broadcast_to(start, states[:, :1].shape), states[:, :-1]], axis=1)
    kept, least = (1 - layer.epsilon) * before, np.abs(step) / 2
    decides_up, decides_down = np.abs(kept - step) > least, np.abs(kept + step) > least
    distance = np.minimum(np.where(decides_up, to_hi, np.inf), np.where(decides_down, to_lo, np.inf))
    return np.minimum(distance, value_distance(layer, trace))


LABEL_SMOOTHING = 0.05
BOUND_COST = 0.3  # loss per unit that the thresholds of a layer are near what no cell can have, on average
VALIDATION_CHIPS, TEST_CHIPS = 16, 64  # with mismatch: to choose the checkpoint, and for the figures
VALIDATION_SEED, TEST_SEED = 2**32, 2**33  # plus the run's own: chips that the training does not draw


Check = Callable[[Network], None]


@dataclass(frozen=True)
class TrainingJob:
    """A training to do: its settings and its task.

    passing: is called with each point of the training curve; check: raises MappingError for a network that cannot be
    compiled for its target, such as `cosim.compiler.passes.check_mapping`, None to accept every network; start: a
    trained network whose weights and input encoding the training begins with, but for the readout if it has another
    number of outputs; None for random weights.
    """

    config: TrainingConfig
    task: Task
    passing: Passing | None = None
    check: Check | None = None
    start: Network | None = None

    @property
    def settings(self) -> State:
        """Return the settings of the training as plain values for files, and the hash of the network to begin with."""
        begun = {} if self.start is None else {"from": hash_network(self.start)}
        return describe_config(self.config) | begun


def train(
    config: TrainingConfig, task: Task, path: Path, progress: LoopProgress | None = None, *, resume: bool = False
) -> Network:
    """Train a network for a task, whether the compiler accepts it or not; for arguments and errors see `run_job`."""
    return run_job(TrainingJob(config, task), path, progress, resume=resume)


def run_job(job: TrainingJob, path: Path, progress: LoopProgress | None = None, *, resume: bool = False) -> Network:
    """Train a network, write it to the checkpoint `path` (.pt or .npz), and return it, with its figures in its history.

    `progress(iteration, values)` is called after each iteration. An interrupted run leaves its state beside `path`.
    `resume` continues it to the same bytes as an unbroken run, and trains nothing if the training is already finished.
    Raises InputError for settings that are unusable or differ from the interrupted run's, and for a file that cannot be
    written or that another training writes; OutOfMemoryError.
    """
    check_config(job.config)
    with one_thread(), own_file(path), naming_memory("training", "take a smaller --batch, or fewer or shorter samples"):
        if resume and (done := find_finished(job, path)) is not None:
            clear_work(path)
            return done
        if not resume:
            clear_work(path)
        return _train(HardwareProblem(job), path, progress)


def _train(problem: "HardwareProblem", path: Path, progress: LoopProgress | None) -> Network:
    config, task, state = problem.config, problem.task, state_path(path)
    loop = TrainingLoop(problem, problem.job.passing)
    loop.run(state, progress)
    loop.take_best()
    network = problem.network()
    figures = measure_figures(network, task) | {"validation_loss": loop.rank[1]}
    if config.mismatch is not None:
        figures["chips"] = problem.measure_chips()
    history = {
        "settings": problem.settings,
        "data": problem.data,
        "figures": figures,
        "curve": loop.recorder.columns("accuracy" if task.labels else "mae"),
    }
    ranges = measure_state_ranges(network, task.x_train, task.len_train, "training data")
    network = replace(network, state_ranges=ranges)
    if refused := refusal(network, problem.job.check):
        figures["refused"] = refused
    network = replace(network, history=history)
    with loop.saying_what_is_kept(state):
        save_checkpoint(path, network)
    clear_work(path)
    return network


def train_seeds(
    job: TrainingJob, seeds: Sequence[int], path: Path, progress: SeedsProgress | None = None, *, resume: bool = False
) -> Network:
    """Train the job with each seed, one after another, and write the best of the networks to `path`.

    The best network is the one of smallest validation loss among those that can be compiled, if any can. Each seed's
    network is what `train` gives for that seed; it is kept beside `path` (`seed_path`) until all are done. After an
    interruption `resume` continues from these networks and the state of the unfinished seed. The history of the written
    network holds the figures and curves of all seeds. Raises the errors of `run_job`.
    """
    SEED.check("the last seed", seeds[-1], "take a smaller --seed or fewer --seeds")
    found: dict[int, Network] = {}
    with own_file(path):
        if not resume:
            clear_work(path)
        elif done := _all_finished(job, seeds, path):
            clear_work(path)
            return done
        for seed, tell in over_seeds(seeds, job.config.iterations, progress):
            own, kept = replace(job, config=replace(job.config, seed=seed)), seed_path(path, seed)
            if resume and kept.is_file() and find_finished(own, kept) is None:
                raise other_training(kept)
            found[seed] = run_job(own, kept, tell, resume=resume)
        figures = {seed: one.history["figures"] for seed, one in found.items()}
        best = found[min(seeds, key=lambda seed: _rank(figures[seed], seed))]
        curves = [one.history["curve"] for one in found.values()]
        network = replace(best, history=history_of_seeds(best.history, figures, curves))
        save_checkpoint(path, network)
        clear_work(path)
    return network


def _rank(figures: Figures, seed: int) -> tuple[bool, float, int]:
    """Return the rank of a seed's network, smaller for a better one: first by compiling, then by validation loss."""
    return "refused" in figures, figures["validation_loss"], seed


def _all_finished(job: TrainingJob, seeds: Sequence[int], path: Path) -> Network | None:
    """Return the network that a training of these seeds has left in `path`; None for a missing or another file."""
    each = [replace(job, config=replace(job.config, seed=seed)) for seed in seeds]
    return next((one for own in each if (one := find_finished(own, path, seeds)) is not None), None)


def find_finished(job: TrainingJob, path: Path, seeds: Sequence[int] = ()) -> Network | None:
    """Return the network of a job's finished training, with these settings and data; None if the file has no such one.

    seeds: all seeds of the training among whose networks this one was chosen, empty for a training with one seed.
    """
    if not path.is_file() or not is_written_here(path) or stays_software(path):
        return None
    network = load_network(path)
    if set(network.history.get("seeds", ())) != set(map(str, seeds)):
        return None
    wanted = json.loads(json.dumps({"settings": job.settings, "data": data_fingerprint(job.task)}))
    same = all(network.history.get(part) == value for part, value in wanted.items())
    return network if same and "figures" in network.history else None


def data_fingerprint(task: Task) -> str:
    """Return a hash of a task's name and training arrays, by which a resumed training knows whether they changed."""
    digest = hashlib.sha256(task.name.encode())
    for array in (task.x_train, task.y_train, task.len_train):
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class HardwareProblem(Problem[HardwareNetwork]):
    """The training of a job's network on batches in which every class is equally likely.

    The network is measured on held-out samples. A network that can be compiled is better than one that cannot; among
    equals the one of smaller loss is better. Only networks with the final epsilon are compared.
    """

    def __init__(self, job: TrainingJob) -> None:
        config, task = job.config, job.task
        self.job, self.config, self.task = job, config, task
        self.model = _initial_backbone(job)
        if config.spread is not None:
            counted = config.spread if config.margin_sigma > 0 else None
            self.model.set_devices(counted, config.spread if config.device_noise else None)
        self.seed, self.epsilon = config.seed, config.epsilon
        self.descent = seed_paper_descent(config.iterations, config.learning_rate)
        self.settings, self.data = job.settings, data_fingerprint(task)
        self.generator = torch.Generator().manual_seed(config.seed)
        held = hold_out(task, config.seed)
        self.fit, self.held = samples_of(task, ~held), samples_of(task, held)
        self.weights = sampling_weights(task.y_train[~held])

    def prepare(self, iteration: int, epsilon: float) -> None:
        self.model.set_epsilon(epsilon)

    def loss(self, iteration: int) -> Tensor:
        chosen = torch.multinomial(self.weights, self.config.batch, replacement=True, generator=self.generator)
        x, y, lengths = (part[chosen] for part in self.fit)
        # A chip for every sample: the gradient then averages over as many chips as the batch allows.
        chips = None if self.config.mismatch is None else self.draw_chips(len(x), self.generator)
        return self.loss_of(self.model(x, lengths, self.config.noise, self.generator, chips), y, lengths)

    def settle(self) -> None:
        clip_(self.model)

    def measure(self, iteration: int, loss: float, best: Rank) -> Measurement:
        total = self.config.iterations
        if not is_point(iteration, total):
            return Measurement()
        self.model.set_epsilon(epsilon_at(iteration, total, self.epsilon))
        x, y, lengths = self.held
        losses, scores = [], []
        with torch.no_grad():
            for output in self.run_chips(x, lengths, VALIDATION_CHIPS, VALIDATION_SEED):
                losses.append(self.loss_of(output, y, lengths).item())
                scores.append(self.score(output, y))
        validation = float(np.mean(losses)), float(np.mean(scores))
        final = iteration == total or epsilon_is_final(iteration, total, self.epsilon)
        if not final or (0.0, validation[0]) >= best:
            return Measurement(validation)
        return Measurement(validation, (float(bool(self.refusal())), validation[0]))

    def shown(self, epsilon: float, best: Rank | None) -> dict[str, float]:
        return {"epsilon": epsilon} | ({} if best is None else {"validation": best[1]})

    def state(self) -> State:
        return {"rng": self.generator.get_state()}

    def load(self, state: State) -> None:
        self.generator.set_state(state["rng"])

    def refusal(self) -> str:
        """Return the reason why the compiler refuses the network as trained so far, empty where it accepts it."""
        network, (x, _, lengths) = self.network(), self.held
        ranges = measure_state_ranges(network, x.numpy(), lengths.numpy(), "held-out data")
        return refusal(replace(network, state_ranges=ranges), self.job.check)

    def score(self, output: BackboneOutput, y: Tensor) -> float:
        """Return the network's share of right decisions in training, or of a regression the mean absolute error."""
        if self.task.labels:
            return (output.scores.argmax(dim=1) == y).double().mean().item()
        return (output.scores - y).abs().mean().item()

    def run_chips(self, x: Tensor, lengths: Tensor, count: int, seed: int) -> Iterator[BackboneOutput]:
        """Yield the outputs of all samples on each of `count` drawn chips, for validation and test of a training.

        Each call with one seed draws the same chips. Without mismatch there is one output, on nominal devices. Chips
        are run one at a time to save memory.
        """
        if self.config.mismatch is None:
            yield self.model(x, lengths)
            return
        rng = torch.Generator().manual_seed(seed + self.config.seed)
        for _ in range(count):
            yield self.model(x, lengths, chips=self.draw_chips(1, rng))

    def draw_chips(self, count: int, rng: torch.Generator) -> Chips:
        """Draw `count` chips for the training.

        Units whose epsilon is always 1 or -1 have a comparator for each threshold.
        """
        assert self.config.mismatch is not None
        return Chips(self.config.mismatch, count, rng, compared=self.config.epsilon in (1, -1))

    def loss_of(self, output: BackboneOutput, y: Tensor, lengths: Tensor) -> Tensor:
        """Compute a training's loss: of the task, penalties for margins and bounds, costs of weights and of power."""
        # Votes have no gradient: a voting network is trained on its mean readout.
        voting = self.config.architecture.pooling == "vote"
        scores = pool(output.readout, lengths, "mean") if voting else output.scores
        if self.task.labels:
            loss = torch.nn.functional.cross_entropy(scores, y, label_smoothing=LABEL_SMOOTHING)
        else:
            loss = torch.nn.functional.mse_loss(scores, y)
        valid = torch.arange(output.readout.shape[1])[None, :] < lengths[:, None]
        if self.config.range_max > 0:
            for name, cell in self.model.cells.items():
                loss = loss + RANGE_COST * range_excess(output.signals[name][valid], cell.start, self.config.range_max)
        if self.config.margin > 0:
            loss = loss + sum(margin_penalty(d[valid], self.config.margin) for d in output.distances.values())
        if self.config.margin_sigma > 0:
            loss = loss + sum(margin_penalty(d[valid], self.config.margin_sigma) for d in output.sigmas.values())
        if self.config.power_cost > 0:
            currents = supply_currents(self.model, output, valid)
            loss = loss + self.config.power_cost * torch.stack([*currents.values()]).sum()
        excess = bound_loss(self.model, self.config.mismatch)
        return loss + self.config.weight_cost * self.model.total_weight() + BOUND_COST * excess

    def network(self) -> Network:
        """Return the network in training as it is now, with the final epsilon."""
        return _as_network(self.model, self.config, self.task)

    @torch.no_grad()
    def measure_chips(self) -> dict[str, float]:
        """Measure the trained network's score on the test samples over TEST_CHIPS chips: mean and worst chip."""
        y, lengths = torch.from_numpy(self.task.y_test), torch.from_numpy(self.task.len_test)
        outputs = self.run_chips(torch.from_numpy(self.task.x_test), lengths, TEST_CHIPS, TEST_SEED)
        scores = [self.score(output, y) for output in outputs]
        figure, worst = ("test_accuracy", min) if self.task.labels else ("test_mae", max)
        return {"count": TEST_CHIPS, figure: float(np.mean(scores)), f"{figure}_worst": worst(scores)}


def refusal(network: Network, check: Check | None) -> str:
    """Return the reason why the compiler's check refuses a network in training, an empty text where it accepts it."""
    try:
        if check is not None:
            check(network)
    except MappingError as error:
        return str(error)
    return ""


def initial_network(job: TrainingJob) -> Network:
    """Return the network of a training before its first step, with the final epsilon.

    Its state ranges are those before the first step, too.
    """
    config, task = job.config, job.task
    network = _as_network(_initial_backbone(job), config, task)
    return replace(network, state_ranges=measure_state_ranges(network, task.x_train[:0], task.len_train[:0]))


def _as_network(backbone: HardwareNetwork, config: TrainingConfig, task: Task) -> Network:
    """Return a torch module in training as a network with the final epsilon."""
    backbone.set_epsilon(epsilon_at(config.iterations, config.iterations, config.epsilon))
    return backbone.to_network(task.name, task.labels, regression=not task.labels)


def _initial_backbone(job: TrainingJob) -> HardwareNetwork:
    config, task = job.config, job.task
    check_limits(config, task)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if job.start is not None:
            check_start(job.start, task)
            backbone, start = HardwareNetwork(config.architecture, job.start.encoding, task.outputs), job.start
            if needs_new_readout(start, task):
                start = replace(start, readout=backbone.to_network().readout)
            try:
                backbone.load_(start)
            except NetworkError as error:
                raise InputError(f"the network to begin with: {error}") from None
            return backbone
        encoding = task.encoding(ramp=config.architecture.ramp, levels=config.architecture.input_levels)
        return HardwareNetwork(config.architecture, encoding, task.outputs)


def check_start(start: Network, task: Task) -> None:
    """Raise InputError where a network to begin a training with does not read the features of the task."""
    features = task.x_train.shape[2]
    if start.encoding.features != features:
        raise InputError(
            f"the network to begin with reads {start.encoding.features} features and samples of {task.name} have "
            f"{features}; go on with a network for the same features"
        )


def needs_new_readout(start: Network, task: Task) -> bool:
    """Tell whether a task needs another number of outputs than a network to begin with has, or outputs of another kind.

    Names of classes do not count: a readout for as many classes is kept.
    """
    return bool(start.labels) != bool(task.labels) or len(start.readout.bias) != task.outputs


def describe_answers(start: Network, task: Task) -> str:
    """Return what a training does with the readout of a network for other classes; empty for the same classes."""
    if start.labels == tuple(task.labels) and not needs_new_readout(start, task):
        return ""
    there, here = _outputs(start.labels, len(start.readout.bias)), _outputs(task.labels, task.outputs)
    done = "begins with random weights" if needs_new_readout(start, task) else "is kept, class by class"
    return f"the network to begin with has {there}, and {task.name} {here}; the readout {done}"


def _outputs(labels: tuple[str, ...], count: int) -> str:
    return f"the classes {listed(labels)}" if labels else f"{count} real-valued outputs"


_FLOAT = 4  # byte
_COPIES = 5  # of a parameter: its value, its gradient, two moments of AdamW, the best one so far
_STATES = 4  # numbers that a unit keeps of each step for the gradient: candidate, state, distance, and the gradient
_LEVEL = 16.0  # the largest state of a unit that keeps no count


def count_weights(architecture: Architecture, inputs: int, outputs: int) -> int:
    """Return the number of weights, without biases, of a network to train with so many input currents and outputs."""
    cells, read = architecture.cells, inputs * (1 + architecture.taps) + architecture.lines
    count, previous = architecture.lines * inputs, read
    if architecture.hidden:
        count, previous = count + read * architecture.hidden, architecture.hidden
    for layer in range(architecture.layers):
        skipped = inputs if architecture.skip and layer else 0
        count += cells * (previous + skipped + (cells if architecture.feedback else 0))
        previous = cells
    return count + outputs * _readout_width(architecture)


def least_memory(config: TrainingConfig, task: Task) -> float:
    """Return the least number of bytes that a training needs: for its parameters and for the gradient of a batch."""
    architecture, steps = config.architecture, task.x_train.shape[1]
    inputs = task.x_train.shape[2] + architecture.ramp
    parameters = _COPIES * count_weights(architecture, inputs, task.outputs)
    width = inputs + architecture.hidden + _STATES * architecture.layers * architecture.cells
    return float(_FLOAT) * (parameters + config.batch * steps * width)


def check_limits(config: TrainingConfig, task: Task) -> None:
    """Check that a task can be trained within the memory, and that its targets and inputs suit this network.

    Raises OutOfMemoryError where the memory is too small, InputError for tokens as inputs, and for targets that no
    readout of this network could hold, with the range that it can.
    """
    if task.tokens is not None:
        raise InputError(
            f"task {task.name} gives the index of one of {task.tokens} tokens at each step, which the hardware has no "
            "embedding for; take a model that stays software, or give one input a token (one-hot) as the task npz"
        )
    check_memory(least_memory(config, task), "training", "take smaller --cells, --layers, --hidden or --batch")
    if task.labels:
        return
    states, steps = _readout_width(config.architecture), task.x_train.shape[1]
    largest = max(_LEVEL, float(steps), W_MAX * (1 + task.x_train.shape[2]))
    most = W_MAX * (1 + states * largest)
    for key, y in (("y_train", task.y_train), ("y_test", task.y_test)):
        worst = float(y.flat[np.abs(y).argmax()])
        if worst not in Bounds(-most, most):
            raise InputError(
                f"{task.name}: {key} must lie in {-most:g} to {most:g}, which a readout of {states} states with "
                f"weights up to {W_MAX:g} can hold, not {worst:g}; scale the targets"
            )


def _readout_width(architecture: Architecture) -> int:
    """Return how many states the readout reads."""
    return architecture.cells * (architecture.layers if architecture.skip else 1)


Samples = tuple[Tensor, Tensor, Tensor]  # x, y, lengths


def samples_of(task: Task, mask: np.ndarray) -> Samples:
    """Return the samples that a mask (n,) selects as tensors for the training loop."""
    x, y, lengths = (torch.from_numpy(part[mask]) for part in (task.x_train, task.y_train, task.len_train))
    return x, y, lengths


def sampling_weights(y: np.ndarray) -> Tensor:
    """Return the relative chance (n,) of each sample to be drawn into a training batch: classes are equally likely.

    y: labels (n,); with targets of more dimensions all samples have the same chance.
    """
    if y.ndim != 1:
        return torch.ones(len(y))
    counts = np.bincount(y)
    return torch.from_numpy(1.0 / counts[y])
