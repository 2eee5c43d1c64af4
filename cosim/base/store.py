"""Results in a run's folder, and measurements of this machine in the folder of the cache.

A cache is a convenience: a verb that finds no place for one does its work without, and says so.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.seal import seal_json
from cosim.base.write import make_folder, write_atomically, write_together, writing_into

_VARIABLE = "by setting XDG_CACHE_HOME"
_KEPT = (  # what the same command goes on with
    "run.json chips.jsonl search.json trials.jsonl transistors.jsonl inferences/*.npz kept/*/*.json "
    "kept/*/.*.cosim/*.pt nominal/inferences/*.npz corners/inferences/*.npz chips/run.json chips/chips.jsonl "
    "model.pt .model.cosim/*.pt"
)


def clear_kept(folder: Path) -> None:
    """Remove what an earlier run has left in a verb's own folder to go on with; its results stay until new ones come.

    Raises InputError where that cannot be done.
    """
    with writing_into(folder):
        for pattern in _KEPT.split():
            for path in folder.glob(pattern):
                path.unlink()


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
