"""Errors of real-valued answers against their targets: rms error, the same over the spread, R2; with intervals.

An interval is the percentile bootstrap of B. Efron, Ann. Statist. 7 (1979) 1, over samples, at 95 %: errors need not be
normal, and outputs of one sample stay together. Its draws are seeded, so equal answers give equal ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.results.intervals import CONFIDENCE, IntervalEnds
from cosim.results.page import Blocks, Table
from cosim.tasks.target import Answers, RealTargets

DRAWS = 2000
Array = NDArray[np.float64]
_HEAD = ("rms error", "95 % interval", "NRMSE", "R2", "95 % interval")


@dataclass(frozen=True)
class EngineErrors:
    """One engine against the targets. rmse: in their unit; nrmse: over their standard deviation; r2: 1 - nrmse^2. None
    where targets do not vary, an interval where there is one sample."""

    rmse: float
    rmse_interval: IntervalEnds | None
    nrmse: float | None
    r2: float | None
    r2_interval: IntervalEnds | None


@dataclass(frozen=True)
class ValueErrors:
    """Errors of every engine against the targets; software_rmse: rms distance of its answers from the software's.
    tolerance: the error of an answer that counts as right."""

    tolerance: float
    engines: dict[str, EngineErrors]
    software_rmse: dict[str, float]


def measure_errors(answers: Mapping[str, Answers], y: Answers, target: RealTargets) -> ValueErrors:
    """Measure for a comparison the errors of each engine's answers, and how far they are from the software's.

    answers, y: (n, outputs); one of the engines is the software.
    """
    return ValueErrors(
        target.tolerance,
        {name: _measure(found, y) for name, found in answers.items()},
        {name: rms(found - answers["software"]) for name, found in answers.items() if name != "software"},
    )


def rms(errors: Answers) -> float:
    """Return the root of the mean square of a comparison's errors over samples and outputs."""
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
    """Return the blocks of a page on errors: a table by engine and a note on what its columns mean."""
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
