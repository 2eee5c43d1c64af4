"""Sizing of a unit's bias currents: the current that arrives at a candidate, and limits of currents and weights."""

import math
from dataclasses import dataclass

import numpy as np

from cosim.network.ir.graph import ScaledGraph
from cosim.network.ir.nodes import UNIT_CURRENT, Memory, MemoryCurrents, UnitCurrent
from cosim.technology.calibration import Calibration
from cosim.technology.scale import MAX_COUNT, MAX_RISE, MIN_FALL

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


TYPICAL_ACTIVITY = 0.4  # mean of inputs and states over their range, for second-order corrections only


def largest_count(source: str) -> int:
    """Return how many unit devices a weight that reads this source may have at most."""
    return MAX_BIAS_COUNT if source == UNIT_CURRENT else MAX_COUNT


@dataclass(frozen=True)
class SizingInput:
    """The input from which a kind of recurrent unit computes bias currents: a graph in ampere, and a calibration."""

    graph: ScaledGraph
    calibration: Calibration

    def set_points(self, node: Memory) -> MemoryCurrents:
        """Return the thresholds and level of a recurrent unit's node, ampere."""
        return self.graph.currents[node.name]

    def arriving_current(
        self, current: float, total_current: float, *, relu: bool = False, compared: bool = False
    ) -> float:
        """Return the current that arrives at a unit's candidate or a rectifier if its ideal sum is `current`, ampere.

        All weights share the gain of the path. A node that carries more than 1 nA is also at a lower voltage, so its
        pulling weights give less and its pushing weights more, in proportion to `total_current`, all current through
        the node, ampere. relu: whether the node is a rectifier; compared: whether comparators read the candidate, whose
        diode then has as many devices as they have.
        """
        mirror = self.calibration.mirror
        slope = (mirror.slope_n + mirror.slope_p) / 2
        devices = self.graph.comparator_devices if compared else 1
        drop = float(mirror.node_drop(np.float64(current / devices), relu=relu))
        arriving = candidate_gain(self.calibration) * current - slope * total_current * drop
        return max(arriving, current / 2)

    def arriving_thresholds(self, node: Memory, *, compared: bool = False) -> tuple[float, float]:
        """Return what arrives at a unit's candidate where its ideal sum equals the upper and the lower threshold, A.

        compared: see `arriving_current`.
        """
        currents, total = self.set_points(node), self.total_weight_current(node.name)
        rise, fall = (
            self.arriving_current(one, total, compared=compared) for one in (currents.i_rise, currents.i_fall)
        )
        return rise, fall

    def total_weight_current(self, name: str) -> float:
        """Return the sum of |weight| times source current into a node at typical signals, ampere.

        Weights count as the circuit can have them, at most at the largest mirror.
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
    """Return the calibrated gain by which units are sized: of a weighted current at a unit's candidate, of either sign.

    It is that of line p at 1 nA.
    """
    mirror = calibration.mirror
    return float(mirror.interpolate(mirror.gain_p, np.float64(1e-9)))


# of a frame, after its stage's decision begins: the pulse of units whose state follows in a second step
PULSE_BEGIN, PULSE_END = 0.08, 0.23
TAU_FRAMES = 0.25  # time constant of slow units over the frame, where it is not given
