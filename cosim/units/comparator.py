"""The parts that units behind comparators share: windows, set-points, clocks, driver lines and supply currents."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.ir.nodes import MemoryCurrents, ThresholdUnit
from cosim.network.ir.states import States
from cosim.technology.calibration import Calibration
from cosim.units.builder import Builder
from cosim.units.kind import Array, CellEquations, iterate_states
from cosim.units.sizing import CLEARANCE, SetPoint, SizingInput, threshold_set_points


def window_thresholds(cell: CellEquations[Any, Any, Any]) -> tuple[Array, Array]:
    """Return the upper and lower threshold, ampere, of a recurrent unit whose bias and factors have one for either."""
    upper, lower = cell.factors.upper, cell.factors.lower
    if cell.ideal:
        i_rise, i_fall, _ = cell.set_points
        return np.asarray(upper * i_rise), np.asarray(lower * i_fall)
    found = cell.calibration
    return upper * found.upper.decides_at(cell.bias.i_upper), lower * found.lower.decides_at(cell.bias.i_lower)


def count_states(cell: CellEquations[Any, Any, Any], window: tuple[Array, Array], candidate: Array) -> States:
    """Return the states of a recurrent unit that counts (n, time), whole numbers; candidate: (n, time), ampere."""
    node, (rise, fall) = cell.node, window
    sets, resets = candidate >= rise, candidate <= fall

    def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
        return np.clip(state + np.where(sets[:, t], 1, np.where(resets[:, t], -1, 0)), 0, node.most)

    return iterate_states(
        candidate, np.full(len(candidate), node.start) if cell.initial_states is None else cell.initial_states, step
    )


def window_set_points(node: ThresholdUnit, currents: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
    """Return the set-points of a recurrent unit behind two comparators: its thresholds and its level."""
    return threshold_set_points(currents.i_fall, currents.i_rise, currents.i_high)


def settled_in_window(node: ThresholdUnit, candidate: float) -> int | None:
    """Return a recurrent unit's reset state where no threshold is crossed, else None: a native one goes on changing."""
    above = node.rise - candidate > CLEARANCE and (not node.two_sided or candidate - node.fall > CLEARANCE)
    return node.start if above else None


def comparator_bias(sizing: SizingInput, node: ThresholdUnit, threshold: float, *, upper: bool = True) -> float:
    """Return the bias current of a recurrent unit's comparator for a threshold as it arrives, ampere."""
    fit = sizing.calibration.upper if upper else sizing.calibration.lower
    return fit.solve(sizing.arriving_current(threshold, sizing.total_weight_current(node.name)))


def clock_pins(node: ThresholdUnit) -> tuple[str, str, str, str]:
    """Return the clocks and pulses that any kind of recurrent unit has in its stage: clk, clkb, pulse, pulseb."""
    clk, clkb, pulse, pulseb = (f"{name}{node.stage}" for name in ("clk", "clkb", "pulse", "pulseb"))
    return clk, clkb, pulse, pulseb


def memory_current(
    calibration: Calibration,
    candidate: Array,
    state: NDArray[np.bool_],
    i_thresh: Array | float,
    i_width: Array | float,
) -> Array:
    """Return the supply current of a unit's decision branch and feedback, as of a 9T cell, ampere, (n, time)."""
    mirror = calibration.mirror
    feedback = calibration.schmitt.i_high(i_width) * state
    sunk = (mirror.sink + mirror.slope_n * calibration.v_node) * i_thresh
    return np.minimum(mirror.push * (candidate + feedback), sunk) + feedback


def comparator_current(calibration: Calibration, candidate: Array, i_thresh: float) -> Array:
    """Return the supply current of a unit's decision branch, of a 9T cell without feedback, ampere, (n, time)."""
    return memory_current(calibration, candidate, np.zeros(candidate.shape, dtype=bool), i_thresh, 0.0)


def driver_lines(builder: Builder, i_base: float, i_delta: float) -> tuple[str, str]:
    """Add the two bias lines of a recurrent unit's driver and return their names; i_base, i_delta: ampere."""
    return builder.bias_line("base", i_base), builder.bias_line("delta", i_delta)
