"""The minGRU as data: what it is in the graph, what calibration knows of its cell, and a chip's factors."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cosim.ir.nodes import Memory
from cosim.technology.calibration import Calibration

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MinGru(Memory):
    """h_t = (1 - z) h_{t-1} + z u, z = 1 - exp(-r), from 0 on; h = step s, s = 1: full scale. Of its `rate` edge's a,
    r = a, or behind a ratio gate r = top a / (top + a)."""

    tolerance: ClassVar[float] = 0.03

    top: float | None = None

    def rate(self, a: Array) -> Array:
        """r of what arrives by the rate edge, both in units."""
        return a if self.top is None else self.top * a / (self.top + a)


@dataclass(frozen=True)
class MinGruPins:
    """i_top: of its ratio gate, ampere; None without one: level and rate come by signals."""

    i_top: float | None = None


@dataclass(frozen=True)
class MinGruFactors:
    """target: what its state settles to, over nominal; rate: its r; ratio: what the ratio gate makes of a over top."""

    target: float = 1.0
    rate: float = 1.0
    ratio: float = 1.0


@dataclass(frozen=True)
class TauFit:
    """Measured behaviour of a technology's gated tau-cell.

    swing: n U_T of its equation at a gate current of 0.7 nA, V; trim: nominal length of its output diode over drawn;
    gains: settled state over candidate, at `candidates`; rates: measured r over the equation's, at `gates`, both in
    ampere; leak: onto the capacitor between pulses, A, positive where the state decays.
    """

    swing: float
    trim: float
    candidates: Array
    gains: Array
    gates: Array
    rates: Array
    leak: float

    def gain(self, candidate: Array) -> Array:
        """Return the settled state over the candidate, at candidates in ampere."""
        return _interpolate(candidate, self.candidates, self.gains)

    def rate(self, gate: Array) -> Array:
        """Return the measured r over the equation's, at gate currents in ampere."""
        return _interpolate(gate, self.gates, self.rates)


def fit_of(calibration: Calibration) -> TauFit:
    """The fit of a calibration."""
    own = calibration.own[MinGru.__name__]
    (swing,), (trim,), (leak,) = own["swing"], own["trim"], own["leak"]
    candidates, gains, gates, rates = (np.array(own[name]) for name in ("candidates", "gains", "gates", "rates"))
    return TauFit(swing, trim, candidates, gains, gates, rates, leak)


def _interpolate(current: Array, points: Array, values: Array) -> Array:
    """Linear over the logarithm of the current, flat outside."""
    return np.interp(np.log(np.maximum(current, points[0])), np.log(points), values)
