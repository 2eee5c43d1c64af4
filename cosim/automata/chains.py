"""Cascades of bits that follow an automaton: chains of closed partitions, their classes, and codes of the classes.

    1 = P_0 > P_1 > ... > P_n = 0      each closed; level i tells apart the blocks of P_i within a block of P_{i-1}

A partition is closed if each symbol leads all states of a block into one block. The classes of level i are a
partition T_i, which need not be closed, with P_{i-1} T_i = P_i. Blocks share a class where a symbol then keeps the
class, sets the same class from every state, or the output is the same. Each class has a code of bits; the code is
chosen whose rows of weights cost least.

The network of a cascade has levels of bits. Each bit reads the bits of its own level and of those in front, late by
one frame.

    bit j of level i    candidate = sum of products of a symbol and late bits of levels 0 to i    (rows, below)

All bits decide at one moment, from the bits of the frame before, so a level costs no time and a late bit no device.
Levels are the serial decomposition of J. Hartmanis and R. E. Stearns (1966): the partition that the first i levels tell
apart is closed, so their bits need no bit of a later level.

A cell's row of weights is the cheapest sum of products of bits and symbols, found by a linear program.

    u = b - sum of w_a x_a - sum of w_i q_i[t-1] + sum of v_k p_k        p_k: product of a symbol x and late bits q
    w, v >= 0; a product can only add to u, so only symbols and bits themselves count negatively, through mirrors

Where the cell must           keeps (1/4, 3/4)      follows (0.35, 0.55)
turn on, off                  u >= 1, u <= 0        u >= 1, u <= 0
stay on, off                  u >= 1/2, u <= 1/2    u >= 1, u <= 0

A cell has two thresholds, given in brackets. A cell that keeps its state has 1/2 between them; one that follows is set
anew in each frame. The currents of a row that flow at once, |b| + the w and v of signals that are on, are limited: each
current has a spread of about 3 to 4 % of a unit current, and a cell that keeps has its nearest threshold 1/4 away.

A cell that keeps is an identity-reset machine of its symbols and of the bits that its products read: where no product
acts, u is 1/2 and the state stays. Costs are areas: a product costs switches and a source, a weight its unit devices.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, count, islice, pairwise, permutations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from cosim.automata.automaton import Automaton, Whole
from cosim.automata.network import GRID, names_by_strings, symbol_network
from cosim.automata.parts import closed_partitions, readout_of
from cosim.network.layers import FALL, RISE, AndLayer, FirstQuadrantLayer, Layer
from cosim.network.types import INPUT, Network, Readout

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
    """The terms that a cell's row may read: products of at most one symbol and some bits.

    literals: (terms, symbols + bits), the factors of each product; on: (states, symbols, terms), where each product is
    1; bits: (states, bits), the cells that are on in each state of the automaton.
    """

    literals: Mask
    on: Mask
    bits: Mask

    @property
    def symbols(self) -> int:
        """Return the number of the automaton's symbols."""
        return self.on.shape[1]


@dataclass(frozen=True, eq=False)
class LogicRow:
    """The weights with which one cell of a cascade reads symbols, bits and products of both.

    terms: the products that it may read, and the bits of its own level and those in front; linear: (symbols + bits,);
    products: (terms,); keeps: whether the cell keeps its state at candidate 1/2; price: estimated area, um2.
    """

    terms: Terms
    bias: float
    linear: Array
    products: Array
    keeps: bool
    price: float


def terms_of(bits: Mask, symbols: int) -> Terms:
    """Return all products of at most one symbol and some bits, (states, bits), that are neither constant 0 nor equal.

    A product has at most MOST_TOGETHER factors.
    """
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
    """Return the cheapest row for a cell that must be on in the automaton's states where `bit`, (states,), is true.

    Return None where no row on the weight grid was found.
    """
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
    """Return the cheapest row whose candidate lies from low to high, both (states, symbols); None without a row."""
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
    return LogicRow(terms, found[0] - found[1], -found[2:mirrors], found[mirrors:], keeps, float(prices @ paid))


def _sparse(values: Array, prices: Array, within: tuple[Array, Array, Array], mirrors: int) -> Array | None:
    """Find few and cheap weights >= 0 on the grid for the row of a cell; None where none were found.

        low <= values @ weights <= high,    |values| @ weights <= flows        within: low, high, flows

    The first `mirrors` weights cost in proportion to their size. Any other term costs the same at any size, so each
    round divides its price by the size that the round before gave it.
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


BITS, BEFORE, STEERED = "bits", "bits_1", "steered"
_LOW, _HIGH = 0.25, 0.75
_BIT = 700.0  # um2, drawn, generic180: a cell with its capacitor and gate line
Level = tuple[LogicRow, ...]  # one row for each cell of a level, which reads symbols, its own level and those in front


@dataclass(frozen=True, eq=False)
class Cascade:
    """An automaton built of levels of cells (bits), front first; a level reads itself and the levels in front.

    bits: (states, cells), the cells that are on in each state of the automaton.
    """

    levels: tuple[Level, ...]
    bits: Mask

    @property
    def price(self) -> float:
        """Return the estimated area of all cells and their rows, without the readout, um2."""
        return sum(row.price + _BIT for level in self.levels for row in level)

    @property
    def words(self) -> str:
        """Return the number of bits in words: "2 bits", or with several levels "cascade of 1 and 2 bits"."""
        sizes = [str(len(level)) for level in self.levels]
        count = self.bits.shape[1]
        plain = f"{count} bit{'s' if count > 1 else ''}"
        return plain if len(sizes) == 1 else f"cascade of {', '.join(sizes[:-1])} and {sizes[-1]} bits"


def cascade_of(automaton: Automaton, codes: tuple[Mask, ...], known: dict[bytes, Level | None]) -> Cascade | None:
    """Return the cascade whose cells are on in given states of an automaton, or None where a cell has no row.

    codes: for each level, front first, which cells are on in each state, (states, own); known: a cache of levels by
    their bits, to which new levels are added.
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
    return Cascade(tuple(levels), np.concatenate(codes, axis=1))


def _level(automaton: Automaton, own: Mask, bits: Mask) -> Level | None:
    terms = terms_of(bits, len(automaton.symbols))
    rows = list[LogicRow]()
    for bit in own.T:
        row = cheapest_row(automaton, terms, bit)
        if row is None:
            return None
        rows.append(row)
    return tuple(rows)


def readout_price(automaton: Automaton, cascade: Cascade) -> float | None:
    """Estimate the area of a cascade's readout weights, um2; None where no readout tells the labels apart."""
    weights = readout_of(automaton, cascade.bits.astype(float))
    return None if weights is None else _MIRROR * sum(float(np.abs(one).sum()) for one in weights)


def network_of_cascade(automaton: Automaton, cascade: Cascade, task: str) -> Network | None:
    """Return the network that follows an automaton with a cascade's cells; None where no readout tells labels apart."""
    weights = readout_of(automaton, cascade.bits.astype(float))
    if weights is None:
        return None
    symbols, count = len(automaton.symbols), cascade.bits.shape[1]
    sources: dict[str, Array] = {INPUT: np.zeros((count, symbols)), BEFORE: np.zeros((count, count))}
    products, into = list[Array](), list[int]()
    rows = [row for level in cascade.levels for row in level]
    weight = list[float]()
    for j, row in enumerate(rows):
        sources[INPUT][j] = row.linear[:symbols]
        sources[BEFORE][j, : len(row.linear) - symbols] = row.linear[symbols:]
        for k in np.flatnonzero(row.products):
            factors = row.terms.literals[k].astype(float)
            products.append(np.pad(factors, (0, symbols + count - len(factors))))
            into.append(j)
            weight.append(float(row.products[k]))
    layers = list[Layer]()
    if products:
        layers.append(_products(np.stack(products), symbols))
        sources[STEERED] = np.zeros((count, len(products)))
        sources[STEERED][into, np.arange(len(products))] = weight
    layers.append(_cells(automaton, cascade, rows, sources))
    return symbol_network(layers, Readout((BITS,), *weights, "last"), names_by_strings(automaton), task)


def _products(literals: Array, symbols: int) -> AndLayer:
    """Build the layer of AND gates for products of symbols and bits.

    literals: (products, symbols + bits), the factors of each product.
    """
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


MOST_CASCADED = 24  # states
MOST_LEVELS = 3
_MOST_PARTITIONS = 20  # as fronts, and in the middle
_CHAINS, _FOUND = 4, 4  # that are refined; that are kept
_CELL, _PRODUCT = 20, 1  # shares of area
_MOST_ONE_HOT = 6  # classes, of which each is tried as the one without a bit

Codes = tuple[Mask, ...]


# the classes that one level of a cascade must tell, by state, (states,); and where the levels in front do so already
_Step = tuple[Whole, Mask]


def cascades(automaton: Automaton) -> list[Cascade]:
    """Return the cheapest cascades of bits that were found for an automaton, the cheapest first.

    There are none for an automaton of fewer than 2 or more than MOST_CASCADED states.
    """
    if not 2 <= len(automaton.states) <= MOST_CASCADED:
        return []
    known: dict[bytes, Level | None] = {}
    begun: dict[bytes, tuple[float, list[_Step]]] = {}
    for way in _chains(automaton):
        for order in permutations(range(3)):
            steps = [(_classes(automaton, *pair, order), _alone(*pair)) for pair in pairwise(way)]
            key = b"/".join(classes.tobytes() for classes, _ in steps)
            if key not in begun:
                found = _priced(automaton, tuple(_first_code(automaton, *step) for step in steps), known)
                if found is not None:
                    begun[key] = found[0], steps
    best = sorted(begun.values(), key=lambda one: one[0])[:_CHAINS]
    refined = sorted(chain.from_iterable(_refine(automaton, steps, known) for _, steps in best), key=lambda one: one[0])
    kept = {cascade.bits.tobytes(): cascade for _, cascade in reversed(refined)}
    return list(reversed(kept.values()))[:_FOUND]


def _chains(automaton: Automaton) -> list[list[Whole]]:
    """Return the chain of closed partitions of least estimated cost, coarsest first, for each number of levels.

    A number of levels for which there is no chain is left out.
    """
    states = len(automaton.states)
    one, zero = np.zeros(states, dtype=np.int64), np.arange(states)
    between = [np.array(partition) for partition in closed_partitions(automaton)]
    fronts = [_promise(automaton, one, block) for block in between]
    both = [front + _promise(automaton, block, zero) for front, block in zip(fronts, between, strict=True)]
    chosen = dict.fromkeys(k for keys in (fronts, both) for k in np.argsort(keys, kind="stable")[:_MOST_PARTITIONS])
    every = [*(between[k] for k in chosen), zero]
    steps = {
        (i, j): _promise(automaton, above, below)
        for (i, above), (j, below) in permutations(enumerate(every), 2)
        if below.max() > above.max() and _refines(below, above)
    }
    ways = {i: (_promise(automaton, one, block), [one, block]) for i, block in enumerate(every)}
    found = [ways[len(every) - 1][1]]
    for _ in range(MOST_LEVELS - 1):
        longer: dict[int, tuple[float, list[Whole]]] = {}
        for (i, j), price in steps.items():
            if i in ways and (j not in longer or ways[i][0] + price < longer[j][0]):
                longer[j] = ways[i][0] + price, [*ways[i][1], every[j]]
        ways = longer
        if len(every) - 1 in ways:
            found.append(ways[len(every) - 1][1])
    return found


def _refines(below: Whole, above: Whole) -> bool:
    return len(np.unique(below * (above.max() + 1) + above)) == below.max() + 1


def _quotient(automaton: Automaton, above: Whole, below: Whole) -> tuple[Whole, Whole]:
    """Return the automaton whose states are the blocks of the partition `below`.

    Return the block of `above` that contains each, (blocks,), and the block that each symbol leads to, (blocks,
    symbols).
    """
    _, first = np.unique(below, return_index=True)
    return above[first], below[automaton.next[first]]


def _promise(automaton: Automaton, above: Whole, below: Whole) -> float:
    """Estimate the cost of the level that divides the blocks of `above` into those of `below`, in relative units.

    It is the cost of cells, and of products: few where symbols keep or set the classes of the level.
    """
    parent, follow = _quotient(automaton, above, below)
    _, first = np.unique(below, return_index=True)
    own = _classes(automaton, above, below, (0, 1, 2))[first]
    size = int(own.max()) + 1
    cells = 1 if size == 2 else next(bits for bits in count(2) if comb(bits, bits // 2) >= size)
    acts = 0
    for block in range(parent.max() + 1):
        inside = parent == block
        led = own[follow[inside]]
        simple = (led == led[0]).all(axis=0) | (led == own[inside][:, None]).all(axis=0)
        acts += np.where(simple, 1, 2 * inside.sum()).sum()
    return cells * _CELL + float(acts) * _PRODUCT


def _classes(automaton: Automaton, above: Whole, below: Whole, order: tuple[int, ...]) -> Whole:
    """Return the class of each state in the level that divides the blocks of `above` into those of `below`, (states,).

    order: which lists of pairs from `_wishes` are merged into classes first: 0 keeping, 1 setting, 2 outputs.
    """
    parent, follow = _quotient(automaton, above, below)
    group, parents = list(range(len(parent))), [{one} for one in parent.tolist()]  # those of a group by its name
    wishes = list(_wishes(automaton, below, parent, follow))
    for kind in order:
        for one, other in wishes[kind]:
            kept, gone = group[one], group[other]
            if kept != gone and not parents[kept] & parents[gone]:
                parents[kept] |= parents[gone]
                group = [kept if name == gone else name for name in group]
    taken, place = list[set[int]](), dict[int, int]()
    for name in sorted(set(group), key=lambda one: (-len(parents[one]), one)):
        place[name] = next((k for k, others in enumerate(taken) if not parents[name] & others), len(taken))
        taken += [set[int]()] if place[name] == len(taken) else []
        taken[place[name]] |= parents[name]
    return np.array([place[name] for name in group])[below]


def _wishes(automaton: Automaton, below: Whole, parent: Whole, follow: Whole) -> Iterator[list[tuple[int, int]]]:
    """Yield three lists of pairs of blocks that make rows cheaper if both blocks share a class.

    With a pair of the first list a symbol keeps the class; of the second, a symbol sets it; of the third, both blocks
    have one output.
    """
    keeps, sets = list[tuple[int, int]](), list[tuple[int, int]]()
    for column in follow.T:
        reset = list[int]()
        for block in range(parent.max() + 1):
            inside = np.flatnonzero(parent == block)
            targets = column[inside]
            if len(set(targets.tolist())) > 1:
                keeps += zip(inside.tolist(), targets.tolist(), strict=True)
            else:
                reset.append(int(targets[0]))
        sets += pairwise(dict.fromkeys(reset))
    yield keeps
    yield sets
    said = [set(automaton.output[below == block].tolist()) for block in range(len(parent))]
    yield [(i, j) for i, j in combinations(range(len(said)), 2) if len(said[i]) == 1 and said[i] == said[j]]


def _alone(above: Whole, below: Whole) -> Mask:
    """Return where, (states,), a state's block of `above` is a single block of `below`: nothing is left to tell."""
    parts = np.array([len(np.unique(below[above == block])) for block in range(above.max() + 1)])
    return parts[above] == 1


def _first_code(automaton: Automaton, classes: Whole, alone: Mask) -> Mask:
    """Return the bits (states, bits) with which the search for a level's code begins.

    Two classes have one bit, which is on in the start's class. More than two have one bit for each class, which is off
    where the levels in front already determine the class.
    """
    every = np.eye(classes.max() + 1, dtype=np.bool_)[classes]
    if every.shape[1] == 2:
        return every[:, [classes[automaton.start]]]
    return every & ~alone[:, None]


def _codes(automaton: Automaton, classes: Whole, alone: Mask) -> Iterator[Mask]:
    """Yield codes for the classes of a level, (states, bits): each code, then the code with no bit on in `alone`."""
    start = int(classes[automaton.start])
    for code in _tables(int(classes.max()) + 1, start):
        yield code[classes]
        if alone.any():
            yield code[classes] & ~alone[:, None]


def _tables(size: int, start: int) -> Iterator[Mask]:
    """Yield codes of `size` classes, (classes, bits): one-hot, one-hot without a bit, equal weight, binary numbers.

    The binary number of the class `start` is 0.
    """
    every = np.eye(size, dtype=np.bool_)
    yield every
    for without in range(size) if size <= _MOST_ONE_HOT else (start,):
        yield np.delete(every, without, axis=1)
    if size > 3:
        bits = next(bits for bits in count(2) if comb(bits, bits // 2) >= size)
        groups = islice(combinations(range(bits), bits // 2), size)
        yield np.array([np.isin(np.arange(bits), group) for group in groups])
    if size > 2:
        number = (np.arange(size) - start) % size
        yield (number[:, None] >> np.arange((size - 1).bit_length())) & 1 > 0


def _priced(automaton: Automaton, codes: Codes, known: dict[bytes, Level | None]) -> tuple[float, Cascade] | None:
    """Return the cascade that has these codes, and its price with the readout, um2; None where there is no cascade.

    Where no readout tells the labels apart, a last level is added with a bit for each label but the first.
    """
    cascade = cascade_of(automaton, codes, known)
    if cascade is None:
        return None
    read = readout_price(automaton, cascade)
    if read is not None:
        return cascade.price + read, cascade
    labels = np.eye(len(automaton.labels), dtype=np.bool_)[automaton.output][:, 1:]
    told = cascade_of(automaton, (*codes, labels), known)
    read = None if told is None else readout_price(automaton, told)
    return None if told is None or read is None else (told.price + read, told)


def _refine(automaton: Automaton, steps: list[_Step], known: dict[bytes, Level | None]) -> list[tuple[float, Cascade]]:
    """Choose the cheapest code level by level from the front; return every cascade tried, with its price, um2."""
    codes, tried = [_first_code(automaton, *step) for step in steps], list[tuple[float, Cascade]]()
    lowest, best = np.inf, codes
    for k, step in enumerate(steps):
        for code in (codes[k], *_codes(automaton, *step)):
            others = [*codes[:k], code, *codes[k + 1 :]]
            if (found := _priced(automaton, tuple(others), known)) is not None:
                tried.append(found)
                if found[0] < lowest:
                    lowest, best = found[0], others
        codes = best
    return tried
