"""An automaton on a page: its graph, or a table if the graph would be unreadable, and the transitions that a run took.

States are circles, transitions are arrows with their symbols, and an arrow leads to the start. `place` lays out circles
that do not touch, and curves that avoid them. States are on a ring, in the order in which strings reach them, or placed
by the method of T. Kamada and S. Kawai (Inf. Process. Lett. 31 (1989) 7), whichever has fewer arrows across states and
across each other. All lengths are in inches of the picture.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cosim.automata.automaton import Automaton
from cosim.automata.network import automaton_in
from cosim.base.quantities import format_quantity
from cosim.network.types import Network
from cosim.results.figures import BLUE, GREY, RED, Axes, Figure, picture_of, styled
from cosim.results.html import Picture
from cosim.results.metrics import percent
from cosim.results.page import Blocks, Grid, Table
from cosim.verbs.compare.transitions import Transition, Transitions

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
MOST_STATES, MOST_ARROWS = 30, 80  # beyond, a table says more
_WIDTH, _MARGIN = 5.0, 0.08  # inches
_INK, _PALE = "#333333", "#eaf1f8"
_HEAD = 0.1  # length of an arrow's head
_LETTER = 0.075  # width
_RUN, _LONGEST = 3, 9  # symbols that are joined by an ellipsis; letters on an arrow
_NAME = 7  # letters in a circle
_ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)  # where a label may stand on its arrow
_POINTS, _READABLE = 72, 0.9  # of an inch; pixels that a point of a graph needs
NEVER = "never taken"


@dataclass(frozen=True)
class AutomatonDrawing:
    """The geometry of an automaton's drawing, in inches.

    states: centres of the circles, (states, 2); radius: of each circle; arrows: (from, to) -> curve (points, 2) from
    rim to rim; loops: state -> curve, and place of its label; entry: arrow to the start, (points, 2).
    """

    states: Array
    radius: float
    arrows: dict[Pair, Array]
    loops: dict[int, tuple[Array, Array]]
    entry: Array

    @property
    def curves(self) -> dict[Pair, Array]:
        """Return the curve of every arrow, (from, to) -> curve, including those from a state to itself."""
        return self.arrows | {(state, state): curve for state, (curve, _) in self.loops.items()}


def place(count: int, labels: Mapping[Pair, float], start: int) -> AutomatonDrawing:
    """Lay out the graph of an automaton with `count` states; labels: (from, to) -> width of the arrow's label."""
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
    """Yield possible placements of the states' centres, (states, 2), in any scale."""
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
    """Scale centres so that nearest neighbours are `apart`, the whole at least `wide`, but at most `room`."""
    if len(places) == 1:
        return np.zeros((1, 2))
    nearest = min(np.hypot(*(places[i] - places[j])) for i, j in combinations(range(len(places)), 2))
    extent = np.ptp(places, axis=0).max()
    return places * min(max(apart / max(nearest, 1e-3), wide / extent), room / extent)


def _arrow(states: Array, pair: Pair, radius: float, *, two_way: bool) -> Array:
    """Return the least bent curve (POINTS, 2) between two states that avoids other states.

    two_way: there is an arrow back as well, so each keeps to the left of its direction.
    """
    curves = [_bent(states, pair, radius, bend) for bend in (_TWO_WAY if two_way else _ONE_WAY)]
    return min(curves, key=lambda curve: _hits(states, pair, curve, radius))


def _bent(states: Array, pair: Pair, radius: float, bend: float) -> Array:
    """Return a parabola (POINTS, 2) between the rims of two states; bend: its offset in the middle."""
    begin, end = states[list(pair)]
    along = (end - begin) / np.hypot(*(end - begin))
    middle = (begin + end) / 2 + bend * np.array([-along[1], along[0]])
    t = np.linspace(0, 1, 401)[:, None]
    curve = (1 - t) ** 2 * begin + 2 * t * (1 - t) * middle + t**2 * end
    outside = np.hypot(*(curve[:, None] - states[list(pair)]).T).min(axis=0) >= radius
    return _thinned(curve[outside])


def _thinned(curve: Array) -> Array:
    """Return POINTS points of a curve (points, 2), evenly spaced from end to end."""
    return curve[np.linspace(0, len(curve) - 1, POINTS).round().astype(int)]


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
    """Tell whether the straight line from a to b crosses that from c to d."""
    return _side(a, b, c) != _side(a, b, d) and _side(c, d, a) != _side(c, d, b)


def _side(a: Array, b: Array, c: Array) -> bool:
    return bool((b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0]))


def _angle(way: Array) -> float:
    return float(np.arctan2(way[1], way[0]))


def _free_way(states: Array, state: int, used: Sequence[Array], wished: Array, reach: tuple[float, float]) -> Array:
    """Return the direction out of a state, a unit vector, with enough room, nearest to the wished one.

    Points at both distances of `reach` must be far from other states and from the points in `used`.
    """
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
    """Return the curve of an arrow from a state to itself, most of a circle, (POINTS, 2)."""
    centre = state + (radius + 0.7 * _LOOP) * way
    turn = _angle(-way) + np.linspace(0, 2 * np.pi, 401)
    curve = centre + _LOOP * _unit(turn)
    return _thinned(curve[np.hypot(*(curve - state).T) >= radius])


def is_drawn(automaton: Automaton) -> bool:
    """Tell whether an automaton's graph is small enough to be readable."""
    return len(automaton.states) <= MOST_STATES and len(symbols_between(automaton)) <= MOST_ARROWS


@styled
def draw_automaton(automaton: Automaton, found: Transitions | None = None) -> Figure:
    """Draw an automaton as a graph; found: the transitions that a run took.

    Arrows that the run never took are dashed, those that led to a wrong state are red.
    """
    texts = {pair: short_symbols(automaton, places) for pair, places in symbols_between(automaton).items()}
    placed = place(len(automaton.states), {pair: _LETTER * len(text) for pair, text in texts.items()}, automaton.start)
    colors, dashed = _styles(automaton, found)
    figure, axis = _canvas(placed, texts)
    for pair, curve in placed.curves.items():
        _draw_arrow(axis, curve, colors[pair], dashed=pair in dashed)
    _draw_arrow(axis, placed.entry, BLUE)
    size = 8 if placed.radius > 0.25 else 7
    for pair, at in _label_places(placed).items():
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        axis.text(
            at[0], at[1], texts[pair], size=size, ha="center", va="center", color=colors[pair], bbox=box, zorder=4
        )
    for state, centre in enumerate(placed.states):
        _draw_state(axis, automaton, state, centre, placed.radius)
    return figure


def symbols_between(automaton: Automaton) -> dict[Pair, list[int]]:
    """Return the indices of the symbols on each arrow of an automaton's graph, (from, to) -> indices."""
    joined: dict[Pair, list[int]] = {}
    for state, row in enumerate(automaton.next.tolist()):
        for symbol, after in enumerate(row):
            joined.setdefault((state, after), []).append(symbol)
    return joined


def short_symbols(automaton: Automaton, places: Sequence[int]) -> str:
    """Return the symbols on an arrow as text: a row of symbols by its ends, most of all symbols as "not ...".

    If there is no room, returns only their number.
    """
    text, others = _runs(automaton, places), [one for one in range(len(automaton.symbols)) if one not in places]
    if len(places) >= _RUN and (len(others) < 2 or len(f"not {_runs(automaton, others)}") < len(text)):
        text = f"not {_runs(automaton, others)}" if others else "any"
    return text if len(text) <= _LONGEST else f"{len(places)} symbols"


def _runs(automaton: Automaton, places: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for one in places:
        if runs and one == runs[-1][-1] + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    names = automaton.symbols
    return ",".join(
        f"{names[run[0]]}…{names[run[-1]]}" if len(run) >= _RUN else ",".join(names[one] for one in run) for run in runs
    )


def describe_automaton(automaton: Automaton) -> str:
    """Return an automaton's graph in words, for readers who cannot see it."""
    ways: list[str] = []
    for (state, after), places in symbols_between(automaton).items():
        symbols = ",".join(automaton.symbols[one] for one in places)
        ways.append(f"{automaton.states[state]} by {symbols} to {automaton.states[after]}")
    names = (
        f"{name} ({automaton.labels[said]})" for name, said in zip(automaton.states, automaton.output, strict=True)
    )
    start = automaton.states[automaton.start]
    return f"States with their outputs: {', '.join(names)}. Start {start}. {'; '.join(ways)}."


def _styles(automaton: Automaton, found: Transitions | None) -> tuple[dict[Pair, str], set[Pair]]:
    """Return the colour of each arrow, and the arrows that a run never took."""
    joined = symbols_between(automaton)
    if found is None:
        return dict.fromkeys(joined, _INK), set()
    counts = np.array([(row.taken, row.wrong) for row in found.rows]).reshape(*automaton.next.shape, 2)
    sums = {pair: counts[pair[0], places].sum(axis=0) for pair, places in joined.items()}
    colors = {pair: RED if wrong else _INK if taken else GREY for pair, (taken, wrong) in sums.items()}
    return colors, {pair for pair, (taken, _) in sums.items() if not taken}


def _canvas(placed: AutomatonDrawing, texts: dict[Pair, str]) -> tuple[Figure, Axes]:
    """Return a figure and axes at the drawing's scale of one inch per inch, with the graph in the middle."""
    ends = [placed.states - placed.radius, placed.states + placed.radius, *placed.arrows.values(), placed.entry]
    for state, (curve, at) in placed.loops.items():
        half = np.array([_LETTER * len(texts[state, state]) / 2, 0.07])
        ends += [curve, np.stack([at - half, at + half])]
    points = np.concatenate(ends)
    low, high = points.min(axis=0) - _MARGIN, points.max(axis=0) + _MARGIN
    more = max(_WIDTH - (high[0] - low[0]), 0.0) / 2
    side = np.array([more, 0.0])
    low, high = low - side, high + side
    figure = Figure(figsize=(float(high[0] - low[0]), float(high[1] - low[1])))
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axis.set_xlim(low[0], high[0])
    axis.set_ylim(low[1], high[1])
    axis.set_axis_off()
    return figure, axis


def _draw_arrow(axis: Axes, curve: Array, color: str, *, dashed: bool = False) -> None:
    """Draw an arrow along a curve (points, 2), with its head at the end."""
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(curve, axis=0).T))])
    neck = np.array([np.interp(length[-1] - _HEAD, length, curve[:, k]) for k in (0, 1)])
    line = np.concatenate([curve[length < length[-1] - _HEAD], [neck]])
    axis.plot(*line.T, color=color, lw=1.0, ls=(0, (3, 2)) if dashed else "-", zorder=2)
    across = np.array([[0.0, -1.0], [1.0, 0.0]]) @ (curve[-1] - neck) * 0.38
    axis.fill(*np.array([curve[-1], neck + across, neck - across]).T, color=color, lw=0, zorder=3)


def _label_places(placed: AutomatonDrawing) -> dict[Pair, NDArray[np.float64]]:
    """Return the place of each arrow's label: on the arrow, as far from others as possible, or beyond the loop."""
    found = {(state, state): at for state, (_, at) in placed.loops.items()}
    curves = placed.curves
    for pair, curve in placed.arrows.items():
        others = [other for name, other in curves.items() if name != pair]
        obstacles = np.concatenate([*others, *(np.array([at] * 2) for at in found.values()), placed.states])
        at = curve[[round(along * (POINTS - 1)) for along in _ALONG]]
        clear = np.hypot(*(obstacles[:, None] - at).T).min(axis=1) if len(obstacles) else np.zeros(len(at))
        found[pair] = at[int(np.argmax(np.minimum(clear, 0.14) - 1e-3 * np.arange(len(at))))]
    return found


def _draw_state(axis: Axes, automaton: Automaton, state: int, centre: Array, radius: float) -> None:
    """Draw a state as a circle with its name and its output; only one of them if they are the same."""
    angle = np.linspace(0, 2 * np.pi, 73)
    ring = centre + radius * _unit(angle)
    axis.fill(*ring.T, facecolor=_PALE, edgecolor=BLUE, lw=1.2, zorder=5)
    name, said = automaton.states[state], automaton.labels[automaton.output[state]]
    large = radius > 0.25
    lines = [(name, 8.5 if large else 7.0, _INK, 0.33 * radius), (said, 7.5 if large else 6.0, BLUE, -0.4 * radius)]
    if name == said:
        lines = [(name, 9.0 if large else 7.5, _INK, 0.0)]
    for text, size, color, up in lines:
        shown = text if len(text) <= _NAME else f"{text[: _NAME - 1]}…"
        scale = min(1.0, 5 / len(shown))
        axis.text(centre[0], centre[1] + up, shown, size=scale * size, ha="center", va="center", color=color, zorder=6)


def format_automaton(network: Network, found: Transitions | None = None) -> Blocks:
    """Return the automaton that a network's weights hold as blocks of a page; empty if there is none.

    found: transitions that a run took, shown beside the graph.
    """
    automaton = automaton_in(network)
    if automaton is None:
        return ()
    graph = _graph(automaton, found) if is_drawn(automaton) else _table(automaton)
    return (graph,) if found is None else (_said(found), Grid((graph, _transitions(found))))


def _graph(automaton: Automaton, found: Transitions | None) -> Picture:
    figure = draw_automaton(automaton, found)
    wide = round(_READABLE * _POINTS * float(figure.get_size_inches()[0]))
    states, symbols = automaton.next.shape
    caption = (
        f"The automaton as it stands in the weights: {states} states, {symbols} symbols. In a circle the state's name, "
        "under it what is decided there."
    )
    if found is not None:
        caption += " Dashed: never taken. Red: led to a wrong state."
    alt = f"Graph of an automaton. {describe_automaton(automaton)}"
    return picture_of(figure, alt, caption, wide)


def _table(automaton: Automaton) -> Table:
    """Return an automaton as a table: from each state, the next state for each symbol."""
    rows: list[tuple[str, ...]] = []
    for state, row in enumerate(automaton.next.tolist()):
        name = automaton.states[state] + (" (start)" if state == automaton.start else "")
        rows.append((name, automaton.labels[automaton.output[state]], *(automaton.states[to] for to in row)))
    return Table(("state", "decided", *automaton.symbols), tuple(rows), tall=True)


def _said(found: Transitions) -> str:
    text = (
        f"Transitions: {say_transitions(found)}. A frame belongs to the transition from the cell that was on before "
        "it; if each is right, every string is."
    )
    if found.margin_a is not None:
        text += (
            " Margin: how near any cell's candidate came to a threshold that would have turned it; the smallest is "
            f"{percent(found.margin_a / found.unit_a)} of the unit current."
        )
    return text


def _transitions(found: Transitions) -> Table:
    """Return a table with a row for each transition; columns for margins and wrong states only if there are any."""
    measured = found.margin_a is not None
    head = ["state", "symbol", "next", "taken", *(["wrong"] if found.wrong else []), *(["margin"] if measured else [])]
    rows = tuple(_row(row, wrong=bool(found.wrong), measured=measured) for row in found.rows)
    return Table(tuple(head), rows, tuple(range(3, len(head))), tall=True)


def _row(row: Transition, *, wrong: bool, measured: bool) -> tuple[str, ...]:
    margin = "" if row.margin_a is None else format_quantity(row.margin_a, "A")
    named = row.state, row.symbol, row.next, str(row.taken or NEVER)
    return (*named, *((str(row.wrong),) if wrong else ()), *((margin,) if measured else ()))


def say_transitions(found: Transitions) -> str:
    """Return a sentence on how many transitions a run took, the smallest margin, and how many went wrong."""
    said = [f"{found.taken} of {len(found.rows)} taken"]
    if found.margin_a is not None:
        said.append(f"smallest margin {format_quantity(found.margin_a, 'A')}")
    if found.wrong:
        said.append(f"{found.wrong} led to a wrong state")
    if found.astray:
        said.append(f"{found.astray} frames astray")
    return ", ".join(said)
