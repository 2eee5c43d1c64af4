"""Files that are whole or as they were."""

import os
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
