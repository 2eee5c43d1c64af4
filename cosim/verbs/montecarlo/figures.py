"""Figures of a Monte Carlo run, drawn from plain arrays, each small enough for a phone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.waveforms import Timing
from cosim.results.figures import (
    BLACK,
    BLUE,
    COLORS,
    DOUBLE,
    FAILS,
    FONT,
    GREEN,
    GREY,
    LOWER,
    LOWER_DASH,
    MEETS,
    RED,
    SIMULATOR,
    SINGLE,
    SOFTWARE,
    UPPER,
    UPPER_DASH,
    Axes,
    Figure,
    few_ticks,
    legend_above,
    legend_beside,
    plain,
    styled,
)
from cosim.verbs.montecarlo.chips import Division
from cosim.verbs.montecarlo.statistics import QUANTITIES, CellSpread, Influence, bin_edges, moments, normal_band
from cosim.verbs.simulate.waveform_figure import draw_clocks, mark_frames, shade_decisions
from cosim.verbs.simulate.waveforms import WaveLabels, Waves

Array = NDArray[np.float64]
_SIZE = (SINGLE, 2.7)
_NANO = 1e9
_MARKS = ("nominal", BLACK, "-"), ("software", SOFTWARE, "--"), ("spec", RED, ":")
_SIGMAS = 3
MOST_CELLS = 16  # of a page
_COLUMNS = 4
_MOST_POINTS = 2000  # beyond, points are an image inside the vector figure
_MOST_STEPS = 400  # of a curve over chips
_PICO = 1e12


@dataclass(frozen=True)
class YieldCurve:
    """Yield of a run as a function of the lowest accuracy that a chip may have; all values are fractions.

    limits: (n,) accuracy limits, ascending; values: yield at each limit; low, high: ends of its interval at this limit
    alone; method: of the intervals; spec: (limit, yield, low, high) at the limit of the run's own spec, None where the
    run has no spec on accuracy.
    """

    limits: Array
    values: Array
    low: Array
    high: Array
    method: str
    spec: tuple[float, float, float, float] | None


@styled
def draw_spread(
    name: str, passing: Array, failing: Array, *, marks: Mapping[str, float], quantum: float = 0.0
) -> Figure:
    """Draw a stacked histogram of one figure over chips, for chips that meet the specs and chips that do not.

    A second axis counts standard deviations from the mean. name: label of the axis, with unit; passing, failing:
    values, (chips,); marks: values of `software`, `nominal` and `spec` that get a line; quantum: step of a figure with
    discrete values, in its unit, else 0.
    """
    figure, axis = panel()
    values = np.concatenate([passing, failing])
    groups = [(passing, MEETS, "meets the spec"), (failing, FAILS, "does not")]
    shown = [group for group in groups if len(group[0])]
    edges = bin_edges(values, quantum)
    ends = np.clip(edges, 0.0, 100.0) if quantum else edges  # a share's last bin does not reach beyond 100 %
    base = np.zeros(len(edges) - 1)
    for group, color, label in shown:
        counts = np.histogram(group, edges)[0]
        hatch = "//////" if color == FAILS else None  # also in print without colours
        place = {"align": "edge", "edgecolor": "white", "lw": 0.3}
        axis.bar(ends[:-1], counts, np.diff(ends), base, color=color, hatch=hatch, label=label, **place)
        base += counts
    _mark_sigmas(axis, values)
    for mark, color, style in _MARKS:
        if mark in marks:
            axis.axvline(marks[mark], color=color, ls=style, lw=1.6, label=mark)
    axis.set_xlabel(name)
    axis.set_ylabel("chips")
    few_ticks(axis, "y", integer=True)
    legend_above(figure)
    return figure


def _mark_sigmas(axis: Axes, values: Array) -> None:
    """Mark the mean and whole standard deviations on a histogram, as lines and as numbers on an axis at the top."""
    mean, sd = moments(values)
    low, high = axis.get_xlim()
    if sd < 1e-9 * (high - low):
        return
    places = [k for k in range(-_SIGMAS, _SIGMAS + 1) if low <= mean + k * sd <= high]
    for k in places:
        axis.axvline(mean + k * sd, color=GREY, lw=0.9 if k == 0 else 0.5, ls=(0, (1, 1.5)) if k else "-", zorder=1.5)
    above = axis.secondary_xaxis(
        "top", functions=(lambda x: (np.asarray(x) - mean) / sd, lambda z: mean + sd * np.asarray(z))
    )
    above.set_xticks(places, ["mean" if k == 0 else f"{k:+d}".replace("-", "\N{MINUS SIGN}") for k in places])
    above.tick_params(length=2, labelsize=FONT, color=GREY, labelcolor="#444444", pad=1)
    above.spines[:].set_visible(False)
    above.set_xlabel("standard deviations", fontsize=FONT, color="#444444")


@styled
def draw_yield_curve(curve: YieldCurve) -> Figure:
    """Draw the yield against the accuracy limit with its interval as a band; an error bar marks the run's own spec."""
    figure, axis = panel()
    limits = 100 * curve.limits
    # A step at each accuracy that a chip has: up to and with it the chip still counts.
    axis.fill_between(limits, 100 * curve.low, 100 * curve.high, step="pre", color=BLUE, alpha=0.18, lw=0,
                      label="95 % interval")  # fmt: skip
    axis.step(limits, 100 * curve.values, where="pre", color=BLUE, lw=1.6, label="yield")
    if curve.spec is not None:
        limit, value, low, high = (100 * number for number in curve.spec)
        axis.errorbar(
            [limit], [value], [[value - low], [high - value]], fmt="o", ms=5, color=RED, capsize=4, lw=1.4, label="spec"
        )
    axis.set_xlabel("accuracy limit (%)")
    axis.set_ylabel("yield (%)")
    axis.set_ylim(0, 102)
    axis.set_xlim(limits[0], limits[-1])
    axis.grid()
    legend_above(figure)
    return figure


@styled
def draw_pairs(name: str, behavioral: Array, other: Array, engine: str) -> Figure:
    """Draw a figure of each chip by the behavioral model against the same figure by another engine.
    name: label of both axes, with unit; behavioral, other: (chips,); the area of a point grows with its number of
    chips."""
    figure, axis = panel((SINGLE, 3.3))
    points, counts = np.unique(np.stack([behavioral, other], axis=1), axis=0, return_counts=True)
    low, high = float(points.min()), float(points.max())
    margin = 0.06 * (high - low) or 0.02 * abs(high) or 1.0
    ends = low - margin, high + margin
    axis.plot(ends, ends, color=GREY, lw=1, ls="--", label="equal")
    axis.scatter(*points.T, s=24 * counts, color=SIMULATOR, alpha=0.6, lw=0, label="chips")
    axis.set_xlabel(f"behavioral, {name}")
    axis.set_ylabel(f"{engine}, {name}")
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    axis.set_aspect("equal")
    legend_above(figure)
    return figure


@styled
def draw_shares(divisions: Mapping[str, Division]) -> Figure:
    """Draw the shares of a figure's variance by group of transistors, with one panel for each division."""
    counts = [len(division.shares) for division in divisions.values()]
    figure = Figure(figsize=(SINGLE, 1.1 + 0.24 * sum(counts)), layout="constrained")
    panels = figure.subplots(len(divisions), 1, height_ratios=counts, sharex=True, squeeze=False)[:, 0]
    for axis, (name, division) in zip(panels, divisions.items(), strict=True):
        shares = division.shares
        names = [f"{share.group} ({share.transistors})" for share in shares]
        values = np.array([share.value for share in shares])
        bounds = np.array([[share.low, share.high] for share in shares])
        axis.barh(names, 100 * values, 0.65, color=BLUE, alpha=0.75)
        axis.hlines(range(len(shares)), 100 * bounds[:, 0], 100 * bounds[:, 1], color="black", lw=1.0)
        axis.axvline(0, color="black", lw=0.7)
        axis.invert_yaxis()
        axis.set_title(f"by {name}, R2 = {100 * division.r2:.1f} %", loc="left")
        plain(axis)
    panels[-1].set_xlabel("share of the variance (%), 95 % interval")
    return figure


@styled
def draw_blocks(blocks: Mapping[str, float], factor: float, unit: str) -> Figure:
    """Draw the supply power of each block as bars. blocks: name -> W; factor: converts W to `unit`."""
    figure, axis = panel((5.0, 0.7 + 0.26 * len(blocks)))
    colors = [COLORS.get(name, GREY) for name in blocks]
    bars = axis.barh(
        list(blocks), [factor * power for power in blocks.values()], 0.65, color=colors, edgecolor=GREY, lw=0.4
    )
    total = sum(blocks.values()) or 1.0
    axis.bar_label(bars, [f"{100 * power / total:.1f} %" for power in blocks.values()], padding=3, fontsize=FONT)
    axis.margins(x=0.2)
    axis.invert_yaxis()
    axis.set_xlabel(f"supply power ({unit})")
    return figure


@styled
def draw_failure(chip: Waves, nominal: Waves, labels: WaveLabels, timing: Timing, classes: Sequence[int]) -> Figure:
    """Draw the waveforms of one sample: candidate and state of a unit, readout and power; nominal circuit dashed.

    chip, nominal, labels: as `waves_of` returns them; classes: outputs whose readout is drawn, the right one
    first.
    """
    figure = Figure(figsize=(DOUBLE, 7.2), layout="constrained")
    axes = figure.subplots(5, 1, sharex=True, height_ratios=(0.16 + 0.12 * labels.stages, 1.3, 0.9, 1, 0.8))
    frames = 0
    for waves, style, width, whose in ((nominal, (0, (4, 1.5)), 1.0, "nominal"), (chip, "-", 1.3, "this chip")):
        shown = waves["time"] >= timing.start
        time = 1e3 * (waves["time"][shown] - timing.start)
        frames = round(time[-1] / (1e3 * timing.t_step))
        found = {name: _NANO * values[shown] for name, values in waves.items()}
        line = {"ls": style, "lw": width, "color": BLACK if whose == "this chip" else GREY}
        for axis, name in zip((axes[1], axes[2], axes[4]), ("candidate", "state", "power"), strict=True):
            axis.plot(time, found[name], label=whose, **line)
        for color, k, text in zip((GREEN, RED), classes, (", the class", ", decided"), strict=False):
            name = f"{labels.outputs[k]}{text}" if whose == "this chip" else f"{labels.outputs[k]}, nominal"
            axes[3].plot(time, found[f"output.{k}"], label=name, **(line | {"color": color}))
        axes[4].set_ylim(bottom=0, top=1.4 * float(np.percentile(found["power"], 99)))
    thresholds = (labels.i_rise, UPPER, UPPER_DASH, "upper"), (labels.i_fall, LOWER, LOWER_DASH, "lower")
    own_thresholds = labels.own or (None, None)
    for (asked, color, dash, text), own in zip(thresholds, own_thresholds, strict=True) if labels.compares else ():
        axes[1].axhline(_NANO * asked, color=color, ls=dash, lw=1.0, label=f"{text}, asked")
        if own is not None:
            axes[1].axhline(_NANO * own, color=color, lw=1.0, label=f"{text}, this chip")
    draw_clocks(axes[0], labels, timing, frames)
    texts = (f"candidate of\n{labels.unit} (nA)", f"state of\n{labels.unit} (nA)", "readout (nA)", "power (nW)")
    for axis, text in zip(axes[1:], texts, strict=True):
        axis.set_ylabel(text)
        legend_beside(axis)
    shade_decisions(axes[1:3], labels, timing, frames)
    mark_frames(axes, timing, frames)
    figure.align_ylabels(axes)
    return figure


def panel(size: tuple[float, float] = _SIZE) -> tuple[Figure, Axes]:
    """Return an empty figure with one pair of axes in the style of the pages; size: width and height, inches."""
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    plain(axis)
    return figure, axis


@styled
def draw_quantiles(name: str, values: Array) -> Figure:
    """Draw a Q-Q plot: sorted values of all chips against standard normal quantiles, with the band of a normal sample.
    name: label of the value axis, with unit; values: (chips,), ascending."""
    figure, axis = panel((SINGLE, 2.9))
    (mean, sd), (theory, low, high) = moments(values), normal_band(values)
    axis.fill_between(theory, low, high, color=GREY, alpha=0.25, lw=0, label="95 % band")
    ends = theory[[0, -1]]
    axis.plot(ends, mean + sd * ends, color=GREY, ls="--", lw=1.0, label="normal")
    axis.plot(theory, values, "o", ms=2.5, color=BLUE, mew=0, label="chips", rasterized=len(values) > _MOST_POINTS)
    span = float(np.ptp(values)) or 1.0
    axis.set_ylim(values[0] - 0.15 * span, values[-1] + 0.15 * span)
    axis.set_xlabel("standard normal quantile (standard deviations)")
    axis.set_ylabel(name)
    axis.grid()
    legend_above(figure)
    return figure


@styled
def draw_running_yield(running: Array, confidence: float) -> Figure:
    """Draw the yield of the first 1, 2, ... n chips against their number, with its interval.

    running: (n, 3) yield and both ends of its interval, as `running_intervals` returns them; confidence: of the
    interval.
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
def draw_cells(spread: CellSpread, cells: Sequence[int], what: Literal["threshold", "level"]) -> Figure:
    """Draw a histogram over chips for each of some cells: both thresholds, or the level.

    cells: places in `spread.cells`. Lines mark the values that the compiler aimed at; the range below 0 is grey.
    """
    shown = {1: LOWER, 0: UPPER} if what == "threshold" else {2: MEETS}  # place in QUANTITIES -> colour
    columns = min(len(cells), _COLUMNS)
    rows = -(-len(cells) // columns)
    figure = Figure(figsize=(DOUBLE, 0.8 + 1.25 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    largest = float(spread.asked[list(cells)][:, list(shown)].max())
    factor, unit = (_NANO, "nA") if largest >= 1e-9 else (_PICO, "pA")
    for axis in axes:
        plain(axis)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
    for axis, cell in zip(axes, cells, strict=False):
        for place, color in shown.items():
            values = factor * spread.measured[:, cell, place]
            axis.hist(values, bin_edges(values).tolist(), color=color, alpha=0.75, lw=0, label=QUANTITIES[place])
            axis.axvline(factor * spread.asked[cell, place], color=BLACK, lw=1.0, ls="--", label="asked")
        if what == "threshold" and spread.measured[:, cell, list(shown)].min() < 0:
            axis.axvspan(axis.get_xlim()[0], 0, color=GREY, alpha=0.2, lw=0, zorder=0)
        deviations = (f"{_PICO * spread.measured[:, cell, place].std(ddof=1):.3g}" for place in shown)
        axis.set_title(f"{spread.cells[cell]}\nsd {' and '.join(deviations)} pA", fontsize=8)
        few_ticks(axis, "x", 4)
    for spare in axes[len(cells) :]:
        spare.axis("off")
    figure.supxlabel(f"{what} ({unit})", fontsize=8)
    figure.supylabel("chips", fontsize=8)
    handles, labels = axes[0].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=len(named))
    return figure


@styled
def draw_weak(weak: Sequence[Influence], accuracy: Array, passes: NDArray[np.bool_]) -> Figure:
    """Draw the accuracy of chips against the deviation of a threshold or level, one panel for each of `weak`.
    accuracy: (chips,), a fraction; passes: (chips,), who meets the specs. Steps show the mean of each fifth of the
    chips."""
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
