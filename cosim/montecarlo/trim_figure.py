"""Figures of runs of chips."""

import numpy as np
from matplotlib.figure import Figure

from cosim.report.figures import BLUE, GREY
from cosim.study.chips import TrimSummary


def draw_trim(summary: TrimSummary) -> Figure:
    """Yield against the bits of the converters, with its interval; without converters as a dashed line and band."""
    before, *rows = summary.rows
    figure = Figure(figsize=(5.0, 3.4), layout="constrained")
    axis = figure.subplots()
    bits = [row.bits or 0 for row in rows]
    values = 100 * np.array([row.yield_.value for row in rows])
    bounds = 100 * np.array([row.yield_.interval for row in rows])
    errors = np.abs(bounds.T - values)
    axis.errorbar(bits, values, errors, marker="o", ms=4, lw=1.2, capsize=3, color=BLUE, label="trimmed")
    low, high = (100 * value for value in before.yield_.interval)
    axis.axhspan(low, high, color=GREY, alpha=0.2, lw=0)
    axis.axhline(100 * before.yield_.value, color=GREY, ls="--", lw=1, label="as fabricated")
    axis.set_xticks(bits)
    axis.set_xlabel("bits of the converter at each bias pin")
    axis.set_ylabel(f"yield (%), {' and '.join(summary.spec)}")
    axis.set_ylim(0, 102)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    axis.spines[["top", "right"]].set_visible(False)
    return figure
