"""Linear gradients across the die: what the place of a transistor adds to its draws, on each chip anew.

    dP(x, y) = g_x (x - x_0) + g_y (y - y_0)         g_x, g_y normal, sigma S_P; x_0, y_0 the middle of all places

for the threshold (P = V_T) and for the logarithm of the current factor, of n and of p transistors each. Two transistors
that are D apart then differ, with what each draws on its own, by

    sigma^2(dP) = A_P^2 / (W L) + S_P^2 D^2

because g_x dx + g_y dy has the variance S_P^2 (dx^2 + dy^2). The eight numbers of a chip are drawn as all others are,
so transistors draw what they draw without gradients.
Source: M. J. M. Pelgrom, A. C. J. Duinmaijer and A. P. G. Welbers, IEEE J. Solid-State Circuits 24 (1989) 1433.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cosim.base.seal import checksum
from cosim.variation.draws import Chip, VariationPlan, single, uniforms

_SIDES = ("n", "p")
SLOPES = tuple(f"gradient {side} {what} {axis}" for side in _SIDES for what in ("vt", "beta") for axis in "xy")


@dataclass(frozen=True)
class Gradient:
    """Linear gradients of transistors across a die.

    s_vt: V/m; s_beta: relative, 1/m; places: transistor -> x and y in metre.
    """

    s_vt: float
    s_beta: float
    places: Mapping[str, tuple[float, float]]

    @property
    def fingerprint(self) -> str:
        """Return a hash of the places of transistors on the die."""
        text = "".join(f"{name} {x!r} {y!r}\n" for name, (x, y) in sorted(self.places.items()))
        return checksum(text.encode())


def graded(chip: Chip, gradient: Gradient, plan: VariationPlan) -> Chip:
    """Return a drawn chip with gradients across its die; every one of its transistors must have a place."""
    places = np.array([gradient.places[device.name] for device in chip.devices])
    away = places - (places.min(axis=0) + places.max(axis=0)) / 2
    normal = ndtri(uniforms(plan, chip.number, SLOPES)).reshape(2, 2, 2)  # side, what, axis
    side = np.array([_SIDES.index(device.polarity) for device in chip.devices])
    vt, beta = (_along(away, normal[:, k][side]) for k in (0, 1))
    return replace(
        chip,
        vt_shift=single(chip.vt_shift + gradient.s_vt * vt),
        beta_factor=single(chip.beta_factor * np.exp(gradient.s_beta * beta)),
    )


def _along(away: NDArray[np.float64], slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    return (away * slopes).sum(axis=1)
