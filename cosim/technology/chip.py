"""Measured currents of the blocks around a network: converters, sources of the bias tree, clock generator.

A converter draws a little more than its level's current, and a source of the tree gives a little more than its units
say, because their drains stand elsewhere than those of the diodes that they copy.
"""

from dataclasses import dataclass

import numpy as np

from cosim.base.errors import InputError
from cosim.technology.fit_file import FitFile

FORMAT = 2
_REPAIR = "remove it, and it is measured again"


@dataclass(frozen=True)
class ChipFit:
    """fingerprint: of cards, circuits and conditions.

    converter: current of the largest code over that of its level. pins, coarse: currents into a bias diode, rising, and
    what one coarse unit of the tree gives there, A; fine: what one fine unit gives, A. tick: charge that a flip-flop of
    the clock generator takes in each tick, with its share of all that drives them, C; leakage: current besides, A.
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
        """Return the numbers of coarse and fine units that come nearest to a pin's current, A."""
        each = float(np.interp(np.log(current), np.log(self.pins), self.coarse))
        coarse = int(current / each)
        fine = round((current - coarse * each) / self.fine)
        most = int(each / self.fine)
        return coarse, min(fine, most)


def _check(fit: ChipFit, where: str) -> None:
    rising = len(fit.pins) == len(fit.coarse) > 1 and fit.pins[0] > 0 and bool(np.all(np.diff(fit.pins) > 0))
    if not rising or min(*fit.coarse, fit.fine, fit.converter, fit.tick, fit.leakage) <= 0:
        raise InputError(f"{where}: pins must rise, one coarse for each, and all be positive; {_REPAIR}")


CHIP_FILE = FitFile(ChipFit, FORMAT, 7, "figures of the chip's blocks", _REPAIR, _check)
