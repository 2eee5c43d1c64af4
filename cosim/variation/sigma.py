"""Distance of a candidate from a threshold, in standard deviations of that very candidate.

    sigma^2 = noise^2 + mismatch^2 + left^2          t_j = w_j I_j, what the row adds; u = sum t_j; T the threshold

    mismatch^2 = sum t_j^2 (line + weight) + sum l_j^2 s_cn^2 + (sum l_j)^2 s_cn^2 + 2 u^2 s_cp^2
                 + 2 rise^2 s_cn^2 [ + 2 width^2 (s_cn^2 + s_cp^2), T = rise - width, where a 9T cell resets ]
        line, weight    s_p^2 / N, s_p^2 / k        w < 0, k = |w| N unit devices
                        (2 s_p^2 + s_n^2) / N, s_n^2 / k   w > 0
        l_j             of t_j, what a state's level makes of it: M5 of each cell, and one bias diode for all of them
    left^2     = gain^2 sum t_j^2 + (threshold T)^2
    noise^2    = share^2 (a u (u + sum |t_j|) / (1 + 2 gate u) + b_j sum t_j^2 u / (u + corner))

All of them grow with what the row adds, whatever is left of it. Mismatch is that of `MismatchModel`, to first
order, exact for a row but for rectifiers, which bring the variance of their own. Noise is the same as that of
`engines.behavioral.noise`, where lines are alone: the candidate's own diode and weights, S g_m / (4 C), and each line's
S / (4 (tau + tau_c)) with its tau at i_unit; share: what a 9T cell decides by. The behavioral model has it without
these simplifications, a training has no time for it. What calibration leaves is measured (`LEFT`).

Values are arrays of numpy or tensors of torch, in units of i_unit.

Local mismatch of one chip as standard deviations; free of torch, so that a configuration can hold them.

Two equal transistors differ in threshold voltage and current factor, both normally distributed with a variance that
falls with gate area: sigma = a / sqrt(W L), where the technology may add something to drawn W and L first. In weak
inversion I ~ exp((V_GS - V_T) / (n U_T)), so the current of one transistor of m unit devices is its nominal one times
exp(e), e ~ N(0, s^2),

    s^2 = [(a_vt / (n U_T))^2 + a_beta^2] / (m W L)

and the ratio of a mirror, gate voltage given by `in` and used by `out`, is its nominal one times exp(e_out - e_in).
n is that of the current which stands for 1.0, a few percent above the one of weak inversion where the technology says
so. 6.4 % for the unit device of generic180's mirrors, 2.3 % for a diode of 8, 2.8 % for a device of the 9T cell.
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
    """Mismatch as standard deviations of ln(current) of SINGLE devices in one technology, dimensionless.

    technology: its name; area: gate area of every device over the drawn one, already in the deviations below
    units: unit devices per weight 1.0, of which every diode and copy of a signal has as many
    mirror_n, mirror_p: ONE unit device of a signal mirror; k of them in parallel deviate by 1 / sqrt(k) of it
    cell_n, cell_p: a current source, copy or bias diode of the 9T cell
    """

    technology: str
    area: float
    units: int
    mirror_n: float
    mirror_p: float
    cell_n: float
    cell_p: float


def derive_mismatch(technology: Technology, grid: float | None, area: float = 1.0) -> MismatchModel:
    """Derive how transistors on chips deviate in a technology, for weights on `grid` (None: continuous).

    `area` scales gate areas and nothing else, 1 / sqrt(area) on every deviation. Of a self-cascode the lower device
    counts, which sets the current. Raises InputError for an area that is not positive and finite, or a technology
    without a_vt.
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
    """Return the standard deviation of ln(current) from chip to chip of a transistor with `current` in ampere.

    The thermal voltage u_t = k T / q is in volt.
    """
    n = device.response_at(current * geometry.l / geometry.w)
    return math.hypot(device.a_vt / (n * u_t), device.a_beta) / math.sqrt(device.mismatch_area(geometry.w, geometry.l))


Values = Any  # an array or a tensor: both have all that is done here
CHARGE = 1.602176634e-19  # C


@dataclass(frozen=True)
class Left:
    """Errors of currents that calibration leaves on chips, relative.

    gain: of each current that a row adds; threshold: of the threshold.
    """

    gain: float
    threshold: float


# benchmarks/bench_left.py; of another technology the largest of each.
LEFT: Mapping[str, Left] = {
    "generic180": Left(5e-4, 2.5e-3),
    "gf180mcu": Left(8e-4, 4.0e-3),
    "sky130": Left(9e-4, 3.6e-3),
}
# of ladders, whose comparators decide anew in each frame
LEFT_COMPARED: Mapping[str, Left] = {
    "generic180": Left(2e-4, 5e-4),
    "gf180mcu": Left(3e-4, 1.2e-3),
    "sky130": Left(2e-4, 3.5e-3),
}


def left_by(technology: str, *, remembers: bool = True) -> Left:
    """Return the errors of currents that calibration leaves on chips of a technology, by name.

    The largest known is for one not listed. remembers: whether a decision knows the one before, as a 9T cell's does and
    a comparator's does not.
    """
    every = LEFT if remembers else LEFT_COMPARED
    known = every.values()
    return every.get(technology, Left(max(one.gain for one in known), max(one.threshold for one in known)))


@dataclass(frozen=True)
class RowNoise:
    """Device noise of a row of weights.

    The numbers of noise above, for i_unit and a technology; device, gate_farad: capacitance of a unit device of a line
    as a diode and as a reader, F; farad: of the candidate, F; line: b_j times the capacitance of its line, F.
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
    """The parts of a candidate's spread (mismatch, noise) that count; None for one that does not.

    units: unit devices per weight 1.0.
    """

    units: int
    left: Left | None
    noise: RowNoise | None = None
    mismatch: MismatchModel | None = None


@dataclass(frozen=True)
class WeightedRows:
    """Rows of weights whose spread from chip to chip is computed, and which read the same signals.

    weight: (outputs, inputs); x: (..., inputs), their currents; level: what a state's level makes, 0 where none does.
    """

    weight: Values
    x: Values
    level: Values

    @property
    def added(self) -> Values:
        """Return what device noise grows with: the sum of the sizes of rows' currents, sum |t_j|, (..., outputs)."""
        return abs(self.x) @ abs(self.weight).T


def row_noise(fit: NoiseFit, i_unit: float, edge: tuple[float, float], share: float) -> RowNoise:
    """Return the device noise of a row of weights in a technology.

    edge: capacitance of the hold node with M1, F, and the time in which a sample gate closes, s; share: of the frozen
    standard deviation, what the cell decides by.
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
    """Return the variance of candidates by transistors that deviate on chips and by device noise, (..., outputs).

    u: the sums of rows, which candidates are, as far as they are positive.
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
    """Return the deviation of a threshold, rise - width, from chip to chip by its transistors' own, as a variance.

    width: 0 for the upper one.
    """
    found = rise * 0.0 + width * 0.0
    if spread.left is not None:
        found = found + (spread.left.threshold * (rise - width)) ** 2
    if (model := spread.mismatch) is not None:
        found = found + 2 * (rise * model.cell_n) ** 2 + 2 * width**2 * (model.cell_n**2 + model.cell_p**2)
    return found


def noise_variance(row: WeightedRows, u: Values, units: int, noise: RowNoise) -> Values:
    """Return the part of a decision's variance that device noise makes, (..., outputs).

    u: sums of the rows, as far as they are positive; units: unit devices per weight 1.0.
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
    """Return the deviation of ln of a weight's current from chip to chip by its transistors' own, as a variance.

    (outputs, inputs).
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
