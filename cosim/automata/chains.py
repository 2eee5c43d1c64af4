"""Cascades that an automaton has: chains of closed partitions, classes behind each, and codes of the classes.

    1 = P_0 > P_1 > ... > P_n = 0      each closed; level i tells apart the blocks of P_i within a block of P_{i-1}

A level's classes are a partition T_i, which need not be closed, with P_{i-1} T_i = P_i. Blocks go into one class where
a symbol then keeps the class, sets the same one from everywhere, or the output is the same. A class is a code of bits,
and which codes are cheapest, the rows of their bits say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, count, islice, pairwise, permutations
from math import comb

import numpy as np

from cosim.automata.cascade import Cascade, Level, cascade_of, readout_price
from cosim.automata.parts import closed_partitions
from cosim.automata.rows import Mask
from cosim.network.automaton import Automaton, Whole

MOST_CASCADED = 24  # states
MOST_LEVELS = 3
_MOST_PARTITIONS = 20  # as fronts, and in the middle
_CHAINS, _FOUND = 4, 4  # that are refined; that are kept
_CELL, _PRODUCT = 20, 1  # shares of area
_MOST_ONE_HOT = 6  # classes, of which each is tried as the one without a bit

Codes = tuple[Mask, ...]


@dataclass(frozen=True, eq=False)
class _Step:
    """classes: (states,), those that a level tells apart; alone: (states,), where what is in front says it all."""

    classes: Whole
    alone: Mask


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
            steps = [_Step(_classes(automaton, *pair, order), _alone(*pair)) for pair in pairwise(way)]
            key = b"/".join(step.classes.tobytes() for step in steps)
            if key not in begun:
                found = _priced(automaton, tuple(_first_code(automaton, step) for step in steps), known)
                if found is not None:
                    begun[key] = found[0], steps
    best = sorted(begun.values(), key=lambda one: one[0])[:_CHAINS]
    refined = sorted(chain.from_iterable(_refine(automaton, steps, known) for _, steps in best), key=lambda one: one[0])
    kept = {cascade.bits.tobytes(): cascade for _, cascade in reversed(refined)}
    return list(reversed(kept.values()))[:_FOUND]


def _chains(automaton: Automaton) -> list[list[Whole]]:
    """For each number of levels the chain of partitions that promises most."""
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
    """Return the automaton of the blocks below: the block above of each, and where each symbol leads, (blocks,
    symbols)."""
    _, first = np.unique(below, return_index=True)
    return above[first], below[automaton.next[first]]


def _promise(automaton: Automaton, above: Whole, below: Whole) -> float:
    """About what a level takes: its cells, and products; few where symbols keep or set its classes."""
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
    """Return the class of each state, (states,).

    order: in which order blocks are brought together for keeping, setting and outputs.
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
    """Pairs of blocks that had better be of one class: so that symbols keep it, set it, and outputs say it."""
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
    """Return (states,) booleans: the state's block is not divided."""
    parts = np.array([len(np.unique(below[above == block])) for block in range(above.max() + 1)])
    return parts[above] == 1


def _first_code(automaton: Automaton, step: _Step) -> Mask:
    """Return the bits (states, bits) that a search begins with.

    Two classes have one bit, which is on in the start's class; more have a bit each, off where the levels in front
    already determine the class.
    """
    every = np.eye(step.classes.max() + 1, dtype=np.bool_)[step.classes]
    if every.shape[1] == 2:
        return every[:, [step.classes[automaton.start]]]
    return every & ~step.alone[:, None]


def _codes(automaton: Automaton, step: _Step) -> Iterator[Mask]:
    """Codes of classes, of a state that is alone also none."""
    start = int(step.classes[automaton.start])
    for code in _tables(int(step.classes.max()) + 1, start):
        yield code[step.classes]
        if step.alone.any():
            yield code[step.classes] & ~step.alone[:, None]


def _tables(size: int, start: int) -> Iterator[Mask]:
    """Yield codes (classes, bits): one-hot, one-hot without one bit, codes of equal weight, and binary numbers.

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
    """With a readout; a level of labels is added where there is none without."""
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
    """Choose the cheapest code level by level from the front; return all cascades that were tried, with their costs."""
    codes, tried = [_first_code(automaton, step) for step in steps], list[tuple[float, Cascade]]()
    lowest, best = np.inf, codes
    for k, step in enumerate(steps):
        for code in (codes[k], *_codes(automaton, step)):
            others = [*codes[:k], code, *codes[k + 1 :]]
            if (found := _priced(automaton, tuple(others), known)) is not None:
                tried.append(found)
                if found[0] < lowest:
                    lowest, best = found[0], others
        codes = best
    return tried
