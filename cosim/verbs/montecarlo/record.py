"""A chip's record as a line of a store has it: read, and its draws packed."""

import binascii
from base64 import b64decode, b64encode

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.text import check_plain, json_object, typed
from cosim.engines.table import BEHAVIORAL
from cosim.variation.draws import Chip
from cosim.verbs.montecarlo.chips import ChipRecord, Figures

Array = NDArray[np.float64]
_REPAIR = "choose another run"
_MOST_POWER = 1.0  # W
SIMULATED = "simulated"  # the field whose key is the name of the engine


def check_record(content: object, engine: str, devices: int, where: str) -> ChipRecord:
    """Return the record of a line, checked to have what a run by `engine` says of a chip with so many varying devices.

    Raises InputError that names the field.
    """
    plain = check_plain(content, where, _REPAIR)
    if engine != BEHAVIORAL and isinstance(plain, dict) and SIMULATED not in plain:
        plain = {SIMULATED if key == engine else key: value for key, value in plain.items()}
    record = typed(plain, ChipRecord, where, _REPAIR)
    try:
        drawn = len(unpack_draws(record.draws)[0])
    except (binascii.Error, ValueError):
        drawn = -1
    needed = "reason" if record.status != "ok" else engine if engine == BEHAVIORAL else SIMULATED
    faults = {
        "chip must be 0 or more": record.chip < 0,
        f"figures must be shares of 1, and power below {_MOST_POWER:g} W": not all(
            _plausible(figures) for figures in (record.behavioral, record.simulated) if figures is not None
        ),
        f"must have the field {engine if needed == SIMULATED else needed}": getattr(record, needed, None) is None,
        f"draws must be those of {devices} devices": drawn != devices,
    }
    if fault := next((text for text, found in faults.items() if found), None):
        raise InputError(f"{where}: {fault}; {_REPAIR}")
    return record


def record_line(record: ChipRecord, engine: str) -> dict[str, object]:
    """Return a record as its line has it: a JSON object, in which simulated figures have the engine's name as their
    key."""
    return {engine if key == SIMULATED else key: value for key, value in json_object(record).items()}


def _plausible(found: Figures) -> bool:
    """Tell whether shares lie between 0 and 1, and the power is one that a chip of nanoamperes may take."""
    shares = found.accuracy, found.task_agreement, found.state_agreement
    return all(0 <= share <= 1 for share in shares) and abs(found.power) < _MOST_POWER


def pack_draws(chip: Chip) -> str:
    """Pack all threshold shifts, V, then all current factors, in the order of devices, as single precision in base
    64."""
    return b64encode(np.concatenate([chip.vt_shift, chip.beta_factor]).astype("<f4").tobytes()).decode("ascii")


def pack_certainty(margins: Array) -> str | None:
    """Pack the least margin of each sample, (n,) ampere, as single precision in base 64; None where none was
    measured."""
    if not np.isfinite(margins).any():
        return None
    return b64encode(margins.astype("<f4").tobytes()).decode("ascii")


def unpack_certainty(record: ChipRecord, samples: int) -> Array:
    """Return the least margin of each sample, (samples,) ampere, as `pack_certainty` wrote it: inf where none was
    measured, nan for a chip that failed or whose samples all ran in another simulator than was asked."""
    if record.status != "ok" or sum((record.elsewhere or {}).values()) == samples:
        return np.full(samples, np.nan)
    if record.certainty is None:
        return np.full(samples, np.inf)
    return np.frombuffer(b64decode(record.certainty), dtype="<f4").astype(np.float64)


def unpack_draws(text: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return vt_shift in V and beta_factor, (devices,) each, as `pack_draws` wrote them."""
    values = np.frombuffer(b64decode(text), dtype="<f4").astype(np.float64)
    return values[: len(values) // 2], values[len(values) // 2 :]
