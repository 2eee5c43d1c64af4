"""A CMOS technology as data: what decks instantiate, how large the devices of each role are, how they vary."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Geometry:
    """Drawn width and length in metre."""

    w: float
    l: float  # noqa: E741 - the field's own letter


@dataclass(frozen=True)
class DeviceModel:
    """One transistor type of a technology.

    name: what a deck instantiates
    a_vt: Pelgrom coefficient of the threshold voltage of a SINGLE device, V m: sigma = a_vt / sqrt(W L)
    a_beta: the same for the relative current factor, m
    slope_factor: subthreshold slope factor n at 27 C (kappa = 1/n)
    """

    name: str
    a_vt: float
    a_beta: float
    slope_factor: float


@dataclass(frozen=True)
class Sizing:
    """Device geometry per role. Mirrors are built from integer counts of one unit device, so ratios are exact.

    mirror_n, mirror_p: the unit device of signal mirrors
    cell_n, cell_p: current sources and copies inside the 9T cell, its bias diodes and its candidate diode
    latch_switch: M3 and M6 of the 9T cell, which only steer current: small, so the decision node is fast
    sample_switch: both halves of the transmission gate that samples the candidate
    """

    mirror_n: Geometry
    mirror_p: Geometry
    cell_n: Geometry
    cell_p: Geometry
    latch_switch: Geometry
    sample_switch: Geometry


@dataclass(frozen=True)
class Technology:
    """A process as the compiler sees it.

    device_file: the file with the device models, included by every deck
    instance_letter: `m` for plain models, `x` where the foundry wraps devices into subcircuits
    length_unit: metre per unit of the instance's w and l
    grid: layout grid in metre; every drawn width and length is a multiple
    supply, supply_max: nominal and largest supply in volt; celsius: nominal temperature
    current_min, current_max: usable current of a single signal in ampere
    """

    name: str
    summary: str
    device_file: Path
    nfet: DeviceModel
    pfet: DeviceModel
    sizing: Sizing
    grid: float
    supply: float
    supply_max: float
    celsius: float
    current_min: float
    current_max: float
    instance_letter: Literal["m", "x"] = "m"
    length_unit: float = 1.0

    @property
    def thermal_voltage(self) -> float:
        """U_T = k T / q in volt at the nominal temperature."""
        return 8.617333e-5 * (self.celsius + 273.15)

    def snap(self, length: float) -> float:
        """A drawn dimension on the layout grid."""
        return round(length / self.grid) * self.grid
