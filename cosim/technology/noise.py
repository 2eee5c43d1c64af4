"""Noise of a technology's transistors, measured once: densities, slopes and capacitances.

    S(f) = 2 q I (thermal + flicker (1 Hz / f)^exponent)        one-sided, A^2/Hz, of one unit device that carries I

A saturated transistor in weak inversion has the shot noise 2 q I of its current (R. Sarpeshkar, T. Delbruck and
C. A. Mead, IEEE Circuits and Devices 9 (1993) no. 6, 23); towards moderate inversion its thermal noise falls behind,

    thermal = (1 + 4 q_s / 3) / (1 + q_s)^2        1 + q_s = slope / slope in weak inversion

with q_s the normalised charge at its source (C. C. Enz and E. A. Vittoz, Charge-based MOS Transistor Modeling, 2006,
ch. 6). `DeviceNoise.thermal` is what a model card's own equations give instead.

`DecisionNode` has small-signal data of the decision node of a technology's clocked 9T cell. While the cell tracks, M1
and M2 drive the capacitance and output conductance of the decision node alone. When the sample gate has closed, they
drive those of decision node and latch, and the hold node follows the decision node through M1's gate.
cosim.engines.behavioral.noise derives the noise of decisions from these data.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.base.errors import InputError
from cosim.technology.fit_file import FitFile
from cosim.technology.types import interpolate_log

Array = NDArray[np.float64]
DECISION_CURRENTS = (5e-11, 2e-10, 1e-9, 5e-9)  # A, of the threshold
KINDS = ("mirror_n", "mirror_p", "cell_n", "cell_p")  # the geometries of `DeviceSizes` that carry currents
_LARGEST = 40.0  # e-folds of a current that are computed
_REPAIR = "remove it, and it is measured again"


@dataclass(frozen=True)
class DecisionNode:
    """Small-signal data of the node at which a technology's clocked 9T cell decides.

    outputs: conductance of M1 and M2 together over the threshold current, 1/V, at each of DECISION_CURRENTS; tracking,
    joined, loop: capacitance of the node alone, of the node with the latch, and of the feedback's line, F; kick:
    voltage of the hold node per volt of the decision node; pedestal: voltage that the closing sample gate leaves on the
    hold node, V; switch: (V, A), current of M6 at two voltages of the latch; freezes, joins: when the sample gate stops
    and the decision gate begins to conduct, as fractions of the clock's edge.
    """

    outputs: tuple[float, ...]
    tracking: float
    joined: float
    loop: float
    kick: float
    pedestal: float
    switch: tuple[tuple[float, float], ...]
    freezes: float
    joins: float

    def output(self, i_thresh: ArrayLike) -> Array:
        """Return the conductance of M1 and M2 together at a threshold current (ampere), S."""
        return np.asarray(i_thresh) * interpolate_log(i_thresh, DECISION_CURRENTS, self.outputs)

    def switched(self, latch: ArrayLike) -> Array:
        """Return the current that M6 could carry at a latch voltage (V), A: exponential, as in weak inversion."""
        (low, least), (high, most) = self.switch
        steep = np.log(most / least) / (high - low)
        return least * np.exp(np.minimum(steep * (np.asarray(latch) - low), _LARGEST))


@dataclass(frozen=True)
class DeviceNoise:
    """Measured noise of a technology's unit device of one role, with its upper device if it is a self-cascode.

    currents: ampere; slopes: I / (g_m U_T) at these; thermal, flicker: densities over 2 q I at these, flicker at 1 Hz;
    exponent: of the flicker noise; gate, drain: capacitance of these terminals in saturation, diode: of both tied
    together, F.
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
        """Return the slope I / (g_m U_T) of the unit device at a current, ampere."""
        return self._at(self.slopes, current)

    def physical(self, current: ArrayLike) -> Array:
        """Return the thermal noise density over 2 q I at a current, ampere, by the physical equation in its slope."""
        charge = np.maximum(self.slope(current) / self.slopes[0] - 1, 0.0)
        return (1 + 4 * charge / 3) / (1 + charge) ** 2

    def factor(self, current: ArrayLike) -> Array:
        """Return the thermal noise density over 2 q I at a current, ampere, as the device's model card gives it."""
        return self._at(self.thermal, current)

    def drift(self, current: ArrayLike) -> Array:
        """Return the flicker noise density at 1 Hz over 2 q I at a current, ampere, as the device's card gives it."""
        return np.exp(self._at(tuple(np.log(np.maximum(self.flicker, 1e-30)).tolist()), current))

    def _at(self, values: tuple[float, ...], current: ArrayLike) -> Array:
        return interpolate_log(current, self.currents, values)


@dataclass(frozen=True, eq=False)
class NoiseFit:
    """Measured noise of a technology's kinds of devices, and of the decision node of its clocked 9T cell.

    fingerprint: hash of cards, sizes and conditions; celsius: temperature of the measurement.
    """

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
    node = fit.decision
    if len(node.outputs) != len(DECISION_CURRENTS) or min(node.tracking, node.joined, node.loop, *node.outputs) <= 0:
        raise InputError(
            f"{where}: decision.outputs must hold {len(DECISION_CURRENTS)} positive numbers, and its capacitances be "
            f"positive; {_REPAIR}"
        )
    if len(node.switch) != 2 or any(len(pair) != 2 for pair in node.switch):
        raise InputError(f"{where}: decision.switch must hold two pairs of volt and ampere; {_REPAIR}")
    (low, least), (high, most) = node.switch
    if not (low < high and 0 < least < most):
        raise InputError(f"{where}: decision.switch must rise; {_REPAIR}")


NOISE_FILE = FitFile(NoiseFit, 2, 6, "noise figures", _REPAIR, _check)
