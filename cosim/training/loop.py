"""The loop of all trainings: AdamW, schedules, and the best model by its measured rank; resumable to the bit.

A training is a `Problem`: a model, the loss of each iteration, and what is measured after it. Iteration i = 0, 1, ...:

    prepare(i, epsilon)      widths, epsilon and the like are set as the schedule has them
    loss(i)                  of a batch that a seeded generator draws; AdamW follows its gradient
    settle()                 parameters that left their range come back
    measure(i + 1, best)     now and then: a point of the curve, a rank that is compared with the best so far, an end

Schedules of epsilon and the learning rate are those of the seed paper (arXiv 2605.11855, appendix D and F.8). The state
file holds everything that the next iteration depends on. It is written SAVES times during a training, and when a signal
interrupts it. A training reads only an undamaged state file that fits its own settings and data.
"""

import io
import math
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from cosim.base.arrays import read_torch
from cosim.base.errors import InputError
from cosim.base.seal import is_whole, seal_zip
from cosim.base.text import check_plain, parsing, shown, shown_path
from cosim.base.write import check_writable, write_atomically
from cosim.training.history import Passing, Recorder

SAVES = 20  # of the state, over the whole training
State = dict[str, Any]  # plain values and tensors, as torch.save writes them
Rank = tuple[float, float]  # of a model that is measured: the smaller, the better
LoopProgress = Callable[[int, dict[str, float]], None]  # iterations that are done, and figures so far
SeedsProgress = Callable[[int, int, dict[str, float]], None]  # iterations that are done of all seeds, and how many
M = TypeVar("M", bound=nn.Module)
_WORST: Rank = (math.inf, math.inf)
HOLD_FRACTION = 0.05  # epsilon stays at 1
DECAY_FRACTION = 0.70  # then falls linearly to exactly 0; the rest of the training runs at 0
WARMUP_FRACTION = 0.01
_GROWTH = 4  # of the bytes of a state: two moments of the optimiser and the best network come to the weights
_REPAIR = "begin anew with --fresh"


def epsilon_at(iteration: int, total: int, epsilon: float | None) -> float:
    """Return the epsilon of a training's iteration 0 .. total - 1: for None annealed from 1 to 0, else constant."""
    if epsilon is not None:
        return epsilon
    hold, decay = HOLD_FRACTION * total, DECAY_FRACTION * total
    return min(max(1.0 - (iteration - hold) / decay, 0.0), 1.0)


def epsilon_is_final(iteration: int, total: int, epsilon: float | None) -> bool:
    """Tell whether a training's epsilon stays constant from this iteration on, so that a checkpoint may be taken."""
    return epsilon is not None or epsilon_at(iteration, total, None) == 0.0


def learning_rate_at(iteration: int, total: int, peak: float, floor: float = 1e-2) -> float:
    """Return the learning rate of a training's iteration.

    It rises linearly over 1 % of the iterations, then falls as a cosine to `floor` times the peak.
    """
    warmup = max(1, round(WARMUP_FRACTION * total))
    if iteration < warmup:
        return peak * (iteration + 1) / warmup
    progress = (iteration - warmup) / max(1, total - warmup)
    return peak * (floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress)))


@dataclass(frozen=True)
class Descent:
    """Settings of AdamW for a training.

    learning_rate: the peak of warm-up and cosine, or with `constant` the rate throughout; gradient_norm: the largest
    norm of the gradient, which is scaled down to it, None for no limit; fused: torch updates all parameters in one
    call.
    """

    iterations: int
    learning_rate: float
    constant: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    gradient_norm: float | None = None
    fused: bool = False

    def rate_at(self, iteration: int) -> float:
        """Return the learning rate of a training's iteration 0, 1, ..."""
        if self.constant:
            return self.learning_rate
        return learning_rate_at(iteration, self.iterations, self.learning_rate)


def seed_paper_descent(iterations: int, learning_rate: float) -> Descent:
    """Return the seed paper's settings of AdamW for a training loop (arXiv 2605.11855, F.8).

    They are a small weight decay, a gradient norm of at most 1, warm-up and cosine.
    """
    return Descent(iterations, learning_rate, betas=(0.9, 0.99), weight_decay=1e-4, gradient_norm=1.0, fused=True)


@dataclass(frozen=True)
class Measurement:
    """Figures of a model after an iteration of its training.

    validation: loss and score of held-out samples, a point of the curve, None where nothing was measured; rank: of the
    model, smaller for a better one, None where the model may not become the checkpoint; finished: the training ends
    here.
    """

    validation: tuple[float, float] | None = None
    rank: Rank | None = None
    finished: bool = False


class Problem(ABC, Generic[M]):
    """A training: its model, seed and descent, the loss of an iteration, and what is measured after it.

    settings: the settings that decide the training's result, as plain values, with `iterations`; data: a text that
    differs where the samples differ. A saved state is resumed only where both are unchanged. epsilon: a number, or None
    to anneal it from 1 to 0. rng: draws the batches, unless a subclass saves another generator in `state`.
    """

    model: M
    seed: int
    descent: Descent
    epsilon: float | None = 0.0
    settings: State
    data: str = ""
    rng: np.random.Generator

    def parameters(self) -> Iterable[Any]:
        """Return the parameters that AdamW trains, or groups of them with options of their own."""
        return self.model.parameters()

    def prepare(self, iteration: int, epsilon: float) -> None:
        """Set the model's scheduled values, such as epsilon, for iteration 0, 1, ... of the training."""

    @abstractmethod
    def loss(self, iteration: int) -> Tensor:
        """Draw the training batch of iteration 0, 1, ... and compute its loss."""

    def settle(self) -> None:
        """Pull trained parameters back into their range, after an optimiser step."""

    def measure(self, iteration: int, loss: float, best: Rank) -> Measurement:
        """Measure the model after `iteration` iterations; loss: of the last batch; best: the smallest rank so far."""
        return Measurement()

    def shown(self, epsilon: float, best: Rank | None) -> dict[str, float]:
        """Return figures that the progress of the training shows besides the loss; best: the smallest rank so far."""
        return {}

    def state(self) -> State:
        """Return what the next training batch or measurement needs beside the model: plain values and tensors."""
        return {"rng": self.rng.bit_generator.state}

    def load(self, state: State) -> None:
        """Set the problem to a saved state of its training, which an earlier call of `state` returned."""
        self.rng.bit_generator.state = state["rng"]


class TrainingLoop:
    """The training of a problem, with its optimiser, curve and best model.

    passing: is called with each point of the curve.
    """

    def __init__(self, problem: Problem[Any], passing: Passing | None = None) -> None:
        self.problem, descent = problem, problem.descent
        self.optimiser = torch.optim.AdamW(
            problem.parameters(), descent.learning_rate, descent.betas, weight_decay=descent.weight_decay,
            fused=descent.fused,
        )  # fmt: skip
        self.recorder = Recorder(descent.iterations, problem.seed, passing)
        self.iteration = self.saved = 0
        self.finished = False
        self.rank = _WORST
        self.best: dict[str, Tensor] | None = None

    @property
    def done(self) -> bool:
        """Tell whether a training's last iteration is done, or the problem has ended the training."""
        return self.finished or self.iteration >= self.problem.descent.iterations

    def run(self, path: Path | None = None, progress: LoopProgress | None = None) -> None:
        """Train to the last iteration, on one thread of a CPU; `progress` is called after each iteration.

        path: the state file. If it exists, the training continues from it, to the same bytes as an unbroken training. A
        first SIGINT or SIGTERM takes effect once the state is written. Raises TrainingError for a loss that is not
        finite; InputError for a state file of other settings or data, and where the file cannot be written.
        """
        on_cpu = next(self.problem.model.parameters()).device.type == "cpu"
        with one_thread() if on_cpu else nullcontext():
            if path is None:
                self._iterate(None, progress, lambda: False)
                return
            if path.is_file():
                self.load(path)
            check_writable(path, _GROWTH * len(_state_bytes(self.state())))
            while not self.done:
                with deferred_signals() as interrupted:
                    self._iterate(path, progress, interrupted)

    def _iterate(self, path: Path | None, progress: LoopProgress | None, interrupted: Callable[[], bool]) -> None:
        """Iterate to the end or until `interrupted()`; save the state SAVES times, and when interrupted."""
        save_every = max(1, self.problem.descent.iterations // SAVES)
        while not self.done and not interrupted():
            values = self.step()
            if path is not None and self.iteration % save_every == 0 and not self.done:
                self.save(path)
            if progress is not None:
                progress(self.iteration, values)
        if path is not None and interrupted():
            self.save(path)

    def step(self) -> dict[str, float]:
        """Run one iteration of the training, measure the model, and return the figures for its progress."""
        problem, descent, i = self.problem, self.problem.descent, self.iteration
        rate, epsilon = descent.rate_at(i), epsilon_at(i, descent.iterations, problem.epsilon)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        problem.prepare(i, epsilon)
        loss = problem.loss(i)
        self.optimiser.zero_grad()
        loss.backward()
        if descent.gradient_norm is not None:
            nn.utils.clip_grad_norm_(problem.model.parameters(), descent.gradient_norm)
        self.optimiser.step()
        problem.settle()
        self.iteration += 1
        value = loss.item()
        self.recorder.add_loss(self.iteration, value)
        found = problem.measure(self.iteration, value, self.rank)
        self.finished = found.finished
        if found.rank is not None and found.rank < self.rank:
            self.rank = found.rank
            self.best = {name: value.clone() for name, value in problem.model.state_dict().items()}
        if found.validation is not None:
            self.recorder.add_point(self.iteration, found.validation, epsilon, rate)
        return {"loss": value} | problem.shown(epsilon, None if self.best is None else self.rank)

    def take_best(self) -> None:
        """Give the trained model the parameters of the smallest rank, if any rank was measured."""
        if self.best is not None:
            self.problem.model.load_state_dict(self.best)

    def state(self) -> State:
        """Return all that the training's next iteration depends on, on the CPU."""
        return {
            "config": self.problem.settings,
            "data": self.problem.data,
            "iteration": self.iteration,
            "finished": self.finished,
            "model": _on_cpu(self.problem.model.state_dict()),
            "optimiser": _on_cpu(self.optimiser.state_dict()),
            "rank": list(self.rank),
            "best": _on_cpu(self.best),
            "own": self.problem.state(),
            "curve": self.recorder.rows,
        }

    def save(self, path: Path) -> None:
        """Write the training's state. Raises InputError when it cannot be written."""
        with self.saying_what_is_kept(path):
            write_state(path, self.state())
        self.saved = self.iteration

    @contextmanager
    def saying_what_is_kept(self, path: Path) -> Generator[None, None, None]:
        """Add to an InputError of a failed write in this `with` block what is kept of the training at `path`."""
        try:
            yield
        except InputError as error:
            kept = f"iteration {self.saved} of {self.problem.descent.iterations} is kept in {path}"
            kept = f"{kept}: the same command goes on" if self.saved else "nothing of the training is kept"
            raise InputError(f"{error}; {kept}") from None

    def load(self, path: Path) -> None:
        """Resume a training from its saved state. Raises InputError where it belongs to another training."""
        moved = [value for group in self.optimiser.param_groups for value in group["params"]]
        own = [value.detach().cpu().requires_grad_(value.requires_grad) for value in moved]
        state = read_state(path, self.state(), own)
        with parsing(str(path), "the state of such a training", _REPAIR):
            self.problem.model.load_state_dict(state["model"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.problem.load(state["own"])
        self.iteration = self.saved = state["iteration"]
        self.finished, self.recorder.rows = state["finished"], state["curve"]
        self.rank, best = (state["rank"][0], state["rank"][1]), state["best"]
        self.best = best and {name: value.to(moved[0].device) for name, value in best.items()}


def over_seeds(
    seeds: Sequence[int], iterations: int, progress: SeedsProgress | None
) -> Iterator[tuple[int, LoopProgress]]:
    """Yield each seed to train with, and the progress function for its training loop.

    `progress` is called with the iterations done of all seeds together, their total, and the figures.
    """
    for i, seed in enumerate(seeds):

        def tell(done: int, values: dict[str, float], before: int = i * iterations) -> None:
            if progress is not None:
                progress(before + done, len(seeds) * iterations, values)

        yield seed, tell


def _on_cpu(value: Any) -> Any:  # noqa: ANN401
    """Return the state of a training, nested as before, with all tensors on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return type(value)((key, _on_cpu(inner)) for key, inner in value.items())
    return [_on_cpu(inner) for inner in value] if isinstance(value, list) else value


@contextmanager
def one_thread() -> Generator[None, None, None]:
    """Let torch compute on one thread: the tensors are so small that more threads only wait, and could change sums."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def deferred_signals() -> Generator[Callable[[], bool], None, None]:
    """Hold back the first SIGINT or SIGTERM during this `with` block of a training; yields a function that tells of it.

    After the block the signal reaches its earlier handler. A second signal reaches it at once. Signals that are ignored
    are left alone, and so are all signals outside the main thread, where Python handles none.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if threading.current_thread() is not threading.main_thread():
        before = {}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    noted: list[int] = []

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(noted)
    finally:
        restore()
    if noted:
        signal.raise_signal(noted[0])


def write_state(path: Path, state: State) -> None:
    """Write a training's state, tensors and plain values, with a checksum, in the form that `read_state` reads."""
    write_atomically(path, _state_bytes(state))


def _state_bytes(state: State) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return seal_zip(buffer.getvalue())


def read_state(path: Path, own: State, parameters: Sequence[Tensor]) -> State:
    """Read a training's state from a file and check it against `own`, the state of this run.

    It must have the settings, data, parts, types and shapes of `own`. parameters: those that the optimiser trains, in
    order. Raises InputError that says what differs.
    """
    if not is_whole(path):
        raise InputError(f"{path}: this training state is damaged or of an earlier cosim; {_REPAIR}")
    found = read_torch(path, _REPAIR)
    if not isinstance(found, dict) or found.keys() != own.keys():
        raise InputError(f"{path}: this training state has other parts than {', '.join(own)}; {_REPAIR}")
    if found["data"] != own["data"]:
        raise InputError(f"{path}: the training data has changed since; begin anew with --fresh")
    settings = check_plain(found["config"], f"{path}: config", _REPAIR, finite=False)
    if settings != own["config"]:
        raise InputError(
            f"{path}: the training state belongs to other settings: {_difference(settings, own['config'])}; "
            "go on with the settings of the first run, or begin anew with --fresh"
        )
    iteration = found["iteration"]
    if not isinstance(iteration, int) or not 0 <= iteration <= settings["iterations"]:
        raise InputError(f"{path}: iteration must be 0 to {settings['iterations']}, not {shown(iteration)}; {_REPAIR}")
    moments = {}
    if iteration > 0:
        step = torch.tensor(0.0)
        moments = {
            i: {"step": step, "exp_avg": one.data, "exp_avg_sq": one.data}
            for i, one in enumerate(parameters)
            if one.requires_grad
        }
    best = None if found["best"] is None else dict(own["model"])
    form = own | {"optimiser": own["optimiser"] | {"state": moments}, "best": best}
    state = _fitted(found, form, str(path))
    assert isinstance(state, dict)  # as `form` is
    state["optimiser"]["param_groups"] = own["optimiser"]["param_groups"]  # settings, which are this run's own
    return state


def other_training(path: Path) -> InputError:
    """Return the error for a finished network of another training at the path where this training keeps its own."""
    return InputError(
        f"{shown_path(path)}: belongs to a training with other settings or data; go on with those of the first run, or "
        f"{_REPAIR}"
    )


def _fitted(found: object, wanted: object, where: str, name: str = "") -> object:
    """Return a copy of `found`, a part of a saved state, if its keys, lengths, types and shapes are those of `wanted`.

    Values may differ. Raises InputError that names the part.
    """
    fault = _misfit(found, wanted)
    if fault:
        raise InputError(f"{where}: {name} must {fault}; {_REPAIR}")
    if isinstance(found, Tensor):
        return found.clone()
    inside = f"{name}." if name else ""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return type(wanted)((key, _fitted(found[key], wanted[key], where, f"{inside}{key}")) for key in wanted)
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        parts = enumerate(zip(found, wanted, strict=True))
        return type(wanted)(_fitted(one, other, where, f"{inside}{i}") for i, (one, other) in parts)
    return found


def _misfit(found: object, wanted: object) -> str:
    if type(found) is not type(wanted):
        return f"be of type {type(wanted).__name__}, not {shown(type(found).__name__)}"
    if isinstance(wanted, Tensor) and isinstance(found, Tensor):
        (there, here) = ((tuple(one.shape), one.dtype, one.layout, one.device.type) for one in (found, wanted))
        return "" if there == here else f"have shape {here[0]} of {here[1]}, not {there[0]} of {there[1]}"
    if isinstance(wanted, dict) and isinstance(found, dict) and found.keys() != wanted.keys():
        return f"have the keys {shown(list(wanted))}, not {shown(list(found))}"
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple) and len(found) != len(wanted):
        return f"have length {len(wanted)}, not {len(found)}"
    return ""


def _difference(found: object, wanted: State) -> str:
    old, new = _flatten(found), _flatten(wanted)
    devices = _table(_table(found).get("mismatch")) | _table(wanted.get("mismatch"))
    both = [key for key in new | old if key not in devices or (key in old and key in new)]
    changed = [key for key in both if old.get(key) != new.get(key)]
    return ", ".join(f"{key} {_setting(old, key)} not {_setting(new, key)}" for key in changed)


def _setting(settings: State, key: str) -> str:
    return shown(settings[key]) if key in settings else "left out"


def _flatten(settings: object) -> State:
    """Return a training's settings in one level, with those of the tables `architecture` and `mismatch`."""
    table, inner = _table(settings), ("architecture", "mismatch")
    variation = "none" if table.get("mismatch") is None else "local"
    flat = table | _table(table.get("architecture")) | {"variation": variation}
    return {key: value for key, value in (flat | _table(table.get("mismatch"))).items() if key not in inner}


def _table(value: object) -> State:
    return value if isinstance(value, dict) else {}
