"""The toggle: the unit at epsilon = -1, whose state an update turns over.

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
from cosim.cells.clocked import clocked_schmitt
from cosim.cells.quantiser import quantiser_blocks
from cosim.cells.rectifier import candidate_diode
from cosim.cells.toggle import toggle
from cosim.network.ir.nodes import MemoryCurrents, ThresholdUnit
from cosim.network.ir.states import States
from cosim.network.layers import EpsilonLayer, RecurrentLayer, SignedLayer
from cosim.units.beta import add_beta
from cosim.units.builder import NETWORK, Builder, instance, net
from cosim.units.comparator import ComparatorUnit, comparator_current, memory_current
from cosim.units.epsilon import EPSILON_LAYERS, EitherLayer, Lattice, lattice_offset, lattices, lifting_offset
from cosim.units.kind import (
    Array,
    CellDevices,
    CellEquations,
    CellSignals,
    Effect,
    LearnedParameters,
    MappingRow,
    SwitchingThresholds,
    effect,
    iterate_states,
    pin_row,
    select_levels,
)
from cosim.units.ladder import ladder_currents
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.reflector import reflector_node
from cosim.units.sizing import SetPoint, SizingInput, threshold_set_points


@dataclass(frozen=True)
class TogglePins:
    """Bias-pin currents of a toggle unit, ampere.

    i_upper: its comparator; i_base, i_delta: drive of its 9T cell; i_thresh, i_width, i_gain: that cell.
    """

    i_upper: float
    i_base: float
    i_delta: float
    i_thresh: float
    i_width: float
    i_gain: float


@dataclass(frozen=True)
class ToggleFactors:
    """The factors by which one chip's mismatch changes a toggle unit.

    upper: its comparator's current; level: its output in state 1.
    """

    upper: float = 1.0
    level: float = 1.0


ToggleCell = CellEquations[TogglePins, ToggleFactors]


@dataclass(frozen=True)
class Toggle(ComparatorUnit[TogglePins, ToggleFactors]):
    """A toggle, the recurrent unit at epsilon = -1: s becomes 1 - s at u >= rise, else kept; s starts at 0.

    `fall` is not used.
    """

    factors_type = ToggleFactors
    layer_types = EPSILON_LAYERS

    two_sided: ClassVar[bool] = False

    @property
    def schematics(self) -> tuple[str, ...]:
        return "9T cell", "clocked", "toggle"

    def compute_states(self, cell: ToggleCell, candidate: Array) -> States:
        updates = candidate >= self._threshold(cell)

        def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
            return np.where(updates[:, t], 1 - state, state)

        return iterate_states(candidate, cell.states_before(candidate, self.start), step)

    def _threshold(self, cell: ToggleCell) -> Array:
        """Return the unit's only threshold, ampere, which counts in both states."""
        decides_at = cell.set_points[0] if cell.ideal else cell.calibration.upper.decides_at(cell.bias.i_upper)
        return np.asarray(cell.factors.upper * decides_at)

    def switching_thresholds(self, cell: ToggleCell, lines: Sequence[Array]) -> SwitchingThresholds:
        threshold = self._threshold(cell)
        return SwitchingThresholds((threshold,), (threshold,), own_devices=True)

    def output_current(self, cell: ToggleCell, states: States) -> Array:
        return select_levels(np.array([0.0, cell.level_current(cell.bias.i_gain) * cell.factors.level]), states)

    def supply_current(self, cell: ToggleCell, signals: CellSignals) -> Array:
        pins, calibration, state = cell.bias, cell.calibration, signals.states
        update = signals.state_changes()
        pulled = calibration.mirror.sink * (pins.i_base + pins.i_delta * (1 + update))
        pushed = 2 * pins.i_delta * update * state
        total = signals.output_current + comparator_current(calibration, signals.candidate, pins.i_upper)
        slave = memory_current(calibration, np.maximum(pulled - pushed, 0.0), state > 0, pins.i_thresh, pins.i_width)
        return total + pulled + pushed + slave

    @staticmethod
    def accepts(layer: RecurrentLayer) -> bool:
        """Tell whether the layer's update turns its state over (epsilon -1)."""
        return isinstance(layer, EpsilonLayer) and layer.epsilon == -1

    @staticmethod
    def lower_layer(layer: EitherLayer, placement: LayerPlacement) -> None:
        """Add a toggle for each software unit of a layer, or a reflector.

        A unit becomes a toggle if its updates have one sign, from a start at -alpha (`_sign_and_steps`). A unit
        whose updates are negative gets weights of the other sign, so that its toggle updates upwards.
        """
        weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
        for unit in lattices(layer, placement):
            one_sign = _sign_and_steps(unit)
            if one_sign is None:
                sign, offset = 1, lattice_offset(unit, layer, placement)
                node: ThresholdUnit = reflector_node(unit, layer, placement, offset)
            else:
                sign, steps = one_sign
                node = _toggle_node(unit, layer, placement, sign, steps)
                offset = node.offset
            i = unit.index
            placement.graph.add(node)
            placement.add_row(node.name, sign * weight[i], sign * bias[i] + offset, Parameter(layer.name, i))
            if isinstance(layer, SignedLayer) and layer.weight_beta is not None:
                add_beta(node, layer, placement, "beta" if one_sign is None else "drive")

    def set_points(self, currents: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
        """Return the unit's only threshold and its level, with the limits of each."""
        return threshold_set_points(currents.i_rise, currents.i_rise, currents.i_high)

    def solve_bias(self, sizing: SizingInput) -> TogglePins:
        """Return the bias currents of the unit's threshold as it arrives, and those that ladders and toggles share."""
        currents, fit = sizing.set_points(self), sizing.calibration.schmitt
        shared = ladder_currents(sizing.graph.i_unit)
        arriving = sizing.arriving_current(self.name, currents.i_rise, compared=True)
        upper = sizing.calibration.upper.solve(arriving)
        thresholds = fit.solve_clocked(shared.i_rise, shared.i_fall)
        delta = shared.i_retain - shared.i_reset
        return TogglePins(upper, shared.i_reset, delta, *thresholds, fit.solve_gain(currents.i_high))

    def build_circuit(self, builder: Builder, pins: TogglePins) -> None:
        technology, stem = builder.technology, net(self.name)
        candidate, m = builder.add_candidate(self, builder.comparator_devices), builder.comparator_devices
        builder.define(
            candidate_diode(technology),
            *quantiser_blocks(technology, m)[:2],
            clocked_schmitt(technology, builder.units, tap=True),
        )
        upper = builder.comparator_line(pins.i_upper)
        lines = (
            upper, builder.bias_line("base", pins.i_base), builder.bias_line("delta", pins.i_delta),
            builder.bias_line("thresh", pins.i_thresh), builder.bias_line("width", pins.i_width),
            builder.bias_line("gain", pins.i_gain),
        )  # fmt: skip
        builder.cell_bias[self.name] = (upper, lines[-1])
        origin = f"{self.name}: rise {self.rise:.6g} level {self.level:.6g}"
        nets = (candidate, *lines, f"{stem}_p", *self.clock_pins, "resetb", "vdd")
        builder.add(toggle(technology), f"cell_{stem}", nets, CELLS, origin)
        builder.decisions[self.name] = (f"x{NETWORK}.xcell_{stem}.q",)  # the slave's latch node, as the port that it is
        builder.add_state_line(self)

    def report_pins(self, pins: TogglePins, learned: LearnedParameters) -> list[MappingRow]:
        currents, (upper, gain) = learned.set_points, learned.pins
        return [
            pin_row(learned.upper, upper, currents.i_rise, pins.i_upper, learned.upper_note),
            pin_row(learned.alpha, gain, currents.i_high, pins.i_gain, f"two levels, {self.step:g} apart"),
        ]

    def mismatch_effects(self, pins: TogglePins, circuit: CellDevices) -> Iterator[Effect]:
        """Yield the mismatch effects on the unit: `upper`, its comparator; `level`, M5 of its cell - bias diode."""
        upper, gain = circuit.pins
        yield circuit.comparator_effect("upper", pins.i_upper, instance(f"cell_{net(self.name)}.master"), upper)
        yield effect("level", self.name, pins.i_gain, (circuit.device("level"), 1), (circuit.bias_diode(gain), -1))


def _sign_and_steps(unit: Lattice) -> tuple[int, int] | None:
    """Return the sign of all updates of a unit and the steps between its two levels; None if both signs may occur.

    From -alpha, S = +1 alternates between -alpha and 2 alpha, S = -1 between -alpha and 0. Updates of both signs,
    such as + + -, can have the ends -alpha and 2 alpha too, and then 0 or alpha between them. A unit that never
    updates counts as S = +1.
    """
    if unit.count != -1 or unit.low < 0:
        return None
    if unit.high == 1:
        return -1, 1
    return (1, 3) if unit.high == 0 or (unit.high == 3 and not unit.between) else None


def _toggle_node(unit: Lattice, layer: EitherLayer, placement: LayerPlacement, sign: int, steps: int) -> Toggle:
    """Return a toggle node for a unit whose updates all have the same sign; steps: between its two levels."""
    threshold = unit.rise if sign > 0 else -unit.fall
    offset, step = lifting_offset(-threshold), steps * unit.step
    return Toggle(
        unit.name, layer.name, unit.index, placement.stage, step, unit.first, step, threshold + offset, 0.0, offset
    )
