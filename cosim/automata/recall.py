"""Recall of a symbol that was seen long before: by circuits, and by an untrained recurrent network.

Circuits of recall: registers of bits, as long as the history, with taps.

    memory          ceil(log2 K) registers, one for each bit of a symbol: recalls the symbol of k frames ago
    correlator      one cell behind a register: tells whether a pattern of bits has just passed
    matched filter  one readout row for each pattern behind a register: counts the last bits that equal the pattern's

A number would lose its digits from cell to cell; a bit is restored by each cell, so recall is exact at any age, for one
cell a bit. Rings, in which bits circulate, are in cosim.automata.lines. Before the first frame all cells hold 0. The
compiler refuses more than 256 cells (cosim.compiler.lower).

An untrained recurrent network recalls a whole sequence from a state that is as long as the sequence.

Base network, with symbol x_t of K as a one-hot vector, a state h of D numbers, activation s, h_0 = 0, b = bh + bx:

    h_t = s(Wh h_{t-1} + Wx x_t + b)

Extended network (a delay line), with a state H of L blocks of D numbers. Its matrix Wh^ has Wh as first block,
identities on the block diagonal below the main one, else 0; Wx^ and b^ have Wx and b in their first block, else 0:

    H_t = s(Wh^ H_{t-1} + Wx^ x_t + b^) = [h_t ; s(h_{t-1}) ; s^2(h_{t-2}) ; ...]

Recall: the inverse of s, applied m times to block m, gives h_{t-m}; then e_t = s^-1(h_t) - Wh h_{t-1} - b, and symbol
x_t is the column of Wx that is nearest to e_t. Columns must differ; Wh need not be invertible.

Source: the Sheffield dissertation on storing and recalling sequences, eq. 3.24-3.27 (extended network), 3.35 (state),
3.36-3.45 (recall). The source does not give the biases of initialisations other than the default, nor the standard
deviation of the normal one: here biases are always uniform, and the deviation is 1 / sqrt(D).

Activations s of the recall network with their inverses, both in place. A shift of the line applies s to its blocks; a
peel applies the inverse.

    tanh        inverse: atanh of y clamped to +-(1 - 1e-6); small float32 numbers by their series (below)
    sigmoid     inverse: ln(y / (1 - y)) of y clamped to [1e-6, 1 - 1e-6]
    elu         e^x - 1 below 0, x above; inverse: ln(1 + y) of y clamped to at least -(1 - 1e-6)
    leaky       0.01 x below 0; after some 20 shifts a negative number is below the range of a float, and becomes 0
    relu        no inverse: numbers below 0 are lost, and with them what they said about the symbol
    identity    a linear delay line

Series: over L shifts, the rounding errors of each shift add up. A float32 tanh of a library may be biased by a fraction
of an ulp, L times: with numpy 2.4 and AVX-512 the state is off by 6e-6 (mean square) after 1e5 shifts. The series,
whose sum is rounded once, is off by 2e-9.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cosim.automata.network import GRID, bit_inputs
from cosim.base.errors import InputError
from cosim.network.layers import Layer, following
from cosim.network.types import INPUT, DelayedSignal, Network, Readout, check_network

Array = NDArray[np.float64]
Bits = Sequence[int] | NDArray[np.int64]
Patterns = Sequence[Bits] | NDArray[np.int64]
BIT, MATCH = "bit", "match"


def to_bits(symbols: int, strings: NDArray[np.int64]) -> Array:
    """Return strings (n, time) of K = `symbols` symbols 0 to K - 1 as binary inputs (n, time, ceil(log2 K)).

    The most significant bit of each symbol comes first.
    """
    return (strings[:, :, None] >> np.arange(_width(symbols))[::-1] & 1).astype(float)


def memory(symbols: int, frames: int) -> Network:
    """Return an untrained network that decides which symbol came `frames` frames ago, or 0 in the first frames.

    The network reads K = `symbols` symbols as bits from `to_bits`. Its score for a symbol is the number of bits in
    which the delayed input equals that symbol. It has ceil(log2 K) (frames + 1) cells. Raises InputError for fewer than
    2 symbols.
    """
    if symbols < 2:
        raise InputError(f"a memory must have 2 symbols at least, not {symbols}; one symbol needs no memory")
    codes = to_bits(symbols, np.arange(symbols)[None, :])[0]
    readout = Readout((f"{BIT}_{frames}",), *_agreement(codes), "last")
    follow, late = following(BIT, (INPUT,), np.eye(codes.shape[1])), {f"{BIT}_{frames}": DelayedSignal(BIT, frames)}
    return _network(codes.shape[1], (follow,), readout, late, tuple(map(str, range(symbols))))


def correlator(pattern: Bits) -> Network:
    """Return an untrained network whose unit `match` is on while the last input bits equal this pattern.

    The pattern's first bit is the oldest. The unit reads the last bits with weight 1 where the pattern has a 1, else
    -1; its candidate is 1 for the pattern alone, else 0 or less. It must tell a sum of as many unit currents as the
    pattern has ones from a sum of one less, so mismatch limits a pattern to some 8 bits.
    """
    row, ones = _patterns([pattern])
    sources, late = _register(INPUT, len(pattern))
    match = following(MATCH, sources, _agreement(row)[0], 1.0 - float(ones[0]))
    readout = Readout((MATCH,), np.array([[-1.0], [1.0]]), np.array([1.0, 0.0]), "last")
    return _network(1, (match,), readout, late, ("no", "passed"))


def matched_filter(patterns: Patterns) -> Network:
    """Return an untrained network whose scores, (time, patterns), count the last input bits that equal each pattern's.

    Raises InputError where patterns differ in length or are not bits.
    """
    rows, _ = _patterns(patterns)
    sources, late = _register(BIT, rows.shape[1])
    readout = Readout(sources, *_agreement(rows), "last")
    names = tuple("".join(map(str, one)) for one in patterns)
    return _network(1, (following(BIT, (INPUT,), np.eye(1)),), readout, late, names)


def _register(signal: str, length: int) -> tuple[tuple[str, ...], dict[str, DelayedSignal]]:
    """Return the names of a register's taps, oldest first, `signal` last; and its delayed signals by name."""
    late = {f"{signal}_{k}": DelayedSignal(signal, k) for k in range(length - 1, 0, -1)}
    return (*late, signal), late


def _patterns(patterns: Patterns) -> tuple[Array, Array]:
    """Return bit patterns as rows, (patterns, bits), and the number of ones in each row, (patterns,).

    Raises InputError where patterns are not bits, empty, or of several lengths.
    """
    if len({len(one) for one in patterns}) != 1 or not len(patterns[0]):
        raise InputError("patterns must be equally long, 1 bit at least; pad them, or use a correlator for each")
    rows = np.array(patterns, dtype=float)
    if not np.isin(rows, (0.0, 1.0)).all():
        raise InputError(f"a pattern must be of bits, 0 or 1, not {rows[~np.isin(rows, (0.0, 1.0))][0]:g}")
    return rows, rows.sum(axis=1)


def _agreement(rows: Array) -> tuple[Array, Array]:
    """Return the weight and bias of units that count how many of their input bits equal the bits of each row."""
    return 2.0 * rows - 1.0, (1.0 - rows).sum(axis=1)


def _network(
    features: int,
    layers: tuple[Layer, ...],
    readout: Readout,
    late: Mapping[str, DelayedSignal],
    labels: tuple[str, ...],
) -> Network:
    return check_network(Network(bit_inputs(features), layers, readout, "recall", labels, GRID, late=late))


def _width(symbols: int) -> int:
    return (symbols - 1).bit_length()


Values = NDArray[np.floating[Any]]
CLAMP, SLOPE = 1e-6, 0.01
# (x^2 at most, coefficients of x^9 or x^5 down to x^3): beyond the terms kept lie less than 1e-9 of x
_TANH = ((2.0**-10, (2 / 15, -1 / 3)), (2.0**-6, (62 / 2835, -17 / 315, 2 / 15, -1 / 3)))
_ATANH = ((2.0**-10, (1 / 5, 1 / 3)), (2.0**-6, (1 / 9, 1 / 7, 1 / 5, 1 / 3)))
Series = tuple[tuple[float, tuple[float, ...]], ...]


@dataclass(frozen=True)
class Activation:
    """An activation function of a recall network with its inverse.

    apply: replaces x by s(x) in place; undo: replaces s(x) by x in place, as exactly as clamping allows (relu: not).
    """

    apply: Callable[[Values], None]
    undo: Callable[[Values], None]


def _tanh(x: Values) -> None:
    if not _sum_series(x, _TANH):
        np.tanh(x, out=x)


def _undo_tanh(x: Values) -> None:
    if not _sum_series(x, _ATANH):
        np.clip(x, CLAMP - 1.0, 1.0 - CLAMP, out=x)
        np.arctanh(x, out=x)


def _sum_series(x: Values, series: Series) -> bool:
    """Replace x in place by the sum x + c x^3 + ..., if x is float32 and all its numbers are small.

    series: (largest x^2, coefficients) for each number of terms. Return whether x was replaced.
    """
    if x.dtype != np.float32:
        return False
    square = x * x
    largest = square.max()
    for most, (first, *others) in series:
        if largest <= most:
            term = square * first
            for coefficient in others:
                term += coefficient
                term *= square
            term *= x
            x += term
            return True
    return False


def _sigmoid(x: Values) -> None:
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1.0
    np.reciprocal(x, out=x)


def _undo_sigmoid(x: Values) -> None:
    np.clip(x, CLAMP, 1.0 - CLAMP, out=x)
    x /= 1.0 - x
    np.log(x, out=x)


def _elu(x: Values) -> None:
    np.copyto(x, np.expm1(np.minimum(x, 0.0)), where=x < 0)


def _undo_elu(x: Values) -> None:
    np.copyto(x, np.log1p(np.clip(x, CLAMP - 1.0, 0.0)), where=x < 0)


def _leaky(x: Values) -> None:
    np.multiply(x, SLOPE, out=x, where=x < 0)


def _undo_leaky(x: Values) -> None:
    np.divide(x, SLOPE, out=x, where=x < 0)


def _relu(x: Values) -> None:
    np.maximum(x, 0.0, out=x)


def _nothing(x: Values) -> None:
    del x


ACTIVATIONS: Mapping[str, Activation] = {
    "tanh": Activation(_tanh, _undo_tanh),
    "relu": Activation(_relu, _nothing),
    "leaky": Activation(_leaky, _undo_leaky),
    "elu": Activation(_elu, _undo_elu),
    "sigmoid": Activation(_sigmoid, _undo_sigmoid),
    "identity": Activation(_nothing, _nothing),
}


Initial = Literal["uniform", "normal", "xavier", "kaiming", "orthogonal"]
Symbols = Sequence[int] | NDArray[np.int64]
PIECE = 65536  # numbers that are shifted or peeled together: they stay in the cache


@dataclass(frozen=True)
class RecallNetwork:
    """An untrained recurrent network whose delay line stores a sequence of symbols and recalls it backwards.

    hidden: Wh, (D, D); inputs: Wx, (D, K); bias: bh + bx, (D,); activation: s. All numbers are of one type, float32 or
    float64. It computes h_t = s(Wh h_{t-1} + Wx x_t + b).
    """

    hidden: Values
    inputs: Values
    bias: Values
    activation: Activation

    @property
    def width(self) -> int:
        """Return the number D of units."""
        return len(self.bias)

    def step(self, before: Values, symbol: int) -> Values:
        """Compute the state h_t from the state before, h_{t-1}, and a symbol 0 to K - 1; both states are (D,)."""
        h = self.hidden @ before + self.inputs[:, symbol] + self.bias
        self.activation.apply(h)
        return h

    def states(self, symbols: Symbols) -> Values:
        """Compute the recall network's states h_1 to h_T, (T, D), from h_0 = 0."""
        found = np.empty((len(symbols), self.width), self.bias.dtype)
        h = np.zeros_like(self.bias)
        for t, symbol in enumerate(symbols):
            h = found[t] = self.step(h, int(symbol))
        return found


def draw(
    width: int,
    symbols: int,
    rng: np.random.Generator,
    activation: str = "tanh",
    initial: Initial = "uniform",
) -> RecallNetwork:
    """Draw the weights of an untrained recall network at random, in float64.

    width: the number D of units; symbols: their number K; activation: a name in ACTIVATIONS; initial: distribution of
    Wh and Wx, biases are always uniform. `cast` converts the network to float32.
    """
    fill, bound = INITIAL[initial], 1.0 / np.sqrt(width)
    return RecallNetwork(
        fill(rng, (width, width)),
        fill(rng, (width, symbols)),
        rng.uniform(-bound, bound, (2, width)).sum(axis=0),
        ACTIVATIONS[activation],
    )


def cast(network: RecallNetwork, dtype: type[np.floating[Any]]) -> RecallNetwork:
    """Return a recall network with its numbers converted to the given type."""
    hidden, inputs, bias = (array.astype(dtype) for array in (network.hidden, network.inputs, network.bias))
    return RecallNetwork(hidden, inputs, bias, network.activation)


class DelayLineState:
    """The state of a recall network's delay line of L blocks while a sequence is written into it.

    length: L; noise: standard deviation of the Gaussian noise that each shift adds to every number, drawn from `rng`.
    A step costs O(L D): blocks do not move in their array (L, D), the newest replaces the oldest.
    """

    def __init__(
        self, network: RecallNetwork, length: int, noise: float = 0.0, rng: np.random.Generator | None = None
    ) -> None:
        self._network, self._noise, self._rng = network, noise, rng or np.random.default_rng(0)
        self._rows = np.zeros((length, network.width), network.bias.dtype)
        self._newest = 0

    def step(self, symbol: int) -> None:
        """Write one symbol, 0 to K - 1: shift the delay line's blocks and compute the newest one."""
        h = self._network.step(self._rows[self._newest], symbol)
        self._network.activation.apply(self._rows)
        if self._noise:
            self._rows += self._rng.normal(0.0, self._noise, self._rows.shape).astype(self._rows.dtype)
        self._newest = (self._newest - 1) % len(self._rows)
        self._rows[self._newest] = h

    def blocks(self) -> Values:
        """Return the delay line's state (L, D), newest block first, as a copy."""
        return np.roll(self._rows, -self._newest, axis=0)


def store(states: Values, activation: Activation) -> Values:
    """Compute the blocks (T, D) of a delay line after the states h_1 to h_T, (T, D), without noise, newest first.

    Block m is s^m(h_{T-m}), where s is the activation.
    """
    blocks = states[::-1].copy()
    _sweep(blocks, activation.apply)
    return blocks


def recall(network: RecallNetwork, blocks: Values) -> tuple[NDArray[np.int64], Values, Values]:
    """Recall a sequence of T symbols from a delay line's blocks (T, D), newest first.

    Return the symbols (T,), oldest first, whose columns of Wx are nearest to the recalled ones; the states h_1 to h_T,
    (T, D); and the recalled columns e_1 to e_T, (T, D).

    The oldest block should come from h_1, whose state before is h_0 = 0. If the line has been written more than T
    times, the oldest symbol is unreliable, because its state before is taken to be 0 as well.
    """
    states = blocks.copy()
    _sweep(states, network.activation.undo)
    states = states[::-1]
    inputs = states.copy()
    network.activation.undo(inputs)
    inputs -= network.bias
    inputs[1:] -= states[:-1] @ network.hidden.T
    # nearest column: |e - w|^2 = |e|^2 - 2 (e w - |w|^2 / 2)
    nearest = inputs @ network.inputs - (network.inputs**2).sum(axis=0) / 2
    return nearest.argmax(axis=1), states, inputs


def _sweep(blocks: Values, change: Callable[[Values], None]) -> None:
    """Apply `change` m times to row m of a delay line's blocks, in place."""
    count = max(1, PIECE // blocks.shape[1])
    for start in range(0, len(blocks), count):
        piece = blocks[start : start + count]
        for _ in range(start):
            change(piece)
        for m in range(1, len(piece)):
            change(piece[m:])


Shape = tuple[int, int]  # (D, D) or (D, K)


def _orthogonal(rng: np.random.Generator, shape: Shape) -> Values:
    """Draw a random matrix with orthonormal columns, or orthonormal rows where there are more columns than rows.

    Signs are chosen as in arXiv math-ph/0609050, so that the distribution is uniform.
    """
    q, r = np.linalg.qr(rng.normal(0.0, 1.0, (max(shape), min(shape))))
    q = q * np.sign(np.diag(r))
    return q if shape[0] >= shape[1] else q.T


INITIAL: Mapping[Initial, Callable[[np.random.Generator, Shape], Values]] = {
    "uniform": lambda rng, shape: rng.uniform(-1.0, 1.0, shape) / np.sqrt(shape[0]),
    "normal": lambda rng, shape: rng.normal(0.0, 1.0, shape) / np.sqrt(shape[0]),
    "xavier": lambda rng, shape: rng.uniform(-1.0, 1.0, shape) * np.sqrt(6.0 / sum(shape)),
    "kaiming": lambda rng, shape: rng.uniform(-1.0, 1.0, shape) * np.sqrt(6.0 / shape[1]),
    "orthogonal": _orthogonal,
}
