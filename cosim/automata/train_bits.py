"""Training of the content-steered shift register (cosim.automata.lines) with straight-through gradients.

The forward pass equals that register, bit for bit. The backward pass replaces the step function by the seed paper's
surrogate, the choice of the gate by a softmax, and the OR of two bits that enter one cell by their sum. Weights lie on
the grid of 1/2.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from cosim.automata.lines import SteeredLine, run_steered
from cosim.automata.train_blocks import one_hot_columns
from cosim.base.errors import InputError
from cosim.training.hardware import GridLinear
from cosim.training.loop import Descent, Measurement, Problem, Rank, TrainingLoop
from cosim.training.scan import heaviside

GRID = 1 / 2  # of weights: a candidate is then a quarter off its threshold at least
Bits = tuple[np.ndarray, np.ndarray]  # x (n, time, M) and the answers y (n, time), at every step
Draw = Callable[[np.random.Generator, int], Bits]  # so many sequences


@dataclass(frozen=True)
class BitShape:
    """The size of a content-steered shift register that is trained: M inputs, N units, n delays to choose from."""

    inputs: int
    units: int
    delays: int


class SteeredBits(nn.Module):
    """A trainable content-steered shift register: bits x (batch, time, M) to scores of no and yes, (batch, time, 2)."""

    def __init__(self, shape: BitShape) -> None:
        super().__init__()
        self.shape = shape
        self.state = GridLinear(shape.inputs + shape.units, shape.units, GRID)
        self.gate = GridLinear(shape.inputs + shape.delays, shape.delays, GRID)
        self.readout = GridLinear(shape.units, 2, GRID)

    def forward(self, x: Tensor) -> Tensor:
        units, delays = self.shape.units, self.shape.delays
        line, h = x.new_zeros(len(x), units, delays), x.new_zeros(len(x), units)
        gate, found = x.new_zeros(len(x), delays), list[Tensor]()
        (weight, bias), (gate_weight, gate_bias) = self.state.rounded(), self.gate.rounded()
        for t in range(x.shape[1]):
            arrived = line[:, :, 0]
            state = heaviside(nn.functional.linear(torch.cat([x[:, t], h], 1), weight, bias) - 0.5)
            e = nn.functional.linear(torch.cat([x[:, t], gate], 1), gate_weight, gate_bias)
            gate = one_hot_columns(e[..., None])[..., 0]
            line = nn.functional.pad(line[:, :, 1:], (0, 1)) + state[:, :, None] * gate[:, None, :]
            line = line + (line.clamp(max=1.0) - line).detach()
            h = state + arrived
            found.append(h)
        return self.readout(torch.stack(found, dim=1))

    @torch.no_grad()
    def exported(self) -> SteeredLine:
        """Return the register with its rounded weights in numpy."""
        (weight, bias), (gate, gate_bias), (readout, readout_bias) = (
            [value.double().numpy() for value in part.rounded()] for part in (self.state, self.gate, self.readout)
        )
        m = self.shape.inputs
        parts = weight[:, :m], weight[:, m:], bias, gate[:, :m], gate[:, m:], gate_bias, readout, readout_bias
        return SteeredLine(*parts, labels=("no", "yes"), step=GRID)


MOST, BATCH, LEARNING_RATE = 700, 64, 1e-2
CHECK_EVERY = 50  # iterations
TEST_STRINGS, TEST_SEED = 200, 2**32


def train_bits(draw: Draw, shape: BitShape, seed: int, *, most: int = MOST) -> tuple[SteeredLine, float, int]:
    """Train a content-steered shift register on strings of bits, by Adam and the cross entropy at every frame.

    draw: function that draws training strings and answers. Training ends when all answers on 200 test strings are
    right, or after `most` iterations. Return the best register, its share of right answers on these, and after how many
    iterations it was best.
    """
    problem = BitProblem(draw, shape, seed, most)
    loop = TrainingLoop(problem)
    loop.run()
    loop.take_best()
    return problem.model.exported(), -loop.rank[0], -round(loop.rank[1])


class BitProblem(Problem[SteeredBits]):
    """The training of a content-steered shift register; the best has most right answers; of equal ones the latest."""

    def __init__(self, draw: Draw, shape: BitShape, seed: int, most: int) -> None:
        self.draw, self.seed = draw, seed
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = SteeredBits(shape)
        self.descent = Descent(most, LEARNING_RATE, constant=True)
        self.settings = asdict(shape) | {"iterations": most}
        self.rng = np.random.default_rng(seed)

    def loss(self, iteration: int) -> Tensor:
        x, y = map(torch.from_numpy, self.draw(self.rng, BATCH))
        return nn.functional.cross_entropy(self.model(x).flatten(0, 1), y.flatten())

    def settle(self) -> None:
        for part in (self.model.state, self.model.gate, self.model.readout):
            part.clip_()

    def measure(self, iteration: int, loss: float, best: Rank) -> Measurement:
        if iteration % CHECK_EVERY and iteration < self.descent.iterations:
            return Measurement()
        found = accuracy_of(self.model.exported(), self.draw)
        return Measurement(rank=(-found, -float(iteration)), finished=found == 1.0)


def accuracy_of(unit: SteeredLine, draw: Draw) -> float:
    """Return a register's share of right answers on 200 test strings, drawn by `draw` with a seed of their own."""
    x, y = draw(np.random.default_rng(TEST_SEED), TEST_STRINGS)
    return float((run_steered(unit, x.astype(float)).scores.argmax(axis=2) == y).mean())


def chosen_lags(lags: tuple[int, ...]) -> Draw:
    """Return a function that draws strings of bits and answers by `generate_chosen_lag` with these lags."""
    return lambda rng, count: generate_chosen_lag(count, lags, seed=rng)


STEPS = 30
COMMANDS = 0.2  # share of steps with a new command


def generate_chosen_lag(n: int, lags: tuple[int, ...], steps: int = STEPS, seed: int | np.random.Generator = 0) -> Bits:
    """Generate n strings of bits and answers that say where a bit meets an earlier bit, delayed by a commanded lag.

    Return x (n, steps, 1 + lags): a fair bit, and a command bit for each of `lags`, at most one on; and y (n, steps). A
    command is given at step 0, and later with probability COMMANDS. Each bit that is on is delayed by the lag commanded
    last; y is 1 where a bit that is on coincides with a delayed one, else 0. A generator as `seed` gives new strings at
    each call. Raises InputError for lags below 1, repeated lags, or none.
    """
    if not lags or min(lags) < 1 or len(set(lags)) < len(lags):
        raise InputError(f"lags must be one or more, each 1 at least and none twice, not {lags}; give others")
    rng = np.random.default_rng(seed)
    bits, choice = rng.integers(0, 2, (n, steps)), rng.integers(0, len(lags), (n, steps))
    told = rng.random((n, steps)) < COMMANDS
    told[:, 0] = True
    x = np.concatenate([bits[..., None], np.eye(len(lags))[choice] * told[..., None]], axis=2).astype(np.float32)
    arrives = np.zeros((n, steps + max(lags)), dtype=bool)
    y, lag = np.zeros((n, steps), dtype=np.int64), np.zeros(n, dtype=np.int64)
    for t in range(steps):
        lag = np.where(told[:, t], np.array(lags)[choice[:, t]], lag)
        y[:, t] = bits[:, t] & arrives[:, t]
        arrives[np.arange(n), t + lag] |= bits[:, t] == 1
    return x, y
