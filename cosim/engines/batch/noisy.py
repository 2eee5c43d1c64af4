# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""The march with noise: currents between nets that are normal numbers at the points of a grid, linear in between.

So ngspice's `trnoise` has them. Their density is 2 rms^2 `step` up to half of 1/step, one-sided. Of a transistor it is
2 q I thermal, with the current that it carries at the beginning of a step of the grid, and the thermal factor of charge
at its source (cosim.technology.noise). A number is a hash of the bench's key, the source and the point, the finaliser
of SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, OOPSLA 2014), made normal as G. E. P. Box and M. E. Muller did
(Ann. Math. Statist. 29 (1958) 610): it depends on nothing beside the lane. Steps end at the grid's points, and go on in
the order that they have.
"""

from math import cos, log, sqrt, tau
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.engines.batch.compiled import jit, kept_jit
from cosim.engines.batch.lanes import absolute, lanes, least, load, most, splat, store
from cosim.engines.batch.layout import BEGINS, NEXT, NOW, STEP
from cosim.engines.batch.march import beat, drive, goes_on
from cosim.engines.batch.pace import begin_step
from cosim.engines.batch.tied import tied_current
from cosim.quantities import Q_ELECTRON

Array = NDArray[np.float64]
_GOLDEN, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(11)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S1, _S2, _S3, _PLACES = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_NEAR = 1e-3  # of a step of the grid: a point so near is this one
_INVERTED = 50.0  # largest slope of a device over that in weak inversion


class Noisy(NamedTuple):
    """step: of the grid, s; source (n,) of `Values.source`; fixed (n,) A^2/Hz; device_at (n + 1,) into device and weak:
    tied devices, and their I / g_m in weak inversion, V. key (LANES,); at (LANES,): the interval; before, after,
    density (n, LANES): A at its two ends, and A^2/Hz."""

    step: float
    source: NDArray[np.int64]
    fixed: Array
    device_at: NDArray[np.int64]
    device: NDArray[np.int64]
    weak: Array
    key: NDArray[np.uint64]
    at: NDArray[np.int64]
    before: Array
    after: Array
    density: Array


@kept_jit
def advance_noisy(circuit: Any, m: Any, saved: Any, n: Any, how: Any) -> None:
    """`march.advance` with noise; circuit: its structure, its solver and its values; how: varied, waiting."""
    (s, p, v), (varied, waiting) = circuit, how
    while goes_on(m, saved, waiting):
        if _turning(m, n) > 0:
            _densities(s, v, n)
        for lane in lanes():
            if m.pace[BEGINS, lane] > 0.0:
                _turn(m, n, lane)
                begin_step(m, lane)
                drive(s, v, m, lane)
                _blow(v, m, n, lane)
        beat(s, p, v, m, saved, varied)


@jit
def _interval(m: Any, n: Any, lane: int) -> int:
    return int(m.clock[NOW, lane] / n.step + _NEAR)


@jit
def _turning(m: Any, n: Any) -> int:
    """Return how many lanes begin an interval of the grid."""
    count = 0
    for lane in lanes():
        if m.pace[BEGINS, lane] > 0.0 and _interval(m, n, lane) != n.at[lane]:
            count += 1
    return count


@jit
def _densities(s: Any, v: Any, n: Any) -> None:
    """Set the one-sided noise density of every source in all lanes, A^2/Hz, by the present currents."""
    for k in range(n.source.size):
        total = splat(n.fixed[k])
        for e in range(n.device_at[k], n.device_at[k + 1]):
            device = n.device[e]
            current = absolute(tied_current(s, v, device))
            siemens = most(absolute(load(v.tied_kept, 3 * device + 1) * splat(n.weak[e])), splat(1e-24))
            charge = least(most(current / siemens, splat(1.0)), splat(_INVERTED))
            thermal = (charge * (4.0 / 3.0) - 1.0 / 3.0) / (charge * charge)
            total = total + current * thermal * (2.0 * Q_ELECTRON)
        store(n.density, k, total)


@jit
def _turn(m: Any, n: Any, lane: int) -> None:
    """Draw the noise at the end of a lane's interval where it is a new one, and fit the next step into that interval.

    What is left of the interval is divided evenly, so that no step passes its end or leaves a sliver.
    """
    here = _interval(m, n, lane)
    if here != n.at[lane]:
        for k in range(n.source.size):
            n.before[k, lane] = n.after[k, lane]
            rms = sqrt(n.density[k, lane] / (2.0 * n.step))
            n.after[k, lane] = rms * _normal(n.key[lane], np.uint64(here + 1), np.uint64(k))
        n.at[lane] = here
    left = (here + 1) * n.step - m.clock[NOW, lane]
    parts = int(left / m.clock[NEXT, lane]) + 1 if m.clock[NEXT, lane] < left else 1
    m.clock[NEXT, lane] = left / parts


@jit
def _blow(v: Any, m: Any, n: Any, lane: int) -> None:
    """Noise at the end of the step that a lane begins."""
    part = (m.clock[NOW, lane] + m.clock[STEP, lane]) / n.step - n.at[lane]
    for k in range(n.source.size):
        v.source[n.source[k], lane] = n.before[k, lane] + (n.after[k, lane] - n.before[k, lane]) * part


@jit
def _normal(key: Any, point: Any, source: Any) -> float:
    mixed = _mix(_mix((source << _PLACES) + point + _GOLDEN) * _GOLDEN + key)
    other = _mix(mixed + _GOLDEN)
    radius = sqrt(-2.0 * log((float(mixed >> _SHIFT) + 0.5) / 9007199254740992.0))
    return radius * cos(tau * (float(other >> _SHIFT) / 9007199254740992.0))


@jit
def _mix(value: Any) -> Any:
    value = (value ^ (value >> _S1)) * _FIRST
    value = (value ^ (value >> _S2)) * _SECOND
    return value ^ (value >> _S3)
