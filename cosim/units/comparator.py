"""The parts that units behind comparators share: windows, set-points, clocks, driver lines and supply currents."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import Builder
from cosim.ir.nodes import MemoryCurrents, ThresholdUnit
from cosim.technology.calibration import Calibration
from cosim.units.kind import Array, CellEquations
from cosim.units.limits import CLEAR, SetPoint, cell_points
from cosim.units.sizing import SizingInput


def window_thresholds(cell: CellEquations[Any, Any, Any]) -> tuple[Array, Array]:
    """Upper and lower threshold, ampere, of a cell whose bias and factors have one for either."""
    upper, lower = cell.factors.upper, cell.factors.lower
    if cell.ideal:
        i_rise, i_fall, _ = cell.asked
        return np.asarray(upper * i_rise), np.asarray(lower * i_fall)
    found = cell.calibration
    return upper * found.upper.decides_at(cell.bias.i_upper), lower * found.lower.decides_at(cell.bias.i_lower)


def window_points(node: ThresholdUnit, asked: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
    """Thresholds and level of a unit behind two comparators."""
    return cell_points(asked.i_fall, asked.i_rise, asked.i_high)


def settle_within(node: ThresholdUnit, candidate: float) -> int | None:
    """The reset's state where no threshold is crossed; beyond one a native unit goes on changing."""
    above = node.rise - candidate > CLEAR and (not node.two_sided or candidate - node.fall > CLEAR)
    return node.start if above else None


def comparator_bias(sizing: SizingInput, node: ThresholdUnit, threshold: float, *, upper: bool = True) -> float:
    """The bias of a comparator for a threshold as it arrives, ampere."""
    fit = sizing.calibration.upper if upper else sizing.calibration.lower
    return fit.solve(sizing.arriving(threshold, sizing.traffic(node.name)))


def clock_pins(node: ThresholdUnit) -> tuple[str, str, str, str]:
    """Clocks and pulses of its stage."""
    clk, clkb, pulse, pulseb = (f"{name}{node.stage}" for name in ("clk", "clkb", "pulse", "pulseb"))
    return clk, clkb, pulse, pulseb


def memory_current(
    calibration: Calibration,
    candidate: Array,
    state: NDArray[np.bool_],
    i_thresh: Array | float,
    i_width: Array | float,
) -> Array:
    """Decision branch and feedback of a 9T cell, ampere, (n, time)."""
    mirror = calibration.mirror
    feedback = calibration.schmitt.i_high(i_width) * state
    sunk = (mirror.sink + mirror.slope_n * calibration.v_node) * i_thresh
    return np.minimum(mirror.push * (candidate + feedback), sunk) + feedback


def comparator_current(calibration: Calibration, candidate: Array, i_thresh: float) -> Array:
    """A 9T cell's decision branch without its feedback."""
    return memory_current(calibration, candidate, np.zeros(candidate.shape, dtype=bool), i_thresh, 0.0)


def add_line_pair(builder: Builder, i_base: float, i_delta: float) -> tuple[str, str]:
    """The driver's two lines."""
    return builder.bias_line("base", i_base), builder.bias_line("delta", i_delta)
