"""The register frame by frame: the turns that +v exceeds where u >= i_rise, those of -v where u <= i_fall, else kept.

Level k is on where v exceeds I_turn by what calibration found. Supply current: both comparators, the levels'
min(g_push v, I_turn) of the value that is switched through, 3 I_keep for each level that is on, and the gates'. The
output is in its signal.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import instance, net
from cosim.cells.register import GATES
from cosim.ir.states import States
from cosim.units.effect import Effect, Site, effect
from cosim.units.kind import Array, CellEquations, Standing, Turns, pick, step_through
from cosim.units.native import comparator_current
from cosim.units.register.node import Register, RegisterFactors, RegisterPins, level_of
from cosim.units.window import window_thresholds

RegisterCell = CellEquations[Register, RegisterPins, RegisterFactors]


def decide_register(cell: RegisterCell, candidate: Array) -> States:
    """States (n, time), whole numbers."""
    rise, fall = window_thresholds(cell)
    ups, downs = candidate >= rise, candidate <= fall
    positive, negative = (_exceeded(cell, value) for value in cell.values)

    def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
        return np.where(ups[:, t], positive[:, t], np.where(downs[:, t], negative[:, t], state))

    return step_through(
        candidate, np.full(len(candidate), cell.node.start) if cell.before is None else cell.before, step
    )


def _exceeded(cell: RegisterCell, value: Array) -> NDArray[np.int16]:
    """Return how many turns a value exceeds, (n, time)."""
    node, factors = cell.node, cell.factors.turns or (1.0,) * cell.node.most
    i_unit = cell.asked[2] / node.level
    if cell.ideal:
        turns = [turn * i_unit for turn in node.turns]
    else:
        turns = [level_of(cell.calibration).value(i_turn) for i_turn in cell.bias.i_turns]
    found = sum(value >= factor * turn for factor, turn in zip(factors, turns, strict=True))
    return np.asarray(found, dtype=np.int16)


def turn_register(cell: RegisterCell, lines: Sequence[Array]) -> Turns:
    """Return both thresholds, whatever the state."""
    return Turns(window_thresholds(cell), window_thresholds(cell), own=True)


def deliver_register(cell: RegisterCell, states: States) -> Array:
    """Output current (n, time), ampere: the levels that are on."""
    high = cell.asked[2] if cell.ideal else float(cell.calibration.schmitt.i_high(cell.bias.i_gain))
    factors = cell.factors.levels or (1.0,) * cell.node.most
    return pick(np.concatenate([[0.0], np.cumsum(high * np.array(factors))]), states)


def supply_register(cell: RegisterCell, standing: Standing) -> Array:
    """The register with output and pedestal, ampere, (n, time)."""
    pins, calibration, candidate = cell.bias, cell.calibration, standing.candidate
    up = candidate >= window_thresholds(cell)[0]
    total = standing.current + sum(
        comparator_current(calibration, candidate, i_thresh) for i_thresh in (pins.i_upper, pins.i_lower)
    )
    value = calibration.mirror.push * np.where(up, *cell.values)
    total = total + sum(np.minimum(value, i_turn) for i_turn in pins.i_turns)
    return total + pins.i_keep * (3 * standing.states + GATES * (2 + up))


def register_effects(node: Register, pins: RegisterPins, site: Site) -> Iterator[Effect]:
    """upper, lower: the comparators; turns: M2 of each level - bias diode - M1; levels: M5 of each - bias diode."""
    cell = f"cell_{net(node.name)}"
    upper, lower, gain, _, _, *turns = site.pins
    yield site.comparator("upper", pins.i_upper, instance(f"{cell}.upper"), upper)
    yield site.comparator("lower", pins.i_lower, instance(f"{cell}.lower"), lower)
    for k, (pin, current) in enumerate(zip(turns, pins.i_turns, strict=True), start=1):
        block = f"level{k}"
        threshold, compare = site.device("threshold", block), site.device("compare", block)
        devices = (threshold, 1), (site.bias(pin), -1), (compare, -1)
        yield effect("turns", node.name, current, *devices, place=k - 1)
        yield effect(
            "levels", node.name, pins.i_gain, (site.device("level", block), 1), (site.bias(gain), -1), place=k - 1
        )
