"""The network of a cascade: levels of bits, each of which reads those in front of it and itself a frame late.

    bit j of level i    candidate = sum of products of a symbol and late bits of levels 0 to i    (cosim.automata.rows)

All bits decide at once, from what stood a frame before, so a level costs no time and a late bit no device. Levels are
the serial decomposition of J. Hartmanis and R. E. Stearns (1966): what the first i levels tell apart is a closed
partition, so their bits need no bit behind them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cosim.automata.network import names_by_strings, symbol_network
from cosim.automata.rows import LogicRow, Mask, Terms, cheapest_row, terms_of
from cosim.automata.weights import readout_of
from cosim.network.automaton import Automaton
from cosim.network.late import FALL, RISE
from cosim.network.layers import AndLayer, FirstQuadrantLayer, Layer
from cosim.network.types import INPUT, DelayedSignal, Network, Readout

BITS, BEFORE, STEERED = "bits", "bits_1", "steered"
_LOW, _HIGH = 0.25, 0.75
_MIRROR = 80.0  # um2, drawn, generic180: a weight of 1
_BIT = 700.0  # um2, drawn, generic180: a cell with its capacitor and gate line
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Level:
    """bits: (states, own), those of this level in each state; terms: what its rows may read; rows: one for each bit."""

    bits: Mask
    terms: Terms
    rows: tuple[LogicRow, ...]


@dataclass(frozen=True, eq=False)
class Cascade:
    """An automaton as a cascade of levels of bits, front first."""

    levels: tuple[Level, ...]

    @cached_property
    def bits(self) -> Mask:
        """Return which cells are on in each state of the automaton, (states, cells)."""
        return np.concatenate([level.bits for level in self.levels], axis=1)

    @property
    def price(self) -> float:
        """Return the estimated area of the cells and rows that follow the automaton, um2."""
        return sum(row.price + _BIT for level in self.levels for row in level.rows)

    @property
    def words(self) -> str:
        """Return the number of bits of an automaton's cascade in words, level by level where there are several."""
        sizes = [str(level.bits.shape[1]) for level in self.levels]
        count = self.bits.shape[1]
        plain = f"{count} bit{'s' if count > 1 else ''}"
        return plain if len(sizes) == 1 else f"cascade of {', '.join(sizes[:-1])} and {sizes[-1]} bits"


def cascade_of(automaton: Automaton, codes: tuple[Mask, ...], known: dict[bytes, Level | None]) -> Cascade | None:
    """Return an automaton's cascade of these bits, or None where a bit has no row.

    codes: (states, own) for each level, the front first; known: levels found so far by their bits, to which new ones
    are added.
    """
    levels = list[Level]()
    for k, own in enumerate(codes):
        bits = np.concatenate(codes[: k + 1], axis=1)
        key = bits.shape[1].to_bytes(2, "big") + own.shape[1].to_bytes(2, "big") + np.packbits(bits).tobytes()
        if key not in known:
            known[key] = _level(automaton, own, bits)
        level = known[key]
        if level is None:
            return None
        levels.append(level)
    return Cascade(tuple(levels))


def _level(automaton: Automaton, own: Mask, bits: Mask) -> Level | None:
    terms = terms_of(bits, len(automaton.symbols))
    rows = list[LogicRow]()
    for bit in own.T:
        row = cheapest_row(automaton, terms, bit)
        if row is None:
            return None
        rows.append(row)
    return Level(own, terms, tuple(rows))


def readout_price(automaton: Automaton, cascade: Cascade) -> float | None:
    """Estimate the area of the weights that read an automaton's answer, um2; None where there is no readout."""
    weights = readout_of(automaton, cascade.bits.astype(float))
    return None if weights is None else _MIRROR * sum(float(np.abs(one).sum()) for one in weights)


def network_of_cascade(automaton: Automaton, cascade: Cascade, task: str) -> Network | None:
    """Return the network that follows an automaton by a cascade's bits; None where no readout tells labels apart."""
    weights = readout_of(automaton, cascade.bits.astype(float))
    if weights is None:
        return None
    symbols, count = len(automaton.symbols), cascade.bits.shape[1]
    sources: dict[str, Array] = {INPUT: np.zeros((count, symbols)), BEFORE: np.zeros((count, count))}
    products, into = list[Array](), list[int]()
    rows = [(level.terms, row) for level in cascade.levels for row in level.rows]
    weight = list[float]()
    for j, (terms, row) in enumerate(rows):
        sources[INPUT][j] = row.linear[:symbols]
        sources[BEFORE][j, : len(row.linear) - symbols] = row.linear[symbols:]
        for k in np.flatnonzero(row.products):
            products.append(np.pad(terms.literals[k].astype(float), (0, symbols + count - terms.literals.shape[1])))
            into.append(j)
            weight.append(float(row.products[k]))
    layers = list[Layer]()
    if products:
        layers.append(_products(np.stack(products), symbols))
        sources[STEERED] = np.zeros((count, len(products)))
        sources[STEERED][into, np.arange(len(products))] = weight
    layers.append(_cells(automaton, cascade, [row for _, row in rows], sources))
    late = {BEFORE: DelayedSignal(BITS)} if any(BEFORE in layer.sources for layer in layers) else {}
    return symbol_network(layers, Readout((BITS,), *weights, "last"), names_by_strings(automaton), task, late)


def _products(literals: Array, symbols: int) -> AndLayer:
    """literals: (products, symbols + bits)."""
    bias = 1.0 - literals.sum(axis=1)
    if not literals[:, symbols:].any():
        return AndLayer(STEERED, (INPUT,), literals[:, :symbols], bias)
    return AndLayer(STEERED, (INPUT, BEFORE), literals, bias)


def _cells(
    automaton: Automaton, cascade: Cascade, rows: list[LogicRow], sources: Mapping[str, Array]
) -> FirstQuadrantLayer:
    read = {name: weight for name, weight in sources.items() if weight.any()} or {INPUT: sources[INPUT]}
    keeps, ones = np.array([row.keeps for row in rows]), np.ones(len(rows))
    return FirstQuadrantLayer(
        BITS, tuple(read), np.concatenate(list(read.values()), axis=1), np.array([row.bias for row in rows]),
        np.where(keeps, _LOW, FALL), np.where(keeps, _HIGH, RISE), ones,
        initial=cascade.bits[automaton.start].astype(float),
    )  # fmt: skip
