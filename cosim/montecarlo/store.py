"""A run's folder: run.json says what was run, chips.jsonl gets a line per finished chip, and nothing is ever rewritten.

A line is on disk before the next chip's is begun. After a crash the last line may be torn: it is cut off, and that chip
runs again. One process at a time holds the folder, by a lock that dies with it.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cosim.errors import InputError
from cosim.files.write import writing_into
from cosim.montecarlo.trial import Record
from cosim.outputs import write_texts

RUN_FILE, CHIPS_FILE, LOCK_FILE = "run.json", "chips.jsonl", ".lock"
MADE_WITH = "made_with"  # versions, for whoever reads the run later; they may differ when it goes on


class Store:
    """The records of a run; `settings` say what a chip's outcome depends on."""

    def __init__(self, folder: Path, settings: dict[str, Any], records: dict[int, Record]) -> None:
        self.folder, self.settings, self.records = folder, settings, records

    def append(self, record: Record) -> None:
        """Put one chip's record on disk. Raises InputError when it cannot be written; what was there before stays."""
        path = self.folder / CHIPS_FILE
        line = (json.dumps(record, separators=(",", ":")) + "\n").encode()
        try:
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                size = os.fstat(handle).st_size
                try:
                    written = os.write(handle, line)
                    if written < len(line):
                        raise OSError(28, "no space left on the device")
                    os.fsync(handle)
                except OSError:
                    os.ftruncate(handle, size)
                    raise
            finally:
                os.close(handle)
        except OSError as error:
            raise InputError(
                f"cannot write to {path}: {error.strerror}; {len(self.records)} chips are kept: make room, then go on "
                "with --resume"
            ) from None
        self.records[record["chip"]] = record


@contextmanager
def open_store(folder: Path, settings: dict[str, Any], resume: bool) -> Iterator[Store]:
    """Create a run's folder, or with `resume` go on in it.

    Raises InputError when another process holds it, when it holds a run of other settings, or when it holds chips and
    `resume` was not asked for.
    """
    with writing_into(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK_FILE).open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{folder}: another process is running chips into this store; wait for it, or choose another with -o"
            ) from None
        if (folder / RUN_FILE).exists():
            known, records = read_store(folder)
            check_settings(folder, known, settings)
            if records and not resume:
                raise InputError(
                    f"{folder}: holds {len(records)} chips of this run already; go on with --resume, or choose another "
                    "folder with -o"
                )
            _cut_torn_line(folder)
        else:
            if (folder / CHIPS_FILE).exists():
                raise InputError(f"{folder}: {CHIPS_FILE} without {RUN_FILE}; choose another folder with -o")
            records = {}
            write_texts(folder, {RUN_FILE: json.dumps(settings, indent=2) + "\n"})
        yield Store(folder, settings, records)


def read_store(folder: Path) -> tuple[dict[str, Any], dict[int, Record]]:
    """Settings and records by chip. Raises InputError for a folder that is no run, and for a damaged line."""
    path = folder / RUN_FILE
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(settings, dict):
            raise ValueError("no object")
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no Monte Carlo run there ({RUN_FILE} is missing); make one with: cosim montecarlo"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); choose another run") from None
    records: dict[int, Record] = {}
    for number, line in enumerate(_whole_lines(folder), start=1):
        try:
            record = json.loads(line)
            records[record["chip"]] = record
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{folder / CHIPS_FILE}: line {number} is damaged; delete that line, then go on with --resume"
            ) from None
    return settings, dict(sorted(records.items()))


def _whole_lines(folder: Path) -> list[bytes]:
    try:
        content = (folder / CHIPS_FILE).read_bytes()
    except FileNotFoundError:
        return []
    return content[: content.rfind(b"\n") + 1].splitlines()


def _cut_torn_line(folder: Path) -> None:
    path = folder / CHIPS_FILE
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


def check_settings(folder: Path, known: dict[str, Any], settings: dict[str, Any]) -> None:
    """Raises InputError that names what differs between a store's settings and those asked for."""
    kept, asked = ({key: value for key, value in one.items() if key != MADE_WITH} for one in (known, settings))
    difference = _difference(kept, asked)
    if difference is not None:
        key, old, new = difference
        raise InputError(
            f"{folder}: holds a run with another {key}: {_short(old)}, not {_short(new)}; choose another folder with "
            "-o, or go on with the same settings"
        )


def _difference(known: Any, asked: Any, name: str = "") -> tuple[str, Any, Any] | None:
    """(name, known, asked) of the first setting that differs, such as variation.area; None where none does."""
    if not isinstance(known, dict) or not isinstance(asked, dict):
        return None if known == asked else (name, known, asked)
    found = (_difference(known.get(key), asked.get(key), f"{name}.{key}") for key in sorted({*known, *asked}))
    return next(((key.lstrip("."), old, new) for key, old, new in filter(None, found)), None)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
