"""The folder of a Monte Carlo run: run.json has the run's settings, chips.jsonl one line for each finished chip."""

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
    """Return the format in which chips of a run with these settings are written as lines of chips.jsonl."""
    engine, devices = settings.get("engine", ""), len(settings.get("devices", ()))
    return RecordFormat(
        "chips",
        attrgetter("chip"),
        lambda record: {engine if key == SIMULATED else key: value for key, value in json_object(record).items()},
        lambda content, where: check_record(content, engine, devices, where),
    )


def open_store(folder: Path, settings: Settings, *, fresh: bool = False) -> AbstractContextManager[ChipStore]:
    """Open the folder of a Monte Carlo run as a store of chip records, as a context manager (see `open_records`)."""
    return open_records(folder, VERB, settings, chip_format(settings), fresh=fresh)


@contextmanager
def open_records(
    folder: Path, verb: str, settings: Settings, form: RecordFormat[R], *, fresh: bool = False
) -> Iterator[RecordStore[R]]:
    """Create the folder of a run of `cosim montecarlo` or `cosim trim`, or open it with the chips that it has.

    Damaged lines are left out. fresh: delete the chips of an earlier run first. Raises InputError when another process
    uses the folder, or when the folder holds a run of other settings.
    """
    with own_folder(folder, verb):
        if fresh:
            clear_kept(folder)
        store = RecordStore(folder / CHIPS_FILE, settings_key(settings), form)
        continue_run(folder / RUN_FILE, settings, store)
        yield store


def check_held(store: RecordStore[R], chips: int) -> None:
    """Raise InputError where the folder of a run holds a chip whose number is not below `chips`."""
    if (held := max(store.records, default=-1) + 1) > chips:
        raise InputError(
            f"{store.folder}: holds {held} chips, so --chips must be at least {held}, not {chips}; for fewer choose "
            "another folder with -o"
        )


def keep_missing(
    store: RecordStore[R], numbers: Sequence[int], execute: Callable[[Sequence[int]], Iterable[R]]
) -> Iterator[int]:
    """Run and keep those chips of `numbers` that the store lacks, or lost to a time-out or a dead worker.

    Yields how many of `numbers` are done, at the beginning and after each chip. execute: runs chips by number.
    """
    missing = [number for number in numbers if number not in store.records or _is_lost(store.records[number])]
    yield (done := len(numbers) - len(missing))
    for record in execute(missing) if missing else ():
        store.append(record)
        yield (done := done + 1)


def _is_lost(record: object) -> bool:
    return isinstance(record, ChipRecord) and record.reason in _LOST


def read_chips(folder: Path, settings: Settings) -> ChipStore:
    """Read chips.jsonl of a Monte Carlo run with these settings; damaged lines are in the store's `damaged`."""
    return RecordStore(folder / CHIPS_FILE, settings_key(settings), chip_format(settings))


@dataclass(frozen=True)
class _Run:
    """The fields that every run.json must have."""

    cosim: str
    engine: str
    design: dict[str, object]
    devices: list[str]
    samples_hash: str
    calibration: str
    made_with: dict[str, object]


def read_store(folder: Path) -> tuple[Settings, dict[int, ChipRecord]]:
    """Read the settings of a Monte Carlo run and its chips: (settings, chip number -> record).

    Raises InputError for a folder without a run, and for damaged files.
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
    """Raise InputError where the settings of run.json lack a field that every run has, or a field has a wrong type."""
    typed(settings, _Run, str(folder / RUN_FILE), "the command that made the run writes it again")


def read_sealed(path: Path) -> Settings:
    """Read a JSON object from a file of a Monte Carlo run, verify its checksum, and return it without the checksum.

    Raises FileNotFoundError where there is no file, InputError where the checksum does not fit.
    """
    if not is_file(path):
        raise FileNotFoundError(path)
    found: Any = seal.read_sealed(path, "the command that made the run writes it again", finite=False)
    return found


def check_record(content: object, engine: str, devices: int, where: str) -> ChipRecord:
    """Convert the content of a line of chips.jsonl to a chip's record, and check it.

    engine: the run's; devices: number of transistors that vary; where: place of the line, for messages. Raises
    InputError that names the field.
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
    """Pack a chip's draws as text for its record: single precision in base 64.

    All threshold shifts, V, come first, then all current factors, both in the order of the chip's devices.
    """
    return b64encode(np.concatenate([chip.vt_shift, chip.beta_factor]).astype("<f4").tobytes()).decode("ascii")


def pack_certainty(margins: Array) -> str | None:
    """Pack the smallest margin of each sample on a chip, (n,) ampere, as text: single precision in base 64.

    Returns None where no margin was measured (all are inf).
    """
    if not np.isfinite(margins).any():
        return None
    return b64encode(margins.astype("<f4").tobytes()).decode("ascii")


def unpack_certainty(record: ChipRecord, samples: int) -> Array:
    """Return the smallest margin of each sample on a chip, (samples,) ampere, as `pack_certainty` wrote it.

    Margins are inf where none was measured, and nan for a chip that failed or ran in another simulator entirely.
    """
    if record.status != "ok" or sum((record.elsewhere or {}).values()) == samples:
        return np.full(samples, np.nan)
    if record.certainty is None:
        return np.full(samples, np.inf)
    return np.frombuffer(b64decode(record.certainty), dtype="<f4").astype(np.float64)


def unpack_draws(text: str) -> tuple[Array, Array]:
    """Unpack the text of `pack_draws` to a chip's threshold shifts, V, and current factors, (devices,) each."""
    values = np.frombuffer(b64decode(text), dtype="<f4").astype(np.float64)
    return values[: len(values) // 2], values[len(values) // 2 :]
