"""A run's folder: run.json says what was run, chips.jsonl gets a line for every finished chip.

A line is on disk before the next chip's is begun, in the order in which chips finish; a finished run has them in the
order of their numbers, whatever ran them. The checksum of a line is one over the run's settings, too: what changed on
the disk, or comes from another run, is no record of this one, and its chip runs again.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from cosim.base import seal
from cosim.base.claim import own_folder
from cosim.base.errors import InputError
from cosim.base.seal import checksum, seal_json, seal_line, unseal_line
from cosim.base.store import clear_kept
from cosim.base.text import is_file, open_file, parse_json, typed
from cosim.base.write import sync_folder, write_atomically
from cosim.verbs.montecarlo.chips import ChipRecord
from cosim.verbs.montecarlo.record import check_record, record_line

VERB = "montecarlo"  # owner of the folder
RUN_FILE, CHIPS_FILE = "run.json", "chips.jsonl"
MADE_WITH = "made_with"  # versions, for whoever reads the run later; they may differ when it goes on
_AGAIN = "the same command goes on"
Settings = dict[str, Any]  # what run.json holds, whichever cosim wrote it


class Numbered(Protocol):
    """The record of a chip."""

    @property
    def chip(self) -> int:
        """Return the number of the chip."""
        ...


R = TypeVar("R", bound=Numbered)


@dataclass(frozen=True)
class RecordFormat(Generic[R]):
    """Format of a verb's records as lines of its store.

    read: (content of a line, the run's settings, where it is) -> record, or InputError. write: the inverse.
    """

    verb: str
    read: Callable[[object, Settings, str], R]
    write: Callable[[R, Settings], Mapping[str, object]]


def _read_chip(content: object, settings: Settings, where: str) -> ChipRecord:
    return check_record(content, settings.get("engine", ""), len(settings.get("devices", ())), where)


def _chip_line(record: ChipRecord, settings: Settings) -> Mapping[str, object]:
    return record_line(record, settings.get("engine", ""))


CHIPS = RecordFormat(VERB, _read_chip, _chip_line)


@dataclass(frozen=True)
class StoredChips(Generic[R]):
    """The content of chips.jsonl: records by chip; how many whole lines are there; numbers of lines that are damaged.

    tidy: every line is whole, there once, and in the order of the chips.
    """

    records: dict[int, R] = field(default_factory=dict[int, R])
    lines: int = 0
    damaged: tuple[int, ...] = ()
    tidy: bool = True


class RecordStore(Generic[R]):
    """The records of a run; `settings` say what a chip's outcome depends on. damaged: records that were not whole."""

    def __init__(self, folder: Path, settings: Settings, kept: StoredChips[R], form: RecordFormat[R]) -> None:
        self.folder, self.settings, self.records, self._form = folder, settings, kept.records, form
        self.damaged, self._tidy, self._key = len(kept.damaged), kept.tidy, run_key(settings)
        self._last = max(kept.records, default=-1)

    def append(self, record: R) -> None:
        """Put one chip's record on disk. Raises InputError when it cannot be written; what was there before stays."""
        path = self.folder / CHIPS_FILE
        try:
            _append(path, self._line(record))
        except OSError as error:
            raise InputError(
                f"cannot write to {path}: {error.strerror}; {len(self.records)} chips are kept: make room, then "
                f"{_AGAIN}"
            ) from None
        self._tidy = self._tidy and record.chip > self._last
        self._last = record.chip
        self.records[record.chip] = record

    def _line(self, record: R) -> bytes:
        return seal_line(self._form.write(record, self.settings), self._key)

    def tidy(self) -> None:
        """Put the lines in the order of the chips, and leave out those that are damaged or that another replaced."""
        if not self._tidy:
            self.records = dict(sorted(self.records.items()))
            lines = b"".join(map(self._line, self.records.values()))
            write_atomically(self.folder / CHIPS_FILE, lines)
            self._tidy = True


Store = RecordStore[ChipRecord]


@contextmanager
def open_store(folder: Path, settings: Settings, *, fresh: bool = False) -> Iterator[Store]:
    """Open the store of a Monte Carlo run, see `open_records`."""
    with open_records(folder, settings, CHIPS, fresh=fresh) as store:
        yield store


@contextmanager
def open_records(
    folder: Path, settings: Settings, form: RecordFormat[R], *, fresh: bool = False
) -> Iterator[RecordStore[R]]:
    """Create a run's folder, or go on in it; what is damaged there is left out. fresh: begin anew, without its chips.

    Raises InputError when another process holds it, or when it holds a run of other settings.
    """
    with own_folder(folder, form.verb):
        if fresh:
            clear_kept(folder)
        kept = _read_lines(folder, settings, form)
        try:
            known = read_sealed(folder / RUN_FILE)
        except (FileNotFoundError, InputError):  # a power cut before the first chip, or damage later
            known = None
        if known is not None:
            check_settings(folder, known, settings)
        elif kept.lines and not kept.records:
            raise InputError(
                f"{folder}: {RUN_FILE} is missing, damaged or of a cosim without checksums, and no line of "
                f"{CHIPS_FILE} is a chip of these settings; choose another folder with -o, or begin anew with --fresh"
            )
        if known is None:
            write_atomically(folder / RUN_FILE, seal_json(settings))
        store = RecordStore(folder, settings, kept, form)
        store.tidy()
        yield store


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
    """Read settings and records by chip. Raises InputError for a folder that is no run, and for what is damaged."""
    try:
        settings = read_sealed(folder / RUN_FILE)
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no Monte Carlo run there ({RUN_FILE} is missing); make one with: cosim montecarlo"
        ) from None
    kept = read_chips(folder, settings)
    if kept.damaged:
        raise InputError(
            f"{folder / CHIPS_FILE}: line {kept.damaged[0]} is damaged, its checksum does not fit; the same command "
            "runs chips of damaged lines again"
        )
    return settings, dict(sorted(kept.records.items()))


def check_run(folder: Path, settings: Settings) -> None:
    """Raise InputError where the settings in a store lack a field that every run has, or have one of another type."""
    typed(settings, _Run, str(folder / RUN_FILE), "the command that made the run writes it again")


def read_sealed(path: Path) -> Settings:
    """Read a JSON object that ends with its checksum, and return it without the checksum.

    Raises FileNotFoundError where there is no file, InputError where the checksum does not fit.
    """
    if not is_file(path):
        raise FileNotFoundError(path)
    found: Any = seal.read_sealed(path, "the command that made the run writes it again", finite=False)
    return found


def read_chips(folder: Path, settings: Settings) -> StoredChips[ChipRecord]:
    """Read the records of a Monte Carlo run."""
    return _read_lines(folder, settings, CHIPS)


def _read_lines(folder: Path, settings: Settings, form: RecordFormat[R]) -> StoredChips[R]:
    """Read the records of a run, one a line. The text after the last end of a line was being written when the run
    ended, and is left out."""
    path, key = folder / CHIPS_FILE, run_key(settings)
    if not is_file(path):
        return StoredChips()
    with open_file(path, "choose another run") as file:
        content = file.read()
    whole = content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
    records: dict[int, R] = {}
    damaged, order = [], []
    for number, line in enumerate(whole, start=1):
        try:
            text = unseal_line(line, key)
        except ValueError:
            damaged.append(number)
            continue
        where = f"{path}: line {number}"
        record = form.read(parse_json(text, where, "choose another run"), settings, where)
        records[record.chip] = record
        order.append(record.chip)
    tidy = order == sorted(records) and not damaged and content.endswith(b"\n")
    return StoredChips(records, len(whole), tuple(damaged), tidy)


def run_key(settings: Settings) -> str:
    """Return the hash that binds a record to the settings of its run."""
    return checksum(json.dumps(_without_versions(settings), sort_keys=True).encode())


def check_settings(folder: Path, known: Settings, settings: Settings) -> None:
    """Raise InputError that names what differs between a store's settings and those asked for."""
    difference = find_difference(_without_versions(known), _without_versions(settings))
    if difference is not None:
        key, old, new = difference
        raise InputError(
            f"{folder}: holds a run with another {key}: {old}, not {new}; choose another folder with -o, go on with "
            "the same settings, or begin anew with --fresh"
        )


def _append(path: Path, line: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        size = os.fstat(handle).st_size
        try:
            if os.write(handle, line) < len(line):
                raise OSError(28, "no space left on the device")
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)
    if not size:
        sync_folder(path.parent)


def _without_versions(settings: Settings) -> Settings:
    return {key: value for key, value in settings.items() if key != MADE_WITH}


def find_difference(known: object, asked: object, name: str = "") -> tuple[str, str, str] | None:
    """Return (name, known, asked) of the first setting that differs, such as variation.area; None where none does."""
    if not isinstance(known, dict) or not isinstance(asked, dict):
        return None if known == asked else (name, _short(known), _short(asked))
    found = (find_difference(known.get(key), asked.get(key), f"{name}.{key}") for key in sorted({*known, *asked}))
    return next(((key.lstrip("."), old, new) for key, old, new in filter(None, found)), None)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
