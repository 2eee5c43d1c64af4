"""Errors of real-valued answers against their targets: rms error, rms error over the targets' spread, and R2.

Intervals are the percentile bootstrap of B. Efron, Ann. Statist. 7 (1979) 1, over samples, at 95 %, because errors need
not be normal and the outputs of one sample depend on each other. The bootstrap is seeded, so equal answers have equal
intervals.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.results.intervals import CONFIDENCE, IntervalEnds
from cosim.results.page import Blocks, Table
from cosim.tasks.target import Answers

DRAWS = 2000
Array = NDArray[np.float64]
_HEAD = ("rms error", "95 % interval", "NRMSE", "R2", "95 % interval")


@dataclass(frozen=True)
class EngineErrors:
    """Errors of one engine's answers against the targets.

    rmse: root mean square error, in the unit of the targets; nrmse: rmse over the targets' standard deviation; r2: 1 -
    nrmse^2. nrmse and r2 are None where targets do not vary, intervals None where there is a single sample.
    """

    rmse: float
    rmse_interval: IntervalEnds | None
    nrmse: float | None
    r2: float | None
    r2_interval: IntervalEnds | None


@dataclass(frozen=True)
class ValueErrors:
    """Errors of every engine's answers against the targets.

    tolerance: largest error of an answer that counts as right; engines: engine -> errors; software_rmse: engine -> root
    mean square of its answers minus the software's.
    """

    tolerance: float
    engines: dict[str, EngineErrors]
    software_rmse: dict[str, float]


def measure_errors(answers: Mapping[str, Answers], y: Answers, tolerance: float) -> ValueErrors:
    """Measure the errors of each engine's answers against the targets, and their distance from the software's answers.

    answers: engine -> (n, outputs), "software" among them; y: (n, outputs) targets; tolerance: largest error of a right
    answer.
    """
    return ValueErrors(
        tolerance,
        {name: _measure(found, y) for name, found in answers.items()},
        {name: rms(found - answers["software"]) for name, found in answers.items() if name != "software"},
    )


def rms(errors: Answers) -> float:
    """Return the root mean square of errors over samples and outputs."""
    return float(np.sqrt(np.mean(errors**2)))


def _measure(answers: Answers, y: Answers) -> EngineErrors:
    squares, spread = ((answers - y) ** 2).mean(axis=1), ((y - y.mean(axis=0)) ** 2).mean(axis=1)
    error, variance = float(squares.mean()), float(spread.mean())
    if len(y) > 1:
        drawn = np.random.default_rng(0).integers(len(y), size=(DRAWS, len(y)))
        errors = squares[drawn].mean(axis=1)
        rmse_interval = _ends(np.sqrt(errors))
        # the targets are drawn with their errors, about the mean of the draw
        spreads = np.stack([y[:, k][drawn].var(axis=1) for k in range(y.shape[1])]).mean(axis=0)
        varied = spreads > 0
        r2_interval = _ends(1 - errors[varied] / spreads[varied]) if varied.any() and variance > 0 else None
    else:
        rmse_interval = r2_interval = None
    if variance == 0:
        return EngineErrors(error**0.5, rmse_interval, None, None, None)
    return EngineErrors(error**0.5, rmse_interval, (error / variance) ** 0.5, 1 - error / variance, r2_interval)


def _ends(values: Array) -> IntervalEnds:
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return IntervalEnds(float(low), float(high))


def errors_section(errors: ValueErrors) -> Blocks:
    """Return the section of a page on errors of real-valued answers: a table by engine, and a note on its columns."""
    rows = tuple((name, *_cells(found)) for name, found in errors.engines.items())
    apart = ", ".join(f"{name} {value:.4g}" for name, value in errors.software_rmse.items())
    notes = (
        f"Right and same: within {errors.tolerance:.4g} of the target, of the other answer. Rms distance from the "
        f"software's answers: {apart}. NRMSE: rms error over the standard deviation of the targets; R2 = 1 - NRMSE^2. "
        "Intervals: percentile bootstrap over samples."
    )
    return Table(("engine", *_HEAD), rows, tuple(range(1, 6))), notes


def _cells(found: EngineErrors) -> tuple[str, ...]:
    nrmse, r2 = (_number(value) for value in (found.nrmse, found.r2))
    return f"{found.rmse:.4g}", _bounds(found.rmse_interval), nrmse, r2, _bounds(found.r2_interval)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 0.995 else f"{value:.4f}"


def _bounds(bounds: IntervalEnds | None) -> str:
    return "-" if bounds is None else f"[{bounds.low:.4g}, {bounds.high:.4g}]"
