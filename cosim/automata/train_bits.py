"""Trains the delayed memory unit of one bit (cosim.automata.lines): hard states and gates, straight through.

Forward it is that unit, bit for bit; backward the step is the seed's surrogate, the winner a softmax, and a slot that
two bits enter the sum of both. Weights lie on the grid.
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
    """Size of a steered delay line that is trained on bits: inputs M, units N, delays n."""

    inputs: int
    units: int
    delays: int


class SteeredBits(nn.Module):
    """A trainable steered delay line: bits x (batch, time, M) to scores (batch, time, 2)."""

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
        """Return in numpy the steered delay line made from examples, with the equations of `cosim.automata.lines`."""
        (weight, bias), (gate, gate_bias), (readout, readout_bias) = (
            [value.double().numpy() for value in part.rounded()] for part in (self.state, self.gate, self.readout)
        )
        m = self.shape.inputs
        parts = weight[:, :m], weight[:, m:], bias, gate[:, :m], gate[:, m:], gate_bias, readout, readout_bias
        return SteeredLine(*parts, labels=("no", "yes"), step=GRID)


MOST, BATCH, LEARNING_RATE = 700, 64, 1e-2
CHECK_EVERY = 50  # iterations
TEST_STRINGS, TEST_SEED = 200, 2**32


@dataclass(frozen=True)
class TrainedBits:
    """The best steered line that a training has seen; accuracy: on strings of their own."""

    unit: SteeredLine
    iterations: int
    accuracy: float


def train_bits(draw: Draw, shape: BitShape, seed: int, *, most: int = MOST) -> TrainedBits:
    """Train a steered delay line on strings of bits by Adam and cross entropy at every step.

    Training ends when all answers on 200 strings are right, or after `most` iterations.
    """
    problem = BitProblem(draw, shape, seed, most)
    loop = TrainingLoop(problem)
    loop.run()
    loop.take_best()
    return TrainedBits(problem.model.exported(), -round(loop.rank[1]), -loop.rank[0])


class BitProblem(Problem[SteeredBits]):
    """The training of a unit of bits; of two measured ones that of more right answers is the better one, then the
    later one."""

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
    """Return a steered line's share of right answers on strings of bits of their own."""
    x, y = draw(np.random.default_rng(TEST_SEED), TEST_STRINGS)
    return float((run_steered(unit, x.astype(float)).scores.argmax(axis=2) == y).mean())


def chosen_lags(lags: tuple[int, ...]) -> Draw:
    """Return a function that draws by `generate_chosen_lag`, with these lags, what a steered delay line learns from."""
    return lambda rng, count: generate_chosen_lag(count, lags, seed=rng)


STEPS = 30
COMMANDS = 0.2  # share of steps with a new command


def generate_chosen_lag(n: int, lags: tuple[int, ...], steps: int = STEPS, seed: int | np.random.Generator = 0) -> Bits:
    """Generate strings of bits and their right answers, the examples by which a network is made a steered delay line.

    x (n, steps, 1 + commands): a fair bit, and a bit for each of `lags`, one on if chosen.

    A lag is chosen at step 0 in any case. A bit that is on arrives so many steps later as was chosen last when it came;
    y (n, steps) is 1 where a bit that is on meets one that arrives, else 0. A generator as `seed` gives new sequences
    at each call.
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
