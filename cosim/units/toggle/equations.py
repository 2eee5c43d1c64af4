"""The toggle frame by frame: 1 - s where u >= i_rise, else kept; I_out = s i_high.

Its supply current: its comparator, its drive g_sink (I_base + I_delta (1 + z)), 2 I_delta z s, its 9T cell; z is 1 in a
frame whose decision changes the state.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import instance, net
from cosim.ir.states import States
from cosim.units.effect import Effect, Site, effect
from cosim.units.kind import Array, CellEquations, Standing, Turns, pick, step_through
from cosim.units.native import comparator_current, memory_current
from cosim.units.toggle.node import Toggle, ToggleFactors, TogglePins

ToggleCell = CellEquations[Toggle, TogglePins, ToggleFactors]


def decide_toggle(cell: ToggleCell, candidate: Array) -> States:
    """States (n, time), 0 or 1."""
    updates = candidate >= _threshold(cell)

    def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
        return np.where(updates[:, t], 1 - state, state)

    return step_through(candidate, np.zeros(len(candidate)) if cell.before is None else cell.before, step)


def turn_toggle(cell: ToggleCell, lines: Sequence[Array]) -> Turns:
    """The threshold, whatever the state."""
    return Turns((_threshold(cell),), (_threshold(cell),), own=True)


def _threshold(cell: ToggleCell) -> Array:
    decides_at = cell.asked[0] if cell.ideal else cell.calibration.upper.decides_at(cell.bias.i_upper)
    return np.asarray(cell.factors.upper * decides_at)


def deliver_toggle(cell: ToggleCell, states: States) -> Array:
    """Output current (n, time), ampere."""
    high = cell.asked[2] if cell.ideal else float(cell.calibration.schmitt.i_high(cell.bias.i_gain))
    return pick(np.array([0.0, high * cell.factors.level]), states)


def supply_toggle(cell: ToggleCell, standing: Standing) -> Array:
    """A toggle with output and pedestal, ampere, (n, time)."""
    pins, calibration, state = cell.bias, cell.calibration, standing.states
    update = standing.updated()
    pulled = calibration.mirror.sink * (pins.i_base + pins.i_delta * (1 + update))
    pushed = 2 * pins.i_delta * update * state
    total = standing.current + comparator_current(calibration, standing.candidate, pins.i_upper)
    slave = memory_current(calibration, np.maximum(pulled - pushed, 0.0), state > 0, pins.i_thresh, pins.i_width)
    return total + pulled + pushed + slave


def toggle_effects(node: Toggle, pins: TogglePins, site: Site) -> Iterator[Effect]:
    """upper: its comparator; level: M5 of its cell - bias diode."""
    upper, gain = site.pins
    yield site.comparator("upper", pins.i_upper, instance(f"cell_{net(node.name)}.master"), upper)
    yield effect("level", node.name, pins.i_gain, (site.device("level"), 1), (site.bias(gain), -1))
