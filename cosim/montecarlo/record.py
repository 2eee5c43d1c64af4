"""The form of a chip's record, as a line of a store has it."""

import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cosim.errors import InputError
from cosim.montecarlo.trial import Record, unpack_draws
from cosim.reading.text import check_plain, typed

_REPAIR = "choose another run"
_MOST_POWER = 1.0  # W


@dataclass(frozen=True)
class _Figures:
    accuracy: float
    task_agreement: float
    state_agreement: float
    power: float
    decisions: tuple[int, ...]
    unreset: tuple[str, ...]

    def plausible(self) -> bool:
        """Whether shares are shares, and the power is one that a chip of nanoamperes may take."""
        shares = self.accuracy, self.task_agreement, self.state_agreement
        return all(0 <= share <= 1 for share in shares) and abs(self.power) < _MOST_POWER


@dataclass(frozen=True)
class _Form:
    chip: int
    status: Literal["ok", "failed"]
    supply_v: float
    celsius: float
    draws: str
    behavioral: _Figures | None = None
    ngspice: _Figures | None = None
    reason: str | None = None
    detail: str | None = None
    decks: str | None = None


def check_record(record: Any, settings: Mapping[str, Any], where: str) -> Record:
    """The record itself, if it has what the run of these settings says of a chip; raises InputError with the field."""
    form = typed(check_plain(record, where, _REPAIR), _Form, where, _REPAIR)
    try:
        drawn = len(unpack_draws(form.draws)[0])
    except (binascii.Error, ValueError):
        drawn = -1
    needed = settings.get("engine") if form.status == "ok" else "reason"
    faults = {
        "chip must be 0 or more": form.chip < 0,
        f"figures must be shares of 1, and power below {_MOST_POWER:g} W": not all(
            figures.plausible() for figures in (form.behavioral, form.ngspice) if figures is not None
        ),
        f"must have the field {needed}": record.get(needed) is None,
        f"draws must be those of {len(settings.get('devices', ()))} devices": drawn != len(settings.get("devices", ())),
    }
    if fault := next((text for text, found in faults.items() if found), None):
        raise InputError(f"{where}: {fault}; {_REPAIR}")
    return record
