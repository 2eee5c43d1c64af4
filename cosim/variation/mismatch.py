"""Local mismatch of one chip as standard deviations; free of torch, so that a configuration can hold them.

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
from dataclasses import dataclass

from cosim.base.errors import InputError
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
    """Derive the mismatch model of a technology for weights on `grid` (None: continuous).

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
    """Return the standard deviation of ln(current), by mismatch, of one device that carries `current` in ampere.

    The thermal voltage u_t = k T / q is in volt.
    """
    n = device.response_at(current * geometry.l / geometry.w)
    return math.hypot(device.a_vt / (n * u_t), device.a_beta) / math.sqrt(device.mismatch_area(geometry.w, geometry.l))
