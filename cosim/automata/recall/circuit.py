"""Circuits of recall: registers of bits, as long as the history, with taps.

    memory          ceil(log2 K) registers, one bit of a symbol each: the symbol of k frames ago
    correlator      one cell behind a register: whether a pattern of bits has just passed
    matched filter  one readout row for each pattern behind a register: how many of the last bits are as in it

A number would lose its digits from cell to cell; a bit is restored by each cell, so recall is exact at any age, for one
cell a bit. What goes round in a ring: cosim.automata.steered. Before the first frame all cells hold 0. The compiler
refuses more than 256 cells (cosim.compiler.lower).
"""

from collections.abc import Mapping, Sequence

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
    """Return strings of symbols 0 to K - 1 (n, time) as inputs (n, time, ceil(log2 K)), the last bit last."""
    return (strings[:, :, None] >> np.arange(_width(symbols))[::-1] & 1).astype(float)


def memory(symbols: int, frames: int) -> Network:
    """Return a network made by rule whose decision is the symbol of so many frames ago, 0 before there was one.

    K = symbols, inputs as of `to_bits`. The score of a symbol is the number of bits in which the tap equals it. Costs
    ceil(log2 K) (frames + 1) cells.
    """
    if symbols < 2:
        raise InputError(f"a memory must have 2 symbols at least, not {symbols}; one symbol needs no memory")
    codes = to_bits(symbols, np.arange(symbols)[None, :])[0]
    readout = Readout((f"{BIT}_{frames}",), *_agreement(codes), "last")
    follow, late = following(BIT, (INPUT,), np.eye(codes.shape[1])), {f"{BIT}_{frames}": DelayedSignal(BIT, frames)}
    return _network(codes.shape[1], (follow,), readout, late, tuple(map(str, range(symbols))))


def correlator(pattern: Bits) -> Network:
    """Return a recall circuit made by rule whose unit `match` is on where the last input bits equal this pattern.

    The pattern's first bit is the oldest. The row has 1 on the taps where the pattern has a 1, -1 elsewhere, and
    reaches 1
    for the pattern alone, 0 else. It tells one unit in as many as the pattern has ones, so mismatch limits it to some 8
    bits a row.
    """
    row, ones = _patterns([pattern])
    sources, late = _register(INPUT, len(pattern))
    match = following(MATCH, sources, _agreement(row)[0], 1.0 - float(ones[0]))
    readout = Readout((MATCH,), np.array([[-1.0], [1.0]]), np.array([1.0, 0.0]), "last")
    return _network(1, (match,), readout, late, ("no", "passed"))


def matched_filter(patterns: Patterns) -> Network:
    """Return a recall circuit that scores how many of the last bits of the input are as in each pattern, (time,
    patterns); all equally long."""
    rows, _ = _patterns(patterns)
    sources, late = _register(BIT, rows.shape[1])
    readout = Readout(sources, *_agreement(rows), "last")
    names = tuple("".join(map(str, one)) for one in patterns)
    return _network(1, (following(BIT, (INPUT,), np.eye(1)),), readout, late, names)


def _register(signal: str, length: int) -> tuple[tuple[str, ...], dict[str, DelayedSignal]]:
    """Return a signal of one bit and its taps, the oldest first, and the delayed signals that the taps are, by name."""
    late = {f"{signal}_{k}": DelayedSignal(signal, k) for k in range(length - 1, 0, -1)}
    return (*late, signal), late


def _patterns(patterns: Patterns) -> tuple[Array, Array]:
    """Return bit patterns to recall as rows, and how many ones each has.

    Raises InputError where they are no bits or of several lengths.
    """
    if len({len(one) for one in patterns}) != 1 or not len(patterns[0]):
        raise InputError("patterns must be equally long, 1 bit at least; pad them, or use a correlator for each")
    rows = np.array(patterns, dtype=float)
    if not np.isin(rows, (0.0, 1.0)).all():
        raise InputError(f"a pattern must be of bits, 0 or 1, not {rows[~np.isin(rows, (0.0, 1.0))][0]:g}")
    return rows, rows.sum(axis=1)


def _agreement(rows: Array) -> tuple[Array, Array]:
    """Return the weight and bias by which a recalling circuit counts in how many places its bits are as in each row."""
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
