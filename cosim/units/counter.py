"""The binary counter behind two comparators: the unit at epsilon = 1 where a ladder would have too many rungs.

    s + 1 where u >= i_rise,  s - 1 where u <= i_fall,  else kept,  within 0 ... 2^bits - 1

It does what a ladder does, with a bit for twice the states, so a unit of 200 states has 8 bits. Its output is the sum
of the currents of its bits, 2^k I_gain each, four of them on one gain line; the next line carries 16 times as much.

Its supply current is that of both comparators and of the gates, I_keep for each whose output is low: half of those of a
bit, whatever it is, and those of decisions and phases. The output's current is in its signal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from cosim.base.errors import MappingError
from cosim.cells.blocks import CELLS
from cosim.cells.counter import BITS_A_LINE, DELAY, MOST_BITS, counter, gain_lines
from cosim.cells.quantiser import sampler
from cosim.cells.window import decision, window
from cosim.network.ir.nodes import ThresholdUnit
from cosim.network.ir.states import States
from cosim.network.layers import RecurrentLayer
from cosim.technology.calibration import Calibration
from cosim.units.builder import NETWORK, Builder, instance, net
from cosim.units.comparator import (
    WindowFactors,
    WindowPins,
    clock_pins,
    count_states,
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
from cosim.units.epsilon import EitherLayer, Lattice
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
    select_levels,
)
from cosim.units.placement import LayerPlacement
from cosim.units.sizing import PULSE_BEGIN, PULSE_END, SizingInput

KEEP = 0.12  # of i_unit: the load of a gate
LEVEL, LEVEL_BITS = 0.5, 3  # of i_unit: a step, as a ladder's; halved for each bit more, so that weights round as there
WEAKEST_LINE = 0.2  # of i_unit: a gain line of less has a strong diode, or the kick of a bit outlasts the frame
_LOW_OF_BIT, _LOW_BESIDE = 5, 6  # gates whose output is low: of a bit, with its part of `open`; beside bits, kp's diode
_TURN = 0.6  # volt at which the delay's net turns what follows it


@dataclass(frozen=True)
class Counter(ThresholdUnit):
    """The binary counter, a kind of recurrent unit, epsilon = 1: s + 1 at u >= rise, s - 1 at u <= fall, else kept.

    The state has `bits` bits and starts at `first`.
    """

    bits: int = 1
    first: int = 0

    @property
    def most(self) -> int:
        """Return the highest state of the counter, a kind of recurrent unit: all its bits are on."""
        return 2**self.bits - 1

    @property
    def start(self) -> int:
        """Return the state to which the reset takes a counter unit."""
        return self.first


@dataclass(frozen=True)
class CounterPins(WindowPins):
    """Bias currents in ampere of a counter unit; i_gains: the lowest bit of each gain line."""

    i_keep: float
    i_gains: tuple[float, ...]


CounterCell = CellEquations[Counter, CounterPins, WindowFactors]


def counter_node(unit: Lattice, layer: EitherLayer, placement: LayerPlacement, offset: float) -> Counter:
    """Return the node of a counter unit that holds the states of the data and headroom, with the rest on either side.

    Raises MappingError where it would need more bits than a counter may have, or where all of them would not end where
    the unit does.
    """
    low, high = unit.circuit_ends(placement.headroom)
    states = high - low + 1
    bits = max(1, (states - 1).bit_length())
    if unit.ended and states != 2**bits:
        raise MappingError(
            f"{unit.where}: a counter's states end at 2, 4, 8, ... {2**MOST_BITS}, and the unit has {states}, at the "
            f"ends of which it stays; train with `levels={2**bits - 1}`, or take a ladder, for at most 33 of them",
            where=unit.name, value=states, limit=2**bits,
        )  # fmt: skip
    if bits > MOST_BITS:
        fit = 2**MOST_BITS - 1 - 2 * placement.headroom
        raise MappingError(
            f"{unit.where}: a counter may have {MOST_BITS} bits at most, {2**MOST_BITS} states, not {states}: over the "
            f"training data its state spans {unit.high - unit.low} steps of alpha; train with "
            f"`range_max={fit * unit.step:g}` (a backbone with `levels={2**MOST_BITS - 1}`), on shorter sequences or "
            "with wider thresholds",
            where=unit.name, value=states, limit=2**MOST_BITS,
        )  # fmt: skip
    start = -low + (2**bits - states) // 2
    level = LEVEL / 2 ** max(0, bits - LEVEL_BITS)
    return Counter(
        unit.name, layer.name, unit.index, placement.stage, level, unit.first - start * unit.step, unit.step,
        unit.rise + offset, unit.fall + offset, offset, bits, start,
    )  # fmt: skip


def _never(layer: RecurrentLayer) -> bool:
    """Accept no layer: the ladder hands over the units that have too many states for it."""
    return False


def _lower(layer: RecurrentLayer, placement: LayerPlacement) -> None:
    """Refuse a layer, as the ladder adds counters among its own."""
    raise AssertionError(f"{layer.name} is lowered by the ladder")


def compute_states(cell: CounterCell, candidate: Array) -> States:
    """Return the states of a counter unit (n, time), whole numbers; candidate: (n, time), ampere."""
    return count_states(cell, window_thresholds(cell, decision_fits(cell.calibration)), candidate)


def switching_thresholds(cell: CounterCell, lines: Sequence[Array]) -> SwitchingThresholds:
    """Return both thresholds of a counter unit, but on state 0 the upper one alone."""
    rise, fall = window_thresholds(cell, decision_fits(cell.calibration), lines)
    return SwitchingThresholds((rise,), (rise, fall), own_devices=True)


def output_current(cell: CounterCell, states: States) -> Array:
    """Return the output current of a counter unit (n, time), ampere: the bits that are on."""
    node, factors = cell.node, cell.factors.levels or (1.0,) * cell.node.bits
    if cell.ideal:
        lowest = [cell.set_points[2] * 16.0**line for line in range(gain_lines(node.bits))]
    else:
        lowest = [float(cell.calibration.schmitt.i_high(np.float64(gain))) for gain in cell.bias.i_gains]
    bits = np.array([lowest[k // BITS_A_LINE] * 2 ** (k % BITS_A_LINE) * factors[k] for k in range(node.bits)])
    on = (np.arange(node.most + 1)[:, None] >> np.arange(node.bits) & 1).astype(np.float64)
    return select_levels(on @ bits, states)


def supply_current(cell: CounterCell, signals: CellSignals) -> Array:
    """Return the supply current of a counter unit with output and pedestal, ampere, (n, time)."""
    total = signals.output_current + window_supply(cell, signals)
    return total + cell.bias.i_keep * (_LOW_OF_BIT * cell.node.bits + _LOW_BESIDE)


def check_timing(i_unit: float, t_step: float, tau: float, calibration: Calibration, origin: str) -> None:
    """Raise MappingError for a frame whose pulse is shorter than a counter unit needs to take a step."""
    needed = DELAY * _TURN / (KEEP * i_unit)
    available = (PULSE_END - PULSE_BEGIN) / 2 * t_step
    if needed > available:
        raise MappingError(
            f"{origin}: a counter takes {1e3 * needed:.3g} ms for a step at a unit current of {1e9 * i_unit:g} nA, "
            f"which must be at most {1e3 * available:.3g} ms, half a pulse; use a `t_step` of at least "
            f"{1e3 * t_step * needed / available:.3g} ms, or a larger `i_unit`",
            where="t_step", value=needed, limit=available, unit="s",
        )  # fmt: skip


def solve_bias(node: Counter, sizing: SizingInput) -> CounterPins:
    """Return a counter unit's comparator thresholds as they arrive, its gates' load, and the currents of its bits."""
    currents, fit = sizing.set_points(node), sizing.calibration.schmitt
    window = window_bias(sizing, node, decision_fits(sizing.calibration))
    gains = tuple(fit.solve_gain(currents.i_high * 16.0**line) for line in range(gain_lines(node.bits)))
    return CounterPins(**asdict(window), i_keep=KEEP * sizing.graph.i_unit, i_gains=gains)


def build_circuit(builder: Builder, node: Counter, pins: CounterPins) -> None:
    """Add a counter unit's circuit: the candidate, the counter, and the lines of its state."""
    technology, stem = builder.technology, net(node.name)
    candidate = builder.add_candidate(node, builder.comparator_devices)
    builder.define(sampler(technology), window(technology, builder.comparator_devices), decision(technology))
    upper, lower = window_lines(builder, node, pins)
    keep, weakest = builder.bias_line("keep", pins.i_keep), WEAKEST_LINE * builder.graph.i_unit
    gains = tuple(
        builder.strong_line("gain", current) if current < weakest else builder.bias_line("gain", current)
        for current in pins.i_gains
    )
    builder.cell_bias[node.name] = (upper, lower, keep, *gains)
    origin = f"{node.name}: rise {node.rise:.6g} fall {node.fall:.6g} {node.bits} bits of {node.level:.6g}"
    nets = (
        candidate, upper, lower, keep, *gains, f"{stem}_p", *clock_pins(node), "resetb", builder.reset_line(), "vdd",
    )  # fmt: skip
    builder.add(counter(technology, builder.units, node.bits, node.start), f"cell_{stem}", nets, CELLS, origin)
    bits = (f"x{NETWORK}.xcell_{stem}.q{k}" for k in range(node.bits))
    builder.decisions[node.name] = tuple(bit for k, bit in enumerate(bits) for _ in range(2**k))
    builder.add_state_line(node)


def report_pins(node: Counter, pins: CounterPins, learned: LearnedParameters) -> list[PinRow]:
    """Return a counter unit's rows of the mapping report: both thresholds and the current of each line's lowest bit."""
    currents, (upper, lower, _, *gains) = learned.set_points, learned.pins
    states = f"{node.bits} bits, starts on {node.start}; readers' weights times {node.step / node.level:g}"
    return [
        PinRow(learned.upper, upper, currents.i_rise, pins.i_upper, learned.upper_note),
        PinRow(learned.lower, lower, currents.i_fall, pins.i_lower, learned.lower_note),
        *(
            PinRow(
                f"{learned.alpha} (bit {line * BITS_A_LINE})", pin, currents.i_high * 16.0**line, pins.i_gains[line],
                states,
            )
            for line, pin in enumerate(gains)
        ),
    ]  # fmt: skip


def mismatch_effects(node: Counter, pins: CounterPins, circuit: CellDevices) -> Iterator[Effect]:
    """Yield the mismatch effects of a counter unit.

    Those of its window, and levels: the current source of each bit - bias diode. Gates decide between rails.
    """
    _, _, _, *gains = circuit.pins
    cell = f"cell_{net(node.name)}"
    yield from window_effects(node, pins, circuit, cell)
    for k in range(node.bits):
        line = k // BITS_A_LINE
        devices = (f"{instance(cell)}.level{k}", 1), (circuit.bias_diode(gains[line]), -1)
        yield effect("levels", node.name, pins.i_gains[line], *devices, place=k)


COUNTER = UnitKind[Counter, CounterPins, WindowFactors](
    node_type=Counter,
    factors_type=WindowFactors,
    layer_types=(),
    accepts=_never,
    lower_layer=_lower,
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
    schematics=lambda node: ("counter",),
    updates_in_pulse=True,
    check_timing=check_timing,
    samples_candidate=True,
    trimmed=((0, "upper"), (1, "lower")),
    has_comparators=True,
    line_currents=window_currents,
)
