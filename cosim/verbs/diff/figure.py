"""The picture of two paired runs: one figure of every chip or sample, B against A."""

import numpy as np

from cosim.results.figures import BLUE, GREY, Figure, plain
from cosim.verbs.diff.difference import Scatter
from cosim.verbs.montecarlo.chip_study import watts_of


def draw_runs(scatter: Scatter) -> Figure:
    """Draw B over A: points above the line are larger in B; the area of a point is how many are there."""
    factor, unit = (100.0, "%") if scatter.unit == "%" else watts_of(float(np.mean([scatter.a, scatter.b])))
    points, counts = np.unique(factor * np.array([scatter.a, scatter.b]).T, axis=0, return_counts=True)
    low, high = float(points.min()), float(points.max())
    margin = 0.06 * (high - low) or 0.02 * abs(high) or 1.0
    ends = low - margin, high + margin
    figure = Figure(figsize=(4.2, 3.9), layout="constrained")
    axis = figure.subplots()
    plain(axis)
    axis.plot(ends, ends, color=GREY, lw=1, ls="--", label="equal")
    axis.scatter(*points.T, s=24 * counts, color=BLUE, alpha=0.7, lw=0, label=scatter.things)
    axis.set_title(scatter.name, fontsize=9, loc="left")
    axis.set_xlabel(f"A ({unit})")
    axis.set_ylabel(f"B ({unit})")
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    axis.set_aspect("equal")
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure
