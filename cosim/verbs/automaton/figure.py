"""An automaton as a picture: states as circles, transitions as arrows with their symbols, an arrow to the start."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.network.automaton import Automaton
from cosim.results.figures import BLUE, GREY, RED, Axes, Figure, styled
from cosim.verbs.automaton.layout import POINTS, Array, AutomatonDrawing, Pair, place
from cosim.verbs.compare.transitions import Transitions

MOST_STATES, MOST_ARROWS = 30, 80  # beyond, a table says more
_WIDTH, _MARGIN = 5.0, 0.08  # inches
_INK, _PALE = "#333333", "#eaf1f8"
_HEAD = 0.1  # length of an arrow's head
_LETTER = 0.075  # width
_RUN, _LONGEST = 3, 9  # symbols that are joined by an ellipsis; letters on an arrow
_NAME = 7  # letters in a circle
_ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)  # where a label may stand on its arrow


def is_drawn(automaton: Automaton) -> bool:
    """Tell whether the graph that `cosim automaton` draws is small enough to be read."""
    return len(automaton.states) <= MOST_STATES and len(symbols_between(automaton)) <= MOST_ARROWS


@styled
def draw_automaton(automaton: Automaton, found: Transitions | None = None) -> Figure:
    """Draw an automaton as a graph for the page of a verb.

    found: what a run did of it; arrows that it never took are dashed, those that led astray red.
    """
    texts = {pair: short_symbols(automaton, places) for pair, places in symbols_between(automaton).items()}
    placed = place(len(automaton.states), {pair: _LETTER * len(text) for pair, text in texts.items()}, automaton.start)
    colors, dashed = _styles(automaton, found)
    figure, axis = _canvas(placed, texts)
    curves = placed.arrows | {(state, state): curve for state, (curve, _) in placed.loops.items()}
    for pair, curve in curves.items():
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
    """Return (from, to) -> places of the symbols on an arrow of the graph that `cosim automaton` draws."""
    joined: dict[Pair, list[int]] = {}
    for state, row in enumerate(automaton.next.tolist()):
        for symbol, after in enumerate(row):
            joined.setdefault((state, after), []).append(symbol)
    return joined


def short_symbols(automaton: Automaton, places: Sequence[int]) -> str:
    """Return the symbols of an arrow as text: three or more in a row by their ends, most of them by the others, how
    many where there is no room."""
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
    parts = [
        text
        for run in runs
        for text in ([f"{names[run[0]]}…{names[run[-1]]}"] if len(run) >= _RUN else [names[one] for one in run])
    ]
    return ",".join(parts)


def describe_automaton(automaton: Automaton) -> str:
    """Return the graph on a verb's page in words, for whoever does not see it."""
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
    """Return the colours of arrows, and those that were never taken."""
    joined = symbols_between(automaton)
    if found is None:
        return dict.fromkeys(joined, _INK), set()
    counts = np.array([(row.taken, row.wrong) for row in found.rows]).reshape(*automaton.next.shape, 2)
    sums = {pair: counts[pair[0], places].sum(axis=0) for pair, places in joined.items()}
    colors = {pair: RED if wrong else _INK if taken else GREY for pair, (taken, wrong) in sums.items()}
    return colors, {pair for pair, (taken, _) in sums.items() if not taken}


def _canvas(placed: AutomatonDrawing, texts: dict[Pair, str]) -> tuple[Figure, Axes]:
    """Return a figure in which an inch of the drawing is an inch, with all of the graph in the middle."""
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
    """Draw a line along the curve (points, 2), and its head at the end."""
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(curve, axis=0).T))])
    neck = np.array([np.interp(length[-1] - _HEAD, length, curve[:, k]) for k in (0, 1)])
    line = np.concatenate([curve[length < length[-1] - _HEAD], [neck]])
    axis.plot(*line.T, color=color, lw=1.0, ls=(0, (3, 2)) if dashed else "-", zorder=2)
    across = np.array([[0.0, -1.0], [1.0, 0.0]]) @ (curve[-1] - neck) * 0.38
    axis.fill(*np.array([curve[-1], neck + across, neck - across]).T, color=color, lw=0, zorder=3)


def _label_places(placed: AutomatonDrawing) -> dict[Pair, NDArray[np.float64]]:
    """Return where each label is: on its arrow, as far from other arrows and labels as it gets; for a loop, beyond
    it."""
    found = {(state, state): at for state, (_, at) in placed.loops.items()}
    curves = {**placed.arrows, **{(state, state): curve for state, (curve, _) in placed.loops.items()}}
    for pair, curve in placed.arrows.items():
        others = [other for name, other in curves.items() if name != pair]
        obstacles = np.concatenate([*others, *(np.array([at] * 2) for at in found.values()), placed.states])
        at = curve[[round(along * (POINTS - 1)) for along in _ALONG]]
        clear = np.hypot(*(obstacles[:, None] - at).T).min(axis=1) if len(obstacles) else np.zeros(len(at))
        found[pair] = at[int(np.argmax(np.minimum(clear, 0.14) - 1e-3 * np.arange(len(at))))]
    return found


def _draw_state(axis: Axes, automaton: Automaton, state: int, centre: Array, radius: float) -> None:
    """Draw a state as a circle with name and output; with one of them where they are the same."""
    angle = np.linspace(0, 2 * np.pi, 73)
    ring = centre + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
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
