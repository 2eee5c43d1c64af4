"""Files of a search: search.json says what it is, and two files get a line for every finished trial and check.

A line is on disk before the next trial begins. Its checksum is one over what the search is, too; from the first line
on that does not fit, trials run again, which is fast where their chips are kept. search.json is written anew from the
options of each command, so a damaged one costs nothing where a line says that the search is the same.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from cosim.base.errors import InputError
from cosim.base.seal import read_sealed, seal_json, seal_line, unseal_line
from cosim.base.text import JSON_LIMIT, is_file, json_object, parse_json, read_bytes, shown, typed
from cosim.base.write import write_atomically
from cosim.verbs.explore.study import OnTransistors, Tried

SEARCH_FILE, TRIALS_FILE, CHECKS_FILE = "search.json", "trials.jsonl", "transistors.jsonl"
_AGAIN = "choose another folder with -o"
R = TypeVar("R")


class TrialStore:
    """A folder's finished trials and checks, by the number of the trial."""

    def __init__(self, folder: Path, search: Mapping[str, object]) -> None:
        """Raise InputError where the folder holds another search, or lines of which none is known to be this one's."""
        plain = json.loads(json.dumps(json_object(search)))
        self._folder = folder
        self._key = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
        is_known = _check(folder / SEARCH_FILE, plain)
        self.trials = self._read(TRIALS_FILE, Tried, is_known=is_known)
        self.checks = self._read(CHECKS_FILE, OnTransistors, is_known=is_known or bool(self.trials))
        write_atomically(folder / SEARCH_FILE, seal_json(plain))

    def trial(self, tried: Tried) -> None:
        """Keep a trial."""
        self._append(TRIALS_FILE, tried.number, tried)
        self.trials[tried.number] = tried

    def check(self, number: int, found: OnTransistors) -> None:
        """Keep what transistors say of one."""
        self._append(CHECKS_FILE, number, found)
        self.checks[number] = found

    def _append(self, name: str, number: int, record: object) -> None:
        path = self._folder / name
        try:
            with path.open("ab") as file:
                file.write(seal_line({"number": number, "is": json_object(record)}, self._key))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(
                f"cannot write to {path}: {error.strerror}; make room, then give the command again"
            ) from None

    def _read(self, name: str, cls: type[R], *, is_known: bool) -> dict[int, R]:
        """Read the whole lines of a file up to the first that is not, and cut off what follows. Raises InputError where
        no line is of this search, unless `is_known` says that the file is."""
        path, found, whole = self._folder / name, dict[int, R](), 0
        if not is_file(path):
            return found
        content = read_bytes(path, JSON_LIMIT, _AGAIN)
        for line in content.splitlines(keepends=True):
            try:
                number, record = _parts(parse_json(unseal_line(line, self._key), name, _AGAIN))
                found[number] = typed(_named(record), cls, name, _AGAIN)
            except (ValueError, InputError):
                break
            whole += len(line)
        if b"\n" in content and not found and not is_known:
            raise InputError(
                f"{self._folder}: {SEARCH_FILE} is missing or damaged, and no line of {name} is of this search; "
                f"{_AGAIN}"
            )
        if whole < len(content):
            write_atomically(path, content[:whole])
        return found


def _parts(plain: object) -> tuple[int, Mapping[str, object]]:
    """Return the number and the record of a line; raises ValueError where it has none."""
    match plain:
        case {"number": int(number), "is": dict(record)}:
            return number, record
        case _:
            raise ValueError


def _named(plain: Mapping[str, object]) -> dict[str, object]:
    """Return a record with its keys as the fields are called, see `json_object`."""
    return {"yield_" if key == "yield" else key: value for key, value in plain.items()}


def _check(path: Path, search: Mapping[str, object]) -> bool:
    """Return whether a file says that its folder is of this search; not where it is missing or damaged. Raises
    InputError where it says that of another."""
    if not is_file(path):
        return False
    try:
        known = read_sealed(path, _AGAIN)
    except InputError:
        return False
    for name in sorted({*known, *search}):
        if known.get(name) != search.get(name):
            raise InputError(
                f"{path.parent}: holds another search: {name} is {shown(known.get(name))} there, not "
                f"{shown(search.get(name))}; {_AGAIN}"
            )
    return True
