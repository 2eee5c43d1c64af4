# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Read measures from transients of the batched engine, whose steps are long and whose signals are smooth.

Between two points a signal is a polynomial through up to six points, around an extreme a parabola through three; its
integrals are by the trapezoidal rule, corrected by parabolas through three points. A corner of a source may lie where
steps change abruptly, so no curve is drawn across such a point.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.measures import LINEAR
from cosim.engines.batch.compiled import cached_jit, jit

Array = NDArray[np.float64]
_ABRUPT = 5.0  # ratio of two neighbouring steps from which on a corner may lie between them; steps grow by 1.7 at most
_NEIGHBOURS = 2  # points on either side of an interval that a polynomial goes through as well
_MOST_ITERATIONS = 40  # of the search for a crossing


@dataclass(frozen=True)
class SmoothInterpolation:
    """Signals as smooth curves between the points of a waveform, as a `measures.Interpolation`."""

    def value(self, time: Array, signal: Array, at: float) -> float:
        """Return the value of a signal at a time; time: (points,), rising, two or more."""
        return _value_at(time, signal, at)

    def crossing(self, time: Array, distance: Array, k: int) -> float:
        """Return when a signal passes its level between the points k and k + 1; distance: from the level, (points,)."""
        if not distance[k] or not distance[k + 1] or time[k] == time[k + 1]:
            return LINEAR.crossing(time, distance, k)
        return _root(time, distance, k)

    def extreme(self, time: Array, signal: Array, side: int) -> tuple[float, float]:
        """Return (when, value) of the greatest value of a signal for side 1, of the least one for -1."""
        k = int((side * signal).argmax())
        if not 0 < k < len(time) - 1:
            return float(time[k]), float(signal[k])
        (a, b, c), (y, middle, end) = time[k - 1 : k + 2].tolist(), signal[k - 1 : k + 2].tolist()
        if _is_abrupt(b - a, c - b):
            return b, middle
        slope, next_slope = (middle - y) / (b - a), (end - middle) / (c - b)
        bend = (next_slope - slope) / (c - a)
        if not bend:
            return b, middle
        at = min(max((a + b) / 2 - slope / (2 * bend), a), c)
        return at, y + (at - a) * (slope + (at - b) * bend)

    def integral(self, x: Array, y: Array) -> float:
        """Return the integral of y over x by the trapezoidal rule, less h^3 y'' / 12 a step.

        y'' counts as 0 at both ends, and where steps change abruptly.
        """
        whole = LINEAR.integral(x, y)
        if len(x) < 3:
            return whole
        steps = np.diff(x)
        slopes, before, behind = np.diff(y) / steps, steps[:-1], steps[1:]
        even = (behind < _ABRUPT * before) & (before < _ABRUPT * behind)
        bends = np.zeros(len(x))
        bends[1:-1] = np.where(even, 2 * np.diff(slopes) / (before + behind), 0.0)
        return whole - float((steps**3 * (bends[1:] + bends[:-1])).sum()) / 24


SMOOTH = SmoothInterpolation()


@jit
def _is_abrupt(before: float, behind: float) -> bool:
    return not (behind < _ABRUPT * before and before < _ABRUPT * behind)


@jit
def _first(time: Array, k: int) -> int:
    """Return the first point of the polynomial between the points k and k + 1 of a waveform."""
    first = k
    while first > max(k - _NEIGHBOURS, 0) and not _is_abrupt(
        time[first] - time[first - 1], time[first + 1] - time[first]
    ):
        first -= 1
    return first


@jit
def _last(time: Array, k: int) -> int:
    """Return the last point of the polynomial between the points k and k + 1 of a waveform."""
    last, end = k + 1, min(k + 1 + _NEIGHBOURS, time.size - 1)
    while last < end and not _is_abrupt(time[last] - time[last - 1], time[last + 1] - time[last]):
        last += 1
    return last


@jit
def _polynomial(time: Array, signal: Array, first: int, last: int, at: float) -> float:
    """Return the value at a time of the polynomial through a waveform's points from the first to the last."""
    total = 0.0
    for k in range(first, last + 1):
        weight = 1.0
        for other in range(first, last + 1):
            if other != k:
                weight *= (at - time[other]) / (time[k] - time[other])
        total += weight * signal[k]
    return total


@cached_jit
def _value_at(time: Array, signal: Array, at: float) -> float:
    """Return a smooth signal's value at a time; outside of the waveform, its value at the nearer end."""
    at = min(max(at, time[0]), time[time.size - 1])
    k = min(max(int(np.searchsorted(time, at)) - 1, 0), time.size - 2)
    return _polynomial(time, signal, _first(time, k), _last(time, k), at)


@cached_jit
def _root(time: Array, distance: Array, k: int) -> float:
    """Return when a smooth signal is 0 between the points k and k + 1 of a waveform.

    Its values at these two points must have unlike signs. The method is regula falsi, Illinois: M. Dowell and
    P. Jarratt, BIT 11 (1971) 168.
    """
    first, last = _first(time, k), _last(time, k)
    low, high, at_low, at_high = time[k], time[k + 1], distance[k], distance[k + 1]
    width, side, middle = high - low, 0, low
    for _ in range(_MOST_ITERATIONS):
        before, middle = middle, (low * at_high - high * at_low) / (at_high - at_low)
        value = _polynomial(time, distance, first, last, middle)
        if value == 0.0 or abs(middle - before) < 1e-9 * width:
            break
        if (value > 0.0) == (at_high > 0.0):
            high, at_high = middle, value
            at_low = at_low / 2.0 if side == 1 else at_low
            side = 1
        else:
            low, at_low = middle, value
            at_high = at_high / 2.0 if side == -1 else at_high
            side = -1
    return middle
