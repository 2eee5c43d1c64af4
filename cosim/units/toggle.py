"""The toggle: the unit at epsilon = -1, whose state is turned over.

    1 - s where u >= i_rise,  else kept          I_out = s i_high

Its supply current is that of its comparator, its drive g_sink (I_base + I_delta (1 + z)), 2 I_delta z s, and its 9T
cell; z is 1 in a frame whose decision changes the state.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cosim.cells.blocks import CELLS
from cosim.cells.builder import NETWORK, Builder, instance, net
from cosim.cells.clocked import clocked_schmitt
from cosim.cells.quantiser import quantiser_blocks
from cosim.cells.toggle import toggle
from cosim.errors import MappingError
from cosim.ir.nodes import MemoryCurrents, ThresholdUnit
from cosim.ir.states import States
from cosim.network.layers import EpsilonLayer, RecurrentLayer
from cosim.units.comparator import (
    add_line_pair,
    clock_pins,
    comparator_bias,
    comparator_current,
    memory_current,
    settle_within,
)
from cosim.units.epsilon import EPSILON_LAYERS, EitherLayer, lattices, lifting_offset
from cosim.units.kind import (
    Array,
    CellEquations,
    Effect,
    LearnedParameters,
    PinRow,
    Site,
    Standing,
    Turns,
    UnitKind,
    effect,
    pick,
    step_through,
)
from cosim.units.ladder import ladder_currents
from cosim.units.limits import SetPoint, cell_points
from cosim.units.placing import Parameter, Placing
from cosim.units.sizing import SizingInput


@dataclass(frozen=True)
class Toggle(ThresholdUnit):
    """epsilon = -1: s becomes 1 - s at u >= rise, else kept; s starts at 0. `fall` is not used."""

    two_sided: ClassVar[bool] = False


@dataclass(frozen=True)
class TogglePins:
    """Bias-pin currents in ampere of a toggle."""

    i_upper: float
    i_base: float
    i_delta: float
    i_thresh: float
    i_width: float
    i_gain: float


@dataclass(frozen=True)
class ToggleFactors:
    """upper: its comparator's current; level: of its state."""

    upper: float = 1.0
    level: float = 1.0


ToggleCell = CellEquations[Toggle, TogglePins, ToggleFactors]


def decide_toggle(cell: ToggleCell, candidate: Array) -> States:
    """States (n, time), 0 or 1."""
    updates = candidate >= _threshold(cell)

    def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
        return np.where(updates[:, t], 1 - state, state)

    return step_through(candidate, np.zeros(len(candidate)) if cell.before is None else cell.before, step)


def _threshold(cell: ToggleCell) -> Array:
    decides_at = cell.asked[0] if cell.ideal else cell.calibration.upper.decides_at(cell.bias.i_upper)
    return np.asarray(cell.factors.upper * decides_at)


def turn_toggle(cell: ToggleCell, lines: Sequence[Array]) -> Turns:
    """The threshold, whatever the state."""
    return Turns((_threshold(cell),), (_threshold(cell),), own=True)


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


def takes(layer: RecurrentLayer) -> bool:
    """Tell whether a layer becomes toggles: its update turns the state over (epsilon -1)."""
    return isinstance(layer, EpsilonLayer) and layer.epsilon == -1


def lower_toggle(layer: EitherLayer, placing: Placing) -> None:
    """A toggle for every unit of a layer with epsilon -1; one whose updates are negative stands for the negative."""
    weight, bias = placing.sources.folded(layer.weight, layer.bias)
    for unit in lattices(layer, placing):
        sign, steps = _form(unit.low, unit.high, unit.where)
        threshold = unit.rise if sign > 0 else -unit.fall
        offset, step, i = lifting_offset(-threshold), steps * unit.step, unit.index
        node = Toggle(unit.name, layer.name, i, placing.stage, step, unit.first, step, threshold + offset, 0.0, offset)
        placing.graph.add(node)
        placing.add_row(node.name, sign * weight[i], sign * bias[i] + offset, Parameter(layer.name, i))


def _form(low: int, high: int, where: str) -> tuple[int, int]:
    """(sign of all updates, steps between the two levels): S = +1 alternates -alpha, 2 alpha; S = -1 -alpha, 0."""
    if low == 0 and high in (0, 3):
        return 1, 3
    if low == 0 and high == 1:
        return -1, 1
    raise MappingError(
        f"{where}: at epsilon -1 a toggle has two levels, which needs updates of one sign; over the training data the "
        f"state runs from {low:+d} to {high:+d} steps of alpha from its start, so both signs happen; train with "
        "another seed"
    )


def toggle_points(node: Toggle, asked: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
    """Return the set-points of a toggle: its one threshold and its level."""
    return cell_points(asked.i_rise, asked.i_rise, asked.i_high)


def solve_toggle(node: Toggle, sizing: SizingInput) -> TogglePins:
    """The comparator's threshold as it arrives, and the set-points that all ladders and toggles share."""
    asked, fit = sizing.asked(node), sizing.calibration.schmitt
    shared = ladder_currents(sizing.graph.i_unit)
    upper = comparator_bias(sizing, node, asked.i_rise)
    thresholds = fit.solve_clocked(shared.i_rise, shared.i_fall)
    delta = shared.i_retain - shared.i_reset
    return TogglePins(upper, shared.i_reset, delta, *thresholds, fit.solve_gain(asked.i_high))


def build_toggle(builder: Builder, node: Toggle, pins: TogglePins) -> None:
    """Candidate, toggle, and the lines of its state."""
    technology, stem = builder.technology, net(node.name)
    candidate = builder.add_candidate(node)
    builder.define(*quantiser_blocks(technology)[:2], clocked_schmitt(technology, builder.units, tap=True))
    upper = builder.bias_line("thresh", pins.i_upper)
    lines = (
        upper, *add_line_pair(builder, pins.i_base, pins.i_delta), builder.bias_line("thresh", pins.i_thresh),
        builder.bias_line("width", pins.i_width), builder.bias_line("gain", pins.i_gain),
    )  # fmt: skip
    builder.cell_bias[node.name] = (upper, lines[-1])
    origin = f"{node.name}: rise {node.rise:.6g} level {node.level:.6g}"
    nets = (candidate, *lines, f"{stem}_p", *clock_pins(node), "resetb", "vdd")
    builder.add(toggle(technology), f"cell_{stem}", nets, CELLS, origin)
    builder.decisions[node.name] = (f"x{NETWORK}.xcell_{stem}.q",)  # the slave's latch node, as the port that it is
    builder.add_state_line(node)


def report_toggle(node: Toggle, pins: TogglePins, learned: LearnedParameters) -> list[PinRow]:
    """The threshold and the level."""
    asked, (upper, gain) = learned.asked, learned.pins
    return [
        PinRow(learned.upper, upper, asked.i_rise, pins.i_upper, learned.above),
        PinRow(learned.alpha, gain, asked.i_high, pins.i_gain, f"two levels, {node.step:g} apart"),
    ]


def toggle_effects(node: Toggle, pins: TogglePins, site: Site) -> Iterator[Effect]:
    """upper: its comparator; level: M5 of its cell - bias diode."""
    upper, gain = site.pins
    yield site.comparator("upper", pins.i_upper, instance(f"cell_{net(node.name)}.master"), upper)
    yield effect("level", node.name, pins.i_gain, (site.device("level"), 1), (site.bias(gain), -1))


TOGGLE = UnitKind[Toggle, TogglePins, ToggleFactors](
    node=Toggle,
    factors=ToggleFactors,
    layers=EPSILON_LAYERS,
    takes=takes,
    lower=lower_toggle,
    points=toggle_points,
    bias=solve_toggle,
    build=build_toggle,
    report=report_toggle,
    decide=decide_toggle,
    deliver=deliver_toggle,
    supply=supply_toggle,
    effects=toggle_effects,
    turns=turn_toggle,
    resumes=True,
    settles=settle_within,
    drawings=("9T cell", "clocked", "toggle"),
    pulsed=True,
    samples=True,
)
