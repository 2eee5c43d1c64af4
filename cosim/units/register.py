"""The thermometer register: the alphaCMRU at epsilon = 0, whose state is replaced by a value on a grid.

    the turns that +v exceeds where u >= i_rise,  those that -v exceeds where u <= i_fall,  else kept

A turn is the value at which one more level turns on. The candidate is on a common-mode offset, as a ladder's; the
decisions of its window are made as in a counter. The value v = W_alpha x + alpha is on an offset of FULL_SCALE in two
rectified rows, max(1 + v, 0) and max(1 - v, 0), of which S(h_hat) takes one; turn k is (k - 1/2) steps of 2 / K. So
s = 0 ... K stands for h = -1 + 2 s / K. Level k is on where v exceeds I_turn by an amount that calibration found.

Its supply current is that of both comparators, the levels' min(g_push v, I_turn) of the value that is switched
through, 3 I_keep for each level that is on, and the gates'. While a pulse writes, `writeb` has one load for each level,
and I_release flows. The output is counted in its signal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import MappingError, UnitCurrentError
from cosim.cells.blocks import CELLS
from cosim.cells.quantiser import sampler
from cosim.cells.register import GATES, register, register_blocks
from cosim.network.ir.nodes import LevelMemory, Rectifier, Weight
from cosim.network.ir.states import States
from cosim.network.layers import FULL_SCALE, RecurrentLayer, SignedLayer, common_mode_offset
from cosim.technology.calibration import Calibration
from cosim.technology.scale import MIN_FALL
from cosim.units.beta import add_beta, offset_on_comparators
from cosim.units.builder import NETWORK, Builder, net
from cosim.units.comparator import WindowFactors, WindowPins, WindowUnit, levels_current
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
)
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.sizing import PULSE_BEGIN, PULSE_END, SetPoint, SizingInput

KEEP = 0.04  # of i_unit: what a level sinks to stay off; twice that keeps it on
RELEASE = 0.5  # of i_unit: what ends a write; the keepers then have a part of the frame before it is read
_LOW = 3  # gates whose output is low whatever is decided, with the diode of their gate line
_STEPS = 8  # of the iteration that finds a turn's current; what a turn needs hardly depends on it


@dataclass(frozen=True)
class RegisterPins(WindowPins):
    """Bias-pin currents of a register unit, ampere.

    i_gain: output of a level; i_keep: holds a level; i_release: ends a write; i_turns: turn of each level.
    """

    i_gain: float
    i_keep: float
    i_release: float
    i_turns: tuple[float, ...]


@dataclass(frozen=True)
class RegisterFactors(WindowFactors):
    """The factors by which one chip's mismatch changes a register unit.

    turns: value at which each level turns on, () if all are 1.
    """

    turns: tuple[float, ...] = ()


@dataclass(frozen=True)
class LevelFit:
    """Measured turning points of a register unit's levels.

    A level turns on where the value exceeds the current of its turn by a shift. shifts: at the currents `turns`, both
    ampere; linear between them, constant outside.
    """

    turns: Array
    shifts: Array

    def value(self, i_turn: float) -> float:
        """Return the value at which a register's level turns on, ampere. i_turn: bias current of the turn, ampere."""
        return i_turn + float(np.interp(i_turn, self.turns, self.shifts))

    def solve(self, value: float) -> float:
        """Return the bias current with which a register's level turns on at `value`, both ampere."""
        i_turn = value
        for _ in range(_STEPS):
            i_turn += value - self.value(i_turn)
        return i_turn


def level_fit(calibration: Calibration) -> LevelFit:
    """Return a calibration's fit of the turning points of a register unit's levels."""
    own = calibration.own[Register.__name__]
    return LevelFit(np.array(own["turns"]), np.array(own["shifts"]))


RegisterCell = CellEquations[RegisterPins, RegisterFactors]


@dataclass(frozen=True)
class Register(LevelMemory, WindowUnit[RegisterPins, RegisterFactors]):
    """A thermometer register, a kind of recurrent unit (alphaCMRU at epsilon = 0).

    Its state becomes the number of turns (values at which a level turns on) that +v exceeds where u >= rise, the number
    that -v exceeds where u <= fall, and is kept else. It starts at `first`.
    """

    factors_type = RegisterFactors
    layer_types = (SignedLayer,)
    trimmed = (0, "upper"), (1, "lower"), (2, "levels")

    @property
    def schematics(self) -> tuple[str, ...]:
        return "register", "level"

    def compute_states(self, cell: RegisterCell, candidate: Array) -> States:
        rise, fall = self.window(cell)
        ups, downs = candidate >= rise, candidate <= fall
        positive, negative = (self._count_exceeded(cell, value) for value in cell.values)

        def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
            return np.where(ups[:, t], positive[:, t], np.where(downs[:, t], negative[:, t], state))

        return iterate_states(candidate, cell.states_before(candidate, self.start), step)

    def _count_exceeded(self, cell: RegisterCell, value: Array) -> NDArray[np.int16]:
        """Return for how many of the register's levels `value` is at or above the turn, (n, time)."""
        return np.asarray(sum(value >= turn for turn in self._turns(cell)), dtype=np.int16)

    def _turns(self, cell: RegisterCell) -> tuple[float, ...]:
        """Return the value at which each level of the register turns on, ampere, on this chip."""
        factors = cell.factors.turns or (1.0,) * self.most
        i_unit = cell.set_points[2] / self.level
        if cell.ideal:
            turns = [turn * i_unit for turn in self.turns]
        else:
            turns = [level_fit(cell.calibration).value(i_turn) for i_turn in cell.bias.i_turns]
        return tuple(factor * turn for factor, turn in zip(factors, turns, strict=True))

    def switching_thresholds(self, cell: RegisterCell, lines: Sequence[Array]) -> SwitchingThresholds:
        """Return both thresholds, which count in every state, and the turns of the register's levels."""
        window = self.window(cell, lines)
        return SwitchingThresholds(window, window, own_devices=True, turns=self._turns(cell))

    def output_current(self, cell: RegisterCell, states: States) -> Array:
        return levels_current(cell, cell.bias.i_gain, self.most, states)

    def supply_current(self, cell: RegisterCell, signals: CellSignals) -> Array:
        pins, calibration, candidate = cell.bias, cell.calibration, signals.candidate
        beta = np.asarray(signals.beta)
        rise, fall = self.window(replace(cell, beta=(beta, beta)))
        up, stays = candidate >= rise, candidate > fall
        total = signals.output_current + self.window_supply(cell, signals)
        value = calibration.mirror.push * np.where(up, *cell.values)
        total = total + sum(np.minimum(value, i_turn) for i_turn in pins.i_turns)
        written = (PULSE_END - PULSE_BEGIN) * (up | ~stays)
        gates = _LOW + up + stays + self.most * written
        return total + pins.i_keep * (3 * signals.states + GATES * gates) + pins.i_release * written

    @staticmethod
    def accepts(layer: RecurrentLayer) -> bool:
        """Tell whether the layer's update stores a value on a grid (alphaCMRU at epsilon 0)."""
        return isinstance(layer, SignedLayer) and layer.levels is not None and layer.epsilon == 0

    @staticmethod
    def lower_layer(layer: SignedLayer, placement: LayerPlacement) -> None:
        assert layer.levels is not None
        assert layer.weight_alpha is not None
        weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
        weight_alpha, alpha = placement.sources.weights_on_currents(layer.weight_alpha, layer.alpha)
        _check_values_hold(layer, placement)
        step = 2 * FULL_SCALE / layer.levels
        turns = tuple((k + 0.5) * step for k in range(layer.levels))
        for i in range(layer.width):
            moving = layer.weight_beta is not None
            beta = 0.0 if moving else abs(float(layer.bias_beta[i]))
            offset = offset_on_comparators(layer, i, placement) if moving else float(common_mode_offset(beta))
            first = round((float(layer.start[i]) + FULL_SCALE) / step)
            node = Register(
                f"{layer.name}.{i}", layer.name, i, placement.stage, step, -FULL_SCALE, step,
                offset + beta, offset - beta, offset, first=first, turns=turns,
            )  # fmt: skip
            placement.graph.add(node)
            placement.add_row(node.name, weight[i], bias[i] + offset, Parameter(layer.name, i))
            _add_values(node, weight_alpha[i], float(alpha[i]), placement)
            if moving:
                add_beta(node, layer, placement)

    def solve_bias(self, sizing: SizingInput) -> RegisterPins:
        """Return the bias currents of thresholds and turns as they arrive. Raises UnitCurrentError for a low turn."""
        i_unit, fit, window = sizing.graph.i_unit, level_fit(sizing.calibration), self.window_bias(sizing)
        rows = [source for source, _ in sizing.graph.into(self.name, "value")]
        arriving = ([sizing.arriving_current(row, turn * i_unit) for row in rows] for turn in self.turns)
        turns = tuple(fit.solve(sum(both) / len(both)) for both in arriving)  # a turn serves values of both signs
        if turns[0] < MIN_FALL:
            lowest = SetPoint("lowest turn", turns[0], least=MIN_FALL)
            raise UnitCurrentError(str(lowest), where=self.name, value=lowest.current, limit=lowest.limit, unit="A")
        return RegisterPins(
            **asdict(window), i_gain=sizing.calibration.schmitt.solve_gain(sizing.set_points(self).i_high),
            i_keep=KEEP * i_unit, i_release=RELEASE * i_unit, i_turns=turns,
        )  # fmt: skip

    def build_circuit(self, builder: Builder, pins: RegisterPins) -> None:
        technology, stem, units = builder.technology, net(self.name), builder.units
        candidate = builder.add_candidate(self, builder.comparator_devices)
        builder.define(sampler(technology), *register_blocks(technology, units, builder.comparator_devices))
        upper, lower = self.add_window_lines(builder, pins)
        keep, gain = builder.bias_line("keep", pins.i_keep), builder.bias_line("gain", pins.i_gain)
        release = builder.bias_line("release", pins.i_release)
        turns = tuple(builder.bias_line("turn", current) for current in pins.i_turns)
        builder.cell_bias[self.name] = (upper, lower, gain, keep, release, *turns)
        values = [source for source, _ in builder.graph.into(self.name, "value")]
        for source, device in zip(values, ("pos", "neg"), strict=True):
            builder.weights[source, self.name] = f"x{NETWORK}.xcell_{stem}.m{device}"
        nets = (
            candidate, *(f"{net(source)}_p" for source in values), upper, lower, keep, release, gain, *turns,
            f"{stem}_p", *self.clock_pins, "resetb", builder.reset_line(), "vdd",
        )  # fmt: skip
        origin = f"{self.name}: rise {self.rise:.6g} fall {self.fall:.6g} {self.most} levels of {self.level:.6g}"
        builder.add(register(technology, units, self.most, self.start), f"cell_{stem}", nets, CELLS, origin)
        builder.decisions[self.name] = tuple(f"x{NETWORK}.xcell_{stem}.xlevel{k}.q" for k in range(1, self.most + 1))
        builder.add_state_line(self)

    def report_pins(self, pins: RegisterPins, learned: LearnedParameters) -> list[MappingRow]:
        currents, (upper, lower, gain, _, _, *turns) = learned.set_points, learned.pins
        i_unit = currents.i_high / self.level
        levels = f"{self.most} levels, {self.step:g} apart; level 0 stands for {self.zero:g}; starts on {self.start}"
        return [
            pin_row(learned.upper, upper, currents.i_rise, pins.i_upper, learned.upper_note),
            pin_row(learned.lower, lower, currents.i_fall, pins.i_lower, learned.lower_note),
            pin_row(learned.alpha, gain, currents.i_high, pins.i_gain, levels),
            *(
                pin_row(f"{learned.alpha} (turn {k})", pin, turn * i_unit, current, f"{-self.zero:g} included")
                for k, (pin, turn, current) in enumerate(zip(turns, self.turns, pins.i_turns, strict=True), start=1)
            ),
        ]

    def mismatch_effects(self, pins: RegisterPins, circuit: CellDevices) -> Iterator[Effect]:
        """Yield the mismatch effects on the unit, beside those on its two comparators; `a - b` is a against b.

        turns: M2 of each level - bias diode - M1; levels: M5 - bias diode.
        """
        cell = f"cell_{net(self.name)}"
        _, _, gain, _, _, *turns = circuit.pins
        yield from self.window_effects(pins, circuit, cell)
        for place, (pin, current) in enumerate(zip(turns, pins.i_turns, strict=True)):
            threshold, compare, level = (
                circuit.device(role, f"level{place + 1}") for role in ("threshold", "compare", "level")
            )
            turn = (threshold, 1), (circuit.bias_diode(pin), -1), (compare, -1)
            yield effect("turns", self.name, current, *turn, place=place)
            yield effect("levels", self.name, pins.i_gain, (level, 1), (circuit.bias_diode(gain), -1), place=place)


def _add_values(node: Register, weight: Array, alpha: float, placement: LayerPlacement) -> None:
    """Add the two rectifiers of a register's value, 1 + v and 1 - v, and connect them to the register."""
    for sign, label in ((1.0, "pos"), (-1.0, "neg")):
        part = f"{node.name}.alpha_{label}"
        placement.graph.add(Rectifier(part, node.layer, node.index, FULL_SCALE))
        parameter = Parameter(node.layer, node.index, "_alpha", f" ({label})", "alpha")
        placement.add_row(part, sign * weight, sign * alpha + FULL_SCALE, parameter)
        placement.graph.connect(part, node.name, Weight(1.0, f"{node.layer}.value[{node.index}] ({label})", "value"))


def _check_values_hold(layer: SignedLayer, placement: LayerPlacement) -> None:
    """Raise MappingError if a register's value reads a signal that changes while the register writes the value."""
    assert layer.weight_alpha is not None
    for i, row in enumerate(layer.weight_alpha):
        if (moved := placement.sources.read_late(row)) is not None:
            raise MappingError(
                f"{placement.origin}: {layer.name}.weight_alpha[{i},*] reads {moved} late, which turns while the value "
                "is written, and its value must not change then; let it read what is not late, or train "
                "without `feedback`"
            )
