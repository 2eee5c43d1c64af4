"""Files that are whole or as they were."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cosim.errors import InputError


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file in one step: a reader sees the old or the new content, never a part."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} must exist; create it or choose another output")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def writing_into(folder: Path) -> Iterator[None]:
    """Around what writes into the folder of a run: raises InputError with the system's reason when it fails."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write into {folder}: {error.strerror}; choose another folder with -o") from None


def is_file(path: Path) -> bool:
    """Whether a file is there; raises InputError with the system's reason when that cannot be told."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a null byte
        raise InputError(f"{str(path)!r} cannot be the name of a file: {error}") from None
