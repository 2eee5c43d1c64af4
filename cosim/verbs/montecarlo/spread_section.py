"""Sections on the spread of chips: figures, yield as chips are added, cells one by one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.results.figures import Figure, figure_bytes
from cosim.results.html import Picture
from cosim.results.intervals import running_intervals
from cosim.results.metrics import METRICS, percent, within
from cosim.results.page import Blocks, Grid
from cosim.verbs.montecarlo.cell_spread import CellSpread, Weak, rank_weak
from cosim.verbs.montecarlo.chip_study import POWER, ChipStudy, figures_of, scale_of, software_of
from cosim.verbs.montecarlo.figures import ChipDistribution, draw_spread
from cosim.verbs.montecarlo.spread import normal_quantiles
from cosim.verbs.montecarlo.spread_figures import (
    MOST_CELLS,
    draw_levels,
    draw_quantiles,
    draw_running_yield,
    draw_thresholds,
    draw_weak,
)

NORMAL = ("accuracy", POWER)  # whose quantiles are held against a normal distribution
LEAST = 8  # chips that show a distribution at all
_WEAK, _CLEAR = 3, 0.05
_LEAST_WIDE = 672  # pixels of seven inches, under which a wide picture's words cannot be read


def format_spreads(study: ChipStudy) -> Blocks:
    """Return histograms over chips, and how far accuracy and power are from a normal distribution."""
    found = study.summary.figures
    pictures = [_spread(study, metric) for metric in found]
    pictures += [_quantiles(study, metric) for metric in NORMAL if metric in found and study.summary.chips >= LEAST]
    return (Grid(tuple(pictures)),) if pictures else ()


def _spread(study: ChipStudy, metric: str) -> Picture:
    summary, engine = study.summary, study.summary.engine
    values, passes = figures_of(study, metric, engine)
    factor, unit = scale_of(study, metric)
    marks = {"nominal": factor * summary.nominal[metric]}
    if (own := software_of(summary, metric)) is not None:
        marks["software"] = factor * own
    if metric in study.limits:
        marks["spec"] = factor * study.limits[metric]
    quantum = factor / summary.samples if metric in ("accuracy", "task_agreement") else 0.0
    spread = ChipDistribution(
        f"{METRICS[metric].title} ({unit})", factor * values[passes], factor * values[~passes], marks, quantum
    )
    found, known = summary.figures[metric], METRICS[metric]
    low, high = (known.format(found.quantiles[q]) for q in ("5", "95"))
    caption = (
        f"{known.title.capitalize()}: {known.meaning}. Mean {known.format(found.mean)}, sd "
        f"{known.format(found.sd)}, 5 to 95 % of chips {low} to {high}."
    )
    return vector(
        draw_spread(spread), f"Histogram of {METRICS[metric].title} over {len(values)} chips. {caption}", caption
    )


def _quantiles(study: ChipStudy, metric: str) -> Picture:
    values, _ = figures_of(study, metric, study.summary.engine)
    factor, unit = scale_of(study, metric)
    found = normal_quantiles(factor * values)
    caption = (
        f"{METRICS[metric].title.capitalize()}, Q-Q: sorted values against quantiles of a normal distribution. Dashed: "
        f"one of the same mean and standard deviation; band: 95 % at each point by itself, {percent(found.outside, 0)} "
        "of the chips are outside of it."
    )
    figure = draw_quantiles(f"{METRICS[metric].title} ({unit})", found)
    return vector(figure, f"Quantiles of {METRICS[metric].title} over {len(values)} chips. {caption}", caption)


def picture_running_yield(study: ChipStudy) -> Picture:
    """Yield of the first chips, of more and of all."""
    found = study.summary.yield_
    running = running_intervals(study.passes, found.confidence)
    caption = (
        f"Yield of the first chips, by their numbers, with the {percent(found.confidence, 0)} interval of Clopper and "
        "Pearson at each number of chips by itself: how many chips it takes to know it."
    )
    alt = f"Yield against the number of chips, at the end {percent(found.value)} {within(tuple(running[-1, 1:]))}."
    return vector(draw_running_yield(running, found.confidence), alt, caption)


def format_cells(study: ChipStudy) -> Blocks:
    """Return thresholds and levels of each cell over chips, and those that the accuracy goes with; empty without
    such."""
    spread = study.cells
    if spread is None or len(spread.measured) < LEAST or not spread.deviations().any():
        return ()
    accuracy, passes = figures_of(study, "accuracy", study.summary.engine)
    good = np.array([record.status == "ok" for record in study.records])
    ranked = rank_weak(CellSpread(spread.cells, spread.asked, spread.measured[good]), accuracy)
    shown = _shown_cells(spread, ranked)
    left_out = (
        f" The {len(shown)} of {len(spread.cells)} that matter most to accuracy."
        if len(shown) < len(spread.cells)
        else ""
    )
    thresholds = (
        "Thresholds of each cell over all chips, by the behavioral model from what the chips drew; dashed: as asked "
        f"for; sd: of the lower and of the upper one. Grey: below 0, where a cell does not reset.{left_out}"
    )
    levels = f"The level of each cell's state over all chips; dashed: as asked for.{left_out}"
    pictures = [
        _wide(
            draw_thresholds(spread, shown), f"Histograms of thresholds of {len(shown)} cells. {thresholds}", thresholds
        ),
        _wide(draw_levels(spread, shown), f"Histograms of levels of {len(shown)} cells. {levels}", levels),
    ]
    clear = [one for one in ranked if one.p < _CLEAR][:_WEAK]
    if not clear:
        text = f"The accuracy of these {len(accuracy)} chips goes clearly with no single threshold or level."
        return text, *pictures
    return _weak(clear, accuracy, passes), *pictures


def _shown_cells(spread: CellSpread, ranked: tuple[Weak, ...]) -> list[int]:
    """Return the places of the cells that are drawn: all, or of many those that accuracy goes with most."""
    names = list(dict.fromkeys([*(one.cell for one in ranked), *spread.cells]))[:MOST_CELLS]
    return [place for place, cell in enumerate(spread.cells) if cell in names]


def _weak(weak: Sequence[Weak], accuracy: NDArray[np.float64], passes: NDArray[np.bool_]) -> Picture:
    named = "; ".join(f"{one.cell}, {one.quantity}: {percent(max(one.share, 0.0), 0)}" for one in weak)
    caption = (
        "The weakest cells: accuracy of each chip against what its cell deviates. Share of the variance of accuracy "
        f"between fifths of the chips, without what chance gives: {named}. Shown is what chance would not give one of "
        "all thresholds and levels in 20 runs (Kruskal-Wallis)."
    )
    figure = draw_weak(weak, accuracy, passes)
    alt = f"Accuracy against deviations of cells. {caption}"
    return vector(figure, alt, caption) if len(weak) == 1 else _wide(figure, alt, caption)


def vector(figure: Figure, alt: str, caption: str) -> Picture:
    """Return a figure as a picture in SVG."""
    return Picture("svg+xml", figure_bytes(figure, "svg"), alt, caption)


def _wide(figure: Figure, alt: str, caption: str) -> Picture:
    return Picture("svg+xml", figure_bytes(figure, "svg"), alt, caption, _LEAST_WIDE)
