"""Who may write where: one process at a time, and a folder by the verb that made it. A lock dies with its process."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from cosim.errors import InputError
from cosim.files.write import check_folder, check_writable, make_folder, sync_folder, writing_into

MARKER = ".cosim"  # in a folder: says which verb made it, and is locked while that writes
_KNOWN_BY = {  # without a marker, as older versions left it: a folder that holds all of these is this verb's
    "montecarlo": ("chips.jsonl",),
    "demo": ("model.pt", "netlist", "comparison.json"),
    "compare": ("comparison.json",),
    "simulate": ("simulation.npz", "inferences"),
    "power": ("power.json",),
    "trim": ("trim.json",),
    "compile": ("mapping.csv", "design.json"),
}


@contextmanager
def own_folder(folder: Path, verb: str) -> Generator[None, None, None]:
    """Make the folder of a verb, or take one that is its own or nobody's, and keep other processes out. Where
    nothing is in it at the end, the mark goes, and so do the folders that were made for it.

    Raises InputError when it cannot be written, when another verb made it, or when a process writes there.
    """
    check_owner(folder, verb)
    mine, made = (folder / MARKER).exists(), make_folder(folder)
    with writing_into(folder):
        marker = _lock(
            folder / MARKER, f"{folder}: another process writes there; wait for it, or choose another folder with -o"
        )
    try:
        with writing_into(folder):
            os.ftruncate(marker, os.pwrite(marker, f"{verb}\n".encode(), 0))
            os.fsync(marker)
            sync_folder(folder)
        yield
    finally:
        if not mine and os.listdir(folder) == [MARKER]:
            _remove(folder / MARKER, made)
        os.close(marker)


def _remove(marker: Path, folders: list[Path]) -> None:
    """Remove a marker and the folders that were made for it, inner first, as far as nothing else is in them."""
    with suppress(OSError):
        marker.unlink()
        for folder in folders:
            folder.rmdir()


@contextmanager
def own_file(path: Path) -> Generator[None, None, None]:
    """Keep other processes that ask in the same way from writing a file, or one of its name with another suffix.

    Raises InputError when it cannot be written, or when another process has asked before and still runs.
    """
    check_writable(path)
    beside = path.with_suffix(".lock")
    with writing_into(path.parent):
        lock = _lock(beside, f"{path}: another process writes it; wait for it, or choose another file with -o")
    try:
        yield
    finally:
        beside.unlink(missing_ok=True)
        os.close(lock)


def check_owner(folder: Path, verb: str) -> None:
    """Raises InputError where another verb made the folder, or where it cannot be written; makes nothing."""
    check_folder(folder)
    owner = owner_of(folder)
    if owner not in (None, verb):
        raise InputError(f"{folder}: belongs to cosim {owner}; choose another folder with -o")


def owner_of(folder: Path) -> str | None:
    """The verb that made a folder; None where none did."""
    try:
        marked = (folder / MARKER).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        marked = ""
    known = (verb for verb, names in _KNOWN_BY.items() if all((folder / name).exists() for name in names))
    return marked or next(known, None)


def _lock(path: Path, refusal: str) -> int:
    """An open descriptor that holds the lock. Raises InputError with `refusal` where another process has it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(handle)):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise InputError(refusal) from None
        os.close(handle)  # its holder has removed it meanwhile
