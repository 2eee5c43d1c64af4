"""Answers of real numbers: their errors as a table of a page, and answers over targets."""

import numpy as np

from cosim.results.figures import BLUE, GREY, Figure, plain
from cosim.results.intervals import IntervalEnds
from cosim.results.page import Blocks, Table
from cosim.verbs.compare.agreement import Comparison
from cosim.verbs.compare.value_errors import EngineErrors, ValueErrors

_HEAD = ("rms error", "95 % interval", "NRMSE", "R2", "95 % interval")


def say_tolerance(errors: ValueErrors) -> str:
    """Return the tolerance in words: within how much of a target, or of another answer, an answer counts as right."""
    return f"within {errors.tolerance:.4g} of the target, of the other answer"


def errors_section(errors: ValueErrors) -> Blocks:
    """Return the blocks of a page on errors: a table by engine and a note on what its columns mean."""
    rows = tuple((name, *_cells(found)) for name, found in errors.engines.items())
    apart = ", ".join(f"{name} {value:.4g}" for name, value in errors.software_rmse.items())
    notes = (
        f"Right and same: {say_tolerance(errors)}. Rms distance from the software's answers: {apart}. NRMSE: rms error "
        "over the standard deviation of the targets; R2 = 1 - NRMSE^2. Intervals: percentile bootstrap over samples."
    )
    return Table(("engine", *_HEAD), rows, tuple(range(1, 6))), notes


def _cells(found: EngineErrors) -> tuple[str, ...]:
    nrmse, r2 = (_number(value) for value in (found.nrmse, found.r2))
    return f"{found.rmse:.4g}", _ends(found.rmse_interval), nrmse, r2, _ends(found.r2_interval)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 0.995 else f"{value:.4f}"


def _ends(bounds: IntervalEnds | None) -> str:
    return "-" if bounds is None else f"[{bounds.low:.4g}, {bounds.high:.4g}]"


def draw_values(comparison: Comparison) -> Figure:
    """Draw answers over targets for each engine, all outputs, with the equal line and the tolerance on both sides of
    it."""
    figure, errors, y = Figure(figsize=(9.6, 3.5), layout="constrained"), comparison.errors(), comparison.y
    assert errors is not None
    answers = [one.decisions for one in comparison.engines.values()]
    low, high = (float(end(np.stack([y, *answers]))) for end in (np.min, np.max))
    ends = np.array([low, high]) + np.array([-0.04, 0.04]) * (high - low)
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    for axis, (engine, found) in zip(axes, comparison.engines.items(), strict=True):
        axis.fill_between(ends, ends - errors.tolerance, ends + errors.tolerance, color=GREY, alpha=0.18, lw=0)
        axis.plot(ends, ends, color=GREY, lw=0.9, ls="--")
        axis.scatter(np.ravel(y), np.ravel(found.decisions), s=7, color=BLUE, alpha=0.5, lw=0)
        axis.set_title(f"{engine}: rms error {errors.engines[engine].rmse:.3g}", fontsize=9)
        axis.set_xlabel("target", fontsize=8)
        axis.set_xlim(*ends)
        axis.set_ylim(*ends)
    axes[0].set_ylabel("answer", fontsize=8)
    plain(*axes)
    return figure
