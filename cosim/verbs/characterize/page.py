"""The page and the figures of a characterised cell: its equation in grey, as drawn in red, calibrated in blue."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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
    picture_of,
    plain,
    styled,
)
from cosim.results.html import Picture
from cosim.results.page import Facts, Page, PageSubject, Section, Table
from cosim.technology.calibration import Calibration
from cosim.technology.conditions import format_conditions
from cosim.technology.types import Technology
from cosim.verbs.characterize.ladder import (
    LadderStudy,
    LadderSummary,
    LadderTrace,
    level_rows,
    pulse_train,
    summarize_study,
)
from cosim.verbs.characterize.study import DPI_DOWN, DPI_UP, CellFigure, Characterisation, FigureLine, Kind
from cosim.verbs.provenance import calibration_origins
from cosim.verbs.words import say_conditions

_LEAST = 600  # pixels under which the picture's words cannot be read
_CAPTION = "Grey: the cell's equation; purple: as drawn, with the bias currents of that equation; blue: calibrated."
_STAIRS = (
    "Input, output and supply power of a ladder that climbs to its top and comes down. Grey: the staircase asked for; "
    "purple: as drawn; blue: calibrated."
)
_PICO, _NANO, _MILLI = 1e12, 1e9, 1e3
Style = Mapping[str, Any]  # of a line, as matplotlib names it
_STYLES: dict[Kind, Style] = {
    "measured": {"color": PURPLE, "lw": 1.0, "label": "as drawn"},
    "calibrated": {"color": BLUE, "lw": 1.2, "label": "calibrated"},
    "ideal": {"color": LIGHT, "lw": 3.0, "zorder": 1.5, "label": "ideal"},
}


def cell_page(
    cell: str, found: Sequence[Characterisation], calibration: Calibration, made_with: Mapping[str, str]
) -> Page:
    """Return the page of a characterised cell other than a ladder; made_with: name of the simulator -> its version."""
    rows = [row for one in found for row in one.rows]
    drawn, calibrated = (_largest(rows, which) for which in (0, 1))
    lost = sum(math.isnan(row.calibrated) for row in rows)
    name, conditions = found[0].technology.name, _count(len(found))
    return Page(
        verb=f"characterize {cell}",
        subject=PageSubject(f"{cell} cell"),
        title=f"{cell} on {name}: at most {_percent(calibrated)} from ideal calibrated, {_percent(drawn)} as drawn",
        lead=f"{len(found[0].rows)} figures of the cell in each of {conditions}, by {', '.join(made_with)}: by its "
        "equation, as drawn with the bias currents of that equation, and with those of the calibration, which is of "
        "the nominal condition.",
        cards=(
            (_percent(calibrated), "largest error, calibrated"),
            (_percent(drawn), "largest error, as drawn"),
            *(((str(lost), "figures not found"),) if lost else ()),
        ),
        sections=tuple(
            Section(say_conditions(one.technology), (_picture(cell, one), figures_table(one.rows))) for one in found
        ),
        provenance=calibration_origins(calibration, made_with),
    )


def ladder_page(
    study: LadderStudy,
    found: Sequence[tuple[Technology, Sequence[LadderTrace], LadderSummary]],
    calibration: Calibration,
    made_with: Mapping[str, str],
) -> Page:
    """Return the page of a characterised ladder, with a section for each condition.
    found: (technology in its condition, traces, summary); made_with: name of the simulator -> its version."""
    summary = summarize_study(study, found[0][0].name, [one for *_, one in found])
    checked, wrong, updates = (summary[key] for key in ("steps_checked", "wrong_levels", "wrong_updates"))
    name, conditions = found[0][0].name, _count(len(found))
    return Page(
        verb="characterize ladder",
        subject=PageSubject(f"ladder of {study.rungs} rungs"),
        title=f"ladder of {study.rungs} rungs on {name}: {wrong} of {checked} levels wrong",
        lead=f"{study.sequences} random sequence{'s' * (study.sequences > 1)} of {study.steps} updates in "
        f"{conditions}, a frame of "
        f"{format_quantity(study.timing.step, 's')} each, by {', '.join(made_with)} against software.",
        cards=(
            (f"{wrong} of {checked}", f"levels wrong, after {updates} wrong updates"),
            (_percent(max(one.level_error_max for *_, one in found)), "largest error of a level"),
            (format_quantity(max(one.power_w for *_, one in found), "W"), "mean supply power, at most"),
        ),
        sections=tuple(_ladder_section(study, *one) for one in found),
        provenance=calibration_origins(calibration, made_with),
    )


def _ladder_section(
    study: LadderStudy, technology: Technology, traces: Sequence[LadderTrace], summary: LadderSummary
) -> Section:
    title = f"ladder of {study.rungs} rungs, {technology.name}, {say_conditions(technology)}"
    picture = picture_of(draw_staircase(study, traces, title), _STAIRS, _STAIRS, _LEAST, "png")
    return Section(
        say_conditions(technology), (picture, Facts(_facts(summary)), figures_table(level_rows(study, traces)))
    )


def _facts(summary: LadderSummary) -> tuple[tuple[str, str], ...]:
    first = summary.first_wrong
    split = ((f"power of {block}", format_quantity(watt, "W")) for block, watt in summary.power_split_w.items())
    where = "none" if first is None else (
        f"in sequence {first.sequence}, step {first.step}: level {first.found}, not {first.expected}"
    )  # fmt: skip
    return (
        ("steps of random sequences", str(summary.steps_checked)),
        ("wrong levels", f"{summary.wrong_levels}, by {summary.wrong_updates} wrong updates"),
        ("first wrong level", where),
        ("steps held", f"{summary.retention_steps}, {summary.retention_wrong} of them wrong"),
        ("wrong steps of the staircase", f"{summary.staircase_wrong}; as drawn {summary.staircase_wrong_uncalibrated}"),
        ("an update is done after", f"{format_quantity(summary.update_time_max_s, 's')} or sooner"),
        ("mean supply power", format_quantity(summary.power_w, "W")),
        *split,
    )


def _picture(cell: str, one: Characterisation) -> Picture:
    figure = draw_characterisation(cell, one)
    alt = f"{cell} at {say_conditions(one.technology)}. {_CAPTION}"
    return picture_of(figure, alt, _CAPTION, _LEAST, "png")


def figures_table(rows: Sequence[CellFigure]) -> Table:
    """Return the table of a cell's figures: ideal, as drawn with its error, calibrated with its error."""
    head = ("set-point", "figure", "ideal", "as drawn", "error", "calibrated", "error")
    return Table(head, tuple(map(_row, rows)), tuple(range(2, len(head))))


def _row(row: CellFigure) -> tuple[str, ...]:
    ideal, drawn, calibrated = (_quantity(value, row.unit) for value in (row.ideal, row.measured, row.calibrated))
    errors = [_signed(error) for error in row.errors]
    return row.set_point, row.quantity, ideal, drawn, errors[0], calibrated, errors[1]


def _quantity(value: float, unit: str) -> str:
    return "not found" if math.isnan(value) else format_quantity(value, unit, 4)


def _signed(error: float) -> str:
    return "" if math.isnan(error) else f"{100 * error:+.2f} %"


def _percent(error: float) -> str:
    return f"{100 * error:.2f} %"


def _largest(rows: Sequence[CellFigure], which: int) -> float:
    return max((abs(row.errors[which]) for row in rows if not math.isnan(row.errors[which])), default=math.nan)


def _count(conditions: int) -> str:
    return f"{conditions} condition{'s' * (conditions > 1)}"


@styled
def draw_characterisation(cell: str, found: Characterisation) -> Figure:
    """Draw what was measured of a cell: hysteresis loops, step responses or transfer curves."""
    draw = {
        "schmitt": draw_hysteresis, "dpi": draw_step_responses, "mirror": draw_mirror, "rectifier": draw_rectifier,
        "steering": draw_steering,
    }  # fmt: skip
    figure = draw[cell](found)
    figure.suptitle(f"{cell}, {found.technology.name}, {format_conditions(found.technology)}", fontsize=9)
    return figure


def draw_hysteresis(found: Characterisation) -> Figure:
    """Draw a 9T cell's output over its candidate, a panel for each set-point, with arrows along the slow sweep.

    Dashed lines are the thresholds asked for; numbers give the measured ones.
    """
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
    """Draw arrows along the calibrated hysteresis loop; points: (upper threshold, lower threshold, level), scaled."""
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
    style = "-|>,head_length=0.5,head_width=0.25"
    for tail, tip in ends:
        arrow = {"arrowstyle": style, "color": BLACK, "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", tip, tail, arrowprops=arrow, zorder=4)


def _name_threshold(axis: Axes, factor: float, row: CellFigure, side: str) -> None:
    """Write a threshold's calibrated and measured value along its line; side: which edge of the text is at the line."""
    sign = 1 if side == "left" else -1
    for place, (value, color) in enumerate(((row.calibrated, BLUE), (row.measured, INK[PURPLE]))):
        text = "not found" if np.isnan(value) else format_quantity(value, "A")
        axis.annotate(
            text, (factor * row.ideal, 0.5), (sign * (5 + 10 * place), 0), xycoords=("data", "axes fraction"),
            textcoords="offset points", rotation=90, ha=side, va="center", color=color, fontsize=8,
        )  # fmt: skip


def draw_step_responses(found: Characterisation) -> Figure:
    """Draw a DPI's output over the time since a step, a column for each alpha: rise above, fall (logarithmic) below."""

    def draw(curves: Mapping[Kind, FigureLine], rise: Axes, fall: Axes) -> None:
        for curve in curves.values():
            style = _STYLES[curve.kind]
            rise.plot(_MILLI * (curve.x - DPI_UP), _NANO * curve.y, **style)
            fall.semilogy(_MILLI * (curve.x - DPI_DOWN), _NANO * np.maximum(curve.y, 1e-15), **style)
        top = _NANO * max(float(curve.y.max()) for curve in curves.values())
        rise.set(xlim=(-5, 60), xlabel="time after the step up (ms)")
        fall.set(xlim=(-5, 50), ylim=(0.005 * top, 1.4 * top), xlabel="time after the step down (ms)")
        fall.yaxis.set_major_formatter("{x:g}")

    return _draw_columns(found, 4.4, "alpha", "output (nA)", draw)


def _draw_columns(
    found: Characterisation,
    height: float,
    what: str,
    below: str,
    draw: Callable[[Mapping[Kind, FigureLine], Axes, Axes], None],
) -> Figure:
    """Draw a column for each set-point: the output in the upper panel, another quantity in the lower one.

    what: name of the set-points; below: label of the lower axes; draw: function of (curves by kind, upper axes, lower
    axes).
    """
    groups = _by_group(found)
    figure, axes = _panels(2 * len(groups), (DOUBLE, height), len(groups))
    for (group, curves), upper, lower in zip(groups.items(), axes, axes[len(groups) :], strict=False):
        draw(curves, upper, lower)
        upper.set_title(f"{what} {group}", fontsize=8)
    axes[0].set_ylabel("output (nA)")
    axes[len(groups)].set_ylabel(below)
    legend_above(figure, axis=axes[0], below=True)
    return figure


def draw_mirror(found: Characterisation) -> Figure:
    """Draw a mirror's output over its input for both gate lines, and the deviation of the gains from 1.
    Line n is drawn untrimmed and trimmed; line p has no trim."""
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
    """Draw a rectifier's output over the pull, a column for each push; below it, the deviation from the ideal."""

    def draw(curves: Mapping[Kind, FigureLine], above: Axes, below: Axes) -> None:
        ideal = curves["ideal"]
        for curve in curves.values():
            above.plot(_NANO * curve.x, _NANO * curve.y, **_STYLES[curve.kind])
            below.plot(_NANO * curve.x, 200 * (curve.y - ideal.y) / ideal.x[-1], **_STYLES[curve.kind])
        below.set(xlabel="pull (nA)", ylim=(-2, 9))

    return _draw_columns(found, 4.2, "push", "error over push (%)", draw)


def draw_steering(found: Characterisation) -> Figure:
    """Draw a steering AND's output over the signal, a column for each level; below it, the deviation from the level."""

    def draw(curves: Mapping[Kind, FigureLine], above: Axes, below: Axes) -> None:
        level = curves["ideal"].x[-1]
        for curve in curves.values():
            above.plot(curve.x / level, _NANO * curve.y, **_STYLES[curve.kind])
            if curve.kind != "ideal":
                below.plot(curve.x / level, 100 * (curve.y / level - 1), **_STYLES[curve.kind])
        below.set(xlabel="signal (of its level)", xlim=(0.55, 1.0), ylim=(-3, 3))

    return _draw_columns(found, 4.2, "level", "error of what is on (%)", draw)


@styled
def draw_staircase(study: LadderStudy, traces: Sequence[LadderTrace], title: str) -> Figure:
    """Draw input, output and supply power of a ladder that climbs to its top and comes down.

    At either end it gets one pulse more than it has rungs.
    """
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
    """Draw the input current of a ladder over time, with the thresholds of rung 1."""
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
    """Return the times of a trace's samples, (samples,), s from the beginning of the first step; step: in s."""
    count = len(trace.output)
    return np.arange(1, count + 1) * step * len(trace.run.updates) / count


def _panels(count: int, size: tuple[float, float], columns: int) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(-(-count // columns), columns, squeeze=False).ravel())
    for axis in axes:
        plain(axis)
    return figure, axes


def _by_group(found: Characterisation) -> Mapping[str, Mapping[Kind, FigureLine]]:
    """Return the curves of each set-point, by their kind: set-point -> kind -> curve."""
    curves = defaultdict[str, dict[Kind, FigureLine]](dict)
    for curve in found.curves:
        curves[curve.group][curve.kind] = curve
    return curves
