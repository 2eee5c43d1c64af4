"""The picture of a search: the first objective over the others, all trials, and the front with its intervals."""

from collections.abc import Sequence

from cosim.results.figures import BLUE, FONT, GREY, LIGHT, RED, Axes, Figure, few_ticks, log_axis, plain, styled
from cosim.results.metrics import PERCENT, Estimate
from cosim.verbs.explore.study import Exploration, Tried, violation
from cosim.verbs.sweep.table import scale_of

_PANEL = (3.4, 3.1)
_DECADES = 3.0  # of the values, from where an axis is logarithmic
_SMALL = 6.5


@styled
def draw_exploration(found: Exploration) -> Figure:
    """Draw a panel for each objective but the first, which is up; a single one is drawn over the number of the
    trial."""
    first, *others = found.objectives
    names = others or ["trial"]
    figure = Figure(figsize=(len(names) * _PANEL[0], _PANEL[1]), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True).ravel()
    for panel, name in zip(panels, names, strict=True):
        _draw(panel, found, (name, first))
    panels[0].set_ylabel(_label(found.trials, first))
    handles, words = panels[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside upper center", ncols=4)
    return figure


def _draw(panel: Axes, found: Exploration, names: tuple[str, str]) -> None:
    """Draw the trials in a panel. names: of the figures to the right, and up."""
    there = [one for one in found.trials if one.figures]
    refuted = [one for one in there if one.refuted]
    lacking = [one for one in there if one not in refuted and violation(one, found.least_yield)]
    beaten = [one for one in there if one not in [*refuted, *lacking, *found.on_front]]
    factors = [scale_of(name, _largest(there, name))[0] for name in names]

    def place(some: Sequence[Tried]) -> tuple[list[float], list[float]]:
        x, y = ([factor * _of(one, name).value for one in some] for name, factor in zip(names, factors, strict=True))
        return x, y

    low = f"yield under {100 * found.least_yield:g} %"
    for some, mark, color, label in (
        (lacking, "o", LIGHT, low), (beaten, "o", GREY, "beaten"), (refuted, "x", RED, "refuted by transistors")
    ):  # fmt: skip
        if some:
            panel.plot(*place(some), mark, ms=3.5, mfc="none" if some is lacking else color, mec=color, label=label)
    x, y = place(found.on_front)
    ends = [_ends(_of(one, names[1])) for one in found.on_front]
    below = [middle - factors[1] * low for middle, (low, _) in zip(y, ends, strict=True)]
    above = [factors[1] * high - middle for middle, (_, high) in zip(y, ends, strict=True)]
    panel.errorbar(x, y, (below, above), fmt="o", ms=4.5, color=BLUE, lw=0.8, capsize=2, label="front")
    for one, right, up in zip(found.on_front, x, y, strict=True):
        panel.annotate(str(one.number), (right, up), (3, 3), textcoords="offset points", fontsize=_SMALL)
    _finish(panel, found, names[0], [factors[0] * _of(one, names[0]).value for one in there])


def _finish(panel: Axes, found: Exploration, name: str, values: Sequence[float]) -> None:
    panel.set_xlabel(_label(found.trials, name))
    if values and min(values) > 0 and max(values) > _DECADES * min(values):
        log_axis(panel, "x", min(values), max(values))
    else:
        few_ticks(panel, "x")
    panel.grid(lw=0.3)
    plain(panel, size=FONT)


def _label(trials: Sequence[Tried], name: str) -> str:
    if name == "trial":
        return "trial"
    unit = scale_of(name, _largest([one for one in trials if one.figures], name))[1]
    return f"{name} ({'%' if unit == PERCENT else unit})"


def _of(one: Tried, name: str) -> Estimate:
    return Estimate(float(one.number)) if name == "trial" else one.figures[name]


def _ends(figure: Estimate) -> tuple[float, float]:
    return (figure.value if figure.low is None else figure.low, figure.value if figure.high is None else figure.high)


def _largest(trials: Sequence[Tried], name: str) -> float:
    return max((abs(_of(one, name).value) for one in trials), default=0.0)
