"""The clocked 9T cell frame by frame: s = 1 where u >= i_rise, 0 where u <= i_fall, else kept; I_out = s i_high.

Its supply current: min(g_push (u + I_w s), g_n I_thresh) + I_w s + I_high s, with I_w = i_high(I_width): decision
branch, feedback and output, see cosim.engines.behavioral.supply.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.ir.states import States
from cosim.units.effect import Effect, Site, effect
from cosim.units.kind import Array, CellEquations, Standing, Turns, pick, step_through
from cosim.units.limits import CLEAR
from cosim.units.native import memory_current
from cosim.units.schmitt.node import Schmitt, SchmittBias, SchmittFactors

SchmittCell = CellEquations[Schmitt, SchmittBias, SchmittFactors]


def decide_schmitt(cell: SchmittCell, candidate: Array) -> States:
    """States (n, time), 0 or 1."""
    rise, fall = _thresholds(cell)
    compared = candidate * cell.factors.compared
    sets, resets = compared >= rise, compared <= fall
    first = cell.node.on or stays_on(cell)
    start = np.full(len(candidate), int(first)) if cell.before is None else cell.before

    def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
        return np.where(sets[:, t], 1, np.where(resets[:, t], 0, state))

    return step_through(candidate, start, step)


def settle_schmitt(node: Schmitt, candidate: float) -> int | None:
    """The state of a constant candidate, in units: what the first frame decides stays."""
    if min(abs(candidate - node.rise), abs(candidate - node.fall)) <= CLEAR:
        return None
    return 1 if candidate > node.rise else 0 if candidate < node.fall else node.start


def turn_schmitt(cell: SchmittCell, lines: Sequence[Array]) -> Turns:
    """The upper threshold, then the lower one; lines: threshold and width line of a cell whose thresholds move."""
    bias, factors = cell.bias, cell.factors
    thresh, width = lines or (np.asarray(bias.i_thresh), np.asarray(bias.i_width))
    i_thresh, i_width = factors.thresh / bias.trim_thresh * thresh, factors.width / bias.trim_width * width
    rise, fall = _crossed(cell, np.asarray(i_thresh), np.asarray(i_width))
    return Turns((rise / factors.compared,), (fall / factors.compared,))


def stays_on(cell: SchmittCell) -> bool:
    """Tell whether a cell that was on stays on at a candidate of 0, so that the reset does not turn it off.

    False for a cell that is to begin on.
    """
    _, fall = _thresholds(cell)
    return not cell.node.on and np.ndim(fall) == 0 and bool(fall < 0)


def deliver_schmitt(cell: SchmittCell, states: States) -> Array:
    """Output current (n, time), ampere."""
    high = cell.asked[2] if cell.ideal else float(cell.calibration.schmitt.i_high(np.float64(cell.bias.i_gain)))
    return pick(np.array([0.0, high * cell.factors.level]), states)


def _thresholds(cell: SchmittCell) -> tuple[Array, Array]:
    """Upper and lower threshold, (n, time) or scalar, ampere."""
    thresh, width = cell.factors.thresh, cell.factors.width
    into_thresh, into_width = cell.beta
    if cell.ideal:
        # Written so that without deviations both are exact: software decides ties as these numbers do.
        i_rise, i_fall, _ = cell.asked
        rise, fall = i_rise + into_thresh, i_fall - (2 * into_width - into_thresh)
        moved = (thresh - 1) * rise - (width - 1) * (i_rise - i_fall + 2 * into_width)
        return thresh * rise, fall + moved
    return _crossed(cell, *_line_currents(cell, cell.beta, (thresh, width)))


def _crossed(cell: SchmittCell, i_thresh: Array, i_width: Array) -> tuple[Array, Array]:
    """Upper and lower threshold of the clocked cell, as calibration measured them."""
    fit = cell.calibration.schmitt
    return fit.set_in_frame(fit.i_rise(i_thresh, i_width)), fit.reset_in_frame(fit.i_fall(i_thresh, i_width))


def _line_currents(
    cell: SchmittCell, beta: tuple[Array | np.float64, Array | np.float64], factors: tuple[float, float]
) -> tuple[Array, Array]:
    """Return the currents of the threshold and the width line with beta on them: factors times currents, over the
    trims."""
    bias, pushed, (thresh, width) = cell.bias, cell.calibration.mirror.pushed, factors
    return (
        np.asarray(thresh * (bias.i_thresh + pushed(beta[0])) / bias.trim_thresh),
        np.asarray(width * (bias.i_width + 2 * pushed(beta[1])) / bias.trim_width),
    )


def supply_schmitt(cell: SchmittCell, standing: Standing) -> Array:
    """The cell with its output, its pedestal and the copies of beta into its lines, ampere, (n, time)."""
    i_thresh, i_width = _line_currents(cell, (standing.beta, standing.beta), (1.0, 1.0))
    lines = 3 * cell.calibration.mirror.push * standing.beta  # beta into the threshold (1) and width (2) lines
    state = standing.states > 0
    return memory_current(cell.calibration, standing.candidate, state, i_thresh, i_width) + standing.current + lines


def schmitt_effects(node: Schmitt, bias: SchmittBias, site: Site) -> Iterator[Effect]:
    """compared: M1 - candidate diode; thresh: M2 - bias diode; width: M8 - bias diode + M9 - M7; level: M5 - bias
    diode."""
    thresh, width, gain = map(site.bias, site.pins)
    device, name = site.device, node.name
    yield effect("compared", name, site.asked.i_rise, (device("compare"), 1), (site.candidate, -1))
    yield effect("thresh", name, bias.i_thresh, (device("threshold"), 1), (thresh, -1))
    loop = (device("width"), 1), (width, -1), (device("loop out"), 1), (device("loop in"), -1)
    yield effect("width", name, bias.i_width, *loop)
    yield effect("level", name, bias.i_gain, (device("level"), 1), (gain, -1))
