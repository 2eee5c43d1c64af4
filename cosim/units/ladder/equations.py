"""Quantiser and ladder frame by frame: s + 1 where u >= i_rise, s - 1 where u <= i_fall, within 0 ... K.

Their supply current: both comparators, min(g_push u, g_n I_thresh) each; the driver's tails and their copy,
(1 + g_push) g_sink I_retain; a rung u_k + min(g_push (u_k + I_w s), g_n I_thresh) + I_w s + 2 alpha s (own state, DPI),
with u_k = g_sink I_in + alpha (s_{k-1} + s_{k+1}). The output's alpha is in its signal.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import instance, net
from cosim.cells.quantiser import QUANTISER
from cosim.ir.states import States
from cosim.units.effect import Effect, Site, effect
from cosim.units.kind import Array, CellEquations, Standing, Turns, pick, step_through
from cosim.units.ladder.node import Ladder, LadderFactors, LadderPins
from cosim.units.native import comparator_current, memory_current
from cosim.units.window import window_thresholds

LadderCell = CellEquations[Ladder, LadderPins, LadderFactors]


def decide_ladder(cell: LadderCell, candidate: Array) -> States:
    """States (n, time), whole numbers."""
    node, (rise, fall) = cell.node, window_thresholds(cell)
    sets, resets = candidate >= rise, candidate <= fall

    def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
        return np.clip(state + np.where(sets[:, t], 1, np.where(resets[:, t], -1, 0)), 0, node.rungs)

    return step_through(candidate, np.full(len(candidate), node.start) if cell.before is None else cell.before, step)


def turn_ladder(cell: LadderCell, lines: Sequence[Array]) -> Turns:
    """Return both thresholds, but on level 0 the upper one alone."""
    rise, fall = window_thresholds(cell)
    return Turns((rise,), (rise, fall), own=True)


def deliver_ladder(cell: LadderCell, states: States) -> Array:
    """Output current (n, time), ampere: the rungs that are on."""
    high = cell.asked[2] if cell.ideal else float(cell.calibration.schmitt.i_high(cell.bias.ladder.i_gain))
    factors = cell.factors.levels or (1.0,) * cell.node.rungs
    return pick(np.concatenate([[0.0], np.cumsum(high * np.array(factors))]), states)


def supply_ladder(cell: LadderCell, standing: Standing) -> Array:
    """The quantiser and its ladder, with output and pedestal, ampere, (n, time)."""
    pins, calibration = cell.bias, cell.calibration
    mirror, bias, state = calibration.mirror, pins.ladder, standing.states
    total = standing.current + sum(
        comparator_current(calibration, standing.candidate, i_thresh) for i_thresh in (pins.i_upper, pins.i_lower)
    )
    tails = mirror.sink * (pins.i_base + pins.i_delta)
    total = total + (1 + mirror.push) * tails
    alpha = float(calibration.schmitt.i_high(np.float64(bias.i_gain)))
    for k in range(1, cell.node.rungs + 1):
        below = alpha * (state >= k - 1) * (k > 1)
        above = alpha * (state >= k + 1)
        u = mirror.sink * mirror.push * tails + below + above
        thresh, width = (bias.i_thresh_1, bias.i_width_1) if k == 1 else (bias.i_thresh, bias.i_width)
        total = total + u + memory_current(calibration, u, state >= k, thresh, width) + 2 * alpha * (state >= k)
    return total


def ladder_effects(node: Ladder, pins: LadderPins, site: Site) -> Iterator[Effect]:
    """upper, lower: the comparators; levels: M11 of each rung - bias diode."""
    for side, pin, current in zip(("upper", "lower"), site.pins, (pins.i_upper, pins.i_lower), strict=False):
        yield site.comparator(side, current, instance(f"{QUANTISER}_{net(node.name)}.{side}"), pin)
    for k in range(1, node.rungs + 1):
        devices = (site.device("level", f"rung{k}"), 1), (site.bias(site.pins[-1]), -1)
        yield effect("levels", node.name, pins.ladder.i_gain, *devices, place=k - 1)
