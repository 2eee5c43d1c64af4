"""Networks of bits that move by rule: counters, rings, dilated lines, and the line whose delay its content chooses.

Counters by toggles: bit j of a chain turns over at every 2^j-th one.

    bit j turns over where the input is on and all bits below it were        x and q_0[t-1] and ... and q_{j-1}[t-1]

Counting modulo 2^k takes k toggles, where a one-hot automaton takes 2^k cells. With an input that is always on the
chain divides the frame clock: a binary code of the position in the sequence, exact at any length, the circuit form of a
sinusoidal positional encoding.

Content-steered shift register: the delayed memory unit of one bit, whose gate is the winner of n.

    s_t   = H(W x_t + U h_{t-1} + b - 1/2)                            N units, 0 or 1
    e_t   = Wd x_t + Ud g_{t-1} + bd ;  g_t = one-hot of argmax e_t    the delay of what enters now, 1 to n
    M_j  <- M_{j+1} or (s_t and g_t = j)                               a line of n bits behind each unit
    h_t   = s_t + M_1 of the frame before                              delay k arrives k frames later, exactly

x are bits, h is 0, 1 or 2; of equal e the first wins. Before the first frame all bits are 0, and so is g. Dilated by
tau = 2^k, the line moves at the end of every tau-th frame: what has been sent with delay j arrives at the j-th move
behind it, and stands for tau frames. Equations: cosim.papers.dmu, reduced to bits.

In a circuit e_j and e_k are compared by a clocked cell for each pair; the winner is that which has won n - 1 times.

Lines of bits: a ring that replays what was written into it, and a line whose cells take over every 2^k-th frame.

    ring      q_0 = x_1 or (x_again and q_last[t-1]),  q_j = q_{j-1}[t-1]      a steering multiplexer in front
    dilated   q_j = q_{j-1}[t-1] in a frame with a tick, else what it was      tick: all bits of a counter were on

A cell of the dilated line keeps its state because its candidate stands in its hysteresis: 1/2 without a tick, 0 or 1
with one. A delay of n frames then costs n / 2^k cells and k toggles.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cosim.automata.network import GRID, bit_inputs
from cosim.base.errors import NetworkError
from cosim.network.layers import (
    FALL,
    MOST_BITS,
    RISE,
    AndLayer,
    Array,
    FirstQuadrantLayer,
    Layer,
    ReluLayer,
    SignedLayer,
    following,
)
from cosim.network.types import INPUT, DelayedSignal, Network, Readout, check_network

MOST_TOGGLES = 8  # bits; the carry into the last of them is a sum of two ANDs
MOST_COUNTED = 4  # bits of a counter that reads its count out: 16 rows
COUNT, BEFORE, CARRY = "count", "count_1", "carry"
ALPHA = 1 / 3  # a toggle alternates -alpha and 2 alpha, so its level is 1


def binary_counter(bits: int) -> Network:
    """Return an automaton that counts ones modulo 2^bits; its decision is the count.

    Raises ValueError beyond MOST_COUNTED bits.
    """
    _check("bits", bits, (1, MOST_COUNTED))
    codes = 2.0 * ((np.arange(2**bits)[:, None] >> np.arange(bits)) & 1) - 1.0
    zeros = ALPHA * codes.sum(axis=1) - (codes > 0).sum(axis=1)  # of level 0, and that a longer code is no better
    readout = Readout((COUNT,), codes, zeros, "last")
    return _network(bits, readout, f"count modulo {2**bits}", tuple(map(str, range(2**bits))))


def position_code(bits: int) -> Network:
    """Return a counter of frames with its bits as outputs: 1 where a bit is on.

    Raises ValueError beyond MOST_TOGGLES bits.
    """
    _check("bits", bits, (1, MOST_TOGGLES))
    return _network(bits, Readout((COUNT,), np.eye(bits), np.full(bits, ALPHA), "last"), "position", ())


def chain(bits: int) -> tuple[AndLayer, SignedLayer]:
    """Return the layers of a binary counter: the carries of its chain, and its toggles.

    The carries (CARRY) read the input's one bit and the toggles (COUNT) a frame late (BEFORE).
    """
    rows, above = list[NDArray[np.bool_]](), list[int]()
    for bit in range(bits):
        needed = np.arange(1 + bit)  # the input, then the bits below
        groups = [needed[k : k + MOST_BITS] for k in range(0, len(needed), MOST_BITS)]
        rows += [np.isin(np.arange(1 + bits), group) for group in groups]
        above += [bit] * len(groups)
    weight, ones = np.array(rows, dtype=float), np.ones(bits)
    parts = np.bincount(above)
    carries = np.eye(bits)[:, above] / parts[:, None]
    carry = AndLayer(CARRY, (INPUT, BEFORE), weight, 1 - weight.sum(axis=1) + ALPHA * weight[:, 1:].sum(axis=1))
    return carry, SignedLayer(COUNT, (CARRY,), carries, 0 * ones, 1 - 0.5 / parts, ALPHA * ones, epsilon=-1.0)


def ranges(bits: int) -> NDArray[np.float64]:
    """Return the smallest and largest state of a binary counter's toggles, (2, bits)."""
    return np.outer([-ALPHA, 2 * ALPHA], np.ones(bits))


def _network(bits: int, readout: Readout, task: str, labels: tuple[str, ...]) -> Network:
    known, late = {COUNT: ranges(bits)}, {BEFORE: DelayedSignal(COUNT)}
    network = Network(bit_inputs(1), chain(bits), readout, task, labels, GRID, state_ranges=known, late=late)
    return check_network(network)


def _check(name: str, value: int, bounds: tuple[int, int], repair: str = "") -> None:
    least, most = bounds
    if not least <= value <= most:
        raise ValueError(f"{name} must lie in {least} to {most}, not {value}{repair}")


RING, TICK, STEERED = "ring", "tick", "steered"
ZERO, ONE, AGAIN = range(3)  # the ring's symbols: write a bit, or the one that comes out
MOST_CELLS = 256
_DIGITAL = "; a longer memory is a digital one"
MOST_DIVIDED = MOST_BITS - 1  # bits of the counter that makes the tick


def ring(cells: int) -> Network:
    """Return a network, made by rule, that keeps `cells` bits in a ring.

    Symbols: ZERO, ONE, AGAIN, one-hot. Output: the bit that comes out. Raises ValueError for fewer than 2 cells or more
    than MOST_CELLS.
    """
    _check("cells", cells, (2, MOST_CELLS), _DIGITAL)
    bits = np.zeros((2, 3 + cells))
    bits[0, ONE] = bits[1, AGAIN] = bits[1, 3 + cells - 1] = 1.0
    first = np.zeros((cells, 2))
    first[0] = 1.0
    last = np.zeros((1, cells))
    last[0, -1] = 1.0
    follow = np.concatenate([first, np.eye(cells, k=-1)], axis=1)
    late = "ring_1"
    return check_network(
        Network(
            bit_inputs(3),
            (
                AndLayer(STEERED, (INPUT, late), bits, 1 - bits.sum(axis=1)),
                following(RING, (STEERED, late), follow),
            ),
            Readout((RING,), last, np.zeros(1), "last"),
            f"ring of {cells} bits",
            weight_grid=GRID,
            late={late: DelayedSignal(RING)},
        )
    )


def dilated_line(cells: int, divided: int) -> Network:
    """Return a network, made by rule, that delays bits: a shift register that moves every 2^divided frames.

    The first tick is in frame 2^divided - 1. Inputs: 1 (the clock's enable), and the bit. Outputs: the taps of the
    line. Raises ValueError for no cell, more than MOST_CELLS, or a divider of less than 1 or more than MOST_DIVIDED
    bits.
    """
    _check("cells", cells, (1, MOST_CELLS), _DIGITAL)
    _check("divided", divided, (1, MOST_DIVIDED))
    before = "line_1"
    bits = np.concatenate([np.eye(cells, 2 + cells, k=1), np.ones((cells, divided))], axis=1)
    gates = AndLayer(STEERED, (INPUT, before, BEFORE), bits, -divided + divided * ALPHA * np.ones(cells))
    return check_network(
        Network(
            bit_inputs(2),
            (*_clock(divided, 1), gates, _keeping((TICK, STEERED), np.eye(cells))),
            Readout((LINE,), np.eye(cells), np.zeros(cells), "last"),
            f"line of {cells} bits, every {2**divided} frames",
            weight_grid=GRID,
            state_ranges={COUNT: ranges(divided)},
            late={BEFORE: DelayedSignal(COUNT), before: DelayedSignal(LINE)},
        )
    )


def _clock(divided: int, unread: int) -> tuple[Layer, Layer, Layer]:
    """Return the layers that divide the frame clock: carries and toggles of a counter, and the tick where all are on.

    unread: inputs behind the clock's enable, which no carry reads.
    """
    carry, count = chain(divided)
    carry = replace(carry, weight=np.insert(carry.weight, [1] * unread, 0.0, axis=1))
    tick = ReluLayer(TICK, (BEFORE,), np.ones((1, divided)), np.array([1 - divided + divided * ALPHA]))
    return carry, count, tick


def _keeping(sources: tuple[str, ...], weight: Array) -> FirstQuadrantLayer:
    """Return the cells of a line that keep what they hold without a tick, which is the first of the sources."""
    ones = np.ones(len(weight))
    rows = np.hstack([-0.5 * ones[:, None], weight])
    return FirstQuadrantLayer(LINE, sources, rows, 0.5 * ones, 0.25 * ones, 0.75 * ones, ones)


STATE, PAIRS, GATE, SENT, MOVED, LINE, ARRIVED = "state", "pairs", "gate", "sent", "moved", "line", "arrived"
MOST_DELAYS = 16
_SAME = 1e-9


@dataclass(frozen=True)
class SteeredLine:
    """The weights of a content-steered shift register: units with a line of bits behind each.

    weight (N, M), feedback (N, N) and bias (N,) are those of the units; gate_weight (n, M), gate_feedback (n, n) and
    gate_bias (n,) those of the gate; readout (labels, N) and readout_bias (labels,) read h. All are multiples of
    `step`. The line moves every tau = 2^divided frames.
    """

    weight: Array
    feedback: Array
    bias: Array
    gate_weight: Array
    gate_feedback: Array
    gate_bias: Array
    readout: Array
    readout_bias: Array
    labels: tuple[str, ...] = ()
    divided: int = 0
    step: float = GRID

    @property
    def units(self) -> int:
        """Return the number N of units of the steered delay line."""
        return len(self.bias)

    @property
    def delays(self) -> int:
        """Return the number n of delays of the steered line."""
        return len(self.gate_bias)

    @property
    def inputs(self) -> int:
        """Return the number M of inputs of the steered line."""
        return self.weight.shape[1]


@dataclass(frozen=True)
class SteeredTrace:
    """The bits and scores that a content-steered shift register has on strings.

    state and arrived: (n, time, N) bits; gate: (n, time), from 0 on; scores: (n, time, labels).
    """

    state: Array
    arrived: Array
    gate: NDArray[np.int64]
    scores: Array


def run_steered(unit: SteeredLine, x: Array) -> SteeredTrace:
    """Run the equations of an automaton's steered delay line frame by frame on bits x (n, time, M)."""
    line = np.zeros((len(x), unit.units, unit.delays))
    h, gate = np.zeros((len(x), unit.units)), np.zeros((len(x), unit.delays))
    states, arrivals, gates = list[Array](), list[Array](), list[NDArray[np.int64]]()
    for t in range(x.shape[1]):
        arrived = line[:, :, 0].copy()
        state = (x[:, t] @ unit.weight.T + h @ unit.feedback.T + unit.bias >= 0.5).astype(float)
        won = (x[:, t] @ unit.gate_weight.T + gate @ unit.gate_feedback.T + unit.gate_bias).argmax(axis=1)
        gate = np.eye(unit.delays)[won]
        if (t + 1) % 2**unit.divided == 0:
            line = np.concatenate([line[:, :, 1:], np.zeros((*h.shape, 1))], axis=2)
        line = np.maximum(line, state[:, :, None] * gate[:, None, :])
        h = state + arrived
        states.append(state)
        arrivals.append(arrived)
        gates.append(won)
    state, arrived = np.stack(states, axis=1), np.stack(arrivals, axis=1)
    scores = (state + arrived) @ unit.readout.T + unit.readout_bias
    return SteeredTrace(state, arrived, np.stack(gates, axis=1), scores)


def lag_detector(delays: int, divided: int = 0) -> SteeredLine:
    """Return a unit, made by rule, that tells whether a bit meets one sent so many frames ago as a command said: h = 2.

    Inputs: the bit, and a command for each delay, one or none of them on, which counts from its own frame until the
    next one; before the first it is delay 1.
    """
    none, eye = np.zeros((1, delays)), np.eye(delays)
    return SteeredLine(
        np.hstack([np.ones((1, 1)), none]),
        np.zeros((1, 1)),
        np.zeros(1),
        np.hstack([none.T, eye]),
        eye / 2,
        np.zeros(delays),
        np.array([[-0.5], [0.5]]),
        np.array([0.75, -0.75]),
        ("no", "meets"),
        divided,
        1 / 2,
    )


def inputs_of(unit: SteeredLine, x: Array) -> Array:
    """Return the inputs that a steered line's network reads: x, behind the clock's enable where the line is dilated."""
    return np.concatenate([np.ones_like(x[..., :1]), x], axis=2) if unit.divided else x


def steered_network(unit: SteeredLine, task: str) -> Network:
    """Return a steered delay line, made by rule, as a network whose layers compile; inputs as of `inputs_of`.

    Raises NetworkError for numbers off the grid, and for more delays than comparators in pairs are worth.
    """
    _check_steered(unit)
    dilated = unit.divided > 0
    line, turns = _line(unit)
    names = (STATE, ARRIVED, GATE, LINE)
    late = {f"{name}_1": DelayedSignal(name) for name in names} | ({BEFORE: DelayedSignal(COUNT)} if dilated else {})
    readout = Readout((STATE, ARRIVED), np.hstack([unit.readout, unit.readout]), unit.readout_bias, "last")
    return check_network(
        Network(
            bit_inputs(unit.inputs + dilated),
            (*_decisions(unit), *turns, *line),
            readout,
            task,
            unit.labels,
            GRID,
            state_ranges={COUNT: ranges(unit.divided)} if dilated else {},
            late=late,
        )
    )


def _decisions(unit: SteeredLine) -> tuple[Layer, ...]:
    """Build the deciding layers of a steered delay line: states, comparators of all pairs of delays, and the gate, the
    winner."""
    pad = ((0, 0), (int(unit.divided > 0), 0))
    rows = np.hstack([np.pad(unit.weight, pad), unit.feedback, unit.feedback])
    state = _deciding(STATE, (INPUT, f"{STATE}_1", f"{ARRIVED}_1"), rows, unit.bias, unit.step)
    first, second = np.array(list(combinations(range(unit.delays), 2))).T
    e = np.hstack([np.pad(unit.gate_weight, pad), unit.gate_feedback])
    ahead = unit.gate_bias[first] - unit.gate_bias[second] + 0.5
    pairs = _deciding(PAIRS, (INPUT, f"{GATE}_1"), e[first] - e[second], ahead, unit.step)
    wins = (first == np.arange(unit.delays)[:, None]).astype(float)
    losses = (second == np.arange(unit.delays)[:, None]).astype(float)
    gate = following(GATE, (PAIRS,), wins - losses)
    return state, pairs, replace(gate, bias=losses.sum(axis=1) - (unit.delays - 2))


def _line(unit: SteeredLine) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """Return the layers of the line, unit by unit, delay 1 first, with those that arrive; and the layers of its clock.

    A unit that is not dilated has no clock.
    """
    n, cells = unit.delays, unit.units * unit.delays
    pairs = np.hstack([np.repeat(np.eye(unit.units), n, axis=0), np.tile(np.eye(n), (unit.units, 1))])
    sent = AndLayer(SENT, (STATE, GATE), pairs, -np.ones(cells))
    arrived = following(ARRIVED, (f"{LINE}_1",), np.eye(cells)[::n])
    shift = np.kron(np.eye(unit.units), np.eye(n, k=1)).astype(np.float64)
    if not unit.divided:
        line = following(LINE, (SENT, f"{LINE}_1"), np.hstack([np.eye(cells), shift]))
        return (sent, arrived, line), ()
    divided, kept = unit.divided, shift.any(axis=1)
    moves = np.hstack([shift[kept], np.ones((kept.sum(), divided))])
    moved = AndLayer(MOVED, (f"{LINE}_1", BEFORE), moves, -divided + divided * ALPHA * np.ones(kept.sum()))
    line = _keeping((TICK, SENT, MOVED), np.hstack([np.eye(cells), np.eye(cells)[:, kept]]))
    return (sent, arrived, moved, line), _clock(divided, unit.inputs)


def _deciding(name: str, sources: tuple[str, ...], weight: Array, bias: Array, step: float) -> FirstQuadrantLayer:
    """Build a layer of a steered delay line, of units that are on from 1/2 on.

    Candidates are multiples of `step`: none of them stands in the hysteresis.
    """
    ones = np.ones(len(weight))
    fall, rise = (0.5 - step * (1 - level) for level in (FALL, RISE))
    return FirstQuadrantLayer(name, sources, weight, bias, fall * ones, rise * ones, ones)


def _check_steered(unit: SteeredLine) -> None:
    if not 2 <= unit.delays <= MOST_DELAYS:
        raise NetworkError(
            f"a steered line must have 2 to {MOST_DELAYS} delays, not {unit.delays}; dilate a longer one, and take a "
            "late source for a single delay"
        )
    if not 0 <= unit.divided <= MOST_DIVIDED:
        raise NetworkError(f"divided must lie in 0 to {MOST_DIVIDED}, not {unit.divided}; use more delays")
    for field in ("weight", "feedback", "bias", "gate_weight", "gate_feedback", "gate_bias"):
        value = getattr(unit, field)
        off = np.abs(value / unit.step - np.round(value / unit.step)) > _SAME
        if off.any():
            raise NetworkError(
                f"{field} must be of multiples of {unit.step:g}, not {value[off][0]:g}; round it to the grid"
            )
