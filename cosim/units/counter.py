"""The binary counter behind two comparators: the unit at epsilon = 1 where a ladder would have too many rungs.

    s + 1 where u >= i_rise,  s - 1 where u <= i_fall,  else kept,  within 0 ... 2^bits - 1

A counter does what a ladder does, but one more bit doubles the number of states: a unit of 200 states has 8 bits. Its
output is the sum of the currents of its bits, 2^k I_gain each. Four bits share one gain line; the next line carries 16
times as much.

Its supply current is that of both comparators and of the gates, I_keep for each gate whose output is low: half of the
gates of a bit, whatever the bit is, and those of decisions and phases. The output's current is counted in its signal.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from cosim.base.errors import MappingError
from cosim.cells.blocks import CELLS
from cosim.cells.counter import BITS_A_LINE, DELAY, MOST_BITS, counter, gain_lines
from cosim.cells.quantiser import sampler
from cosim.cells.window import decision, window
from cosim.circuit.elements import Subcircuit
from cosim.network.ir.states import States
from cosim.technology.calibration import Calibration
from cosim.technology.types import Technology
from cosim.units.builder import NETWORK, Builder, instance, net
from cosim.units.comparator import WindowFactors, WindowPins, WindowUnit
from cosim.units.epsilon import EitherLayer, Lattice
from cosim.units.kind import (
    Array,
    CellDevices,
    CellEquations,
    CellSignals,
    Effect,
    LearnedParameters,
    MappingRow,
    effect,
    pin_row,
    select_levels,
)
from cosim.units.placement import LayerPlacement
from cosim.units.sizing import PULSE_BEGIN, PULSE_END, SizingInput

KEEP = 0.12  # of i_unit: the load of a gate
LEVEL, LEVEL_BITS = 0.5, 3  # of i_unit: a step, as a ladder's; halved for each bit more, so that weights round as there
WEAKEST_LINE = 0.2  # of i_unit: a gain line of less has a strong diode, or the kick of a bit outlasts the frame
_TURN = 0.6  # volt at which the delay's net turns what follows it


@dataclass(frozen=True)
class CounterPins(WindowPins):
    """Bias-pin currents of a counter unit, ampere.

    i_keep: load of its gates; i_gains: current of the lowest bit on each gain line.
    """

    i_keep: float
    i_gains: tuple[float, ...]


CounterCell = CellEquations[CounterPins, WindowFactors]


@dataclass(frozen=True)
class Counter(WindowUnit[CounterPins, WindowFactors]):
    """A binary counter, the recurrent unit at epsilon = 1: s + 1 at u >= rise, s - 1 at u <= fall, else kept.

    The state has `bits` bits and starts at `first`. No layer becomes a counter: the ladder hands over the units that
    have too many states for it. low_of_bit, low_beside: gates whose output is low, those of a bit with its part of
    `open`, and those beside the bits with kp's diode.
    """

    factors_type = WindowFactors
    trimmed = (0, "upper"), (1, "lower")
    low_of_bit: ClassVar[int] = 5
    low_beside: ClassVar[int] = 6

    bits: int = 1

    @property
    def most(self) -> int:
        return 2**self.bits - 1

    @property
    def schematics(self) -> tuple[str, ...]:
        return ("counter",)

    def output_current(self, cell: CounterCell, states: States) -> Array:
        factors = cell.factors.levels or (1.0,) * self.bits
        if cell.ideal:
            lowest = [cell.set_points[2] * 16.0**line for line in range(gain_lines(self.bits))]
        else:
            lowest = [cell.level_current(gain) for gain in cell.bias.i_gains]
        bits = np.array([lowest[k // BITS_A_LINE] * 2 ** (k % BITS_A_LINE) * factors[k] for k in range(self.bits)])
        on = (np.arange(self.most + 1)[:, None] >> np.arange(self.bits) & 1).astype(np.float64)
        return select_levels(on @ bits, states)

    def supply_current(self, cell: CounterCell, signals: CellSignals) -> Array:
        total = signals.output_current + self.window_supply(cell, signals)
        return total + cell.bias.i_keep * (self.low_of_bit * self.bits + self.low_beside)

    def cell(self, technology: Technology, units: int) -> Subcircuit:
        """Return the unit's cell; units: unit devices in the diode of its output."""
        return counter(technology, units, self.bits, self.start)

    @staticmethod
    def check_timing(i_unit: float, t_step: float, tau: float, calibration: Calibration, origin: str) -> None:
        """Raise MappingError if half of a frame's pulse is too short for a counter unit to take a step."""
        needed = DELAY * _TURN / (KEEP * i_unit)
        available = (PULSE_END - PULSE_BEGIN) / 2 * t_step
        if needed > available:
            raise MappingError(
                f"{origin}: a counter or reflector takes {1e3 * needed:.3g} ms for a step at a unit current of "
                f"{1e9 * i_unit:g} nA, which must be at most {1e3 * available:.3g} ms, half a pulse; use a `t_step` "
                f"of at least {1e3 * t_step * needed / available:.3g} ms, or a larger `i_unit`",
                where="t_step", value=needed, limit=available, unit="s",
            )  # fmt: skip

    def solve_bias(self, sizing: SizingInput) -> CounterPins:
        """Return the bias currents of the unit's thresholds as they arrive, of its gates' load, and of its bits."""
        i_high, fit = sizing.set_points(self).i_high, sizing.calibration.schmitt
        gains = tuple(fit.solve_gain(i_high * 16.0**line) for line in range(gain_lines(self.bits)))
        return CounterPins(**asdict(self.window_bias(sizing)), i_keep=KEEP * sizing.graph.i_unit, i_gains=gains)

    def build_circuit(self, builder: Builder, pins: CounterPins) -> None:
        technology, stem = builder.technology, net(self.name)
        candidate = builder.add_candidate(self, builder.comparator_devices)
        builder.define(sampler(technology), window(technology, builder.comparator_devices), decision(technology))
        upper, lower = self.add_window_lines(builder, pins)
        keep, weakest = builder.bias_line("keep", pins.i_keep), WEAKEST_LINE * builder.graph.i_unit
        gains = tuple(
            builder.strong_line("gain", current) if current < weakest else builder.bias_line("gain", current)
            for current in pins.i_gains
        )
        builder.cell_bias[self.name] = (upper, lower, keep, *gains)
        origin = f"{self.name}: rise {self.rise:.6g} fall {self.fall:.6g} {self.bits} bits of {self.level:.6g}"
        nets = (
            candidate, upper, lower, keep, *gains, f"{stem}_p", *self.clock_pins, "resetb", builder.reset_line(),
            "vdd",
        )  # fmt: skip
        builder.add(self.cell(technology, builder.units), f"cell_{stem}", nets, CELLS, origin)
        bits = (f"x{NETWORK}.xcell_{stem}.q{k}" for k in range(self.bits))
        builder.decisions[self.name] = tuple(bit for k, bit in enumerate(bits) for _ in range(2**k))
        builder.add_state_line(self)

    def report_pins(self, pins: CounterPins, learned: LearnedParameters) -> list[MappingRow]:
        currents, (upper, lower, _, *gains) = learned.set_points, learned.pins
        states = f"{self.bits} bits, starts on {self.start}; readers' weights times {self.step / self.level:g}"
        return [
            pin_row(learned.upper, upper, currents.i_rise, pins.i_upper, learned.upper_note),
            pin_row(learned.lower, lower, currents.i_fall, pins.i_lower, learned.lower_note),
            *(
                pin_row(f"{learned.alpha} (bit {line * BITS_A_LINE})", pin, currents.i_high * 16.0**line, built, states)
                for line, (pin, built) in enumerate(zip(gains, pins.i_gains, strict=True))
            ),
        ]

    def mismatch_effects(self, pins: CounterPins, circuit: CellDevices) -> Iterator[Effect]:
        """Yield the mismatch effects on the unit: those on its two comparators, and `levels`, the source of each bit.

        `levels` is the current source of a bit against its bias diode. Gates decide between rails, so their mismatch
        has no effect.
        """
        _, _, _, *gains = circuit.pins
        cell = f"cell_{net(self.name)}"
        yield from self.window_effects(pins, circuit, cell)
        for k in range(self.bits):
            line = k // BITS_A_LINE
            devices = (f"{instance(cell)}.level{k}", 1), (circuit.bias_diode(gains[line]), -1)
            yield effect("levels", self.name, pins.i_gains[line], *devices, place=k)


def counter_node(unit: Lattice, layer: EitherLayer, placement: LayerPlacement, offset: float) -> Counter:
    """Return a counter node that holds a unit's states over the data and headroom, with spare states at both ends.

    Raises MappingError where the unit needs more bits than a counter may have, or where its states end and their number
    is no power of 2.
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
    return Counter(
        unit.name, layer.name, unit.index, placement.stage, level_of(bits), unit.first - start * unit.step, unit.step,
        unit.rise + offset, unit.fall + offset, offset, first=start, bits=bits,
    )  # fmt: skip


def level_of(bits: int) -> float:
    """Return the current of one step of a state of so many bits, in software units."""
    return LEVEL / 2 ** max(0, bits - LEVEL_BITS)
