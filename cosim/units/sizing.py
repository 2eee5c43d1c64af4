"""Sizing of a unit's bias currents: the current that arrives at a candidate, and limits of currents and weights."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.network.ir.graph import ScaledGraph
from cosim.network.ir.nodes import (
    PEDESTAL_UNITS,
    UNIT_CURRENT,
    And,
    InputCurrent,
    Memory,
    MemoryCurrents,
    Node,
    Rectifier,
    UnitCurrent,
)
from cosim.technology.calibration import Calibration
from cosim.technology.scale import MAX_COUNT, MAX_RISE, MIN_FALL

Array = NDArray[np.float64]
CLEARANCE = 1e-6  # units; what a constant candidate must be away from a threshold for its decision to be certain
MAX_BIAS_COUNT = 256  # of one bias, which may carry a common-mode offset and the offsets of the states it reads, too


@dataclass(frozen=True)
class SetPoint:
    """A current that a recurrent unit should have, ampere, with the range in which it can be built.

    what: its name, for messages; least, most: the range, ampere; repair: advice for a current of 0 or less, which no
    choice of the unit current helps.
    """

    what: str
    current: float
    least: float = 0.0
    most: float = math.inf
    repair: str = ""

    @property
    def excess(self) -> float:
        """Return the factor by which the current is outside its range, at most 1 if it is inside; inf for 0 or less."""
        if self.current <= 0:
            return math.inf
        return max(self.least / self.current, self.current / self.most)

    @property
    def limit(self) -> float:
        """Return the limit that a current outside its range violates, ampere: the lower one if there is one."""
        return self.least or (self.most if self.current > 0 else 0.0)

    def __str__(self) -> str:
        if self.least:
            return f"{self.what} must be at least {self.least * 1e12:g} pA, not {self.current * 1e12:.3g} pA"
        positive = "" if self.current > 0 else "positive and "
        return f"{self.what} must be {positive}at most {self.most * 1e9:g} nA, not {self.current * 1e9:.3g} nA"


def threshold_set_points(lower: float, upper: float, level: float) -> tuple[SetPoint, ...]:
    """Return the set-points of a recurrent unit's thresholds and level, all ampere, with the range of each."""
    return (
        SetPoint("lower threshold", lower, least=MIN_FALL, repair="raise beta_lo in training"),
        SetPoint("upper threshold", upper, most=MAX_RISE),
        SetPoint("state level", level, most=MAX_RISE, repair="flip the sign of what reads it instead"),
    )


TYPICAL_ACTIVITY = 0.35  # mean of a signal over its range: digits 0.31, states 0.33 to 0.46, speech 0.51


def largest_count(source: str) -> int:
    """Return how many unit devices a weight that reads this source may have at most."""
    return MAX_BIAS_COUNT if source == UNIT_CURRENT else MAX_COUNT


def pedestals_of(source: Node) -> int:
    """Return how many pedestal currents a signal of 0 from this source carries."""
    return 1 + source.floor if isinstance(source, Memory) else int(isinstance(source, InputCurrent))


@dataclass(frozen=True)
class SizingInput:
    """The input from which a kind of recurrent unit computes bias currents: a graph in ampere, and a calibration."""

    graph: ScaledGraph
    calibration: Calibration

    def set_points(self, node: Memory) -> MemoryCurrents:
        """Return the thresholds and level of a recurrent unit's node, ampere."""
        return self.graph.currents[node.name]

    def arriving_current(self, name: str, current: float, *, compared: bool = False) -> float:
        """Return the current that arrives at a unit's candidate or a rectifier if its ideal sum is `current`, ampere.

        It is that of the behavioral model (`engines.behavioral`) at the likely signals whose sum is `current`. The gain
        of a gate line depends on its current, and a node that carries more than 1 nA is at a lower voltage, so that its
        pulling weights give less and its pushing weights more. compared: whether comparators read the candidate, whose
        diode then has as many devices as they have.
        """
        row, mirror, i_unit = self._row(name), self.calibration.mirror, self.graph.i_unit
        signals = row.likely_signals(current / i_unit)
        pull, push = self._sum_lines(row, signals, mirror.gain_n, 1), self._sum_lines(row, signals, mirror.gain_p, -1)
        beyond = candidate_gain(self.calibration) * (current - i_unit * float(row.weights @ signals))  # of no signals
        drive, devices = pull - push + beyond, self.graph.comparator_devices if compared else 1
        drop = float(mirror.node_drop(drive / devices, relu=isinstance(self.graph.nodes[name], Rectifier)))
        return max(drive - (pull * mirror.slope_n + push * mirror.slope_p) * drop, current / 2)

    def _sum_lines(self, row: "_Row", signals: Array, gains: tuple[float, ...], sign: int) -> float:
        """Return the sum of a row's weights of one sign times the currents of their gate lines, ampere.

        The row's weight on the pedestal counts as well.
        """

        def line(units: Array | float) -> Array:
            """Return the current of a gate line, ampere, from what it carries in software units."""
            current = self.graph.i_unit * np.asarray(units)
            return np.asarray(current * self.calibration.mirror.interpolate(gains, current))

        share = signals / row.tops
        switched = share * line(row.tops + row.pedestals) + (1 - share) * line(row.pedestals)
        steady = line(signals + row.pedestals)
        lines = steady + row.switching * (switched - steady)
        pedestal = max(-sign * float(row.weights @ row.pedestals) / PEDESTAL_UNITS, 0.0)
        return float((sign * row.weights).clip(0.0) @ lines + pedestal * line(PEDESTAL_UNITS))

    def arriving_thresholds(self, node: Memory, *, compared: bool = False) -> tuple[float, float]:
        """Return what arrives at a unit's candidate where its ideal sum equals the upper and the lower threshold, A.

        compared: see `arriving_current`.
        """
        currents = self.set_points(node)
        rise, fall = (
            self.arriving_current(node.name, one, compared=compared) for one in (currents.i_rise, currents.i_fall)
        )
        return rise, fall

    def _row(self, name: str) -> "_Row":
        """Return the weights into a node, as the circuit can have them, at most those of the largest mirror."""
        arriving = [(self.graph.nodes[source], weight.target) for source, weight in self.graph.into(name)]
        most = np.array([largest_count(node.name) / self.calibration.units for node, _ in arriving])
        return _Row(
            weights=np.array([weight for _, weight in arriving]).clip(-most, most),
            pedestals=PEDESTAL_UNITS * np.array([pedestals_of(node) for node, _ in arriving], dtype=np.float64),
            tops=np.array([node.level * node.most if isinstance(node, Memory) else 1.0 for node, _ in arriving]),
            bits=np.array([_is_bit(node) for node, _ in arriving]),
            constant=np.array([isinstance(node, UnitCurrent) for node, _ in arriving]),
        )


@dataclass(frozen=True)
class _Row:
    """The weights into a node, (sources,) each, in software units.

    pedestals: current of each source at a signal of 0; tops: its largest signal; bits: whether it has no other but 0;
    constant: whether it always has it.
    """

    weights: Array
    pedestals: Array
    tops: Array
    bits: NDArray[np.bool_]
    constant: NDArray[np.bool_]

    @property
    def switching(self) -> Array:
        """Return how far each source is on its top or at 0, as a bit is, rather than steady at its likely signal.

        Of a signal of many levels it is half, but for what the row's total says of it: all if it is alone in the row.
        """
        squares = np.where(self.constant, 0.0, self.weights * self.tops) ** 2
        return np.where(self.bits, 1.0, (1 - squares / max(squares.sum(), np.finfo(float).tiny)) / 2)

    def likely_signals(self, total: float) -> Array:
        """Return the signals nearest to typical ones at which weights times signals are `total`, in software units.

        With independent signals of the same spread over their tops these are the most likely ones. Where no signals
        give the total they are those that come nearest.
        """
        gains = self.weights * self.tops
        moved = np.where(self.constant, 0.0, gains)
        base = np.where(self.constant, 1.0, TYPICAL_ACTIVITY)
        ends = np.concatenate([(limit - base)[moved != 0] / moved[moved != 0] for limit in (0.0, 1.0)])
        steps = np.sort(np.append(ends, 0.0))
        activities = (base + steps[:, None] * moved).clip(0.0, 1.0)
        step = np.interp(total, activities @ gains, steps)
        return (base + step * moved).clip(0.0, 1.0) * self.tops


def _is_bit(node: Node) -> bool:
    match node:
        case Memory():
            return node.most == 1
        case InputCurrent():
            return node.step == 1.0
        case _:
            return isinstance(node, And)


def candidate_gain(calibration: Calibration) -> float:
    """Return the calibrated gain by which units are sized: of a weighted current at a unit's candidate, of either sign.

    It is that of line p at 1 nA.
    """
    mirror = calibration.mirror
    return float(mirror.interpolate(mirror.gain_p, np.float64(1e-9)))


# of a frame, after its stage's decision begins: the pulse of units whose state follows in a second step
PULSE_BEGIN, PULSE_END = 0.08, 0.23
TAU_FRAMES = 0.25  # time constant of slow units over the frame, where it is not given
