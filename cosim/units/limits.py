"""Currents of a memory, and from where to where each can be built (cosim.technology.scale has the limits)."""

import math
from dataclasses import dataclass

from cosim.technology.scale import MAX_RISE, MIN_FALL

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
        """Return the factor by which the unit's current is out of its range: above 1 if it is, inf if not positive."""
        if self.current <= 0:
            return math.inf
        return max(self.least / self.current, self.current / self.most)

    @property
    def limit(self) -> float:
        """Return the limit that the unit's current is beyond, ampere: the lower one if there is one, 0 below 0."""
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
