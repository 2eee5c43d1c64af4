"""Figures that a designer of chips asks for: normality, yield against chips, cells one by one, the weakest of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.results.figures import (
    BLACK,
    BLUE,
    DOUBLE,
    FAILS,
    GREY,
    LOWER,
    MEETS,
    SINGLE,
    UPPER,
    Axes,
    Figure,
    few_ticks,
    legend_above,
    plain,
    styled,
)
from cosim.verbs.montecarlo.cell_spread import CellSpread, Weak
from cosim.verbs.montecarlo.figures import panel
from cosim.verbs.montecarlo.spread import Quantiles, bin_edges

Array = NDArray[np.float64]
MOST_CELLS = 16  # of a page
_COLUMNS = 4
_MOST_POINTS = 2000  # beyond, points are an image inside the vector figure
_MOST_STEPS = 400  # of a curve over chips
_NANO, _PICO = 1e9, 1e12


@styled
def draw_quantiles(name: str, found: Quantiles) -> Figure:
    """Draw sorted values of all chips, in what `name` says, against the standard normal distribution, with its band."""
    figure, axis = panel((SINGLE, 2.9))
    axis.fill_between(found.theory, found.low, found.high, color=GREY, alpha=0.25, lw=0, label="95 % band")
    ends = found.theory[[0, -1]]
    axis.plot(ends, found.mean + found.sd * ends, color=GREY, ls="--", lw=1.0, label="normal")
    axis.plot(
        found.theory, found.values, "o", ms=2.5, color=BLUE, mew=0, label="chips",
        rasterized=len(found.values) > _MOST_POINTS,
    )  # fmt: skip
    span = float(np.ptp(found.values)) or 1.0
    axis.set_ylim(found.values[0] - 0.15 * span, found.values[-1] + 0.15 * span)
    axis.set_xlabel("standard normal quantile (standard deviations)")
    axis.set_ylabel(name)
    axis.grid()
    legend_above(figure)
    return figure


@styled
def draw_running_yield(running: Array, confidence: float) -> Figure:
    """Draw the yield over the number of chips.

    running (n, 3): yield of the first 1, 2, ... n chips with its interval, as `running_intervals` gives it.
    """
    figure, axis = panel()
    count = len(running)
    places = np.unique(np.round(np.geomspace(1, count, _MOST_STEPS)).astype(int)) - 1
    chips, (value, low, high) = places + 1, 100 * running[places].T
    name = f"{100 * confidence:.4g} % interval"
    axis.fill_between(chips, low, high, color=BLUE, alpha=0.18, lw=0, label=name)
    axis.plot(chips, value, color=BLUE, label="yield")
    axis.axhline(value[-1], color=GREY, ls="--", lw=0.9, label="of all chips")
    axis.set_xscale("log")
    marks = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
    axis.set_xticks([mark for mark in marks if mark <= count], minor=False)
    axis.set_xticks([], minor=True)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlim(1, max(count, 2))
    axis.set_ylim(0, 102)
    axis.set_xlabel("chips")
    axis.set_ylabel("yield (%)")
    axis.grid()
    legend_above(figure)
    return figure


@styled
def draw_thresholds(spread: CellSpread, cells: Sequence[int]) -> Figure:
    """Draw histograms of both thresholds of some cells, by their places; asked ones as lines."""
    figure, axes = _multiples(len(cells))
    factor, unit = _scale(spread.asked[list(cells), :2])
    for axis, cell in zip(axes, cells, strict=False):
        for place, color, name in ((1, LOWER, "lower threshold"), (0, UPPER, "upper threshold")):
            _histogram(axis, factor * spread.measured[:, cell, place], color, name)
            axis.axvline(factor * spread.asked[cell, place], color=BLACK, lw=1.0, ls="--", label="asked")
        if factor * spread.measured[:, cell, 1].min() < 0:
            axis.axvspan(axis.get_xlim()[0], 0, color=GREY, alpha=0.2, lw=0, zorder=0)
        lower, upper = (_PICO * spread.measured[:, cell, place].std(ddof=1) for place in (1, 0))
        axis.set_title(f"{spread.cells[cell]}\nsd {lower:.3g} and {upper:.3g} pA", fontsize=8)
    _finish(figure, axes, len(cells), f"threshold ({unit})")
    return figure


@styled
def draw_levels(spread: CellSpread, cells: Sequence[int]) -> Figure:
    """Draw histograms of the levels of some cells, by their places; asked ones as lines."""
    figure, axes = _multiples(len(cells))
    factor, unit = _scale(spread.asked[list(cells), 2])
    for axis, cell in zip(axes, cells, strict=False):
        _histogram(axis, factor * spread.measured[:, cell, 2], MEETS, "level")
        axis.axvline(factor * spread.asked[cell, 2], color=BLACK, lw=1.0, ls="--", label="asked")
        axis.set_title(f"{spread.cells[cell]}\nsd {_PICO * spread.measured[:, cell, 2].std(ddof=1):.3g} pA", fontsize=8)
    _finish(figure, axes, len(cells), f"level ({unit})")
    return figure


@styled
def draw_weak(weak: Sequence[Weak], accuracy: Array, passes: NDArray[np.bool_]) -> Figure:
    """Draw accuracy (chips,), a fraction, over the deviation of each of some thresholds and levels, a panel for each;
    steps are the means of the fifths of all chips."""
    columns = min(len(weak), 3)
    width = 5.0 if columns == 1 else DOUBLE
    figure = Figure(figsize=(width, 0.6 + 2.1 * -(-len(weak) // columns)), layout="constrained")
    axes = figure.subplots(-(-len(weak) // columns), columns, sharey=True, squeeze=False).ravel()
    for axis, one in zip(axes, weak, strict=False):
        for shown, color, marker, name in ((passes, MEETS, "o", "meets the spec"), (~passes, FAILS, "x", "does not")):
            axis.plot(
                one.deviations[shown], 100 * accuracy[shown], marker, color=color, ms=3, mew=0.8, ls="", alpha=0.8,
                label=name, rasterized=len(accuracy) > _MOST_POINTS,
            )  # fmt: skip
        axis.stairs(100 * one.means, one.edges, baseline=None, color=BLACK, lw=1.4, label="mean of a fifth")
        axis.set_title(f"{one.cell}, {one.quantity}\nexplains {100 * max(one.share, 0.0):.0f} %", fontsize=8)
        axis.grid()
        plain(axis)
    for spare in axes[len(weak) :]:
        spare.axis("off")
    axes[0].set_ylabel("accuracy (%)")
    figure.supxlabel("deviation from what was asked (standard deviations)", fontsize=8)
    legend_above(figure, axis=axes[0])
    return figure


def _histogram(axis: Axes, values: Array, color: str, name: str) -> None:
    axis.hist(values, bin_edges(values).tolist(), color=color, alpha=0.75, lw=0, label=name)


def _scale(currents: Array) -> tuple[float, str]:
    return (_NANO, "nA") if float(np.max(currents)) >= 1e-9 else (_PICO, "pA")


def _multiples(count: int) -> tuple[Figure, list[Axes]]:
    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    figure = Figure(figsize=(DOUBLE, 0.8 + 1.25 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axis in axes:
        plain(axis)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
    return figure, axes


def _finish(figure: Figure, axes: Sequence[Axes], count: int, text: str) -> None:
    for axis in axes[:count]:
        few_ticks(axis, "x", 4)
    for spare in axes[count:]:
        spare.axis("off")
    figure.supxlabel(text, fontsize=8)
    figure.supylabel("chips", fontsize=8)
    handles, labels = axes[0].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=len(named))
