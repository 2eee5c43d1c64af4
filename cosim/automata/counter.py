"""Counters by toggles: bit j of a chain turns over at every 2^j-th one.

    bit j turns over where the input is on and all bits below it were        x and q_0[t-1] and ... and q_{j-1}[t-1]

Counting modulo 2^k takes k toggles, where a one-hot automaton takes 2^k cells. With an input that is always on the
chain divides the frame clock: a binary code of the position in the sequence, exact at any length, the circuit form of a
sinusoidal positional encoding.
"""

import numpy as np
from numpy.typing import NDArray

from cosim.automata.network import GRID, bit_inputs
from cosim.network.layers import MOST_BITS, AndLayer, SignedLayer
from cosim.network.types import INPUT, DelayedSignal, Network, Readout, check_network

MOST = 8  # bits; the carry into the last of them is a sum of two ANDs
MOST_COUNTED = 4  # bits of a counter that reads its count out: 16 rows
COUNT, BEFORE, CARRY = "count", "count_1", "carry"
ALPHA = 1 / 3  # a toggle alternates -alpha and 2 alpha, so its level is 1


def binary_counter(bits: int) -> Network:
    """Return an automaton that counts ones modulo 2^bits; its decision is the count.

    Raises ValueError beyond MOST_COUNTED bits.
    """
    _check("bits", bits, MOST_COUNTED)
    codes = 2.0 * ((np.arange(2**bits)[:, None] >> np.arange(bits)) & 1) - 1.0
    zeros = ALPHA * codes.sum(axis=1) - (codes > 0).sum(axis=1)  # of level 0, and that a longer code is no better
    readout = Readout((COUNT,), codes, zeros, "last")
    return _network(bits, readout, f"count modulo {2**bits}", tuple(map(str, range(2**bits))))


def position_code(bits: int) -> Network:
    """Return a counter of frames with its bits as outputs: 1 where a bit is on. Raises ValueError beyond MOST bits."""
    _check("bits", bits, MOST)
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


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise ValueError(f"{name} must lie in 1 to {most}, not {value}")
