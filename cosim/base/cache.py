"""Folder of what was measured on this machine.

A cache is a convenience: a verb that finds no place for one does its work without, and says so.
"""

import os
from collections.abc import Callable
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.write import write_atomically

_VARIABLE = "by setting XDG_CACHE_HOME"


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
    """Return the path that a name has in the cache's folder, whether it exists or not; none without one."""
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
