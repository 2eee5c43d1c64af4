"""Stores: what a killed process must not lose. The same command goes on with it, and --fresh begins anew.

    records    one a line of a file, such as the chips of a run; a sealed file beside it has the run's settings
    arrays     one .npz for each key, such as the hash of an inference's deck
    results    named files in a verb's folder
    cache      what was measured on this machine; without a place for it a verb does its work, and says so

Each is on the disk, whole, when the function that writes it returns, and carries a checksum, which is one over its key
as well. What changed on the disk, or is of another run, counts as not there, and is measured anew.
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
    """Remove from a run's own folder what an earlier run has kept to go on with; its results stay until new ones come.

    Raises InputError where that cannot be done.
    """
    with writing_into(folder):
        for pattern in _KEPT.split():
            for path in folder.glob(pattern):
                path.unlink()


def describe_damage(path: Path, what: str = "") -> str:
    """Return the sentence that says that a file is not used, or a part of it: `what`, such as "1 of 20 chips"."""
    return f"{path}: {f'{what} ' if what else ''}damaged or of an earlier cosim, measured anew"


@dataclass(frozen=True)
class RecordFormat(Generic[R]):
    """Format in which one kind of record is written as a line of a file, and read back.

    noun: what a record is of, in the plural, such as "chips". number: its key. write: (record) -> content of its line.
    read: (content, where it is) -> record; raises InputError for what is none.
    """

    noun: str
    number: Callable[[R], int]
    write: Callable[[R], object]
    read: Callable[[object, str], R]


class RecordStore(Generic[R]):
    """Records of a run by number, one a line of a file.

    A line is on disk before the next record is begun, in the order in which records come; `tidy` puts them in the order
    of their numbers, whatever ran them. The text after the last end of a line was being written when the run ended, and
    is left out. lines: how many there are. damaged: number of each line that is no record under this key -> the reason.
    """

    def __init__(self, path: Path, key: str, form: RecordFormat[R]) -> None:
        """Read what is there, and write nothing; key: of the run, see `settings_key`.

        Raises InputError where the file cannot be read.
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
        """Return the sentence that says which lines are not used, see `describe_damage`; empty where all are."""
        what = f"{len(self.damaged)} of {self.lines} {self._form.noun}"
        return describe_damage(self.path, what) if self.damaged else ""

    def append(self, record: R) -> None:
        """Write one record to its file. Raises InputError when it cannot be written; earlier records stay."""
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
        """Sort the lines of the store's file by record number, and drop those damaged or replaced by a later one."""
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
    """Return the hash by which the store binds a kept record to the settings of its run."""
    return checksum(json.dumps(_without_versions(settings), sort_keys=True).encode())


def continue_run(path: Path, settings: Settings, *stores: RecordStore[Any]) -> None:
    """Prepare a run's own folder to go on with: write a missing or damaged settings file, tidy the stores' kept
    records.

    Raises InputError where the file has other settings, or where it is missing and no kept record has these settings.
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
    """Raise InputError that names what differs between a kept run's settings and those asked for."""
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
    """Return (name, known, asked) of the first setting unlike a kept run's, such as variation.area; None if none is."""
    if not isinstance(known, dict) or not isinstance(asked, dict):
        return None if known == asked else (name, _short(known), _short(asked))
    found = (find_difference(known.get(key), asked.get(key), f"{name}.{key}") for key in sorted({*known, *asked}))
    return next(((key.lstrip("."), old, new) for key, old, new in filter(None, found)), None)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def kept_arrays(path: Path, key: str) -> Arrays | None:
    """Return the arrays of a file that was sealed with this key; None where it is missing, damaged, or of another."""
    try:
        return read_arrays(path, _REPAIR) if is_whole(path, key) else None
    except InputError:
        return None


def keep_result(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays of one result into the store of kept results, named by its key.

    Raises InputError when it cannot be written.
    """
    write_atomically(folder / f"{name}.npz", seal_npz(arrays, name))


def kept_result(
    folder: Path, name: str, like: Mapping[str, NDArray[Any]], beside: Mapping[str, NDArray[Any]] | None = None
) -> Arrays | None:
    """Return the arrays of one result from the store of kept results, if they have names, types and shapes of those in
    `like`, and only finite numbers; else None.

    Arrays in `beside` may be missing, and may be infinite.
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
    """Return how many kept results a folder of the store holds, and the names of the files that are not whole."""
    files = sorted(folder.glob("*.npz"))
    return len(files), [path.name for path in files if not is_whole(path, path.stem)]


def describe_damaged_results(folder: Path) -> list[str]:
    """Return a sentence for each store of kept results in a run's own folder that has damaged files."""
    places = (folder / INFERENCES, folder / "nominal" / INFERENCES, folder / "corners" / INFERENCES)
    found = ((place, *damaged_results(place)) for place in places)
    return [describe_damage(place, f"{len(damaged)} of {count} results") for place, count, damaged in found if damaged]


def write_texts(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Write named texts into a folder, which is made if need be, each by an atomic rename, after all are on disk."""
    make_folder(folder)
    write_together({folder / name: text.encode() for name, text in texts.items()})
    return [folder / name for name in texts]


def write_results(folder: Path, results: Mapping[str, object]) -> None:
    """Write JSON objects into a folder as `write_texts` does, each with its checksum as its last entry."""
    make_folder(folder)
    write_together({folder / name: seal_json(content) for name, content in results.items()})


def cache_folder() -> Path:
    """Return cosim's folder under $XDG_CACHE_HOME, or under ~/.cache without it; whether it exists or not.

    Raises InputError for a user who has neither that variable nor a home, as in a container run under a bare number.
    """
    root = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(root) if root else Path.home() / ".cache") / "cosim"
    except RuntimeError:
        raise InputError(
            f"there is no folder to keep it in: HOME is not set and this user has no home; choose one, {_VARIABLE}"
        ) from None


def cached_files(name: str) -> tuple[Path, ...]:
    """Return the path that a file of this name has in the cache, there or not; none without a cache's folder."""
    try:
        return (cache_folder() / name,)
    except InputError:
        return ()


def make_cached_path(name: str) -> Path:
    """Return the path that a name has in the cache's folder, which is made if need be.

    Raises InputError where that cannot be, with the variable that chooses another place.
    """
    path = cache_folder() / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another place, {_VARIABLE}") from None
    return path


def keep_in_cache(name: str, content: bytes, what: str, say: Callable[[str], None]) -> None:
    """Write a file into the cache's folder; where that cannot be, `say` hears that `what` is not kept, and why."""
    try:
        path = make_cached_path(name)
        try:
            write_atomically(path, content)
        except InputError as error:
            raise InputError(f"{error}, {_VARIABLE}") from None
    except InputError as error:
        say(f"{what} not kept: {error}")


def find_kept(paths: Iterable[Path], load: Callable[[Path], T | None], say: Callable[[str], None]) -> T | None:
    """Return what `load` reads from the first usable file among the paths; None where none is usable.

    load: (path) -> what a file holds, None where that is of another origin; raises InputError where it is damaged, and
    `say` hears of that.
    """
    for path in paths:
        if is_file(path):
            try:
                if (found := load(path)) is not None:
                    return found
            except InputError:
                say(describe_damage(path))
    return None
