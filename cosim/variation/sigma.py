"""Spread of a decision: standard deviation of the distance of a candidate u from a threshold T.

A row adds up the terms t_j = w_j I_j, weight times input current, to the candidate u = sum t_j.

    sigma^2 = noise^2 + mismatch^2 + left^2

    mismatch^2 = sum t_j^2 (line + weight) + sum l_j^2 s_cn^2 + (sum l_j)^2 s_cn^2 + 2 u^2 s_cp^2
                 + 2 rise^2 s_cn^2 [ + 2 width^2 (s_cn^2 + s_cp^2), T = rise - width, where a 9T cell resets ]
        line, weight    s_p^2 / N, s_p^2 / k        w < 0, k = |w| N unit devices
                        (2 s_p^2 + s_n^2) / N, s_n^2 / k   w > 0
        s_p, s_n        mirror_p, mirror_n of `MismatchModel`; s_cp, s_cn its cell_p, cell_n; N its units
        l_j             part of t_j that a state's level makes: M5 of each cell, and one bias diode for all of them
    left^2     = gain^2 sum t_j^2 + (threshold T)^2
    noise^2    = share^2 (a u (u + sum |t_j|) / (1 + 2 gate u) + b_j sum t_j^2 u / (u + corner))

The parts of the row grow with its terms, even where these cancel in the sum. Mismatch is to first order, and exact for
a row, except that the variance of a rectifier which the row reads must be added. Noise is that of
`engines.behavioral.noise` for lines that are alone: the candidate's own diode and weights have S g_m / (4 C), and each
line has S / (4 (tau + tau_c)), with its tau at i_unit. share is the part of the frozen noise by which a 9T cell
decides. The behavioral model does without these simplifications, which a training needs for its speed. `left` is the
error that calibration leaves; it was measured (`LEFT`).

Values are arrays of numpy or tensors of torch, in units of i_unit. This module is free of torch, so that a
configuration can hold its classes.

Standard deviations of mismatch: two equal transistors differ in threshold voltage and current factor. Both are normally
distributed with a variance that falls with gate area: sigma = a / sqrt(W L), where a technology may add a constant to
drawn W and L. In weak inversion I ~ exp((V_GS - V_T) / (n U_T)), so the current of a transistor of m unit devices is
its nominal current times exp(e), e ~ N(0, s^2),

    s^2 = [(a_vt / (n U_T))^2 + a_beta^2] / (m W L) + [(sigma_w / W)^2 + (sigma_l / L)^2] / m

and the ratio of a mirror, whose transistor `in` sets the gate voltage for its transistor `out`, is its nominal ratio
times exp(e_out - e_in). n is the slope factor at the current of 1.0, in some technologies a few percent above that of
weak inversion. s is 6.4 % for the unit device of generic180's mirrors, 2.3 % for a diode of 8 of them, 2.8 % for a
device of the 9T cell.

Source: M. Pelgrom et al., IEEE J. Solid-State Circuits 24 (1989) 1433; E. Vittoz and J. Fellrath, ibid. 12 (1977) 224.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cosim.base.errors import InputError
from cosim.technology.noise import NoiseFit
from cosim.technology.scale import I_UNIT, units_for
from cosim.technology.types import DeviceModel, Geometry, Technology


@dataclass(frozen=True)
class MismatchModel:
    """Mismatch of a technology as standard deviations of ln(current) of SINGLE devices, dimensionless.

    technology: its name; area: gate area of every device over the drawn area, already contained in the deviations;
    units: unit devices per weight 1.0, and in every diode and copy of a signal; mirror_n, mirror_p: ONE unit device of
    a signal mirror, of which k in parallel deviate by 1 / sqrt(k) as much; cell_n, cell_p: a current source, copy or
    bias diode of the 9T cell.
    """

    technology: str
    area: float
    units: int
    mirror_n: float
    mirror_p: float
    cell_n: float
    cell_p: float


def derive_mismatch(technology: Technology, grid: float | None, area: float = 1.0) -> MismatchModel:
    """Derive from a technology how transistors deviate, for weights on the grid `grid`, None for continuous weights.

    area: factor of all gate areas, which scales every deviation by 1 / sqrt(area) and changes nothing else. In a
    self-cascode the lower device counts, because it sets the current. Raises InputError for an area that is not
    positive and finite, or a technology without a_vt.
    """
    if not 0 < area < math.inf:
        raise InputError(f"--area must be positive and finite, not {area:g}; 1 takes the devices as drawn")
    for table, device in (("nfet", technology.nfet), ("pfet", technology.pfet)):
        if not device.a_vt > 0:
            raise InputError(
                f"{technology.name}: {table}.a_vt must be positive for --variation local, not {device.a_vt:g}; write "
                "it into the technology's file"
            )
    units = units_for(grid)
    sizing, u_t = technology.sizing, technology.thermal_voltage

    def sigma(device: DeviceModel, geometry: Geometry, current: float) -> float:
        return current_deviation(device, geometry, u_t, current) / math.sqrt(area)

    return MismatchModel(
        technology.name,
        area,
        units,
        mirror_n=sigma(technology.nfet, sizing.mirror_n, I_UNIT / units),
        mirror_p=sigma(technology.pfet, sizing.mirror_p, I_UNIT / units),
        cell_n=sigma(technology.nfet, sizing.cell_n, I_UNIT),
        cell_p=sigma(technology.pfet, sizing.cell_p, I_UNIT),
    )


def current_deviation(device: DeviceModel, geometry: Geometry, u_t: float, current: float) -> float:
    """Return the standard deviation, over chips, of ln(current) of a transistor with this geometry.

    u_t: thermal voltage k T / q, V; current: its nominal current, ampere.
    """
    n = device.response_at(current * geometry.l / geometry.w)
    sigma_vt, sigma_beta = device.deviations(geometry.w, geometry.l)
    return math.hypot(sigma_vt / (n * u_t), sigma_beta)


Values = Any  # an array or a tensor: both have all that is done here
CHARGE = 1.602176634e-19  # C


@dataclass(frozen=True)
class ErrorAfterCalibration:
    """Relative errors of currents that remain after calibration.

    gain: of each term that a row of weights adds up; threshold: of the threshold.
    """

    gain: float
    threshold: float


# benchmarks/bench_left.py; of another technology the largest of each.
LEFT: Mapping[str, ErrorAfterCalibration] = {
    "generic180": ErrorAfterCalibration(5e-4, 2.5e-3),
    "gf180mcu": ErrorAfterCalibration(8e-4, 4.0e-3),
    "sg13g2": ErrorAfterCalibration(6e-4, 4.6e-3),
    "sg13g2_1v2": ErrorAfterCalibration(6e-4, 1.9e-3),
    "sky130": ErrorAfterCalibration(9e-4, 3.6e-3),
}
# of ladders, whose comparators decide anew in each frame
LEFT_COMPARED: Mapping[str, ErrorAfterCalibration] = {
    "generic180": ErrorAfterCalibration(2e-4, 5e-4),
    "gf180mcu": ErrorAfterCalibration(3e-4, 1.2e-3),
    "sg13g2": ErrorAfterCalibration(1e-4, 7e-4),
    "sg13g2_1v2": ErrorAfterCalibration(1e-4, 4e-4),
    "sky130": ErrorAfterCalibration(2e-4, 3.5e-3),
}


def left_by(technology: str, *, remembers: bool = True) -> ErrorAfterCalibration:
    """Return the errors that remain after calibration in a technology, by its name; the largest known if not listed.

    remembers: True for a decision that depends on the one before, as in a 9T cell; False for a comparator's.
    """
    every = LEFT if remembers else LEFT_COMPARED
    known = every.values()
    return every.get(
        technology, ErrorAfterCalibration(max(one.gain for one in known), max(one.threshold for one in known))
    )


@dataclass(frozen=True)
class RowNoise:
    """Device noise of a row of weights: coefficients of its variance, for currents in units of i_unit.

        share^2 (own u (u + sum |t_j|) / (1 + 2 gate u) + b_j sum t_j^2 u / (u + corner))     t_j: terms, u: their sum

    share: the part of the frozen noise by which a cell decides; line: b_j times the capacitance of input line j, F;
    farad: capacitance of the candidate, F; corner: farad over the mean capacitance of the lines; device, reader:
    capacitance that a unit device adds to a line as a diode, and as a device that reads the line, F.
    """

    own: float
    gate: float
    share: float
    line: float
    farad: float
    device: float
    reader: float


@dataclass(frozen=True)
class SigmaParts:
    """The parts of a candidate's spread that count: calibration error, noise, mismatch; None for a part left out.

    units: unit devices per weight 1.0.
    """

    units: int
    left: ErrorAfterCalibration | None
    noise: RowNoise | None = None
    mismatch: MismatchModel | None = None


@dataclass(frozen=True)
class WeightedRows:
    """Rows of weights that read the same signals, whose spread is computed.

    weight: (outputs, inputs); x: (..., inputs) currents of the signals; level: (..., inputs) part of x that comes from
    the level of a cell's state, 0 for other signals.
    """

    weight: Values
    x: Values
    level: Values

    @property
    def added(self) -> Values:
        """Compute sum |t_j|, the sum of the magnitudes of each row's terms, (..., outputs); noise grows with it."""
        return abs(self.x) @ abs(self.weight).T


def row_noise(fit: NoiseFit, i_unit: float, edge: tuple[float, float], share: float) -> RowNoise:
    """Return the device noise of a row of weights in a technology.

    edge: (capacitance of the hold node with the gate of M1, F; time in which a sample gate closes, s); share: the part
    of the standard deviation of the frozen noise by which the cell decides.
    """
    diode, line = fit.devices["cell_p"], fit.devices["mirror_p"]
    u_t = 8.617333e-5 * (fit.celsius + 273.15)
    hold, gate = edge
    farad, volt = hold + diode.diode, float(diode.slope(i_unit)) * u_t
    thermal = float(diode.physical(i_unit))
    own = CHARGE * thermal / (2 * farad * volt)
    return RowNoise(
        own, gate * i_unit / (farad * volt), share, CHARGE * thermal / (2 * volt), farad, line.diode, line.gate
    )


def candidate_variance(row: WeightedRows, u: Values, spread: SigmaParts) -> Values:
    """Compute the variance of candidates, (..., outputs), from the parts in `spread`, without that of the threshold.

    u: (..., outputs) sums of the rows, the candidates, cut off at 0.
    """
    found = u * 0.0
    if spread.noise is not None:
        found = found + noise_variance(row, u, spread.units, spread.noise)
    per_weight = row.weight**2 * _per_weight(row.weight, spread)
    found = found + row.x**2 @ per_weight.T
    if (model := spread.mismatch) is not None:
        common = row.level @ row.weight.T
        found = found + (row.level**2 @ (row.weight**2).T + common**2) * model.cell_n**2 + 2 * (u * model.cell_p) ** 2
    return found


def threshold_variance(rise: Values, width: Values, spread: SigmaParts) -> Values:
    """Compute the variance of a threshold, rise - width, from mismatch and calibration error.

    rise: the upper threshold; width: upper minus lower threshold, or 0 for the upper threshold itself.
    """
    found = rise * 0.0 + width * 0.0
    if spread.left is not None:
        found = found + (spread.left.threshold * (rise - width)) ** 2
    if (model := spread.mismatch) is not None:
        found = found + 2 * (rise * model.cell_n) ** 2 + 2 * width**2 * (model.cell_n**2 + model.cell_p**2)
    return found


def noise_variance(row: WeightedRows, u: Values, units: int, noise: RowNoise) -> Values:
    """Compute the part of a candidate's variance that device noise makes, (..., outputs).

    u: (..., outputs) sums of the rows, cut off at 0; units: unit devices per weight 1.0.
    """
    loads = units * (2 * noise.device + noise.reader * abs(row.weight).sum(0) / 2)  # F, of each line: half read either
    positive = row.weight > 0
    devices = 1.0 + 1.5 * positive  # p: its diode; n: its diode and copy, and of line p's as much as passes
    states = (row.level**2).sum(tuple(range(row.level.ndim - 1))) > 0
    lines = (row.x**2) @ (row.weight**2 * (devices + 1.0 * states) * (noise.line / loads)).T
    corner = noise.farad / loads.mean()
    own = noise.own * u * (u + row.added) / (1 + 2 * noise.gate * u)
    return noise.share**2 * (own + lines * u / (u + corner))


def _per_weight(weight: Values, spread: SigmaParts) -> Values:
    """Compute the variance of ln(current) of each weight, (outputs, inputs), from mismatch and calibration error.

    Mismatch includes that of the input's gate line.
    """
    found = 0.0 * weight
    if spread.left is not None:
        found = found + spread.left.gain**2
    if (model := spread.mismatch) is not None:
        positive, units = weight > 0, spread.units
        p, n = model.mirror_p**2, model.mirror_n**2
        counts = (abs(weight) * units).clip(1.0)
        found = found + positive * ((2 * p + n) / units + n / counts) + ~positive * (p / units + p / counts)
    return found
