"""Train blocks on strings whose answer is known behind every symbol, until long ones are answered without an error."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from cosim.automata.learn import Oracle, Word
from cosim.automata.partial import Fewest, fewest
from cosim.automata.strings import StringTask
from cosim.automata.train_blocks import BlockRecurrence, BlockShape
from cosim.base.errors import InputError
from cosim.training.loop import Descent, Measurement, Problem, Rank, TrainingLoop

LONG, LONG_STRINGS = 500, 64  # what tells whether it is learned
CHECK_EVERY = 50  # iterations
LENGTH, BATCH, MOST = 20, 64, 6000
LEARNING_RATE = 3e-3


@dataclass(frozen=True)
class TrainedBlocks:
    """accuracy: the share of answers of concern that were right on long strings, when last checked; wrong: states of
    hard blocks, of those that any string leads to, behind which the answer is wrong, None if that was not asked."""

    model: BlockRecurrence
    iterations: int
    loss: float
    accuracy: float
    wrong: int | None

    @property
    def learned(self) -> bool:
        """Tell whether every answer on long strings was right, and no state of hard blocks was found wrong."""
        return self.accuracy == 1.0 and not self.wrong


Progress = Callable[[TrainedBlocks], None]  # at every check


def train_blocks(
    task: StringTask,
    shape: BlockShape,
    seed: int,
    progress: Progress | None = None,
    *,
    length: int = LENGTH,
    most: int = MOST,
) -> TrainedBlocks:
    """Adam, cross entropy behind every symbol of strings of `length`; `most` iterations, or until it is learned.

    That is where all long strings are answered right, and with hard blocks the shortest string to each of their states,
    for random ones leave seldom states out.
    """
    problem = StringProblem(task, shape, seed, length, most)
    problem.progress = progress
    TrainingLoop(problem).run()
    return problem.found


class StringProblem(Problem[BlockRecurrence]):
    """The training of blocks on strings, which ends when they have learned; `found`: what the last check says, which
    `progress` hears."""

    progress: Progress | None = None

    def __init__(self, task: StringTask, shape: BlockShape, seed: int, length: int, most: int) -> None:
        self.task, self.seed, self.length = task, seed, length
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = BlockRecurrence(len(task.alphabet.symbols), len(task.alphabet.labels), shape)
        self.descent = Descent(most, LEARNING_RATE, constant=True)
        self.settings = asdict(shape) | {"iterations": most, "length": length}
        self.rng, self.found = np.random.default_rng(seed), TrainedBlocks(self.model, 0, float("nan"), 0.0, None)

    def loss(self, iteration: int) -> Tensor:
        strings = self.task.draw(self.rng, BATCH, self.length)
        counts = torch.from_numpy(self.task.concerned(self.length))
        scores, wanted = self.model(torch.from_numpy(strings)), torch.from_numpy(self.task.answers(strings))
        return torch.nn.functional.cross_entropy(scores[:, counts].flatten(0, 1), wanted[:, counts].flatten())

    def measure(self, iteration: int, loss: float, best: Rank) -> Measurement:
        if iteration % CHECK_EVERY and iteration < self.descent.iterations:
            return Measurement()
        self.found = _check(self.model, self.task, iteration, loss)
        if self.progress is not None:
            self.progress(self.found)
        return Measurement(finished=self.found.learned)


def _check(model: BlockRecurrence, task: StringTask, iteration: int, loss: float) -> TrainedBlocks:
    accuracy = accuracy_of(model, task, LONG, LONG_STRINGS)
    ask = accuracy == 1.0 and model.shape.form == "hard"
    return TrainedBlocks(model, iteration, loss, accuracy, _wrong_states(model, task) if ask else None)


def _wrong_states(model: BlockRecurrence, task: StringTask) -> int:
    words, decided = model.automata().words(task.alphabet.turns)
    lengths = np.array([len(word) for word in words])
    right = task.answers(_padded(words))[np.arange(len(words)), lengths - 1]
    counts = task.concerned(lengths.max())[lengths - 1] & (lengths > 0)
    return int((decided != right)[counts].sum())


def _padded(words: Sequence[Word]) -> np.ndarray:
    """Strings (n, longest), with symbol 0 behind their ends."""
    strings = np.zeros((len(words), max(map(len, words))), dtype=np.int64)
    for row, word in zip(strings, words, strict=True):
        row[: len(word)] = word
    return strings


def accuracy_of(model: BlockRecurrence, task: StringTask, steps: int, count: int, seed: int = 2**32) -> float:
    """Return the share of right answers, of those that count, on random strings (count, steps)."""
    strings = task.draw(np.random.default_rng(seed), count, steps)
    counts = task.concerned(steps)
    return float((say(model, strings) == task.answers(strings))[:, counts].mean())


def say(model: BlockRecurrence, strings: np.ndarray) -> np.ndarray:
    """Return a model's decision behind each symbol of strings, (n, time) whole numbers of the same shape."""
    if model.shape.form == "hard":
        return model.automata().run(strings)
    with torch.no_grad():
        return model(torch.from_numpy(strings)).argmax(dim=2).numpy()


def extract(trained: TrainedBlocks, task: StringTask) -> Fewest:
    """Return an automaton of few states that hard blocks follow. Raises InputError for blocks that have not learned."""
    if not trained.learned:
        raise InputError(
            f"{task.name}: blocks must answer strings of {LONG} symbols without an error, and are right on "
            f"{trained.accuracy:.2%} after {trained.iterations} iterations, wrong in {trained.wrong or 0} of their "
            "states; take another --seed, or more or larger --blocks"
        )
    return fewest(trained.model.automata().product(task.alphabet))


def blocks_oracle(model: BlockRecurrence) -> Oracle:
    """Return an oracle for `cosim.automata.learn` that says a model's decision after each symbol."""

    def answer(words: Sequence[Word]) -> list[Word]:
        decided = say(model, _padded(words))
        return [tuple(row[: len(word)].tolist()) for row, word in zip(decided, words, strict=True)]

    return answer
