"""The register as data: what it is in the graph, its bias currents, and a chip's factors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.ir.nodes import Storing
from cosim.technology.calibration import Calibration

_STEPS = 8  # of the iteration that finds a turn's current; what a turn needs hardly depends on it
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Register(Storing):
    """alphaCMRU at epsilon = 0: the number of turns that +v exceeds at u >= rise, that -v exceeds at u <= fall, else
    kept; s starts at `first`."""

    first: int = 0

    @property
    def start(self) -> int:
        """The levels that the reset leaves on."""
        return self.first


@dataclass(frozen=True)
class RegisterPins:
    """Bias-pin currents in ampere; i_turns: of each level."""

    i_upper: float
    i_lower: float
    i_gain: float
    i_keep: float
    i_release: float
    i_turns: tuple[float, ...]


@dataclass(frozen=True)
class RegisterFactors:
    """upper, lower: the comparators' currents; turns, levels: threshold and output of each level, none for all
    nominal."""

    upper: float = 1.0
    lower: float = 1.0
    turns: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()


@dataclass(frozen=True)
class LevelFit:
    """Measured turning points of a register's level: a value turns a level when it exceeds the current of the turn by
    `shifts`, at currents `turns`, both in ampere; linear between them, flat outside."""

    turns: Array
    shifts: Array

    def value(self, i_turn: float) -> float:
        """Return the value that turns a level, ampere; i_turn: current of the turn, ampere."""
        return i_turn + float(np.interp(i_turn, self.turns, self.shifts))

    def solve(self, value: float) -> float:
        """Return the current of the turn at which this value turns a level, ampere."""
        i_turn = value
        for _ in range(_STEPS):
            i_turn += value - self.value(i_turn)
        return i_turn


def level_of(calibration: Calibration) -> LevelFit:
    """The fit of a calibration."""
    own = calibration.own[Register.__name__]
    return LevelFit(np.array(own["turns"]), np.array(own["shifts"]))
