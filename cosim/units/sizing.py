"""Sizing of a unit's bias currents: the current that arrives at a candidate, and how many unit devices weights have."""

import math
from dataclasses import dataclass

import numpy as np

from cosim.network.ir.graph import Scaled
from cosim.network.ir.nodes import UNIT_CURRENT, Memory, MemoryCurrents, UnitCurrent
from cosim.technology.calibration import Calibration
from cosim.technology.scale import MAX_COUNT, MAX_RISE, MIN_FALL

CLEARANCE = 1e-6  # units; what a constant candidate must be away from a threshold for its decision to be certain
MAX_BIAS_COUNT = 256  # of one bias, which may carry a common-mode offset and the offsets of the states it reads, too


@dataclass(frozen=True)
class SetPoint:
    """A current of a recurrent unit, ampere, and from where to where it can be built.

    what: its name, for messages; repair: of one that is not positive, which no unit current helps.
    """

    what: str
    current: float
    least: float = 0.0
    most: float = math.inf
    repair: str = ""

    @property
    def excess(self) -> float:
        """Return by what factor a recurrent unit's set-point is outside what such a unit can have; inf below 0."""
        if self.current <= 0:
            return math.inf
        return max(self.least / self.current, self.current / self.most)

    @property
    def limit(self) -> float:
        """Return the limit that a recurrent unit's set-point is beyond, ampere: the lower one if any, 0 below 0."""
        return self.least or (self.most if self.current > 0 else 0.0)

    def __str__(self) -> str:
        if self.least:
            return f"{self.what} must be at least {self.least * 1e12:g} pA, not {self.current * 1e12:.3g} pA"
        positive = "" if self.current > 0 else "positive and "
        return f"{self.what} must be {positive}at most {self.most * 1e9:g} nA, not {self.current * 1e9:.3g} nA"


def threshold_set_points(lower: float, upper: float, level: float) -> tuple[SetPoint, ...]:
    """Return the set-points of any recurrent unit with thresholds: lower and upper threshold and level, ampere."""
    return (
        SetPoint("lower threshold", lower, least=MIN_FALL, repair="raise beta_lo in training"),
        SetPoint("upper threshold", upper, most=MAX_RISE),
        SetPoint("state level", level, most=MAX_RISE, repair="flip the sign of what reads it instead"),
    )


TYPICAL_ACTIVITY = 0.4  # mean of inputs and states over their range, for second-order corrections only


def largest_count(source: str) -> int:
    """Return how many unit devices a weight on this source may have in a recurrent unit's circuit."""
    return MAX_BIAS_COUNT if source == UNIT_CURRENT else MAX_COUNT


@dataclass(frozen=True)
class SizingInput:
    """The input from which a kind of recurrent unit computes bias currents: a graph in ampere, and calibration."""

    graph: Scaled
    calibration: Calibration

    def set_points(self, node: Memory) -> MemoryCurrents:
        """Return the set-points of a recurrent unit's node, ampere."""
        return self.graph.currents[node.name]

    def arriving_current(
        self, current: float, total_current: float, *, relu: bool = False, compared: bool = False
    ) -> float:
        """Return the current that arrives at a unit's candidate, or a rectifier, if the ideal sum is `current`, ampere.

        All weights share the gain of the path. Beyond that a node that carries more than 1 nA stands lower, so its
        pulling weights give less and its pushing ones more, in proportion to all that flows through it,
        `total_current`. compared: the candidate goes into comparators, whose diode has as many devices as they.
        """
        mirror = self.calibration.mirror
        slope = (mirror.slope_n + mirror.slope_p) / 2
        devices = self.graph.comparator_devices if compared else 1
        drop = float(mirror.node_drop(np.float64(current / devices), relu=relu))
        arriving = candidate_gain(self.calibration) * current - slope * total_current * drop
        return max(arriving, current / 2)

    def arriving_thresholds(self, node: Memory, *, compared: bool = False) -> tuple[float, float]:
        """Return what arrives at a unit's candidate where it equals the upper and where the lower threshold, ampere."""
        currents, total = self.set_points(node), self.total_weight_current(node.name)
        rise, fall = (
            self.arriving_current(one, total, compared=compared) for one in (currents.i_rise, currents.i_fall)
        )
        return rise, fall

    def total_weight_current(self, name: str) -> float:
        """Return the sum of |weight| times current into a unit's node at typical signals, ampere.

        Weights are as they can be built.
        """
        total, units = 0.0, self.calibration.units
        for source, weight in self.graph.into(name):
            node = self.graph.nodes[source]
            level = 1.0 if isinstance(node, UnitCurrent) else TYPICAL_ACTIVITY
            if isinstance(node, Memory):
                level *= node.level * node.most
            total += min(abs(weight.target), largest_count(source) / units) * level
        return total * self.graph.i_unit


def candidate_gain(calibration: Calibration) -> float:
    """Return the gain of a weighted current at a unit's candidate node, common to both signs: of line p at 1 nA."""
    mirror = calibration.mirror
    return float(mirror.interpolate(mirror.gain_p, np.float64(1e-9)))


# of a frame, after its stage's decision begins: the pulse of units whose state follows in a second step
PULSE_BEGIN, PULSE_END = 0.08, 0.23
TAU_FRAMES = 0.25  # time constant of slow units over the frame, where it is not given
