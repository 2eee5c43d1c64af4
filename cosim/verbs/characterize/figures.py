"""Figures of a characterisation: ideal as a grey band, as drawn in red, calibrated in blue."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.quantities import format_quantity
from cosim.results.figures import (
    BLACK,
    BLUE,
    DOUBLE,
    GREEN,
    GREY,
    INK,
    LIGHT,
    LOWER,
    LOWER_DASH,
    PURPLE,
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
from cosim.technology.conditions import format_conditions
from cosim.verbs.characterize.ladder import LadderStudy, LadderTrace, pulse_train
from cosim.verbs.characterize.study import DPI_DOWN, DPI_UP, CellFigure, Characterisation, FigureLine, Kind

_PICO, _NANO, _MILLI = 1e12, 1e9, 1e3
Style = Mapping[str, Any]  # of a line, as matplotlib names it
_STYLES: dict[Kind, Style] = {
    "measured": {"color": PURPLE, "lw": 1.0, "label": "as drawn"},
    "calibrated": {"color": BLUE, "lw": 1.2, "label": "calibrated"},
    "ideal": {"color": LIGHT, "lw": 3.0, "zorder": 1.5, "label": "ideal"},
}


@styled
def draw_characterisation(cell: str, found: Characterisation) -> Figure:
    """Draw the characteristic of a cell: hysteresis loops, step responses or transfer curves."""
    draw = {
        "schmitt": draw_hysteresis,
        "dpi": draw_step_responses,
        "mirror": draw_mirror,
        "rectifier": draw_rectifier,
        "steering": draw_steering,
    }[cell]
    figure = draw(found)
    figure.suptitle(f"{cell}, {found.technology.name}, {format_conditions(found.technology)}", fontsize=9)
    return figure


def draw_hysteresis(found: Characterisation) -> Figure:
    """Draw output over candidate, one panel a set-point: arrows along the slow sweep, thresholds as measured in numbers
    and as asked for dashed."""
    groups = _by_group(found)
    figure, axes = _panels(len(groups), (DOUBLE, 1.0 + 2.1 * -(-len(groups) // 3)), 3)
    for axis, (group, curves) in zip(axes, groups.items(), strict=False):
        rows = {row.quantity: row for row in found.rows if row.set_point == group}
        upper, lower, level = (rows[name] for name in ("upper threshold", "lower threshold", "level"))
        factor, unit = (_NANO, "nA") if upper.ideal >= 0.999e-9 else (_PICO, "pA")
        for row, color, dash, name in ((upper, UPPER, UPPER_DASH, "upper"), (lower, LOWER, LOWER_DASH, "lower")):
            axis.axvline(factor * row.ideal, color=color, ls=dash, lw=1.0, zorder=1.8, label=f"{name}, asked")
        for curve in curves.values():
            axis.plot(factor * curve.x, factor * curve.y, **_STYLES[curve.kind])
        _draw_sweep(axis, factor * np.array([upper.calibrated, lower.calibrated, level.calibrated]))
        asked = f"{format_quantity(upper.ideal, 'A')} and {format_quantity(lower.ideal, 'A')}"
        axis.set_title(f"asked {asked}", fontsize=8)
        _name_threshold(axis, factor, upper, "left")
        _name_threshold(axis, factor, lower, "right")
        axis.set_ylim(-0.12 * factor * level.ideal, 1.25 * factor * level.ideal)
        axis.set_xlim(-0.03 * factor * upper.ideal, 1.42 * factor * upper.ideal)
        axis.set_xlabel(f"candidate ({unit})")
        axis.set_ylabel(f"output ({unit})")
        few_ticks(axis, "both", 4)
    for spare in axes[len(groups) :]:
        spare.axis("off")
    legend_above(figure, 5, axis=axes[0], below=True)
    return figure


def _draw_sweep(axis: Axes, points: NDArray[np.float64]) -> None:
    """Draw arrows along the calibrated loop; points: upper and lower threshold and level, as the axis has them."""
    rise, fall, high = points.tolist()
    if not np.isfinite(points).all():
        return
    middle, half = (rise + fall) / 2, min(0.3 * (rise - fall), 0.12 * rise)
    ends = (
        ((middle - half, 0), (middle + half, 0)),
        ((rise, 0.4 * high), (rise, 0.62 * high)),
        ((middle + half, high), (middle - half, high)),
        ((fall, 0.62 * high), (fall, 0.4 * high)),
    )
    for tail, tip in ends:
        arrow = {
            "arrowstyle": "-|>,head_length=0.5,head_width=0.25",
            "color": BLACK,
            "lw": 1.0,
            "shrinkA": 0,
            "shrinkB": 0,
        }
        axis.annotate("", tip, tail, arrowprops=arrow, zorder=4)


def _name_threshold(axis: Axes, factor: float, row: CellFigure, side: str) -> None:
    """Write the calibrated and the measured value of a threshold along its line; side: the edge of the text at the
    line."""
    sign = 1 if side == "left" else -1
    for place, (value, color) in enumerate(((row.calibrated, BLUE), (row.measured, INK[PURPLE]))):
        text = "not found" if np.isnan(value) else format_quantity(value, "A")
        axis.annotate(
            text, (factor * row.ideal, 0.5), (sign * (5 + 10 * place), 0), xycoords=("data", "axes fraction"),
            textcoords="offset points", rotation=90, ha=side, va="center", color=color, fontsize=8,
        )  # fmt: skip


def draw_step_responses(found: Characterisation) -> Figure:
    """Draw a characterised DPI's output over time since the step, one column an alpha: the rise above, the fall below
    on a logarithmic scale."""
    groups = _by_group(found)
    figure, axes = _panels(2 * len(groups), (DOUBLE, 4.4), len(groups))
    for (group, curves), rise, fall in zip(groups.items(), axes, axes[len(groups) :], strict=False):
        for curve in curves.values():
            style = _STYLES[curve.kind]
            rise.plot(_MILLI * (curve.x - DPI_UP), _NANO * curve.y, **style)
            fall.semilogy(_MILLI * (curve.x - DPI_DOWN), _NANO * np.maximum(curve.y, 1e-15), **style)
        top = _NANO * max(float(curve.y.max()) for curve in curves.values())
        rise.set(xlim=(-5, 60), xlabel="time after the step up (ms)")
        fall.set(xlim=(-5, 50), ylim=(0.005 * top, 1.4 * top), xlabel="time after the step down (ms)")
        fall.yaxis.set_major_formatter("{x:g}")
        rise.set_title(f"alpha {group}", fontsize=8)
    axes[0].set_ylabel("output (nA)")
    axes[len(groups)].set_ylabel("output (nA)")
    legend_above(figure, axis=axes[0], below=True)
    return figure


def draw_mirror(found: Characterisation) -> Figure:
    """Draw output over input of both gate lines, and how far their gains are from 1. Line p has nothing to trim."""
    figure, (left, right) = _panels(2, (DOUBLE, 3.0), 2)
    x = _NANO * found.curves[0].x
    left.loglog(x, x, **_STYLES["ideal"])
    right.semilogx(x, 0 * x, **_STYLES["ideal"])
    styles: dict[tuple[str, Kind], Style] = {
        ("line n", "measured"): {**_STYLES["measured"], "label": "line n, not trimmed"},
        ("line n", "calibrated"): {**_STYLES["calibrated"], "label": "line n, trimmed"},
        ("line p", "calibrated"): {"color": GREEN, "lw": 1.2, "label": "line p", "ls": "--"},
    }
    for curve in found.curves:
        if style := styles.get((curve.group, curve.kind)):
            left.loglog(x, x * curve.y, **style)
            right.semilogx(x, 100 * (curve.y - 1), **style)
    left.set_ylabel("output (nA)")
    right.set_ylabel("error of the output (%)")
    left.yaxis.set_major_formatter("{x:g}")
    for axis in (left, right):
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("input (nA)")
    legend_above(figure, 4, axis=left, below=True)
    return figure


def draw_rectifier(found: Characterisation) -> Figure:
    """Draw a characterised rectifier's output over pull, one column a push, and below it how far it is from the ideal
    corner."""
    groups = _by_group(found)
    figure, axes = _panels(2 * len(groups), (DOUBLE, 4.2), len(groups))
    for (group, curves), above, below in zip(groups.items(), axes, axes[len(groups) :], strict=False):
        ideal = curves["ideal"]
        for curve in curves.values():
            above.plot(_NANO * curve.x, _NANO * curve.y, **_STYLES[curve.kind])
            below.plot(_NANO * curve.x, 200 * (curve.y - ideal.y) / ideal.x[-1], **_STYLES[curve.kind])
        above.set_title(f"push {group}", fontsize=8)
        below.set_xlabel("pull (nA)")
        below.set_ylim(-2, 9)
    axes[0].set_ylabel("output (nA)")
    axes[len(groups)].set_ylabel("error over push (%)")
    legend_above(figure, axis=axes[0], below=True)
    return figure


def draw_steering(found: Characterisation) -> Figure:
    """Draw a characterised steering AND's output over the signal, one column a level, and below it how far it is from
    the level of what is on."""
    groups = _by_group(found)
    figure, axes = _panels(2 * len(groups), (DOUBLE, 4.2), len(groups))
    for (group, curves), above, below in zip(groups.items(), axes, axes[len(groups) :], strict=False):
        level = curves["ideal"].x[-1]
        for curve in curves.values():
            above.plot(curve.x / level, _NANO * curve.y, **_STYLES[curve.kind])
            if curve.kind != "ideal":
                below.plot(curve.x / level, 100 * (curve.y / level - 1), **_STYLES[curve.kind])
        above.set_title(f"level {group}", fontsize=8)
        below.set_xlabel("signal (of its level)")
        below.set(xlim=(0.55, 1.0), ylim=(-3, 3))
    axes[0].set_ylabel("output (nA)")
    axes[len(groups)].set_ylabel("error of what is on (%)")
    legend_above(figure, axis=axes[0], below=True)
    return figure


@styled
def draw_staircase(study: LadderStudy, traces: Sequence[LadderTrace], title: str) -> Figure:
    """Draw input, output and supply power of a ladder that climbs to its top and comes down, one pulse beyond either
    end."""
    figure = Figure(figsize=(DOUBLE, 5.4), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(1, 2, 1))
    drawn, stairs = (next(trace for trace in traces if trace.run.kind == kind) for kind in ("plain", "stairs"))
    step, alpha = study.timing.step, study.currents.alpha
    edges = _MILLI * step * np.arange(len(stairs.expected) + 1)
    draw_input(top, stairs, study)
    middle.stairs(_NANO * alpha * stairs.expected, edges, baseline=None, **_STYLES["ideal"])
    outputs: tuple[tuple[Kind, LadderTrace], ...] = (("measured", drawn), ("calibrated", stairs))
    for kind, trace in outputs:
        middle.plot(_MILLI * sample_times(trace, step), _NANO * trace.output, **_STYLES[kind])
    middle.set_ylabel("output (nA)")
    legend_beside(middle)
    bottom.plot(_MILLI * sample_times(stairs, step), _NANO * stairs.power, color=GREY, lw=1.0)
    bottom.set_ylabel("power (nW)")
    bottom.set_ylim(bottom=0)
    bottom.set_xlabel("time (ms)")
    bottom.set_xlim(0, edges[-1])
    for axis in (top, middle, bottom):
        plain(axis)
    figure.suptitle(title, fontsize=9)
    return figure


def draw_input(axis: Axes, trace: LadderTrace, study: LadderStudy) -> None:
    """Draw the input I_in of a characterised ladder as it was applied, with the thresholds of rung 1."""
    points = np.array(pulse_train(trace.run.updates, study.currents, study.timing, 0.0))
    end = study.timing.step * len(trace.run.updates)
    points = np.concatenate([points, [[end, points[-1, 1]]]])
    axis.plot(_MILLI * points[:, 0], _NANO * points[:, 1], color=BLUE, lw=1.0)
    currents = study.currents
    for level, color, dash, name in (
        (currents.i_rise, UPPER, UPPER_DASH, "upper"),
        (currents.i_fall, LOWER, LOWER_DASH, "lower"),
    ):
        label = f"{name} threshold,\n{format_quantity(level, 'A')}"
        axis.axhline(_NANO * level, color=color, lw=0.9, ls=dash, label=label)
    legend_beside(axis)
    axis.set_ylabel("input (nA)")


def sample_times(trace: LadderTrace, step: float) -> NDArray[np.float64]:
    """Return the times at which a characterised ladder's trace was sampled, in second from the beginning of its first
    step."""
    count = len(trace.output)
    return np.arange(1, count + 1) * step * len(trace.run.updates) / count


def _panels(count: int, size: tuple[float, float], columns: int) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(-(-count // columns), columns, squeeze=False).ravel())
    for axis in axes:
        plain(axis)
    return figure, axes


def _by_group(found: Characterisation) -> Mapping[str, Mapping[Kind, FigureLine]]:
    """Return the curves of every set-point by their kind."""
    curves = defaultdict[str, dict[Kind, FigureLine]](dict)
    for curve in found.curves:
        curves[curve.group][curve.kind] = curve
    return curves
