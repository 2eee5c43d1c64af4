"""Measured currents of the blocks around a network: converters, sources of the bias tree, clock generator.

A converter draws a little more than its level's current, and a source of the tree gives a little more than its units
say, because their drains stand elsewhere than those of the diodes that they copy.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.base.errors import InputError
from cosim.base.seal import read_sealed_record, record_of, seal_json
from cosim.base.text import json_object, round_numbers, shown_path

FORMAT = 2
_WHAT, _DIGITS = "figures of the chip's blocks", 7
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


def chip_bytes(fit: ChipFit) -> bytes:
    """Return the content of the fit's file: JSON, numbers at 7 digits, the checksum last."""
    return seal_json(_content(fit))


def as_kept(fit: ChipFit) -> ChipFit:
    """Return the fit as it is read from its file: whoever measured it goes on with the same numbers."""
    return record_of(_content(fit), fit.technology, ChipFit, FORMAT, _WHAT, _REPAIR)


def _content(fit: ChipFit) -> object:
    return round_numbers({"format": FORMAT, **json_object(fit)}, _DIGITS)


def load_chip(path: Path) -> ChipFit:
    """Return the fit in a file. Raises InputError that names the field when it is missing, damaged, or none of this
    format."""
    where = shown_path(path)
    fit = read_sealed_record(path, ChipFit, FORMAT, _WHAT, _REPAIR)
    rising = len(fit.pins) == len(fit.coarse) > 1 and fit.pins[0] > 0 and bool(np.all(np.diff(fit.pins) > 0))
    if not rising or min(*fit.coarse, fit.fine, fit.converter, fit.tick, fit.leakage) <= 0:
        raise InputError(f"{where}: pins must rise, one coarse for each, and all be positive; {_REPAIR}")
    return fit
