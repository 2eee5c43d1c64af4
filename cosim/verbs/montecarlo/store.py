"""A run's folder: run.json says what was run, chips.jsonl gets a line for every finished chip, see `RecordStore`."""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base import seal
from cosim.base.claim import own_folder
from cosim.base.errors import InputError
from cosim.base.store import R, RecordFormat, RecordStore, Settings, clear_kept, continue_run, settings_key
from cosim.base.text import check_plain, is_file, json_object, typed
from cosim.engines.engine import FailureKind
from cosim.engines.table import BEHAVIORAL
from cosim.variation.draws import Chip
from cosim.verbs.montecarlo.chips import ChipRecord, Figures

VERB = "montecarlo"  # owner of the folder
RUN_FILE, CHIPS_FILE = "run.json", "chips.jsonl"
SIMULATED = "simulated"  # the field whose key in a line is the name of the engine
_LOST = (FailureKind.TIMEOUT.value, FailureKind.CRASH.value)  # reasons that lie in the machine, not in the chip
_MOST_POWER = 1.0  # W
_REPAIR = "choose another run"

Array = NDArray[np.float64]
ChipStore = RecordStore[ChipRecord]


def chip_format(settings: Settings) -> RecordFormat[ChipRecord]:
    """Return the format of chips as lines of a run with these settings."""
    engine, devices = settings.get("engine", ""), len(settings.get("devices", ()))
    return RecordFormat(
        "chips",
        attrgetter("chip"),
        lambda record: {engine if key == SIMULATED else key: value for key, value in json_object(record).items()},
        lambda content, where: check_record(content, engine, devices, where),
    )


def open_store(folder: Path, settings: Settings, *, fresh: bool = False) -> AbstractContextManager[ChipStore]:
    """Open the store of a Monte Carlo run, see `open_records`."""
    return open_records(folder, VERB, settings, chip_format(settings), fresh=fresh)


@contextmanager
def open_records(
    folder: Path, verb: str, settings: Settings, form: RecordFormat[R], *, fresh: bool = False
) -> Iterator[RecordStore[R]]:
    """Create the folder of a run of `cosim montecarlo` or `cosim trim`, or go on in it with the chips that it has.

    What is damaged there is left out. fresh: begin anew, without its chips. Raises InputError when another process
    holds it, or when it holds a run of other settings.
    """
    with own_folder(folder, verb):
        if fresh:
            clear_kept(folder)
        store = RecordStore(folder / CHIPS_FILE, settings_key(settings), form)
        continue_run(folder / RUN_FILE, settings, store)
        yield store


def check_held(store: RecordStore[R], chips: int) -> None:
    """Raise InputError where the folder of a run of `cosim montecarlo` or `cosim trim` has more chips than are asked
    for."""
    if (held := max(store.records, default=-1) + 1) > chips:
        raise InputError(
            f"{store.folder}: holds {held} chips, so --chips must be at least {held}, not {chips}; for fewer choose "
            "another folder with -o"
        )


def keep_missing(
    store: RecordStore[R], numbers: Sequence[int], execute: Callable[[Sequence[int]], Iterable[R]]
) -> Iterator[int]:
    """Run those chips of `numbers` that a store lacks, and those that an earlier run lost to a time-out or a dead
    worker; yield how many of them there are, before the first and with each that is kept."""
    missing = [number for number in numbers if number not in store.records or _is_lost(store.records[number])]
    yield (done := len(numbers) - len(missing))
    for record in execute(missing) if missing else ():
        store.append(record)
        yield (done := done + 1)


def _is_lost(record: object) -> bool:
    return isinstance(record, ChipRecord) and record.reason in _LOST


def read_chips(folder: Path, settings: Settings) -> ChipStore:
    """Read the records of a Monte Carlo run."""
    return RecordStore(folder / CHIPS_FILE, settings_key(settings), chip_format(settings))


@dataclass(frozen=True)
class _Run:
    """The fields of run.json that its readers ask for."""

    cosim: str
    engine: str
    design: dict[str, object]
    devices: list[str]
    samples_hash: str
    calibration: str
    made_with: dict[str, object]


def read_store(folder: Path) -> tuple[Settings, dict[int, ChipRecord]]:
    """Read a Monte Carlo run's settings and records by chip.

    Raises InputError for a folder that is no run, and for what is damaged.
    """
    try:
        settings = read_sealed(folder / RUN_FILE)
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no Monte Carlo run there ({RUN_FILE} is missing); make one with: cosim montecarlo"
        ) from None
    kept = read_chips(folder, settings)
    if kept.damaged:
        raise InputError(next(iter(kept.damaged.values())))
    return settings, dict(sorted(kept.records.items()))


def check_run(folder: Path, settings: Settings) -> None:
    """Raise InputError where the settings in a store lack a field that every run has, or have one of another type."""
    typed(settings, _Run, str(folder / RUN_FILE), "the command that made the run writes it again")


def read_sealed(path: Path) -> Settings:
    """Read a JSON object of a run of `cosim montecarlo`, and return it without the checksum at its end.

    Raises FileNotFoundError where there is no file, InputError where the checksum does not fit.
    """
    if not is_file(path):
        raise FileNotFoundError(path)
    found: Any = seal.read_sealed(path, "the command that made the run writes it again", finite=False)
    return found


def check_record(content: object, engine: str, devices: int, where: str) -> ChipRecord:
    """Return a chip's record of a line, checked to have what a run by `engine` says of a chip with so many varying
    devices.

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


def _plausible(found: Figures) -> bool:
    """Tell whether shares lie between 0 and 1, and the power is one that a chip of nanoamperes may take."""
    shares = found.accuracy, found.task_agreement, found.state_agreement
    return all(0 <= share <= 1 for share in shares) and abs(found.power) < _MOST_POWER


def pack_draws(chip: Chip) -> str:
    """Pack a chip's draws for the record that `cosim montecarlo` keeps of it: single precision in base 64.

    All threshold shifts, V, are in front of all current factors, in the order of devices.
    """
    return b64encode(np.concatenate([chip.vt_shift, chip.beta_factor]).astype("<f4").tobytes()).decode("ascii")


def pack_certainty(margins: Array) -> str | None:
    """Pack for a chip's record the least margin of each sample, (n,) ampere, as single precision in base 64; None where
    none was measured."""
    if not np.isfinite(margins).any():
        return None
    return b64encode(margins.astype("<f4").tobytes()).decode("ascii")


def unpack_certainty(record: ChipRecord, samples: int) -> Array:
    """Return from a chip's record the least margin of each sample, (samples,) ampere, as `pack_certainty` wrote it: inf
    where none was measured, nan for a chip that failed or whose samples all ran in another simulator than was asked."""
    if record.status != "ok" or sum((record.elsewhere or {}).values()) == samples:
        return np.full(samples, np.nan)
    if record.certainty is None:
        return np.full(samples, np.inf)
    return np.frombuffer(b64decode(record.certainty), dtype="<f4").astype(np.float64)


def unpack_draws(text: str) -> tuple[Array, Array]:
    """Return a recorded chip's vt_shift in V and beta_factor, (devices,) each, as `pack_draws` wrote them."""
    values = np.frombuffer(b64decode(text), dtype="<f4").astype(np.float64)
    return values[: len(values) // 2], values[len(values) // 2 :]
