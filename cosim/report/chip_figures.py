"""Figures of a run of chips, each small enough for a phone and drawn from plain arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.waveforms import Timing
from cosim.report.figures import BLUE, GREEN, GREY, RED, Axes, Figure, plain
from cosim.study.chips import Division
from cosim.study.waveforms import WaveLabels

Array = NDArray[np.float64]
Waves = dict[str, Array]
_SIZE = (4.0, 2.8)
_LEAST_BINS, _MOST_BINS = 6, 20
_LIGHT_RED = "#e8a29b"
_NANO = 1e9
_MARKS = ("software", GREY, "--"), ("nominal", "black", "-"), ("spec", RED, ":")


@dataclass(frozen=True)
class Spread:
    """One figure of all chips, in what its axis says: of those that meet the spec and of those that do not.

    quantum: least difference of a figure in percent that comes in steps, else 0; marks: values of `software`, `nominal`
    and the limit of the `spec`, as far as there are such.
    """

    axis: str
    passing: Array
    failing: Array
    marks: Mapping[str, float]
    quantum: float = 0.0


@dataclass(frozen=True)
class YieldCurve:
    """Yield against the least accuracy that a chip must have, with pointwise bounds, as fractions; ascending limits.

    spec: (limit, yield, low, high) of the limit that the run was counted with, None where it has none on accuracy.
    """

    limits: Array
    values: Array
    low: Array
    high: Array
    method: str
    spec: tuple[float, float, float, float] | None


def draw_spread(spread: Spread) -> Figure:
    """A histogram over chips; lines mark the software, the nominal circuit and the spec."""
    figure, axis = _panel()
    values = np.concatenate([spread.passing, spread.failing])
    edges = _edges(values, spread.quantum)
    groups = [(spread.passing, BLUE, "meets the spec"), (spread.failing, _LIGHT_RED, "does not")]
    shown = [group for group in groups if len(group[0])]
    axis.hist([g[0] for g in shown], edges, stacked=True, color=[g[1] for g in shown], label=[g[2] for g in shown])
    for name, color, style in _MARKS:
        if name in spread.marks:
            axis.axvline(spread.marks[name], color=color, ls=style, lw=1.4, label=name)
    axis.set_xlabel(spread.axis)
    axis.set_ylabel("chips")
    axis.locator_params(axis="y", integer=True)
    _legend(figure)
    return figure


def draw_yield_curve(curve: YieldCurve) -> Figure:
    """Yield against the accuracy limit, with its band; a cross at the spec."""
    figure, axis = _panel((5.0, 3.1))
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
    axis.grid(lw=0.3)
    _legend(figure)
    return figure


def draw_pairs(name: str, behavioral: Array, other: Array, engine: str) -> Figure:
    """One figure of each chip by both engines, in what `name` says; the area of a point is its number of chips."""
    figure, axis = _panel((4.0, 3.6))
    points, counts = np.unique(np.stack([behavioral, other], axis=1), axis=0, return_counts=True)
    low, high = float(points.min()), float(points.max())
    margin = 0.06 * (high - low) or 0.02 * abs(high) or 1.0
    ends = low - margin, high + margin
    axis.plot(ends, ends, color=GREY, lw=1, ls="--", label="equal")
    axis.scatter(*points.T, s=24 * counts, color=BLUE, alpha=0.7, lw=0, label="chips")
    axis.set_xlabel(f"behavioral, {name}")
    axis.set_ylabel(f"{engine}, {name}")
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    axis.set_aspect("equal")
    _legend(figure)
    return figure


def draw_shares(divisions: Mapping[str, Division]) -> Figure:
    """Shares of variance, a panel per division."""
    counts = [len(division.shares) for division in divisions.values()]
    figure = Figure(figsize=(4.4, 1.1 + 0.26 * sum(counts)), layout="constrained")
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
        axis.set_title(f"by {name}, R2 = {100 * division.r2:.1f} %", fontsize=9, loc="left")
        plain(axis)
    panels[-1].set_xlabel("share of the variance (%), 95 % interval", fontsize=9)
    return figure


def draw_blocks(blocks: Mapping[str, float], factor: float, unit: str) -> Figure:
    """Power of each block, W; `factor` makes it `unit`."""
    figure, axis = _panel((5.0, 0.8 + 0.3 * len(blocks)))
    bars = axis.barh(list(blocks), [factor * power for power in blocks.values()], 0.65, color=BLUE)
    total = sum(blocks.values()) or 1.0
    axis.bar_label(bars, [f"{100 * power / total:.1f} %" for power in blocks.values()], padding=3, fontsize=8)
    axis.margins(x=0.14)
    axis.invert_yaxis()
    axis.set_xlabel(f"supply power ({unit})")
    return figure


def draw_failure(chip: Waves, nominal: Waves, labels: WaveLabels, timing: Timing, classes: Sequence[int]) -> Figure:
    """One sample on a chip, and dashed on the nominal circuit: a unit's candidate and state, the readout, the power.

    Waves and labels as `record_waveforms` gives them; classes: those whose readout is shown, the right one first.
    """
    figure = Figure(figsize=(6.2, 7.0), layout="constrained")
    axes = figure.subplots(4, 1, sharex=True, height_ratios=(1.3, 1, 1, 1))
    for waves, style, alpha, whose in ((nominal, "--", 0.55, "nominal"), (chip, "-", 1.0, "this chip")):
        shown = waves["time"] >= timing.start
        time = 1e3 * (waves["time"][shown] - timing.start)
        found = {name: _NANO * values[shown] for name, values in waves.items()}
        line = {"ls": style, "alpha": alpha, "lw": 1.2}
        axes[0].plot(time, found["candidate"], color=BLUE, label=whose, **line)
        axes[1].plot(time, found["state"], color=BLUE, **line)
        for color, k in zip((GREEN, RED), classes, strict=False):
            name = f"class {labels.outputs[k]}" if whose == "this chip" else None
            axes[2].plot(time, found[f"output.{k}"], color=color, label=name, **line)
        axes[3].plot(time, found["power"], color=GREY if style == "-" else "black", **line)
        axes[3].set_ylim(bottom=0, top=1.4 * float(np.percentile(found["power"], 99)))
        axes[3].set_xlim(0, time[-1])
    thresholds = (labels.i_rise, RED, "upper threshold"), (labels.i_fall, GREEN, "lower threshold")
    for (asked, color, text), own in zip(thresholds, labels.own or (0.0, 0.0), strict=True):
        axes[0].axhline(_NANO * asked, color=color, lw=1.0, ls=":", label=f"{text}, asked")
        if own:
            axes[0].axhline(_NANO * own, color=color, lw=1.0, label=f"{text}, this chip")
    texts = (f"candidate of\n{labels.unit} (nA)", f"state of\n{labels.unit} (nA)", "readout (nA)", "power (nW)")
    for axis, text in zip(axes, texts, strict=True):
        axis.set_ylabel(text)
        axis.grid(axis="x", lw=0.3)
        plain(axis)
    for axis, columns in ((axes[0], 3), (axes[2], 2)):
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8, frameon=False, ncols=columns)
    frames = round((axes[3].get_xlim()[1]) / (1e3 * timing.t_step))
    axes[3].set_xticks(1e3 * timing.t_step * np.arange(0, frames + 1, max(1, frames // 10)))
    axes[3].set_xlabel("time (ms)")
    return figure


def _edges(values: Array, quantum: float) -> list[float]:
    """Borders of a histogram's bins; with a quantum each bin holds a whole number of possible values."""
    low, high = float(values.min()), float(values.max())
    bins = min(max(round(2 * len(values) ** 0.5), _LEAST_BINS), _MOST_BINS)
    if quantum:
        width = quantum * max(1, round((high - low) / quantum / bins))
        edges = low - quantum / 2 + width * np.arange(int((high - low) / width + 1e-9) + 2, dtype=np.float64)
        return np.clip(edges, 0, 100).tolist()
    if high == low:
        margin = 0.01 * abs(high) or 1.0
        return [low - margin, high + margin]
    return np.linspace(low, high, bins + 1).tolist()


def _panel(size: tuple[float, float] = _SIZE) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    plain(axis)
    return figure, axis


def _legend(figure: Figure) -> None:
    figure.legend(loc="outside upper center", ncols=3, fontsize=8, frameon=False, handlelength=1.6, columnspacing=1.2)
