"""Untrained networks of bits: counters, rings, dilated delay lines, and a delay line whose input chooses the delay.

Counter of toggles (cells that invert their bit): bit j toggles at every 2^j-th one of the input x.

    bit j toggles where the input is on and all lower bits were on        x and q_0[t-1] and ... and q_{j-1}[t-1]

Counting modulo 2^k takes k toggles, where a one-hot automaton takes 2^k cells. If the input is always on, the counter
divides the frame clock: it is a binary code of the position in the sequence, exact at any length, as a sinusoidal
positional encoding is in software.

Content-steered shift register: a delayed memory unit of one bit, whose gate chooses one of n delays.

    s_t   = H(W x_t + U h_{t-1} + b - 1/2)                            N units, 0 or 1
    e_t   = Wd x_t + Ud g_{t-1} + bd ;  g_t = one-hot of argmax e_t    the delay of what enters now, 1 to n
    M_j  <- M_{j+1} or (s_t and g_t = j)                               a line of n bits behind each unit
    h_t   = s_t + M_1 of the frame before                              delay k arrives k frames later, exactly

x are bits, h is 0, 1 or 2; of several largest e the first wins. Before the first frame all bits and g are 0. A line
dilated by tau = 2^k moves at the end of every tau-th frame: a bit sent with delay j arrives at the j-th move after it
and stays for tau frames. Equations: cosim.papers.dmu, reduced to bits.

In a circuit a clocked cell compares e_j and e_k of each pair of delays; the winner is the delay that wins n - 1 times.

Lines of bits: a ring that replays the bits written into it, and a line that moves every 2^k-th frame only.

    ring      q_0 = x_1 or (x_again and q_last[t-1]),  q_j = q_{j-1}[t-1]      a steering multiplexer in front
    dilated   q_j = q_{j-1}[t-1] in a frame with a tick, else q_j[t-1]        tick: all bits of a counter were on

Without a tick the candidate of a dilated line's cell is 1/2, between its thresholds, so the cell keeps its state; with
a tick the candidate is 0 or 1. A delay of n frames then costs n / 2^k cells and k toggles.
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
    """Return an untrained network that counts ones of its input modulo 2^bits; its decision is the count.

    Raises ValueError for fewer than 1 or more than MOST_COUNTED bits.
    """
    _check("bits", bits, (1, MOST_COUNTED))
    codes = 2.0 * ((np.arange(2**bits)[:, None] >> np.arange(bits)) & 1) - 1.0
    zeros = ALPHA * codes.sum(axis=1) - (codes > 0).sum(axis=1)  # of level 0, and that a longer code is no better
    readout = Readout((COUNT,), codes, zeros, "last")
    return _network(bits, readout, f"count modulo {2**bits}", tuple(map(str, range(2**bits))))


def position_code(bits: int) -> Network:
    """Return an untrained network that counts frames in which its input is on; its outputs are the bits of the count.

    Raises ValueError for fewer than 1 or more than MOST_TOGGLES bits.
    """
    _check("bits", bits, (1, MOST_TOGGLES))
    return _network(bits, Readout((COUNT,), np.eye(bits), np.full(bits, ALPHA), "last"), "position", ())


def chain(bits: int) -> tuple[AndLayer, SignedLayer]:
    """Return the two layers of a binary counter of ones: carries (AND gates), and toggles, whose bits are the count.

    The carries (named CARRY) read the one input bit, and the toggles (COUNT) of the frame before (BEFORE).
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
    """Return the ranges of a binary counter's toggles as of `Network.state_ranges`, (3, bits): two states each."""
    return np.outer([-ALPHA, 2 * ALPHA, 2 * ALPHA], np.ones(bits))


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
    """Return an untrained network that circulates `cells` bits in a ring.

    Inputs: one-hot symbols: ZERO or ONE write this bit into the first cell, AGAIN writes the bit of the last cell.
    Output: the bit of the last cell. Raises ValueError for fewer than 2 cells or more
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
    """Return an untrained network that delays bits: a shift register of `cells` that moves every 2^divided frames.

    divided: bits of the counter that divides the frame clock. The first move is in frame 2^divided - 1. Inputs: the
    clock's enable (always 1), and the bit. Outputs: the bit of each cell. Raises ValueError for no cell, more than
    MOST_CELLS, or a counter of less than 1 or more than MOST_DIVIDED bits.
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
    """Return the layers that divide the frame clock by 2^divided: carries, toggles, and a tick, on if all toggles were.

    unread: number of the network's inputs after the first, the clock's enable; the carries do not read them.
    """
    carry, count = chain(divided)
    carry = replace(carry, weight=np.insert(carry.weight, [1] * unread, 0.0, axis=1))
    tick = ReluLayer(TICK, (BEFORE,), np.ones((1, divided)), np.array([1 - divided + divided * ALPHA]))
    return carry, count, tick


def _keeping(sources: tuple[str, ...], weight: Array) -> FirstQuadrantLayer:
    """Return the layer of a line's cells, which keep their bits while the first source, the tick, is off."""
    ones = np.ones(len(weight))
    rows = np.hstack([-0.5 * ones[:, None], weight])
    return FirstQuadrantLayer(LINE, sources, rows, 0.5 * ones, 0.25 * ones, 0.75 * ones, ones)


STATE, PAIRS, GATE, SENT, MOVED, LINE, ARRIVED = "state", "pairs", "gate", "sent", "moved", "line", "arrived"
MOST_DELAYS = 16
_SAME = 1e-9


@dataclass(frozen=True)
class SteeredLine:
    """The weights of a content-steered shift register: N binary units, a line of n bits behind each, and a gate.

    The gate chooses in each frame the delay, 1 to n, of the bits that enter the lines. weight (N, M), feedback (N, N)
    and bias (N,) belong to the units; gate_weight (n, M), gate_feedback (n, n) and gate_bias (n,) to the gate; readout
    (labels, N) and readout_bias (labels,) read h, the sum of a unit's bit and the bit that arrives. All weights are
    multiples of `step`. The lines move every 2^divided frames. Equations: the module's docstring.
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
        """Return the number N of units."""
        return len(self.bias)

    @property
    def delays(self) -> int:
        """Return the number n of delays to choose from."""
        return len(self.gate_bias)

    @property
    def inputs(self) -> int:
        """Return the number M of inputs."""
        return self.weight.shape[1]


@dataclass(frozen=True)
class SteeredTrace:
    """The signals of a content-steered shift register on n strings.

    state: bits of its units, (n, time, N); arrived: bits that leave the lines, (n, time, N); gate: the chosen delay
    minus 1, (n, time); scores: (n, time, labels).
    """

    state: Array
    arrived: Array
    gate: NDArray[np.int64]
    scores: Array


def run_steered(unit: SteeredLine, x: Array) -> SteeredTrace:
    """Compute the signals of a content-steered shift register in software, frame by frame, on bits x (n, time, M)."""
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
    """Return an untrained steered line that detects whether a bit is on while an earlier one arrives from the line.

    Inputs: the bit, and a command for each delay. At most one command is on; it sets the delay of bits that enter, from
    its own frame until the next command. Before the first command the delay is 1. divided: see `SteeredLine`.
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
    """Return the inputs (n, time, M or M + 1) of `steered_network`: x, after an enable of 1 if `unit` is dilated."""
    return np.concatenate([np.ones_like(x[..., :1]), x], axis=2) if unit.divided else x


def steered_network(unit: SteeredLine, task: str) -> Network:
    """Return a content-steered shift register as a network that compiles to a circuit; it reads `inputs_of(unit, x)`.

    Raises NetworkError for weights that are no multiples of unit.step, for fewer than 2 or more than MOST_DELAYS
    delays, and for a divider outside 0 to MOST_DIVIDED.
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
    """Build the layers of a steered line that decide: units, comparators of all pairs of delays, and the gate.

    The gate is one-hot at the delay that wins all its comparisons.
    """
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
    """Return the layers of the lines of bits, and the layers of their clock, none where lines move in every frame.

    Cells of the lines are in order of units, then of delays, delay 1 first.
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
    """Build a layer of a steered line whose units are on where their candidate is 1/2 or more.

    Candidates must be multiples of `step`, so that none lies between a unit's two thresholds.
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
