"""Rows that lead a cell along an automaton: the cheapest sum of products of bits and symbols, by a linear program.

    u = b - sum of w_a x_a - sum of w_i q_i[t-1] + sum of v_k p_k        p_k: product of a symbol and up to 3 bits, late
    w, v >= 0; a product can only pull, so only symbols and bits themselves count negatively, through mirrors

Where the cell is to          keeps (1/4, 3/4)      follows (0.35, 0.55)
turn on, off                  u >= 1, u <= 0        u >= 1, u <= 0
stay on, off                  u >= 1/2, u <= 1/2    u >= 1, u <= 0

What flows into and out of a row at once, |b| + sum of w + sum of v over what is on, is limited: each current brings a
spread of its own, about 3 to 4 % of a unit current, and the nearest threshold of a cell that keeps is 1/4 away.

A cell that keeps is an identity-reset machine of its symbols and of the bits that its products read: where none of them
acts on it, 1/2 does nothing. Costs are areas: of a product some switches and a source, of a weight its unit devices.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from cosim.automata.automaton import Automaton
from cosim.automata.network import GRID

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_MIRROR, _RAIL, _SWITCH, _SOURCE = 80.0, 40.0, 8.0, 16.0  # um2, drawn, generic180: a weight of 1, its share of a line
_LARGEST = 2.0  # of a weight, and of a candidate
_KEEPING, _FOLLOWING = 1.5, 2.0  # what may flow in a row
_ROUNDS, _SOON = 2, 0.1  # of weighing anew by what was found, which prefers few terms; weight that counts half
_NEAR = 1e-6
_MOST_TERMS = 2500
# bits of a product: three make modulo 6 of one bit 16 % smaller and others hardly, and have not been tried in corners
MOST_TOGETHER = 2
_CHEAP = 150.0  # um2: not worth narrower margins
_FOLLOWS = 1.1  # times the price of keeping, for wider margins


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms that a row may read. literals: (terms, symbols + bits), those of each product; on: (states, symbols,
    terms), where it is 1; bits: (states, bits)."""

    literals: Mask
    on: Mask
    bits: Mask

    @property
    def symbols(self) -> int:
        """Return the number of the automaton's symbols."""
        return self.on.shape[1]


@dataclass(frozen=True, eq=False)
class LogicRow:
    """bias; linear: (symbols + bits,); products: (terms,); keeps: whether the cell keeps its state at 1/2; price: um2,
    roughly."""

    bias: float
    linear: Array
    products: Array
    keeps: bool
    price: float


def terms_of(bits: Mask, symbols: int) -> Terms:
    """Return products of at most one symbol of an automaton and some bits, without constant 0 and repetitions."""
    count = bits.shape[1]
    groups: list[tuple[int, ...]] = [()]
    for size in range(1, MOST_TOGETHER + 1):
        more = [group for group in combinations(range(count), size) if bits[:, group].all(axis=1).any()]
        if (len(groups) + len(more)) * (1 + symbols) > _MOST_TERMS:
            break
        groups += more
    literals, on, known = list[Mask](), list[Mask](), set[bytes]()
    for group in groups:
        held = np.all(bits[:, group], axis=1)
        for symbol in range(-1, symbols if len(group) < MOST_TOGETHER else 0):
            literal = np.isin(np.arange(symbols + count), [*(symbols + k for k in group), symbol])
            read = np.arange(symbols) == symbol if symbol >= 0 else np.ones(symbols, dtype=np.bool_)
            value = np.logical_and.outer(held, read)
            if literal.any() and (key := value.tobytes()) not in known:
                known.add(key)
                literals.append(literal)
                on.append(value)
    return Terms(np.stack(literals), np.stack(on, axis=2), bits)


def cheapest_row(automaton: Automaton, terms: Terms, bit: Mask) -> LogicRow | None:
    """Return the cheapest row of an automaton's cell that is on in these states (states,); None without one on the
    weight grid."""
    before, after = np.repeat(bit[:, None], terms.symbols, axis=1), bit[automaton.next]
    follows = _row(terms, np.where(after, 1.0, -_LARGEST), np.where(after, _LARGEST, 0.0), keeps=False)
    if follows is not None and follows.price <= _CHEAP:
        return follows
    low = np.where(after, np.where(before, 0.5, 1.0), -_LARGEST)
    keeps = _row(terms, low, np.where(after, _LARGEST, np.where(before, 0.0, 0.5)), keeps=True)
    if follows is None or keeps is None:
        return follows or keeps
    return follows if follows.price <= _FOLLOWS * keeps.price else keeps


def _row(terms: Terms, low: Array, high: Array, *, keeps: bool) -> LogicRow | None:
    """Return the cheapest row whose candidate lies between low and high, (states, symbols); None without one."""
    states, symbols, count = terms.on.shape
    single = np.concatenate(
        [np.tile(np.eye(symbols), (states, 1)), np.repeat(terms.bits.astype(float), symbols, axis=0)], axis=1
    )
    ones = np.ones((states * symbols, 1))
    values = np.concatenate([ones, -ones, -single, terms.on.reshape(-1, count).astype(float)], axis=1)
    mirrors = 2 + single.shape[1]
    prices = np.concatenate(
        [np.full(2, _MIRROR), np.full(single.shape[1], _MIRROR + _RAIL), _SOURCE + _SWITCH * terms.literals.sum(axis=1)]
    )
    flows = np.full(len(values), _KEEPING if keeps else _FOLLOWING)
    found = _sparse(values, prices, (low.reshape(-1), high.reshape(-1), flows), mirrors)
    if found is None:
        return None
    paid = np.where(np.arange(len(found)) < mirrors, found, found > 0)
    return LogicRow(found[0] - found[1], -found[2:mirrors], found[mirrors:], keeps, float(prices @ paid))


def _sparse(values: Array, prices: Array, within: tuple[Array, Array, Array], mirrors: int) -> Array | None:
    """Find cheap and few weights >= 0, on the grid, of an automaton's logic row; None where none were found.

        low <= values @ weights <= high,    |values| @ weights <= flows

    Mirrors cost by their weight; each other term costs the same at any weight, so it is weighed by what it had.
    """
    low, high, flows = within
    rows, limits = np.vstack([values, -values, np.abs(values)]), np.concatenate([high, -low, flows])
    best, lowest, weights = None, np.inf, prices
    for _ in range(_ROUNDS):
        solved: Any = linprog(weights, A_ub=rows, b_ub=limits, bounds=(0.0, _LARGEST))
        if solved.status != 0:
            return None
        found = np.rint(solved.x / GRID) * GRID
        fixed = np.arange(len(prices)) < mirrors
        price = float(prices @ np.where(fixed, found, found > 0))
        if (rows @ found <= limits + _NEAR).all() and price < lowest:
            best, lowest = found, price
        weights = np.where(fixed, prices, prices / (solved.x + _SOON))
    return best


_LEAST_LEAD = 0.5  # of the right label when weights are rounded


def readout_of(automaton: Automaton, features: Array) -> tuple[Array, Array] | None:
    """Return the weights that read an automaton's answer: (labels, cells), bias (labels,), on the grid, or None.

    The smallest sum of |w| + |b| with w_l phi_s + b_l - w_k phi_s - b_k >= 1 for every state s of label l and every
    other label k.
    """
    labels, (states, cells) = len(automaton.labels), features.shape
    phi, count = np.concatenate([features, np.ones((states, 1))], axis=1), cells + 1
    rows: list[Array] = []
    for state, right in enumerate(automaton.output.tolist()):
        for other in range(labels):
            if other != right:
                row = np.zeros((labels, count))
                row[right], row[other] = -phi[state], phi[state]
                rows.append(row.reshape(-1))
    if not rows:
        return np.zeros((labels, cells)), np.zeros(labels)
    leads = np.stack(rows)
    both: Any = linprog(
        np.ones(2 * labels * count), A_ub=np.hstack([leads, -leads]), b_ub=-np.ones(len(rows)), bounds=(0.0, _LARGEST)
    )
    if both.status != 0:
        return None
    positive, negative = both.x.reshape(2, labels, count)
    found = np.rint((positive - negative) / GRID) * GRID
    scores = phi @ found.T
    right = scores[np.arange(states), automaton.output].copy()
    scores[np.arange(states), automaton.output] = -np.inf
    return (found[:, :-1], found[:, -1]) if (right - scores.max(axis=1) >= _LEAST_LEAD).all() else None
