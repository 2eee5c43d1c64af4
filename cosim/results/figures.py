"""The style of all figures: colours, fonts, widths for print, legends beside the axes, reproducible bytes.

Colours are those of M. Okabe and K. Ito, Color Universal Design (2008), which people of any colour vision tell apart.
One thing has one colour in all figures: see ENGINES, UPPER and LOWER, MEETS and FAILS, and COLORS of the blocks.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from cosim.base.write import write_atomically
from cosim.results.html import Picture

BLACK, BLUE, ORANGE, GREEN, RED = "#000000", "#0072b2", "#e69f00", "#009e73", "#d55e00"
SKY, PURPLE, YELLOW, GREY, LIGHT = "#56b4e9", "#cc79a7", "#f0e442", "#767676", "#d9d9d9"
SOFTWARE, BEHAVIORAL, SIMULATOR = GREY, ORANGE, BLUE
UPPER, LOWER = RED, GREEN  # thresholds; also told apart by the dashes of UPPER_DASH and LOWER_DASH
UPPER_DASH, LOWER_DASH = (0, (5, 2)), (0, (5, 1.5, 1, 1.5))
MEETS, FAILS = SKY, RED
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY, BLACK, YELLOW)
COLORS = {
    "inputs": SKY, "rails": BLUE, "rows": GREEN, "readout": YELLOW, "cells": RED, "bias": LIGHT,
    "converters": "#004488", "decision": "#997700", "clock": "#000000",
    "tree": "#994455",
}  # fmt: skip
INK = {ORANGE: "#9a6700", PURPLE: "#9b4f7b"}  # of small letters, where the colour itself is too light
GREYS = LinearSegmentedColormap.from_list("greys", ("#ffffff", "#bdbdbd"))
REDS = LinearSegmentedColormap.from_list("reds", ("#fdf1e7", "#f2a66b", RED, "#7a3500"))
BLUE_TO_RED = LinearSegmentedColormap.from_list("blue_to_red", (BLUE, "#ffffff", RED))

SINGLE, DOUBLE = 3.4, 7.0  # inches: a column, and a page, of a journal
FONT, TITLE = 8.0, 9.0  # points
DPI = 200
_MANY_DECADES = 1e3
_STYLE = {
    "font.size": FONT, "axes.labelsize": FONT, "xtick.labelsize": FONT, "ytick.labelsize": FONT,
    "legend.fontsize": FONT, "axes.titlesize": TITLE, "figure.titlesize": TITLE, "figure.labelsize": FONT,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8, "axes.axisbelow": True,
    "lines.linewidth": 1.2, "grid.linewidth": 0.4, "grid.color": LIGHT, "hatch.linewidth": 0.6,
    "legend.frameon": False, "legend.handlelength": 1.8, "legend.borderaxespad": 0.0, "legend.columnspacing": 1.2,
    "text.parse_math": False,  # names come from files: a label with a dollar sign is no formula
    "svg.hashsalt": "cosim",  # ids in an SVG are otherwise random: same input, same bytes
}  # fmt: skip

styled = matplotlib.style.context(["default", _STYLE])  # decorates what draws: nothing of it stays in the process


def engine_colors(engines: Sequence[str]) -> Mapping[str, str]:
    """Return engine -> colour: software and behavioral have their own; all transistor simulators share one."""
    known = {"software": SOFTWARE, "behavioral": BEHAVIORAL}
    return {engine: known.get(engine, SIMULATOR) for engine in engines}


def line_of(k: int) -> tuple[str, str]:
    """Return colour and line style of the k-th trace, from 0: all colours solid, then dashed, dotted, dash-dotted."""
    return CYCLE[k % len(CYCLE)], ("-", "--", ":", "-.")[k // len(CYCLE) % 4]


def plain(*axes: Axes, size: float = FONT) -> None:
    """Remove the top and right spines of axes, and set the size of their tick labels, in points."""
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=size)


def few_ticks(axis: Axes, which: Literal["x", "y", "both"], most: int = 5, *, integer: bool = False) -> None:
    """Limit the x axis, the y axis or both to at most `most` intervals between ticks; integer: whole numbers only."""
    for name in "xy" if which == "both" else which:
        getattr(axis, f"{name}axis").set_major_locator(MaxNLocator(most, integer=integer, steps=[1, 2, 2.5, 5, 10]))


def log_axis(axis: Axes, which: Literal["x", "y"], low: float, high: float) -> None:
    """Make an axis logarithmic, with plain numbers as tick labels, because formulas are turned off in this style.

    low, high: range of the data; below three decades ticks are at 1, 2 and 5, else at 1 of each decade.
    """
    getattr(axis, f"set_{which}scale")("log")
    ticks = getattr(axis, f"{which}axis")
    ticks.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < _MANY_DECADES * low else (1.0,)))
    ticks.set_major_formatter("{x:g}")
    ticks.set_minor_locator(NullLocator())


def legend_beside(axis: Axes, title: str | None = None, columns: int = 1) -> None:
    """Put a legend to the right of the axes, where no trace can be under it."""
    if axis.get_legend_handles_labels()[1]:
        axis.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), title=title, ncols=columns, alignment="left")


def legend_above(figure: Figure, columns: int = 3, *, axis: Axes | None = None, below: bool = False) -> None:
    """Put one legend above all axes of a figure, or below them, for instance where a title is above.

    It names the lines of `axis`, by default of the first axes that have labelled lines.
    """
    found = (one.get_legend_handles_labels() for one in ([axis] if axis else figure.axes))
    handles, labels = next((pair for pair in found if pair[1]), ([], []))
    if labels:
        figure.legend(handles, labels, loc="outside lower center" if below else "outside upper center", ncols=columns)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as SVG, or as PNG for any other suffix, without time stamps: equal data give equal bytes.

    Raises InputError when the file cannot be written.
    """
    write_atomically(path, figure_bytes(figure, "svg" if path.suffix == ".svg" else "png"))


@styled
def figure_bytes(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """Return a figure as the content of an SVG or PNG file; equal data give equal bytes."""
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def picture_of(figure: Figure, alt: str, caption: str, least: int = 0, kind: Literal["svg", "png"] = "svg") -> Picture:
    """Return a figure as a picture of an HTML page.

    alt: description for readers who cannot see it; least: smallest width on a screen, pixels, below which it scrolls.
    """
    return Picture("svg+xml" if kind == "svg" else "png", figure_bytes(figure, kind), alt, caption, least)
