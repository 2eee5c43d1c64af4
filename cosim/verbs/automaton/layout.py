"""Placement of states and arrows in an automaton's graph: circles that do not touch, curves that leave them free.

All lengths are in inches of the picture. States are on a ring, in the order in which strings reach them, or as
T. Kamada and S. Kawai place them (Inf. Process. Lett. 31 (1989) 7): where fewer arrows are across states and each
other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[int, int]
POINTS = 61  # of a curve
_FEW = 12  # states that fit the width of a phone
_LOOP = 0.16  # radius of an arrow from a state to itself
_LOOP_OUT = 1.7 * _LOOP + 0.09  # of its label from the rim, one letter
_ENTRY = 0.34  # length of the arrow to the start
_ONE_WAY, _TWO_WAY = (0.0, 0.4, -0.4, 0.8, -0.8), (0.3, 0.5, 0.8)  # bends, in the order in which they are tried
_ACROSS = 6  # arrows across each other are as bad as one across a state
_CLEAR = 1.3  # radii from a state that an arrow keeps away
_DIRECTIONS = np.linspace(-np.pi, np.pi, 24, endpoint=False)


@dataclass(frozen=True)
class AutomatonDrawing:
    """states: their centres, (states, 2), and radius. arrows: (from, to) -> curve (points, 2) from rim to rim; loops:
    state -> likewise, and where its label is; entry: the arrow to the start, (points, 2)."""

    states: Array
    radius: float
    arrows: dict[Pair, Array]
    loops: dict[int, tuple[Array, Array]]
    entry: Array


def place(count: int, labels: Mapping[Pair, float], start: int) -> AutomatonDrawing:
    """Lay out a graph of so many states, and of arrows (from, to) with the widths of their labels."""
    radius, apart, room = (0.27, 1.0, 4.0) if count <= _FEW else (0.21, 0.75, 6.4)
    between = [pair for pair in labels if pair[0] != pair[1]]
    apart = max([apart, *(2 * radius + labels[pair] + 0.25 for pair in between)])
    found: list[tuple[int, Array, dict[Pair, Array]]] = []
    for places in _placements(count, between, start):
        states = _scale(places, apart, room, 0.75 * len(between) ** 0.5)
        arrows = {pair: _arrow(states, pair, radius, two_way=pair[::-1] in between) for pair in between}
        found.append((_faults(states, arrows, radius), states, arrows))
    _, states, arrows = min(found, key=lambda one: one[0])
    used, loops = list(arrows.values()), dict[int, tuple[Array, Array]]()
    way = _free_way(states, start, used, np.array([-1.0, 0.0]), (radius + _ENTRY / 2, radius + _ENTRY))
    entry = states[start] + np.outer(np.linspace(radius + _ENTRY, radius, POINTS), way)
    used.append(entry)
    for state in (source for source, target in labels if source == target):
        reach = _LOOP_OUT + labels[state, state] / 2
        way = _free_way(
            states, state, used, states[state] - states.mean(axis=0), (radius + 0.7 * _LOOP, radius + reach)
        )
        outside = np.array([reach if abs(way[0]) > 0.5 else _LOOP_OUT, _LOOP_OUT])
        loops[state] = _loop(states[state], way, radius), states[state] + (radius + outside) * way
        used += [loops[state][0], np.array([loops[state][1]] * 2)]
    return AutomatonDrawing(states, radius, arrows, loops, entry)


def _placements(count: int, pairs: Sequence[Pair], start: int) -> Iterator[Array]:
    """Yield placements of the centres, (states, 2), in any scale."""
    ways: nx.DiGraph[int] = nx.DiGraph()
    ways.add_nodes_from(range(count))
    ways.add_edges_from(pairs)
    graph = ways.to_undirected()
    angles = np.pi - 2 * np.pi * np.arange(count) / count  # from the left, clockwise
    for tree in (nx.bfs_tree(ways, start), nx.dfs_tree(ways, start)):
        ring = np.empty((count, 2))
        ring[[*tree, *(state for state in range(count) if state not in tree)]] = _unit(angles)
        yield ring
        if count > 2 and nx.is_connected(graph):
            found = nx.kamada_kawai_layout(graph, pos=dict(enumerate(ring)))
            free = np.array([found[state] for state in range(count)])
            off = free[start] - free.mean(axis=0)
            turn = np.pi - _angle(off) if np.hypot(*off) > 0.1 else 0.0
            yield free @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])


def _scale(places: Array, apart: float, room: float, wide: float) -> Array:
    """Scale centres so that neighbours are `apart`, and the whole at least `wide`, but in no case beyond `room`."""
    if len(places) == 1:
        return np.zeros((1, 2))
    nearest = min(np.hypot(*(places[i] - places[j])) for i, j in combinations(range(len(places)), 2))
    extent = np.ptp(places, axis=0).max()
    return places * min(max(apart / max(nearest, 1e-3), wide / extent), room / extent)


def _arrow(states: Array, pair: Pair, radius: float, *, two_way: bool) -> Array:
    """Return the least bent curve (POINTS, 2) that stays clear of other states; one of two keeps to the left of its
    way."""
    curves = [_bent(states, pair, radius, bend) for bend in (_TWO_WAY if two_way else _ONE_WAY)]
    return min(curves, key=lambda curve: _hits(states, pair, curve, radius))


def _bent(states: Array, pair: Pair, radius: float, bend: float) -> Array:
    """Return a parabola (POINTS, 2) between the rims of two states."""
    begin, end = states[list(pair)]
    along = (end - begin) / np.hypot(*(end - begin))
    middle = (begin + end) / 2 + bend * np.array([-along[1], along[0]])
    t = np.linspace(0, 1, 401)[:, None]
    curve = (1 - t) ** 2 * begin + 2 * t * (1 - t) * middle + t**2 * end
    outside = np.hypot(*(curve[:, None] - states[list(pair)]).T).min(axis=0) >= radius
    kept = curve[outside]
    return kept[np.linspace(0, len(kept) - 1, POINTS).round().astype(int)]


def _hits(states: Array, pair: Pair, curve: Array, radius: float) -> int:
    others = np.delete(states, list(pair), axis=0)
    distance = np.hypot(*(others[:, None] - curve).T)
    return int((distance < _CLEAR * radius).any(axis=0).sum())


def _faults(states: Array, arrows: dict[Pair, Array], radius: float) -> int:
    """Count the faults of a placement: arrows across states, across each other, and states that nearly touch."""
    near = sum(bool(np.hypot(*(one - other)) < 3.2 * radius) for one, other in combinations(states, 2))
    hits = sum(_hits(states, pair, curve, radius) for pair, curve in arrows.items())
    ways = sorted({(min(pair), max(pair)) for pair in arrows})
    crossed = sum(
        _cross(*states[list(one)], *states[list(other)])
        for one, other in combinations(ways, 2)
        if not {*one} & {*other}
    )
    return _ACROSS * (near + hits) + crossed


def _cross(a: Array, b: Array, c: Array, d: Array) -> bool:
    """Tell whether the lines from a to b and from c to d cross."""
    return _side(a, b, c) != _side(a, b, d) and _side(c, d, a) != _side(c, d, b)


def _side(a: Array, b: Array, c: Array) -> bool:
    return bool((b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0]))


def _angle(way: Array) -> float:
    return float(np.arctan2(way[1], way[0]))


def _free_way(states: Array, state: int, used: Sequence[Array], wished: Array, reach: tuple[float, float]) -> Array:
    """Return the way out of a state, a unit vector, on which points at both distances are far enough from all else; the
    nearest to the one wished for."""
    rims = (np.delete(states, state, axis=0)[:, None] + 0.9 * (reach[0] / 2) * _unit(_DIRECTIONS)).reshape(-1, 2)
    obstacles = np.concatenate([rims, *used])
    ways = _unit(_DIRECTIONS)
    points = states[state] + np.stack([out * ways for out in reach])
    clear = (
        np.hypot(*(obstacles[:, None, None] - points).T).T.min(axis=(0, 1)) if len(obstacles) else np.ones(len(ways))
    )
    return ways[np.argmax(np.minimum(clear, 0.35) + 0.05 * np.cos(_DIRECTIONS - _angle(wished)))]


def _unit(angles: Array) -> Array:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _loop(state: Array, way: Array, radius: float) -> Array:
    """Return most of a circle, from rim to rim, (POINTS, 2)."""
    centre = state + (radius + 0.7 * _LOOP) * way
    turn = _angle(-way) + np.linspace(0, 2 * np.pi, 401)
    curve = centre + _LOOP * _unit(turn)
    kept = curve[np.hypot(*(curve - state).T) >= radius]
    return kept[np.linspace(0, len(kept) - 1, POINTS).round().astype(int)]
