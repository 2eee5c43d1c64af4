"""A CMOS technology as data: its device models, how large the devices of each role are, how they vary, its layout.

Layout rules are whole nanometres here and micrometres in the technology's file, which also has the foundry's name of
each rule.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.base.errors import InputError

Polarity = Literal["n", "p"]
Flicker = Literal["typical", "worst"]
Numbers = Sequence[float] | NDArray[np.float64]
POLARITIES: tuple[Polarity, ...] = ("n", "p")
HOLD_CAPACITANCE = 0.4e-12  # F; keeps what the decision kicks back through M1 under 1 % of the candidate
Layer = tuple[int, int]  # GDS layer and datatype
LAYERS = (
    "comp", "nwell", "poly", "nplus", "pplus", "contact", "metal1", "via1", "metal2", "via2", "metal3", "via3",
    "metal4", "via4", "metal5", "plate", "plate_mark", "plate_length",
    "metal2_label", "metal4_label", "boundary",
    "metal1_fill", "metal2_fill", "metal3_fill", "metal4_fill", "metal5_fill",
)  # fmt: skip
RULES = (
    "contact", "contact_space", "contact_in", "contact_gate", "active_space", "active_implant", "well_active",
    "well_space", "poly_space", "poly_end", "poly_active", "metal1_space", "metal_width", "metal_space", "metal_area",
    "via", "via_end", "plate_in", "plate_via", "plate_via_space", "plate_space", "plate_metal", "plate_reach",
    "plate_smallest", "plate_largest", "top_width", "top_space", "top_area", "strap", "metal_share",
)  # fmt: skip
CONDUCTORS = ("poly", "metal1", "metal2", "metal3", "metal4", "metal5")  # from below
VIAS = ("contact", "via1", "via2", "via3", "via4")
AREAS = ("metal_area", "top_area", "plate_smallest", "plate_largest")  # square micrometre
SHARES = ("metal_share",)  # percent; the other rules are lengths


def interpolate_log(current: ArrayLike, currents: Numbers, values: Numbers) -> NDArray[np.float64]:
    """Interpolate values measured at rising `currents` to `current`, ampere: linear over log current.

    The result is constant outside the measured range.
    """
    return np.interp(np.log(np.maximum(current, currents[0])), np.log(currents), values)


@dataclass(frozen=True)
class Geometry:
    """Drawn width and length of a device, metre.

    cascode: width and length of a second device on top of it, None without one, see cosim.cells.transistor.
    """

    w: float
    l: float  # noqa: E741 - the field's own letter
    cascode: tuple[float, float] | None = None


@dataclass(frozen=True)
class DeviceModel:
    """One transistor type of a technology.

    name: the transistor in the library, a model or a subcircuit
    a_vt: Pelgrom coefficient of the threshold voltage of a SINGLE device, V m: sigma = a_vt / sqrt(`mismatch_area`)
    a_beta: the same for the relative current factor, m
    sigma_w, sigma_l: standard deviations of the width and the length of a single device, m, whatever its size
    spread_vt: standard deviation, over chips, of the threshold voltage that all transistors of a chip share, V
    slope_factor: subthreshold slope factor n at 27 C (kappa = 1/n)
    mismatch_dw, mismatch_dl: m, added to drawn width and length for mismatch, as the foundry does it
    response: (current in A at W = L, n), rising: a threshold shift dV changes ln I by -dV / (n U_T), and n rises with
        the current, towards moderate inversion; if empty, n is slope_factor at any current
    """

    name: str
    a_vt: float
    a_beta: float
    spread_vt: float
    slope_factor: float
    response: tuple[tuple[float, float], ...] = ()
    mismatch_dw: float = 0.0
    mismatch_dl: float = 0.0
    sigma_w: float = 0.0
    sigma_l: float = 0.0

    def deviations(
        self,
        w: float,
        l: float,  # noqa: E741 - the field's own letter
        m: int = 1,
        area: float = 1.0,
    ) -> tuple[float, float]:
        """Return the standard deviations of threshold voltage, V, and of ln(current factor) of m devices in parallel.

        area: factor of the gate area. Deviations of width and length count as ones of the current factor, which is
        proportional to W / L. Raises InputError for a size with nothing left.
        """
        side = (self.mismatch_area(w, l, m) * area) ** 0.5
        drawn = math.hypot(self.sigma_w / w, self.sigma_l / l) / (m * area) ** 0.5
        return self.a_vt / side, math.hypot(self.a_beta / side, drawn)

    def mismatch_area(self, w: float, l: float, m: int = 1) -> float:  # noqa: E741 - the field's own letter
        """Return m (W + dW) (L + dL), square metre, the area with which mismatch variances of m devices fall.

        Raises InputError for a size with nothing left.
        """
        wide, long = w + self.mismatch_dw, l + self.mismatch_dl
        if not (wide > 0 and long > 0):
            raise InputError(
                f"{self.name}: a device of w {w * 1e6:g} um, l {l * 1e6:g} um must be larger than what mismatch_dw "
                f"{self.mismatch_dw:g} m and mismatch_dl {self.mismatch_dl:g} m take from it; draw it larger"
            )
        return m * wide * long

    def response_at(self, density: float) -> float:
        """Return the slope factor n of a transistor of W = L at a current `density`, ampere.

        It is linear over the logarithm of the current, and constant outside the measured range.
        """
        if not self.response:
            return self.slope_factor
        currents, slopes = zip(*self.response, strict=True)
        return float(interpolate_log(density, currents, slopes))


@dataclass(frozen=True)
class DeviceLibrary:
    """A library of device models.

    also: files that the library expects before it; sections: corner -> section of the file; length_unit: metre per unit
    of w and l in the library; diffusion: length of a source or drain, metre, 0 for none; flicker_worst: the parameter,
    as name=value, that gives worst-case flicker noise, "" if there is none.
    """

    file: Path
    also: tuple[Path, ...]
    sections: Mapping[str, str]
    length_unit: float
    diffusion: float
    flicker_worst: str = ""


@dataclass(frozen=True)
class DeviceSizes:
    """Device geometry per role. Mirrors are built from integer counts of one unit device, so ratios are exact.

    mirror_n, mirror_p: the unit device of signal mirrors
    cell_n, cell_p: current sources and copies inside the 9T cell, its bias diodes and its candidate diode
    latch_switch: M3 and M6 of the 9T cell, which only steer current, so they are small and the decision node is fast
    sample_switch: both halves of the transmission gate that samples the candidate
    """

    mirror_n: Geometry
    mirror_p: Geometry
    cell_n: Geometry
    cell_p: Geometry
    latch_switch: Geometry
    sample_switch: Geometry


@dataclass(frozen=True)
class WireTable:
    """The capacitances of a technology's wires.

    over: layer -> (layer below it, or ground -> F/m2 of area); rim: layer -> (layer below it, or ground -> F/m of
    edge); beside: layer -> (F for a length that equals the spacing, m to add to the spacing); junctions: polarity ->
    (F/m2, F/m); well: capacitance of an n well to the substrate, F/m2.
    """

    over: Mapping[str, Mapping[str, float]]
    rim: Mapping[str, Mapping[str, float]]
    beside: Mapping[str, tuple[float, float]]
    junctions: Mapping[str, tuple[float, float]]
    well: float


@dataclass(frozen=True)
class DrawingRules:
    """The needs of a layout in a technology, the `[layout]` table of its file.

    mos: polarity -> the transistor's name in the LVS deck; capacitor: the metal capacitor's name there; variant: name
    of the metal stack in the decks; decks: folder of the decks, below that of the kits; layers, rules: one for each of
    LAYERS and RULES; wires: their capacitances; sheet: resistance of each conductor, ohm a square; via: of one of each
    of VIAS, ohm; gradient: standard deviations, over chips, of the slopes of
    threshold voltages (V/m) and of current factors (1/m) across a die.
    """

    mos: Mapping[str, str]
    capacitor: str
    variant: str
    decks: str
    layers: Mapping[str, Layer]
    rules: Mapping[str, int]
    wires: WireTable
    sheet: Mapping[str, float]
    via: Mapping[str, float]
    gradient: tuple[float, float]

    def __getitem__(self, rule: str) -> int:
        """Return the value of a layout rule by its key: nanometre, square nanometre or percent."""
        return self.rules[rule]


@dataclass(frozen=True)
class Technology:
    """A process as the compiler sees it, in one corner, at one supply and temperature.

    grid: layout grid in metre; every drawn width and length is a multiple of it
    supply, supply_max: nominal and largest supply, V; celsius: temperature, degree Celsius
    capacitor_density: of metal capacitors, F/m2, for estimates of area
    corner: one of `library.sections`; flicker: whether noise is typical or has the worst case of flicker noise
    drawing: rules for its layout, None if they are not known
    hold_capacitance: of the capacitor that holds a candidate while a cell decides, F
    """

    name: str
    summary: str
    library: DeviceLibrary
    nfet: DeviceModel
    pfet: DeviceModel
    sizing: DeviceSizes
    grid: float
    supply: float
    supply_max: float
    celsius: float
    capacitor_density: float
    corner: str = "tt"
    drawing: DrawingRules | None = None
    hold_capacitance: float = HOLD_CAPACITANCE
    flicker: Flicker = "typical"

    @property
    def thermal_voltage(self) -> float:
        """Return the thermal voltage U_T = k T / q in volt at the technology's temperature."""
        return 8.617333e-5 * (self.celsius + 273.15)

    def device(self, polarity: Polarity) -> DeviceModel:
        """Return the transistor type of this polarity."""
        return self.nfet if polarity == "n" else self.pfet

    def snap(self, length: float) -> float:
        """Round a drawn dimension, m, to the layout grid."""
        return round(length / self.grid) * self.grid
