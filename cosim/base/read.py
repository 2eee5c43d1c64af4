"""A check that a file is there."""

import stat
from pathlib import Path

from cosim.base.errors import InputError


def is_file(path: Path) -> bool:
    """Tell whether a file is there; raises InputError with the system's reason when that cannot be told."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a null byte
        raise InputError(f"{str(path)!r} cannot be the name of a file: {error}") from None
