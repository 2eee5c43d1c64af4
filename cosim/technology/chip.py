"""What the blocks around a network give and take, measured once: converters, sources of the bias tree, clock generator.

A converter draws a little more than its level's current, and a source of the tree gives a little more than its units
say, because their drains stand elsewhere than those of the diodes that they copy.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.errors import InputError
from cosim.files.json_form import json_object
from cosim.files.read import is_file
from cosim.files.write import write_atomically
from cosim.reading.text import check_known, read_json, typed

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
        """Coarse and fine units that come nearest to a pin's current, A."""
        each = float(np.interp(np.log(current), np.log(self.pins), self.coarse))
        coarse = int(current / each)
        fine = round((current - coarse * each) / self.fine)
        most = int(each / self.fine)
        return coarse, min(fine, most)


def write_chip(path: Path, fit: ChipFit) -> None:
    """The fit as JSON, numbers at 7 digits. Raises InputError when it cannot be written."""
    content = {"format": FORMAT, **json_object(fit)}
    rounded = {name: _rounded(value) for name, value in content.items()}
    write_atomically(path, (json.dumps(rounded, indent=2) + "\n").encode())


def _rounded(value: object) -> object:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def load_chip(path: Path) -> ChipFit:
    """Raises InputError that names the field when the file is missing, or no fit of this format."""
    where = str(path)
    if not is_file(path):
        raise InputError(f"{where}: no figures of the chip's blocks there; {_REPAIR}")
    content = read_json(path, _REPAIR)
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise InputError(f"{where}: not figures of the chip's blocks of format {FORMAT}; {_REPAIR}")
    check_known(content, ChipFit, where, _REPAIR)
    fit = typed(content, ChipFit, where, _REPAIR)
    rising = len(fit.pins) == len(fit.coarse) > 1 and fit.pins[0] > 0 and bool(np.all(np.diff(fit.pins) > 0))
    if not rising or min(*fit.coarse, fit.fine, fit.converter, fit.tick, fit.leakage) <= 0:
        raise InputError(f"{where}: pins must rise, one coarse for each, and all be positive; {_REPAIR}")
    return fit
