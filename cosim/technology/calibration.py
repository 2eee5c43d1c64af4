"""Measured behaviour of a technology's cells, and its inverse: the bias current that makes a wanted threshold.

Finite output conductance, not matching, sets the nominal error of subthreshold current-mode cells. It is smooth in the
bias currents, so it is measured once per technology in ngspice (cosim.verbs.calibrate.measure), kept in a file with its
provenance, and inverted here. Currents in ampere; the fits work in nanoampere so that the coefficients have one scale.

The blocks around a network are measured as well: converters, sources of the bias tree, clock generator. A converter
draws a little more than its level's current, and a source of the tree gives a little more than its units say, because
their drains are at another voltage than those of the diodes that they copy.
"""

import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.base.errors import InputError, UnitCurrentError
from cosim.base.text import parse_json, read_json
from cosim.base.write import write_atomically
from cosim.technology.fit_file import FitFile
from cosim.technology.scale import MAX_UNITS
from cosim.technology.types import interpolate_log

Array = NDArray[np.float64]
Own = Mapping[str, tuple[float, ...]]
_NANO = 1e-9
_SOLVER_STEPS = 60
_LARGEST = 1e3  # of voltages, gains and times over their ideal
_ABSOLUTE_ZERO = -273.15
_REPAIR = "make it anew with: cosim calibrate"
_MEASURE_ANEW = "remove it, and it is measured again"


@dataclass(frozen=True)
class SchmittFit:
    """Quadratic fits of the 9T cell, in nA: rise and fall in (I_thresh, I_width), level in I_gain.

    rise, fall: coefficients of 1, x, y, x^2, x y, y^2 with x = I_thresh, y = I_width; level: of 1, z, z^2, z = I_gain.
    error: largest relative error of the fit over the measured points. set_shift, reset_shift: (c0 in nA, c1) of c0 + c1
    threshold, by which a candidate must pass the upper or lower threshold before the CLOCKED cell changes its state
    within a frame. The finite time of a flip, and what the decision kicks back into the held candidate, widen the
    hysteresis by about 1 %.
    """

    rise: tuple[float, ...]
    fall: tuple[float, ...]
    level: tuple[float, ...]
    error: float
    set_shift: tuple[float, ...]
    reset_shift: tuple[float, ...]

    def set_in_frame(self, i_rise: ArrayLike) -> Array:
        """Return the candidate at which the clocked cell is set, ampere, from its upper threshold for slow ramps."""
        return np.asarray(i_rise) * (1 + self.set_shift[1]) + _NANO * self.set_shift[0]

    def reset_in_frame(self, i_fall: ArrayLike) -> Array:
        """Return the candidate at which the clocked cell is reset, ampere, from its lower threshold for slow ramps."""
        return np.asarray(i_fall) * (1 - self.reset_shift[1]) - _NANO * self.reset_shift[0]

    def i_rise(self, i_thresh: ArrayLike, i_width: ArrayLike) -> Array:
        """Return the measured upper threshold of a technology's 9T cell at these bias currents, all ampere."""
        return _quadratic_2d(self.rise, i_thresh, i_width)

    def i_fall(self, i_thresh: ArrayLike, i_width: ArrayLike) -> Array:
        """Return the measured lower threshold of a technology's 9T cell at these bias currents, all ampere."""
        return _quadratic_2d(self.fall, i_thresh, i_width)

    def i_high(self, i_gain: ArrayLike) -> Array:
        """Return the measured output of a technology's 9T cell in state 1 at this bias current, both ampere."""
        z = np.asarray(i_gain) / _NANO
        return _NANO * (self.level[0] + self.level[1] * z + self.level[2] * z * z)

    def solve_thresholds(self, i_rise: float, i_fall: float) -> tuple[float, float]:
        """Return (I_thresh, I_width) at which a technology's 9T cell has these thresholds, all ampere.

        Raises UnitCurrentError if no pair of positive currents does, or if i_fall is not below i_rise.
        """
        i_thresh, i_width = i_rise, i_rise - i_fall
        rise_error = fall_error = np.inf
        with np.errstate(over="ignore", invalid="ignore"):  # far outside the fit it diverges, which is refused below
            for _ in range(_SOLVER_STEPS):
                rise_error = i_rise - float(self.i_rise(np.float64(i_thresh), np.float64(i_width)))
                fall_error = i_fall - float(self.i_fall(np.float64(i_thresh), np.float64(i_width)))
                i_thresh += rise_error
                i_width += rise_error - fall_error
        solved = i_thresh > 0 and i_width > 0 and abs(rise_error) + abs(fall_error) < 1e-15
        if not (solved and i_fall < i_rise):
            raise UnitCurrentError(
                f"no bias gives a 9T cell the thresholds {i_rise:.3g} A and {i_fall:.3g} A (solved: I_thresh "
                f"{i_thresh:.3g} A, I_width {i_width:.3g} A); keep 0 < lower < upper, within the calibrated range"
            )
        return i_thresh, i_width

    def solve_clocked(self, i_set: float, i_reset: float) -> tuple[float, float]:
        """Return (I_thresh, I_width) at which the clocked 9T cell is set at i_set and reset at i_reset, all ampere.

        Raises UnitCurrentError as `solve_thresholds` does.
        """
        i_rise = (i_set - _NANO * self.set_shift[0]) / (1 + self.set_shift[1])
        i_fall = (i_reset + _NANO * self.reset_shift[0]) / (1 - self.reset_shift[1])
        return self.solve_thresholds(i_rise, i_fall)

    def solve_gain(self, i_high: float) -> float:
        """Return the I_gain at which a technology's 9T cell has the output level i_high in state 1, both ampere."""
        i_gain = i_high
        for _ in range(_SOLVER_STEPS):
            i_gain += i_high - float(self.i_high(np.float64(i_gain)))
        return i_gain


@dataclass(frozen=True)
class MirrorFit:
    """Measured current gains of the signal paths of a technology.

    currents: at which gains were measured, ampere; gain_n: through line n into a candidate node, with the trimmed
    diode; gain_p: from line p into a candidate node; gain_push: from line p into an nMOS diode; gain_sink: from a bias
    diode into a candidate node. trim: nominal over drawn length of the n diode. diode_slopes: d ln gain / d ln length
    of a bias diode shorter and longer than nominal, 1 unless the threshold voltage depends on the length. slope_n,
    slope_p: relative change of a pulling and of a pushing weight's current per volt of drain voltage, 1/V. swing:
    voltage by which a candidate node falls per e-fold of its current, V. relu_above: voltage by which the node of a
    rectifier of unit devices is above a candidate node, both at 1 nA, V.
    """

    trim: float
    currents: tuple[float, ...]
    gain_n: tuple[float, ...]
    gain_p: tuple[float, ...]
    gain_push: tuple[float, ...]
    gain_sink: tuple[float, ...]
    diode_slopes: tuple[float, float]
    slope_n: float
    slope_p: float
    swing: float
    relu_above: float

    def node_drop(self, current: ArrayLike, *, relu: bool = False) -> Array:
        """Return how far below a candidate node at 1 nA a candidate node is at `current`, ampere, in V.

        relu: whether the node is that of a rectifier of unit devices.
        """
        return self.swing * np.log(np.maximum(current, self.currents[0]) / _NANO) - self.relu_above * relu

    def interpolate(self, gains: tuple[float, ...], current: ArrayLike) -> Array:
        """Return a measured gain at another current, ampere: linear over log current, constant outside."""
        return interpolate_log(current, self.currents, gains)

    def pushed(self, current: ArrayLike) -> Array:
        """Return the current that a device on a gate line p of `current` pushes into an nMOS diode, both ampere."""
        return np.asarray(current) * self.interpolate(self.gain_push, np.asarray(current))

    @property
    def push(self) -> float:
        """Return the measured gain from a gate line p into an nMOS diode at 1 nA."""
        return float(self.interpolate(self.gain_push, np.float64(_NANO)))

    @property
    def sink(self) -> float:
        """Return the measured gain from a bias diode into a candidate node at 1 nA."""
        return float(self.interpolate(self.gain_sink, np.float64(_NANO)))

    def sink_bias(self, current: float) -> float:
        """Return the current into a bias diode whose copy draws `current` from a candidate node, both ampere."""
        return current / float(self.interpolate(self.gain_sink, np.float64(current)))

    def stretch(self, gain: float) -> float:
        """Return the length over nominal of a bias diode whose copies carry `gain` times their nominal current."""
        shorter, longer = self.diode_slopes
        return float(gain ** (1 / (longer if gain > 1 else shorter)))


@dataclass(frozen=True)
class ComparatorFit:
    """Measured threshold of a quantiser's comparator: the candidate at which its driver is half way, within a frame.

    currents: I_thresh, ampere; ratios: threshold over I_thresh at these, linear over log current in between.
    """

    currents: tuple[float, ...]
    ratios: tuple[float, ...]

    def decides_at(self, i_thresh: ArrayLike) -> Array:
        """Return the comparator's threshold at the bias current I_thresh, both ampere."""
        return np.asarray(i_thresh, dtype=np.float64) * interpolate_log(i_thresh, self.currents, self.ratios)

    def solve(self, threshold: float) -> float:
        """Return the bias current I_thresh at which the comparator has this threshold, both ampere."""
        i_thresh = threshold
        for _ in range(_SOLVER_STEPS):
            i_thresh += threshold - float(self.decides_at(i_thresh))
        return i_thresh


@dataclass(frozen=True)
class DpiFit:
    """Measured behaviour of a technology's differential pair integrator (DPI).

    ratios: I_g / I_tau for a gain of 1, at the output currents `alphas`, ampere, with I_tau = `share` alpha; rise,
    fall: measured times to 1 - 1/e and to 1/e over those of the ideal equation.
    """

    share: float
    alphas: tuple[float, ...]
    ratios: tuple[float, ...]
    rise: float
    fall: float

    def ratio(self, alpha: float) -> float:
        """Return I_g / I_tau for a gain of 1 at an output current alpha, ampere: linear over log alpha."""
        return float(interpolate_log(alpha, self.alphas, self.ratios))


@dataclass(frozen=True)
class Calibration:
    """Measurements of a technology's cells, from which the compiler solves bias currents.

    fingerprint: hash of devices, sizes, cells, tolerances and measuring points, which tells whether the file still
    applies; units: unit devices per weight 1.0; v_node: voltage between the supply and a candidate node at 1 nA, where
    the readout's virtual ground belongs; leakage: current of a weight of 1 at a signal of 0, ampere; current_min,
    current_max: range in which both lines of a signal keep their gains at 1 nA within 2 %, ampere; upper, lower: a
    quantiser's comparators; own: name of a kind of unit -> its own measurements.
    """

    technology: str
    fingerprint: str
    simulator: str
    units: int
    supply: float
    celsius: float
    v_node: float
    leakage: float
    current_min: float
    current_max: float
    mirror: MirrorFit
    schmitt: SchmittFit
    upper: ComparatorFit
    lower: ComparatorFit
    dpi: DpiFit
    own: Mapping[str, Own] = field(default_factory=dict[str, Own])

    def content(self) -> dict[str, object]:
        """Return the fields as a file has them; `own` is left out if empty."""
        found = asdict(self)
        return found if self.own else {name: value for name, value in found.items() if name != "own"}


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration as JSON with its checksum. Raises InputError if the file cannot be written."""
    write_atomically(path, CALIBRATION_FILE.to_bytes(calibration))


def format_calibration(calibration: Calibration) -> str:
    """Return a calibration as JSON without a checksum, for a store that keeps the checksums of all its files."""
    return json.dumps(CALIBRATION_FILE.rounded(calibration), indent=2) + "\n"


def parse_calibration(text: bytes, where: str) -> Calibration:
    """Parse a calibration that `format_calibration` wrote, without a checksum. Raises InputError that names `where`."""
    return CALIBRATION_FILE.parse(parse_json(text, where, _REPAIR), where)


def is_calibration(path: Path) -> bool:
    """Tell whether a file is a calibration, of this or of another version of the format."""
    try:
        content = read_json(path, _REPAIR)
    except InputError:
        return False
    return isinstance(content, dict) and {"format", "mirror", "schmitt"} <= content.keys()


def _check(c: Calibration, where: str) -> None:
    """Raise InputError for the first number of a calibration that no technology can have."""
    mirror, schmitt, upper, lower, dpi = c.mirror, c.schmitt, c.upper, c.lower, c.dpi
    curves = {
        "mirror.gain_n": (mirror.gain_n, mirror.currents), "mirror.gain_p": (mirror.gain_p, mirror.currents),
        "mirror.gain_push": (mirror.gain_push, mirror.currents),
        "mirror.gain_sink": (mirror.gain_sink, mirror.currents), "dpi.ratios": (dpi.ratios, dpi.alphas),
        "upper.ratios": (upper.ratios, upper.currents), "lower.ratios": (lower.ratios, lower.currents),
    }  # fmt: skip
    axes = {
        "mirror.currents": mirror.currents,
        "dpi.alphas": dpi.alphas,
        "upper.currents": upper.currents,
        "lower.currents": lower.currents,
    }
    sizes = {"rise": 6, "fall": 6, "level": 3, "set_shift": 2, "reset_shift": 2}
    positive = {
        "supply": c.supply, "v_node": c.v_node, "current_min": c.current_min, "mirror.trim": mirror.trim,
        "mirror.diode_slopes": min(mirror.diode_slopes), "dpi.share": dpi.share, "dpi.rise": dpi.rise,
        "dpi.fall": dpi.fall,
    }  # fmt: skip
    rules = {  # field -> (kept, what it must be)
        "technology": (c.technology.isprintable() and c.simulator.isprintable(), "printable, as simulator must be"),
        "units": (1 <= c.units <= MAX_UNITS, f"1 to {MAX_UNITS}"),
        "celsius": (abs(c.celsius) < -_ABSOLUTE_ZERO, "a temperature in celsius"),
        "current_max": (c.current_min < c.current_max < 1, "above current_min, in ampere"),
        **{key: (0 < value < _LARGEST, "positive and in SI units") for key, value in positive.items()},
        **{key: (_rise(axis), "positive and rising") for key, axis in axes.items()},
        **{
            key: (len(gains) == len(axis) and all(0 < gain < _LARGEST for gain in gains), "positive, one per current")
            for key, (gains, axis) in curves.items()
        },
        **{
            f"schmitt.{name}": (len(getattr(schmitt, name)) == size, f"a list of {size}")
            for name, size in sizes.items()
        },
    }
    for name, (kept, wanted) in rules.items():
        if not kept:
            raise InputError(f"{where}: {name} must be {wanted}; {_REPAIR}")


def _rise(axis: tuple[float, ...]) -> bool:
    return len(axis) > 0 and axis[0] > 0 and all(a < b for a, b in itertools.pairwise(axis))


def _quadratic_2d(c: tuple[float, ...], i_thresh: ArrayLike, i_width: ArrayLike) -> Array:
    x, y = np.asarray(i_thresh) / _NANO, np.asarray(i_width) / _NANO
    return _NANO * (c[0] + c[1] * x + c[2] * y + c[3] * x * x + c[4] * x * y + c[5] * y * y)


CALIBRATION_FILE = FitFile(Calibration, 7, 9, "calibration", _REPAIR, _check, Calibration.content)
load_calibration = CALIBRATION_FILE.load


@dataclass(frozen=True)
class ChipFit:
    """Measured currents of the blocks around a network.

    fingerprint: hash of device cards, circuits and conditions; converter: current of the largest code over that of the
    level. pins: currents into a bias diode, rising, A; coarse: current of one coarse unit of the bias tree at each of
    these, A; fine: current of one fine unit, A. tick: charge that a flip-flop of the clock generator takes in each
    tick, with its share of the gates that drive it, C; leakage: its constant current, A.
    """

    technology: str
    fingerprint: str
    simulator: str
    converter: float
    pins: tuple[float, ...]
    coarse: tuple[float, ...]
    fine: float
    tick: float
    leakage: float

    def units(self, current: float) -> tuple[int, int]:
        """Return the numbers of coarse and fine units of the bias tree whose sum is nearest to a pin's current, A."""
        each = float(interpolate_log(current, self.pins, self.coarse))
        coarse = int(current / each)
        fine = round((current - coarse * each) / self.fine)
        most = int(each / self.fine)
        return coarse, min(fine, most)


def _check_chip(fit: ChipFit, where: str) -> None:
    rising = len(fit.pins) == len(fit.coarse) > 1 and fit.pins[0] > 0 and bool(np.all(np.diff(fit.pins) > 0))
    if not rising or min(*fit.coarse, fit.fine, fit.converter, fit.tick, fit.leakage) <= 0:
        raise InputError(f"{where}: pins must rise, one coarse for each, and all be positive; {_MEASURE_ANEW}")


CHIP_FILE = FitFile(ChipFit, 2, 7, "figures of the chip's blocks", _MEASURE_ANEW, _check_chip)
