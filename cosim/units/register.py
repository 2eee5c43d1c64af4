"""The thermometer register: the alphaCMRU at epsilon = 0, whose state is replaced by a value on a grid.

    the turns that +v exceeds where u >= i_rise,  those that -v exceeds where u <= i_fall,  else kept

The candidate is on a common-mode offset, as a ladder's; the decisions of its window are those of a counter. The value
v = W_alpha x + alpha stands on an offset of FULL_SCALE in two rectified rows, max(1 + v, 0) and max(1 - v, 0), of which
S(h_hat) takes one; turn k is (k - 1/2) steps of 2 / K. So s = 0 ... K stands for h = -1 + 2 s / K. Level k is on where
v exceeds I_turn by what calibration found.

Its supply current is that of both comparators, the levels' min(g_push v, I_turn) of the value that is switched
through, 3 I_keep for each level that is on, and the gates'. The output is in its signal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import MappingError, UnitCurrentError
from cosim.cells.blocks import CELLS
from cosim.cells.quantiser import sampler
from cosim.cells.register import GATES, register, register_blocks
from cosim.network.ir.nodes import Rectifier, Storing, Weight
from cosim.network.ir.states import States
from cosim.network.layers import FULL_SCALE, RecurrentLayer, SignedLayer, common_mode_offset
from cosim.technology.calibration import Calibration
from cosim.technology.scale import MIN_FALL
from cosim.units.beta import add_beta, offset_on_comparators
from cosim.units.builder import NETWORK, Builder, net
from cosim.units.comparator import (
    WindowFactors,
    WindowPins,
    clock_pins,
    decision_fits,
    settled_in_window,
    window_bias,
    window_currents,
    window_effects,
    window_lines,
    window_set_points,
    window_supply,
    window_thresholds,
)
from cosim.units.kind import (
    Array,
    CellDevices,
    CellEquations,
    CellSignals,
    Effect,
    LearnedParameters,
    PinRow,
    SwitchingThresholds,
    UnitKind,
    effect,
    iterate_states,
    select_levels,
)
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.sizing import SetPoint, SizingInput

KEEP = 0.04  # of i_unit: what a level sinks to stay off; twice that keeps it on
RELEASE = 0.5  # of i_unit: what ends a write; the keepers then have a part of the frame before it is read
_LOW = 3  # gates whose output is low whatever is decided, with the diode of their gate line
_STEPS = 8  # of the iteration that finds a turn's current; what a turn needs hardly depends on it


@dataclass(frozen=True)
class Register(Storing):
    """The thermometer register, a kind of recurrent unit (alphaCMRU at epsilon = 0).

    Its state is the number of turns that +v exceeds at u >= rise, that -v exceeds at u <= fall, else kept; s starts at
    `first`.
    """

    first: int = 0

    @property
    def start(self) -> int:
        """Return how many levels of a register unit the reset leaves on."""
        return self.first


@dataclass(frozen=True)
class RegisterPins(WindowPins):
    """Bias-pin currents of a register unit in ampere; i_turns: of each level."""

    i_gain: float
    i_keep: float
    i_release: float
    i_turns: tuple[float, ...]


@dataclass(frozen=True)
class RegisterFactors(WindowFactors):
    """A chip's factors of a register unit; turns: the threshold of each level, none for all nominal."""

    turns: tuple[float, ...] = ()


@dataclass(frozen=True)
class LevelFit:
    """Measured turning points of a register unit's level.

    A value turns a level when it exceeds the current of the turn by `shifts`, at currents `turns`, both in ampere;
    linear between them, flat outside.
    """

    turns: Array
    shifts: Array

    def value(self, i_turn: float) -> float:
        """Return the value at which a register unit's equations turn a level, i_turn: the current of the turn,
        ampere."""
        return i_turn + float(np.interp(i_turn, self.turns, self.shifts))

    def solve(self, value: float) -> float:
        """Return the current with which the register, a kind of recurrent unit, turns a level at this value, ampere."""
        i_turn = value
        for _ in range(_STEPS):
            i_turn += value - self.value(i_turn)
        return i_turn


def level_fit(calibration: Calibration) -> LevelFit:
    """Return the fit of a calibration to a register unit's levels."""
    own = calibration.own[Register.__name__]
    return LevelFit(np.array(own["turns"]), np.array(own["shifts"]))


RegisterCell = CellEquations[Register, RegisterPins, RegisterFactors]


def compute_states(cell: RegisterCell, candidate: Array) -> States:
    """Return the states of a register unit (n, time), whole numbers; candidate: (n, time), ampere."""
    rise, fall = window_thresholds(cell, decision_fits(cell.calibration))
    ups, downs = candidate >= rise, candidate <= fall
    positive, negative = (_count_exceeded(cell, value) for value in cell.values)

    def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
        return np.where(ups[:, t], positive[:, t], np.where(downs[:, t], negative[:, t], state))

    return iterate_states(
        candidate,
        np.full(len(candidate), cell.node.start) if cell.initial_states is None else cell.initial_states,
        step,
    )


def _count_exceeded(cell: RegisterCell, value: Array) -> NDArray[np.int16]:
    """Return how many turns a value exceeds, (n, time)."""
    return np.asarray(sum(value >= turn for turn in _turns(cell)), dtype=np.int16)


def _turns(cell: RegisterCell) -> tuple[float, ...]:
    """Return the value at which each level of a register unit turns, ampere."""
    node, factors = cell.node, cell.factors.turns or (1.0,) * cell.node.most
    i_unit = cell.set_points[2] / node.level
    if cell.ideal:
        turns = [turn * i_unit for turn in node.turns]
    else:
        turns = [level_fit(cell.calibration).value(i_turn) for i_turn in cell.bias.i_turns]
    return tuple(factor * turn for factor, turn in zip(factors, turns, strict=True))


def switching_thresholds(cell: RegisterCell, lines: Sequence[Array]) -> SwitchingThresholds:
    """Return both thresholds of a register unit, whatever the state, and the turns of its levels."""
    window = window_thresholds(cell, decision_fits(cell.calibration), lines)
    return SwitchingThresholds(window, window, own_devices=True, turns=_turns(cell))


def output_current(cell: RegisterCell, states: States) -> Array:
    """Return the output current of a register unit (n, time), ampere: the levels that are on."""
    high = cell.set_points[2] if cell.ideal else float(cell.calibration.schmitt.i_high(cell.bias.i_gain))
    factors = cell.factors.levels or (1.0,) * cell.node.most
    return select_levels(np.concatenate([[0.0], np.cumsum(high * np.array(factors))]), states)


def supply_current(cell: RegisterCell, signals: CellSignals) -> Array:
    """Return the supply current of a register unit with output and pedestal, ampere, (n, time)."""
    pins, calibration, candidate = cell.bias, cell.calibration, signals.candidate
    beta = np.asarray(signals.beta)
    rise, fall = window_thresholds(replace(cell, beta=(beta, beta)), decision_fits(calibration))
    up, stays = candidate >= rise, candidate > fall
    total = signals.output_current + window_supply(cell, signals)
    value = calibration.mirror.push * np.where(up, *cell.values)
    total = total + sum(np.minimum(value, i_turn) for i_turn in pins.i_turns)
    return total + pins.i_keep * (3 * signals.states + GATES * (_LOW + up + stays))


def accepts(layer: RecurrentLayer) -> bool:
    """Tell whether a layer becomes register units: its update stores a value on a grid (alphaCMRU at epsilon 0)."""
    return isinstance(layer, SignedLayer) and layer.levels is not None and layer.epsilon == 0


def lower_layer(layer: SignedLayer, placement: LayerPlacement) -> None:
    """Add a register unit for each software unit of an alphaCMRU layer with levels and epsilon 0."""
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
            f"{layer.name}.{i}", layer.name, i, placement.stage, step, -FULL_SCALE, step, offset + beta, offset - beta,
            offset, turns, first,
        )  # fmt: skip
        placement.graph.add(node)
        placement.add_row(node.name, weight[i], bias[i] + offset, Parameter(layer.name, i))
        _add_values(node, weight_alpha[i], float(alpha[i]), placement)
        if moving:
            add_beta(node, layer, placement)


def _add_values(node: Register, weight: Array, alpha: float, placement: LayerPlacement) -> None:
    """Add the value with either sign, and their edges into the register."""
    for sign, label in ((1.0, "pos"), (-1.0, "neg")):
        part = f"{node.name}.alpha_{label}"
        placement.graph.add(Rectifier(part, node.layer, node.index, FULL_SCALE))
        parameter = Parameter(node.layer, node.index, "_alpha", f" ({label})", "alpha")
        placement.add_row(part, sign * weight, sign * alpha + FULL_SCALE, parameter)
        placement.graph.connect(part, node.name, Weight(1.0, f"{node.layer}.value[{node.index}] ({label})", "value"))


def _check_values_hold(layer: SignedLayer, placement: LayerPlacement) -> None:
    """Raise MappingError for a value that turns while it is written."""
    assert layer.weight_alpha is not None
    for i, row in enumerate(layer.weight_alpha):
        if (moved := placement.sources.read_late(row)) is not None:
            raise MappingError(
                f"{placement.origin}: {layer.name}.weight_alpha[{i},*] reads {moved} late, which turns while the value "
                "is written, and its value must not change then; let it read what is not late, or train "
                "without `feedback`"
            )


def solve_bias(node: Register, sizing: SizingInput) -> RegisterPins:
    """Return a register unit's bias currents of thresholds and turns as they arrive.

    Raises MappingError for what cannot be built.
    """
    currents, i_unit = sizing.set_points(node), sizing.graph.i_unit
    window = window_bias(sizing, node, decision_fits(sizing.calibration))
    source = sizing.graph.into(node.name, "value")[0][0]
    total_current = sizing.total_weight_current(source)
    fit = level_fit(sizing.calibration)
    turns = tuple(fit.solve(sizing.arriving_current(turn * i_unit, total_current, relu=True)) for turn in node.turns)
    if turns[0] < MIN_FALL:
        lowest = SetPoint("lowest turn", turns[0], least=MIN_FALL)
        raise UnitCurrentError(str(lowest), where=node.name, value=lowest.current, limit=lowest.limit, unit="A")
    return RegisterPins(
        **asdict(window), i_gain=sizing.calibration.schmitt.solve_gain(currents.i_high), i_keep=KEEP * i_unit,
        i_release=RELEASE * i_unit, i_turns=turns,
    )  # fmt: skip


def build_circuit(builder: Builder, node: Register, pins: RegisterPins) -> None:
    """Add a register unit's circuit: the candidate, the register, and the lines of its state.

    Its values are the lines p of two rectifiers.
    """
    technology, stem, units = builder.technology, net(node.name), builder.units
    candidate = builder.add_candidate(node, builder.comparator_devices)
    builder.define(sampler(technology), *register_blocks(technology, units, builder.comparator_devices))
    upper, lower = window_lines(builder, node, pins)
    keep, gain = builder.bias_line("keep", pins.i_keep), builder.bias_line("gain", pins.i_gain)
    release = builder.bias_line("release", pins.i_release)
    turns = tuple(builder.bias_line("turn", current) for current in pins.i_turns)
    builder.cell_bias[node.name] = (upper, lower, gain, keep, release, *turns)
    values = [source for source, _ in builder.graph.into(node.name, "value")]
    for source, device in zip(values, ("pos", "neg"), strict=True):
        builder.weights[source, node.name] = f"x{NETWORK}.xcell_{stem}.m{device}"
    nets = (
        candidate, *(f"{net(source)}_p" for source in values), upper, lower, keep, release, gain, *turns, f"{stem}_p",
        *clock_pins(node), "resetb", builder.reset_line(), "vdd",
    )  # fmt: skip
    origin = f"{node.name}: rise {node.rise:.6g} fall {node.fall:.6g} {node.most} levels of {node.level:.6g}"
    builder.add(register(technology, units, node.most, node.start), f"cell_{stem}", nets, CELLS, origin)
    builder.decisions[node.name] = tuple(f"x{NETWORK}.xcell_{stem}.xlevel{k}.q" for k in range(1, node.most + 1))
    builder.add_state_line(node)


def report_pins(node: Register, pins: RegisterPins, learned: LearnedParameters) -> list[PinRow]:
    """Return a register unit's rows of the mapping report: both thresholds, current of a level, and turn of each."""
    currents, (upper, lower, gain, _, _, *turns) = learned.set_points, learned.pins
    i_unit = currents.i_high / node.level
    levels = f"{node.most} levels, {node.step:g} apart; level 0 stands for {node.zero:g}; starts on {node.start}"
    return [
        PinRow(learned.upper, upper, currents.i_rise, pins.i_upper, learned.upper_note),
        PinRow(learned.lower, lower, currents.i_fall, pins.i_lower, learned.lower_note),
        PinRow(learned.alpha, gain, currents.i_high, pins.i_gain, levels),
        *(
            PinRow(
                f"{learned.alpha} (turn {k})", pin, turn * i_unit, current,
                f"{-node.zero:g} included",
            )
            for k, (pin, turn, current) in enumerate(zip(turns, node.turns, pins.i_turns, strict=True), start=1)
        ),
    ]  # fmt: skip


def mismatch_effects(node: Register, pins: RegisterPins, circuit: CellDevices) -> Iterator[Effect]:
    """Yield the mismatch effects of a register unit.

    Those of its window; turns: M2 of each level - bias diode - M1; levels: M5 - bias diode.
    """
    cell = f"cell_{net(node.name)}"
    _, _, gain, _, _, *turns = circuit.pins
    yield from window_effects(node, pins, circuit, cell)
    for k, (pin, current) in enumerate(zip(turns, pins.i_turns, strict=True), start=1):
        block = f"level{k}"
        threshold, compare = circuit.device("threshold", block), circuit.device("compare", block)
        devices = (threshold, 1), (circuit.bias_diode(pin), -1), (compare, -1)
        yield effect("turns", node.name, current, *devices, place=k - 1)
        yield effect(
            "levels",
            node.name,
            pins.i_gain,
            (circuit.device("level", block), 1),
            (circuit.bias_diode(gain), -1),
            place=k - 1,
        )


REGISTER = UnitKind[Register, RegisterPins, RegisterFactors](
    node_type=Register,
    factors_type=RegisterFactors,
    layer_types=(SignedLayer,),
    accepts=accepts,
    lower_layer=lower_layer,
    set_points=window_set_points,
    solve_bias=solve_bias,
    build_circuit=build_circuit,
    report_pins=report_pins,
    compute_states=compute_states,
    output_current=output_current,
    supply_current=supply_current,
    mismatch_effects=mismatch_effects,
    switching_thresholds=switching_thresholds,
    resumes_from_state=True,
    settled_state=settled_in_window,
    schematics=lambda node: ("register", "level"),
    updates_in_pulse=True,
    samples_candidate=True,
    trimmed=((0, "upper"), (1, "lower"), (2, "levels")),
    has_comparators=True,
    line_currents=window_currents,
)
