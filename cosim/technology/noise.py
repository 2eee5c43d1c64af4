"""Noise of a technology's transistors, measured once: densities, slopes and capacitances.

    S(f) = 2 q I (thermal + flicker (1 Hz / f)^exponent)        one-sided, A^2/Hz, of one unit device that carries I

A saturated transistor in weak inversion has the shot noise 2 q I of its current (R. Sarpeshkar, T. Delbruck and
C. A. Mead, IEEE Circuits and Devices 9 (1993) no. 6, 23); towards moderate inversion its thermal noise falls behind,

    thermal = (1 + 4 q_s / 3) / (1 + q_s)^2        1 + q_s = slope / slope in weak inversion

with q_s the normalised charge at its source (C. C. Enz and E. A. Vittoz, Charge-based MOS Transistor Modeling, 2006,
ch. 6). What a card's own equations give in its place is `DeviceNoise.thermal`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.base.errors import InputError
from cosim.base.store import FitFile
from cosim.technology.decision import DecisionNode, why_not_a_node

Array = NDArray[np.float64]
FORMAT = 2
KINDS = ("mirror_n", "mirror_p", "cell_n", "cell_p")  # the geometries of `Sizing` that carry currents
_REPAIR = "remove it, and it is measured again"


@dataclass(frozen=True)
class DeviceNoise:
    """One unit device of a kind, with its upper device where it has one.

    currents: ampere; slopes: I / (g_m U_T); thermal, flicker, exponent: as above, one for each current but exponent;
    gate, drain: capacitance of these ends in saturation, diode: of both together, farad.
    """

    currents: tuple[float, ...]
    slopes: tuple[float, ...]
    thermal: tuple[float, ...]
    flicker: tuple[float, ...]
    exponent: float
    gate: float
    drain: float
    diode: float

    def slope(self, current: ArrayLike) -> Array:
        """Return I / (g_m U_T) at a current of a unit device."""
        return self._at(self.slopes, current)

    def physical(self, current: ArrayLike) -> Array:
        """Return the thermal density over 2 q I, by physics."""
        charge = np.maximum(self.slope(current) / self.slopes[0] - 1, 0.0)
        return (1 + 4 * charge / 3) / (1 + charge) ** 2

    def factor(self, current: ArrayLike) -> Array:
        """Return the thermal density over 2 q I, by the card."""
        return self._at(self.thermal, current)

    def drift(self, current: ArrayLike) -> Array:
        """Return the flicker density at 1 Hz over 2 q I, by the card."""
        return np.exp(self._at(tuple(np.log(np.maximum(self.flicker, 1e-30)).tolist()), current))

    def _at(self, values: tuple[float, ...], current: ArrayLike) -> Array:
        low, high = self.currents[0], self.currents[-1]
        return np.interp(np.log(np.clip(current, low, high)), np.log(self.currents), values)


@dataclass(frozen=True, eq=False)
class NoiseFit:
    """The kinds of devices of a technology, and the decision node that they make; fingerprint: of cards, sizes and
    conditions; celsius: measured there."""

    technology: str
    fingerprint: str
    simulator: str
    celsius: float
    devices: Mapping[str, DeviceNoise]
    decision: DecisionNode


def _check(fit: NoiseFit, where: str) -> None:
    if missing := [kind for kind in KINDS if kind not in fit.devices]:
        raise InputError(f"{where}: devices must hold {' and '.join(missing)}; {_REPAIR}")
    for kind, device in fit.devices.items():
        curves = device.slopes, device.thermal, device.flicker
        rising = len(device.currents) > 1 and bool(np.all(np.diff(device.currents) > 0)) and device.currents[0] > 0
        if not rising or any(len(curve) != len(device.currents) or min(curve) < 0 for curve in curves):
            raise InputError(f"{where}: devices.{kind} must hold rising currents and as many figures; {_REPAIR}")
    if (reason := why_not_a_node(fit.decision)) is not None:
        raise InputError(f"{where}: {reason}; {_REPAIR}")


NOISE_FILE = FitFile(NoiseFit, FORMAT, 6, "noise figures", _REPAIR, _check)
