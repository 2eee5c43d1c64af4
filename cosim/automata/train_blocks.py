"""Block-diagonal linear recurrence whose matrix depends on the input (arXiv 2309.07412), real-valued or hard.

    x_k = A_k x_{k-1} + B u_k ;  A_k = diag(A_k^(1), ..., A_k^(h)), blocks (b, b) from a perceptron of u_k     (5), (6)

The blocks of A_k have one of three forms:

    columns   every column v of a block: v / max(1, ||v||_p), p = 1.2                                          (6)
    blocks    as in the authors' code: subtract each column's mean, divide a block by its largest column p-norm
    hard      every column one-hot at its largest entry, with the gradient of softmax; B = 0, x_{-1} = e_1

A hard block is a deterministic automaton of b states: x stays one-hot, so it cannot drift. Symbols are one-hot, so
there are as many A_k as symbols.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from cosim.automata.automaton import Automaton, Whole
from cosim.automata.blocks import KEEP, BlockAutomata, StringTask, fewest
from cosim.automata.learn import Oracle, Word
from cosim.base.errors import InputError
from cosim.network.layers import Array
from cosim.training.cells import FirstQuadrantCell
from cosim.training.config import Architecture
from cosim.training.loop import Descent, Measurement, Problem, Rank, TrainingLoop

Form = Literal["hard", "columns", "blocks"]
P_NORM = 1.2
_TINY = 1e-12


@dataclass(frozen=True)
class BlockShape:
    """The shape of a block-diagonal recurrence with its decoder.

    blocks: number of blocks; states: of each block; form: of the matrices, see the module's docstring; hidden: hidden
    units of the decoder, 0 for a linear decoder; embedding: hidden units of the perceptron that maps a symbol to a
    matrix; bits: BMRU units beside the blocks, which read the symbol and the blocks' states before it.
    """

    blocks: int = 8
    states: int = 8
    form: Form = "hard"
    hidden: int = 64
    embedding: int = 64
    bits: int = 0


def unit_columns(a: Tensor) -> Tensor:
    """Scale every column of matrices (..., b, b) to a p-norm of at most 1, equation (6); p = 1.2."""
    return a / torch.linalg.vector_norm(a, P_NORM, dim=-2, keepdim=True).clamp(min=1.0)


def unit_blocks(a: Tensor) -> Tensor:
    """Shift the columns of matrices (..., b, b) to mean 0, then scale each matrix to a largest column p-norm of 1."""
    centred = a - a.mean(dim=-2, keepdim=True)
    norms = torch.linalg.vector_norm(centred, P_NORM, dim=-2, keepdim=True)
    return centred / norms.amax(dim=-1, keepdim=True).clamp(min=_TINY)


def one_hot_columns(logits: Tensor) -> Tensor:
    """Replace each column of logits (..., b, b) by the one-hot vector of its largest entry; backward it is softmax."""
    soft = logits.softmax(dim=-2)
    hard = torch.zeros_like(soft).scatter(-2, soft.argmax(dim=-2, keepdim=True), 1.0)
    return hard + (soft - soft.detach())


def recur(a: Tensor, c: Tensor, start: Tensor) -> Tensor:
    """Compute x_k = A_k x_{k-1} + c_k step by step, (n, time, h, b), for h blocks of b states.

    a: matrices A_k, (n, time, h, b, b); c: (n, time, h, b); start: x_{-1}, (h, b).
    """
    x, found = start.expand_as(c[:, 0]), list[Tensor]()
    for k in range(a.shape[1]):
        x = (a[:, k] @ x[..., None])[..., 0] + c[:, k]
        found.append(x)
    return torch.stack(found, dim=1)


def scan_blocks(a: Tensor, c: Tensor, start: Tensor) -> Tensor:
    """Compute the states of `recur` from its arguments by a parallel scan: 2 log2(time) levels, O(b^3 h time)."""
    first = (a[:, :1] @ start[..., None])[..., 0] + c[:, :1]
    return _scan(a, torch.cat([first, c[:, 1:]], dim=1))


def _scan(a: Tensor, c: Tensor) -> Tensor:
    """Compute x_k = A_k x_{k-1} + c_k from x_0 = c_0 by a parallel scan: neighbours are joined, recursively."""
    steps = c.shape[1]
    if steps == 1:
        return c
    later, pairs = a[:, 1::2], steps // 2
    front_a, front_c = a[:, 0 : 2 * pairs : 2], c[:, 0 : 2 * pairs : 2]
    odd = _scan(later @ front_a, (later @ front_c[..., None])[..., 0] + c[:, 1::2])
    even = (a[:, 2::2] @ odd[:, : (steps - 1) // 2, ..., None])[..., 0] + c[:, 2::2]
    found = torch.empty_like(c)
    found[:, 0], found[:, 1::2], found[:, 2::2] = c[:, 0], odd, even
    return found


class _Follow(torch.autograd.Function):
    """The recurrence x_k = A_k x_{k-1} from e_1 with one-hot A_k: states and gradients are looked up."""

    @staticmethod
    def forward(ctx: torch.autograd.Function, table: Tensor, u: Tensor) -> Tensor:
        follow = table.argmax(dim=2)[u]  # (n, time, h, b)
        states = [torch.zeros_like(follow[:, 0, :, :1])]
        for k in range(u.shape[1]):
            states.append(follow[:, k].gather(2, states[-1]))
        before = torch.stack(states[:-1], dim=1)[..., 0]
        ctx.save_for_backward(follow, before, u)
        ctx.shape = table.shape  # type: ignore[attr-defined]
        after = torch.stack(states[1:], dim=1)
        return torch.zeros(follow.shape, dtype=table.dtype).scatter(3, after, 1.0)

    @staticmethod
    def backward(ctx: torch.autograd.Function, *grads: Tensor) -> tuple[Tensor, None]:
        follow, before, u = list(ctx.saved_tensors)
        found = [grads[0][:, -1]]
        for k in range(u.shape[1] - 1, 0, -1):
            found.append(grads[0][:, k - 1] + found[-1].gather(2, follow[:, k]))
        symbols, h, b, _ = ctx.shape  # type: ignore[attr-defined]
        column = (u[..., None] * h + torch.arange(h)) * b + before
        table = torch.zeros(symbols * h * b, b, dtype=grads[0].dtype)
        table.index_add_(0, column.flatten(), torch.stack(found[::-1], dim=1).reshape(-1, b))
        return table.view(symbols, h, b, b).transpose(2, 3), None


def follow_hard(table: Tensor, u: Tensor) -> Tensor:
    """Compute the one-hot states x_k = A_k x_{k-1} of h automata of b states from e_1, (n, time, h, b).

    table: one-hot matrices A of each symbol, (symbols, h, b, b); u: strings of symbol indices, (n, time).
    """
    return _Follow.apply(table, u)  # type: ignore[no-any-return]


def _decoder(width: int, hidden: int, labels: int) -> nn.Module:
    if not hidden:
        return nn.Linear(width, labels)
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, labels))


class BlockRecurrence(nn.Module):
    """A trainable block-diagonal recurrence: symbol indices (n, time) to scores of labels, (n, time, labels)."""

    def __init__(self, symbols: int, labels: int, shape: BlockShape) -> None:
        super().__init__()
        self.shape, self.symbols = shape, symbols
        width = shape.blocks * shape.states
        self.perceptron = nn.Sequential(
            nn.Linear(symbols, shape.embedding), nn.ReLU(), nn.Linear(shape.embedding, width * shape.states)
        )
        self.decoder = _decoder(width + shape.bits, shape.hidden, labels)
        start = torch.zeros(shape.blocks, shape.states)
        start[:, 0] = 1.0
        hard = shape.form == "hard"
        self.start = nn.Parameter(start, requires_grad=not hard)
        self.drive = None if hard else nn.Linear(symbols, width, bias=False)
        self.bits = None
        if shape.bits:
            self.bits = FirstQuadrantCell(symbols + width, Architecture(cells=shape.bits, grid=None))

    def matrices(self) -> Tensor:
        """Return the matrices A of h blocks by which each symbol changes their states, (symbols, h, b, b)."""
        a = self.perceptron(torch.eye(self.symbols)).view(self.symbols, *self.start.shape, self.shape.states)
        match self.shape.form:
            case "hard":
                return one_hot_columns(a)
            case "columns":
                return unit_columns(a)
            case "blocks":
                return unit_blocks(a)

    def forward(self, u: Tensor) -> Tensor:
        table = self.matrices()
        if self.drive is None:
            x = follow_hard(table, u)
        else:
            # where there are lanes enough, few levels; on a CPU the b times smaller work of the recurrence
            advance = scan_blocks if table.is_cuda else recur
            x = advance(table[u], self.drive.weight.T[u].view(*u.shape, *self.start.shape), self.start)
        return self.decoder(x.flatten(2) if self.bits is None else torch.cat([x.flatten(2), self._bits(u, x)], dim=2))

    def _bits(self, u: Tensor, x: Tensor) -> Tensor:
        assert self.bits is not None
        before = torch.cat([self.start.expand(len(u), 1, -1, -1), x[:, :-1]], dim=1).flatten(2)
        return self.bits(torch.cat([torch.eye(self.symbols)[u], before], dim=2)).h

    @torch.no_grad()
    def automata(self) -> BlockAutomata:
        """Return the trained hard blocks as automata in tables, with the decoder as their decision.

        Raises ValueError for blocks of another form than "hard".
        """
        if self.shape.form != "hard":
            raise ValueError(f"blocks must be hard to be automata, not {self.shape.form}")
        follow = self.matrices().argmax(dim=2).permute(1, 2, 0).numpy()

        @torch.no_grad()
        def decide(states: Whole) -> Whole:
            blocks, bits = np.split(states, [self.shape.blocks], axis=1)
            read = torch.cat([self._one_hot(blocks), torch.from_numpy(bits).float()], dim=1)
            return self.decoder(read).argmax(dim=1).numpy()

        @torch.no_grad()
        def write(states: Whole, symbols: Whole) -> Whole:
            assert self.bits is not None
            read = torch.cat([torch.eye(self.symbols)[torch.from_numpy(symbols)], self._one_hot(states)], dim=1)
            candidate, (low, high) = self.bits.linear(read), self.bits.thresholds()
            written = torch.where(candidate >= high, 1, torch.where(candidate <= low, 0, KEEP))
            return written.numpy()

        return BlockAutomata(
            np.ascontiguousarray(follow), decide, self.shape.bits, None if self.bits is None else write
        )

    def _one_hot(self, states: Whole) -> Tensor:
        """Return state indices (n, blocks) as the one-hot vector that the decoder reads, (n, blocks * states)."""
        return torch.nn.functional.one_hot(torch.from_numpy(states), self.shape.states).float().flatten(1)

    @torch.no_grad()
    def weights(self) -> Array:
        """Return a linear decoder's weights (labels, blocks, states); its bias is added to the first block's weights.

        Raises ValueError for a decoder with hidden units, or one that reads bits as well.
        """
        if not isinstance(self.decoder, nn.Linear) or self.bits is not None:
            raise ValueError("the decoder must be linear, which it is with hidden 0, and read blocks alone")
        weight = self.decoder.weight.double().view(-1, self.shape.blocks, self.shape.states).clone()
        weight[:, 0] += self.decoder.bias.double()[:, None]
        return weight.numpy()


LONG, LONG_STRINGS = 500, 64  # what tells whether it is learned
CHECK_EVERY = 50  # iterations
TEST_SEED = 2**32  # of strings that no training has
LENGTH, BATCH, MOST = 20, 64, 6000
LEARNING_RATE = 3e-3


@dataclass(frozen=True)
class TrainedBlocks:
    """A trained block recurrence and how well it answers, as of the last check.

    loss: of the iteration checked; accuracy: share of right answers, among those that count, on long strings; wrong:
    number of reachable joint states of hard blocks whose answer is wrong, None if they were not checked, which needs
    hard blocks and accuracy 1.
    """

    model: BlockRecurrence
    iterations: int
    loss: float
    accuracy: float
    wrong: int | None

    @property
    def learned(self) -> bool:
        """Tell whether all answers on long strings are right, and no reachable state was found to answer wrongly."""
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
    """Train a block recurrence on random strings of `length` symbols by Adam and cross entropy.

    Training ends when the task is learned, or after `most` iterations. Learned means that all long strings are answered
    right, and with hard blocks also a shortest string to each joint state, since random strings miss rare states.
    progress: called at every check.
    """
    problem = StringProblem(task, shape, seed, length, most)
    problem.progress = progress
    TrainingLoop(problem).run()
    return problem.found


class StringProblem(Problem[BlockRecurrence]):
    """The training of a block recurrence on strings of a task; it ends when the task is learned.

    found: result of the last check; progress: called with it at every check, if not None.
    """

    progress: Progress | None = None

    def __init__(self, task: StringTask, shape: BlockShape, seed: int, length: int, most: int) -> None:
        self.task, self.seed, self.length = task, seed, length
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = BlockRecurrence(len(task.symbols), len(task.labels), shape)
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
        accuracy = accuracy_of(self.model, self.task, LONG, LONG_STRINGS)
        ask = accuracy == 1.0 and self.model.shape.form == "hard"
        wrong = _wrong_states(self.model, self.task) if ask else None
        self.found = TrainedBlocks(self.model, iteration, loss, accuracy, wrong)
        if self.progress is not None:
            self.progress(self.found)
        return Measurement(finished=self.found.learned)


def _wrong_states(model: BlockRecurrence, task: StringTask) -> int:
    words, decided = model.automata().words(task.turns)
    lengths = np.array([len(word) for word in words])
    right = task.answers(_padded(words))[np.arange(len(words)), lengths - 1]
    counts = task.concerned(lengths.max())[lengths - 1] & (lengths > 0)
    return int((decided != right)[counts].sum())


def _padded(words: Sequence[Word]) -> np.ndarray:
    """Return words of different lengths as one array of symbol indices (n, longest), padded with symbol 0."""
    strings = np.zeros((len(words), max(map(len, words))), dtype=np.int64)
    for row, word in zip(strings, words, strict=True):
        row[: len(word)] = word
    return strings


def accuracy_of(model: BlockRecurrence, task: StringTask, steps: int, count: int) -> float:
    """Return a model's share of right answers, among those that count, on `count` random strings of `steps` symbols."""
    strings = task.draw(np.random.default_rng(TEST_SEED), count, steps)
    counts = task.concerned(steps)
    return float((say(model, strings) == task.answers(strings))[:, counts].mean())


def say(model: BlockRecurrence, strings: np.ndarray) -> np.ndarray:
    """Return the label index that a model decides after each symbol of strings of symbol indices; both (n, time)."""
    if model.shape.form == "hard":
        return model.automata().run(strings)
    with torch.no_grad():
        return model(torch.from_numpy(strings)).argmax(dim=2).numpy()


def extract(trained: TrainedBlocks, task: StringTask) -> tuple[Automaton, int]:
    """Return an automaton of few states that answers as trained hard blocks do, and a lower bound on its states.

    Raises InputError if the blocks have not learned the task, ValueError for blocks that are not hard.
    """
    if not trained.learned:
        raise InputError(
            f"{task.name}: blocks must answer strings of {LONG} symbols without an error, and are right on "
            f"{trained.accuracy:.2%} after {trained.iterations} iterations, wrong in {trained.wrong or 0} of their "
            "states; take another --seed, or more or larger --blocks"
        )
    return fewest(trained.model.automata().product(task))


def blocks_oracle(model: BlockRecurrence) -> Oracle:
    """Return an oracle: a function that gives a model's decision after each symbol of words.

    `cosim.automata.learn` learns an automaton from its answers.
    """

    def answer(words: Sequence[Word]) -> list[Word]:
        decided = say(model, _padded(words))
        return [tuple(row[: len(word)].tolist()) for row, word in zip(decided, words, strict=True)]

    return answer
