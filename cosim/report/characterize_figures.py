"""Figures of a characterisation: ideal as a grey band, as drawn in red, calibrated in blue."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.report.figures import BLUE, GREEN, GREY, Axes, Figure, plain
from cosim.study.characterize import DPI_DOWN, DPI_UP, Characterisation, Curve, Kind
from cosim.study.ladder_study import LadderStudy, LadderTrace, pulse_train
from cosim.technology.conditions import format_conditions

_NANO, _MILLI = 1e9, 1e3
Style = Mapping[str, Any]  # of a line, as matplotlib names it
_STYLES: dict[Kind, Style] = {
    "measured": {"color": "#b3261e", "lw": 1.0, "label": "as drawn"},
    "calibrated": {"color": "#0b5394", "lw": 1.2, "label": "calibrated"},
    "ideal": {"color": "#cccccc", "lw": 3.0, "zorder": 1.5, "label": "ideal"},
}


def draw_characterisation(cell: str, found: Characterisation) -> Figure:
    """The figure of a cell: hysteresis loops, step responses or transfer curves."""
    draw = {
        "schmitt": draw_hysteresis,
        "dpi": draw_step_responses,
        "mirror": draw_mirror,
        "rectifier": draw_rectifier,
        "steering": draw_steering,
    }[cell]
    figure = draw(found.curves)
    figure.suptitle(f"{cell}, {format_conditions(found.technology)}", fontsize=9)
    return figure


def draw_hysteresis(curves: Sequence[Curve]) -> Figure:
    """Output over candidate, one panel a set-point."""
    groups = _groups(curves)
    figure, axes = _panels(groups, (7.0, 4.2), 3)
    for axis, group in zip(axes, groups, strict=False):
        for curve in _of(curves, group):
            axis.plot(_NANO * curve.x, _NANO * curve.y, **_STYLES[curve.kind])
        axis.set_title(f"thresholds {group}", fontsize=8)
        axis.set_xlabel("candidate (nA)")
        axis.set_ylabel("output (nA)")
    handles, labels = axes[0].get_legend_handles_labels()
    for spare in axes[len(groups) :]:
        spare.axis("off")
        spare.legend(handles, labels, fontsize=8, frameon=False, loc="center")
    return figure


def draw_step_responses(curves: Sequence[Curve]) -> Figure:
    """Output over time since the step, one column an alpha: the rise above, the fall below on a logarithmic scale."""
    groups = _groups(curves)
    figure, axes = _panels((*groups, *groups), (7.0, 4.2), len(groups))
    for k, group in enumerate(groups):
        rise, fall = axes[k], axes[k + len(groups)]
        for curve in _of(curves, group):
            style = _STYLES[curve.kind]
            rise.plot(_MILLI * (curve.x - DPI_UP), _NANO * curve.y, **style)
            fall.semilogy(_MILLI * (curve.x - DPI_DOWN), _NANO * np.maximum(curve.y, 1e-15), **style)
        top = _NANO * max(float(curve.y.max()) for curve in _of(curves, group))
        rise.set(xlim=(-5, 60), xlabel="time after the step up (ms)")
        fall.set(xlim=(-5, 50), ylim=(0.005 * top, 1.4 * top), xlabel="time after the step down (ms)")
        fall.yaxis.set_major_formatter("{x:g}")
        rise.set_title(f"alpha {group}", fontsize=8)
    axes[0].set_ylabel("output (nA)")
    axes[len(groups)].set_ylabel("output (nA)")
    axes[0].legend(fontsize=7, frameon=False, loc="lower right")
    return figure


def draw_mirror(curves: Sequence[Curve]) -> Figure:
    """Output over input of both gate lines, and how far their gains are from 1. Line p has nothing to trim."""
    figure, (left, right) = _panels((0, 1), (7.0, 3.0), 2)
    x = _NANO * curves[0].x
    left.loglog(x, x, **_STYLES["ideal"])
    right.semilogx(x, 0 * x, **_STYLES["ideal"])
    styles: dict[tuple[str, Kind], Style] = {
        ("line n", "measured"): {**_STYLES["measured"], "label": "line n, not trimmed"},
        ("line n", "calibrated"): {**_STYLES["calibrated"], "label": "line n, trimmed"},
        ("line p", "calibrated"): {"color": GREEN, "lw": 1.2, "label": "line p"},
    }
    for curve in curves:
        if style := styles.get((curve.group, curve.kind)):
            left.loglog(x, x * curve.y, **style)
            right.semilogx(x, 100 * (curve.y - 1), **style)
    left.set_ylabel("output (nA)")
    right.set_ylabel("error of the output (%)")
    left.yaxis.set_major_formatter("{x:g}")
    for axis in (left, right):
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("input (nA)")
    left.legend(fontsize=7, frameon=False)
    return figure


def draw_rectifier(curves: Sequence[Curve]) -> Figure:
    """Output over pull, one column a push, and below it how far it is from the ideal corner."""
    groups = _groups(curves)
    figure, axes = _panels((*groups, *groups), (8.4, 4.2), len(groups))
    for k, group in enumerate(groups):
        above, below = axes[k], axes[k + len(groups)]
        ideal = next(curve for curve in _of(curves, group) if curve.kind == "ideal")
        for curve in _of(curves, group):
            above.plot(_NANO * curve.x, _NANO * curve.y, **_STYLES[curve.kind])
            below.plot(_NANO * curve.x, 200 * (curve.y - ideal.y) / ideal.x[-1], **_STYLES[curve.kind])
        above.set_title(f"push {group}", fontsize=8)
        below.set_xlabel("pull (nA)")
        below.set_ylim(-2, 9)
    axes[0].set_ylabel("output (nA)")
    axes[len(groups)].set_ylabel("error over push (%)")
    axes[0].legend(fontsize=7, frameon=False)
    return figure


def draw_steering(curves: Sequence[Curve]) -> Figure:
    """Output over the signal, one column a level, and below it how far it is from the level of what is on."""
    groups = _groups(curves)
    figure, axes = _panels((*groups, *groups), (8.4, 4.2), len(groups))
    for k, group in enumerate(groups):
        above, below = axes[k], axes[k + len(groups)]
        level = next(curve.x[-1] for curve in _of(curves, group) if curve.kind == "ideal")
        for curve in _of(curves, group):
            above.plot(curve.x / level, _NANO * curve.y, **_STYLES[curve.kind])
            if curve.kind != "ideal":
                below.plot(curve.x / level, 100 * (curve.y / level - 1), **_STYLES[curve.kind])
        above.set_title(f"level {group}", fontsize=8)
        below.set_xlabel("signal (of its level)")
        below.set(xlim=(0.55, 1.0), ylim=(-3, 3))
    axes[0].set_ylabel("output (nA)")
    axes[len(groups)].set_ylabel("error of what is on (%)")
    axes[0].legend(fontsize=7, frameon=False, loc="lower right")
    return figure


def draw_staircase(study: LadderStudy, traces: Sequence[LadderTrace], title: str) -> Figure:
    """Input, output and supply power of a ladder that climbs to its top and comes down, one pulse beyond either end."""
    figure = Figure(figsize=(7.0, 5.2), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(1, 2, 1))
    plain, stairs = (next(trace for trace in traces if trace.run.kind == kind) for kind in ("plain", "stairs"))
    step, alpha = study.timing.step, study.currents.alpha
    edges = _MILLI * step * np.arange(len(stairs.expected) + 1)
    draw_input(top, stairs, study)
    middle.stairs(_NANO * alpha * stairs.expected, edges, baseline=None, **_STYLES["ideal"])
    outputs: tuple[tuple[Kind, LadderTrace], ...] = (("measured", plain), ("calibrated", stairs))
    for kind, trace in outputs:
        middle.plot(_MILLI * sample_times(trace, step), _NANO * trace.output, **_STYLES[kind])
    middle.set_ylabel("output (nA)")
    middle.legend(fontsize=7, frameon=False, loc="upper left")
    bottom.plot(_MILLI * sample_times(stairs, step), _NANO * stairs.power, color=GREY, lw=1.0)
    bottom.set_ylabel("power (nW)")
    bottom.set_ylim(bottom=0)
    bottom.set_xlabel("time (ms)")
    bottom.set_xlim(0, edges[-1])
    for axis in (top, middle, bottom):
        _clean(axis)
    figure.suptitle(title, fontsize=9)
    return figure


def draw_input(axis: Axes, trace: LadderTrace, study: LadderStudy) -> None:
    """I_in as it was applied, with the thresholds of rung 1."""
    points = np.array(pulse_train(trace.run.updates, study.currents, study.timing, 0.0))
    end = study.timing.step * len(trace.run.updates)
    points = np.concatenate([points, [[end, points[-1, 1]]]])
    axis.plot(_MILLI * points[:, 0], _NANO * points[:, 1], color=BLUE, lw=1.0)
    for level in (study.currents.i_rise, study.currents.i_fall):
        axis.axhline(_NANO * level, color=GREY, lw=0.7, ls=":")
    axis.set_ylabel("input (nA)")


def sample_times(trace: LadderTrace, step: float) -> NDArray[np.float64]:
    """When a trace was sampled, in second from the beginning of its first step."""
    count = len(trace.output)
    return np.arange(1, count + 1) * step * len(trace.run.updates) / count


def _panels(items: Sequence[object], size: tuple[float, float], columns: int) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=size, layout="constrained")
    rows = -(-len(items) // columns)
    axes = list(np.atleast_1d(figure.subplots(rows, columns)).ravel())
    for axis in axes:
        _clean(axis)
    return figure, axes


def _clean(axis: Axes) -> None:
    plain(axis, size=7)
    axis.xaxis.label.set_fontsize(8)
    axis.yaxis.label.set_fontsize(8)


def _groups(curves: Sequence[Curve]) -> list[str]:
    return list(dict.fromkeys(curve.group for curve in curves))


def _of(curves: Sequence[Curve], group: str) -> list[Curve]:
    return [curve for curve in curves if curve.group == group]
