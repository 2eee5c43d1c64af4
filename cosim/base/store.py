"""Stores: results that must survive a killed process. The same command continues from them; --fresh begins anew.

    records    one a line of a file, such as the chips of a run; a sealed file beside it has the run's settings
    arrays     one .npz for each key, such as the hash of an inference's deck
    results    named files in a verb's folder
    cache      measurements made on this machine; if it has no place, a verb works without it, and says so

Each is complete on the disk when the function that writes it returns, and carries a checksum that includes its key. An
entry that changed on the disk, or belongs to another run, counts as absent and is measured again.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cosim.base.arrays import read_arrays
from cosim.base.errors import InputError
from cosim.base.seal import (
    checksum,
    is_whole,
    read_sealed,
    seal_json,
    seal_line,
    seal_npz,
    unseal_line,
)
from cosim.base.text import is_file, open_file, parse_json
from cosim.base.write import make_folder, sync_folder, write_atomically, write_together, writing_into

MADE_WITH = "made_with"  # in settings: versions, for whoever reads the run later; they may differ when it goes on
INFERENCES = "inferences"  # the folder in which verbs keep them
_VARIABLE = "by setting XDG_CACHE_HOME"
_KEPT = (  # what the same command goes on with
    "run.json chips.jsonl search.json trials.jsonl transistors.jsonl inferences/*.npz kept/*/*.json "
    "kept/*/.*.cosim/*.pt nominal/inferences/*.npz corners/inferences/*.npz chips/run.json chips/chips.jsonl "
    "model.pt .model.cosim/*.pt"
)
_REPAIR = "give the command again"

Arrays = dict[str, NDArray[Any]]
Settings = dict[str, Any]  # what the outcome of a run depends on, as JSON has it
R = TypeVar("R")
T = TypeVar("T")


def clear_kept(folder: Path) -> None:
    """Remove from a run's folder the files that an earlier run kept to continue from; its results stay until replaced.

    Raises InputError if they cannot be removed.
    """
    with writing_into(folder):
        for pattern in _KEPT.split():
            for path in folder.glob(pattern):
                path.unlink()


def describe_damage(path: Path, what: str = "") -> str:
    """Return a sentence that says that a file, or its part `what`, such as "1 of 20 chips", is damaged and not used."""
    return f"{path}: {f'{what} ' if what else ''}damaged or of an earlier cosim, measured anew"


@dataclass(frozen=True)
class RecordFormat(Generic[R]):
    """The format in which one kind of record is written as a line of a file, and read back.

    noun: what records are called, in the plural, such as "chips"; number: function from a record to its number; write:
    function from a record to the content of its line; read: function from (content, where it is) to a record, which
    raises InputError for content that is none.
    """

    noun: str
    number: Callable[[R], int]
    write: Callable[[R], object]
    read: Callable[[object, str], R]


class RecordStore(Generic[R]):
    """Records of a run by number, one a line of a file.

    Each line is on disk before the next record is begun, in the order in which records finish; `tidy` sorts them by
    number. Text after the last complete line was being written when the run was killed, and is ignored. records: number
    -> record; lines: how many lines there are; damaged: number of a line that is no record under this key -> the
    reason.
    """

    def __init__(self, path: Path, key: str, form: RecordFormat[R]) -> None:
        """Read the records of an existing file, and write nothing. key: of the run's settings, see `settings_key`.

        Raises InputError if the file cannot be read.
        """
        self.path, self.folder, self.records = path, path.parent, dict[int, R]()
        self.damaged, self.lines = dict[int, str](), 0
        self._key, self._form, self._order = key, form, list[int]()
        content = b""
        if is_file(path):
            with open_file(path, "choose another run") as file:
                content = file.read()
        for line in content[: content.rfind(b"\n") + 1].splitlines(keepends=True):
            self.lines += 1
            where = f"{path}: line {self.lines}"
            try:
                plain = parse_json(unseal_line(line, key), where, "choose another run")
                self._add(form.read(plain, where))
            except ValueError as error:
                self.damaged[self.lines] = f"{where} is damaged, {error}; the same command measures it anew"
            except InputError as error:
                self.damaged[self.lines] = str(error)
        self._is_torn = bool(content) and not content.endswith(b"\n")

    @property
    def damage(self) -> str:
        """Return a sentence that says how many lines are damaged and not used; "" if none is."""
        what = f"{len(self.damaged)} of {self.lines} {self._form.noun}"
        return describe_damage(self.path, what) if self.damaged else ""

    def append(self, record: R) -> None:
        """Append one record to the file. Raises InputError if it cannot be written; earlier records stay."""
        try:
            _append(self.path, self._line(record))
        except OSError as error:
            raise InputError(
                f"cannot write to {self.path}: {error.strerror}; {len(self.records)} {self._form.noun} are kept: make "
                "room, then the same command goes on"
            ) from None
        self._add(record)

    def _add(self, record: R) -> None:
        number = self._form.number(record)
        self.records[number] = record
        self._order.append(number)

    def _line(self, record: R) -> bytes:
        return seal_line(self._form.write(record), self._key)

    def tidy(self) -> None:
        """Sort the lines of the file by record number, and drop lines that are damaged or replaced by a later one."""
        if self.damaged or self._is_torn or self._order != sorted(self.records):
            self.records = dict(sorted(self.records.items()))
            write_atomically(self.path, b"".join(map(self._line, self.records.values())))
            self._order, self._is_torn = list(self.records), False


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


def settings_key(settings: Settings) -> str:
    """Return the hash of a run's settings, which is the key of the records that the run keeps."""
    return checksum(json.dumps(_without_versions(settings), sort_keys=True).encode())


def continue_run(path: Path, settings: Settings, *stores: RecordStore[Any]) -> None:
    """Prepare to continue a run: write its settings file `path` if missing or damaged, and tidy its records.

    Raises InputError if the file has other settings, or if it is missing and no kept record has these settings.
    """
    try:
        known = read_sealed(path, _REPAIR, finite=False) if is_file(path) else None
    except InputError:  # the lines say themselves whose they are
        known = None
    if known is not None:
        check_settings(path.parent, known, settings)
    else:
        foreign = next((store for store in stores if store.lines), None)
        if foreign is not None and not any(store.records for store in stores):
            raise InputError(
                f"{path.parent}: {path.name} is missing, damaged or of a cosim without checksums, and no line of "
                f"{foreign.path.name} is of these settings; choose another folder with -o, or begin anew with --fresh"
            )
        write_atomically(path, seal_json(settings))
    for store in stores:
        store.tidy()


def check_settings(folder: Path, known: Settings, settings: Settings) -> None:
    """Raise InputError that names the first setting in which a kept run differs from the one asked for.

    folder: of the kept run, for the message; known: its settings; settings: those asked for.
    """
    difference = find_difference(_without_versions(known), _without_versions(settings))
    if difference is not None:
        key, old, new = difference
        raise InputError(
            f"{folder}: holds a run with another {key}: {old}, not {new}; choose another folder with -o, go on with "
            "the same settings, or begin anew with --fresh"
        )


def _without_versions(settings: Settings) -> Settings:
    return {key: value for key, value in settings.items() if key != MADE_WITH}


def find_difference(known: object, asked: object, name: str = "") -> tuple[str, str, str] | None:
    """Return (name, known value, asked value) of the first setting that differs, None if none does.

    Names of nested settings are joined by points, such as variation.area.
    """
    if not isinstance(known, dict) or not isinstance(asked, dict):
        return None if known == asked else (name, _short(known), _short(asked))
    found = (find_difference(known.get(key), asked.get(key), f"{name}.{key}") for key in sorted({*known, *asked}))
    return next(((key.lstrip("."), old, new) for key, old, new in filter(None, found)), None)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def kept_arrays(path: Path, key: str) -> Arrays | None:
    """Return the arrays of a file sealed with `key`; None if it is missing, damaged, or sealed with another key."""
    try:
        return read_arrays(path, _REPAIR) if is_whole(path, key) else None
    except InputError:
        return None


def keep_result(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays of one result into a folder of kept results; `name` is its file name and its key.

    Raises InputError if they cannot be written.
    """
    write_atomically(folder / f"{name}.npz", seal_npz(arrays, name))


def kept_result(
    folder: Path, name: str, like: Mapping[str, NDArray[Any]], beside: Mapping[str, NDArray[Any]] | None = None
) -> Arrays | None:
    """Return the arrays of a kept result, if they agree with `like` and are finite; else None.

    like: arrays whose names, types and shapes the result must have; beside: arrays that may be missing, and infinite.
    """
    found, beside = kept_arrays(folder / f"{name}.npz", name), beside or {}
    if found is None or not like.keys() <= found.keys() <= like.keys() | beside.keys():
        return None
    wanted = {**beside, **like}
    if any(array.dtype != wanted[key].dtype or array.shape != wanted[key].shape for key, array in found.items()):
        return None
    if not all(np.isfinite(found[key]).all() for key in like) or any(np.isnan(array).any() for array in found.values()):
        return None
    return found


def damaged_results(folder: Path) -> tuple[int, list[str]]:
    """Return how many results a folder of kept results has, and the file names of those that are damaged."""
    files = sorted(folder.glob("*.npz"))
    return len(files), [path.name for path in files if not is_whole(path, path.stem)]


def describe_damaged_results(folder: Path) -> list[str]:
    """Return a sentence for each folder of kept results in a run's folder that has damaged files."""
    places = (folder / INFERENCES, folder / "nominal" / INFERENCES, folder / "corners" / INFERENCES)
    found = ((place, *damaged_results(place)) for place in places)
    return [describe_damage(place, f"{len(damaged)} of {count} results") for place, count, damaged in found if damaged]


def write_texts(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Write named texts as files into a folder, which is made if need be; return their paths.

    All are on disk before the first is renamed to its final name.
    """
    make_folder(folder)
    write_together({folder / name: text.encode() for name, text in texts.items()})
    return [folder / name for name in texts]


def write_results(folder: Path, results: Mapping[str, object]) -> None:
    """Write named JSON objects into a folder as `write_texts` does, each with its checksum as last entry."""
    make_folder(folder)
    write_together({folder / name: seal_json(content) for name, content in results.items()})


def cache_folder() -> Path:
    """Return cosim's folder under $XDG_CACHE_HOME, or without that under ~/.cache; it need not exist.

    Raises InputError for a user with neither that variable nor a home, as in a container run under a bare user number.
    """
    root = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(root) if root else Path.home() / ".cache") / "cosim"
    except RuntimeError:
        raise InputError(
            f"there is no folder to keep it in: HOME is not set and this user has no home; choose one, {_VARIABLE}"
        ) from None


def cached_files(name: str) -> tuple[Path, ...]:
    """Return the path that a file of this name has in the cache, whether it exists or not; () if there is no cache."""
    try:
        return (cache_folder() / name,)
    except InputError:
        return ()


def make_cached_path(name: str) -> Path:
    """Return the path that a file of this name has in the cache, and make the cache's folder if need be.

    Raises InputError that names the variable for another place if the folder cannot be made.
    """
    path = cache_folder() / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another place, {_VARIABLE}") from None
    return path


def keep_in_cache(name: str, content: bytes, what: str, say: Callable[[str], None]) -> None:
    """Write a file into the cache; if that fails, pass to `say` that `what` is not kept, and why."""
    try:
        path = make_cached_path(name)
        try:
            write_atomically(path, content)
        except InputError as error:
            raise InputError(f"{error}, {_VARIABLE}") from None
    except InputError as error:
        say(f"{what} not kept: {error}")


def find_kept(paths: Iterable[Path], load: Callable[[Path], T | None], say: Callable[[str], None]) -> T | None:
    """Return what `load` reads from the first usable file among `paths`; None if none is usable.

    load: function from a path to the file's content, or None if that is of another origin; if it raises InputError for
    a damaged file, `say` receives a message.
    """
    for path in paths:
        if is_file(path):
            try:
                if (found := load(path)) is not None:
                    return found
            except InputError:
                say(describe_damage(path))
    return None
