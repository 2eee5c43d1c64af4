"""Lines of bits: a ring that replays what was written into it, and a line whose cells take over every 2^k-th frame.

    ring      q_0 = x_1 or (x_again and q_last[t-1]),  q_j = q_{j-1}[t-1]      a steering multiplexer in front
    dilated   q_j = q_{j-1}[t-1] in a frame with a tick, else what it was      tick: all bits of a counter were on

A cell of the dilated line keeps its state because its candidate stands in its hysteresis: 1/2 without a tick, 0 or 1
with one. A delay of n frames then costs n / 2^k cells and k toggles.
"""

import numpy as np

from cosim.automata.counter import ALPHA, BEFORE, COUNT, chain, ranges
from cosim.automata.network import GRID
from cosim.network.layers import MOST_BITS, AndLayer, FirstQuadrantLayer, ReluLayer, following
from cosim.network.types import INPUT, DelayedSignal, InputEncoding, Network, Readout, check_network

RING, LINE, TICK, STEERED = "ring", "line", "tick", "steered"
ZERO, ONE, AGAIN = range(3)  # the ring's symbols: write a bit, or the one that comes out
MOST_CELLS = 256
MOST_DIVIDED = MOST_BITS - 1  # bits of the counter that makes the tick


def ring(cells: int) -> Network:
    """Return a network, made by rule, that keeps `cells` bits in a ring.

    Symbols: ZERO, ONE, AGAIN, one-hot. Output: the bit that comes out. Raises ValueError for fewer than 2 cells or more
    than MOST_CELLS.
    """
    if not 2 <= cells <= MOST_CELLS:
        raise ValueError(f"cells must lie in 2 to {MOST_CELLS}, not {cells}; a longer memory is a digital one")
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
            InputEncoding(np.zeros(3), np.ones(3), levels=1),
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
    """Return a network that delays bits: a shift register that moves every 2^divided frames.

    The first tick is in frame 2^divided - 1. Inputs: 1 (the clock's enable), and the bit. Outputs: the taps of the
    line. Raises ValueError for no cell, more than MOST_CELLS, or a divider of less than 1 or more than MOST_DIVIDED
    bits.
    """
    if not 1 <= cells <= MOST_CELLS:
        raise ValueError(f"cells must lie in 1 to {MOST_CELLS}, not {cells}; a longer memory is a digital one")
    if not 1 <= divided <= MOST_DIVIDED:
        raise ValueError(f"divided must lie in 1 to {MOST_DIVIDED}, not {divided}")
    ones, before = np.ones(cells), "line_1"
    carry, count = chain(divided)
    carry = AndLayer(carry.name, carry.sources, np.insert(carry.weight, 1, 0.0, axis=1), carry.bias)
    tick = ReluLayer(TICK, (BEFORE,), np.ones((1, divided)), np.array([1 - divided + divided * ALPHA]))
    bits = np.concatenate([np.eye(cells, 2 + cells, k=1), np.ones((cells, divided))], axis=1)
    gates = AndLayer(STEERED, (INPUT, before, BEFORE), bits, -divided + divided * ALPHA * ones)
    weight = np.concatenate([np.full((cells, 1), -0.5), np.eye(cells)], axis=1)
    line = FirstQuadrantLayer(LINE, (TICK, STEERED), weight, 0.5 * ones, 0.25 * ones, 0.75 * ones, ones)
    return check_network(
        Network(
            InputEncoding(np.zeros(2), np.ones(2), levels=1),
            (carry, count, tick, gates, line),
            Readout((LINE,), np.eye(cells), np.zeros(cells), "last"),
            f"line of {cells} bits, every {2**divided} frames",
            weight_grid=GRID,
            state_ranges={COUNT: ranges(divided)},
            late={BEFORE: DelayedSignal(COUNT), before: DelayedSignal(LINE)},
        )
    )
