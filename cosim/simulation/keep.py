"""What finished inferences leave in a folder: one .npz each, named by the hash of its deck, with a checksum.

Only what is whole and of the kind that was asked for is read back; anything else counts as not there, and runs again.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError
from cosim.files.seal import check_npz, seal_npz
from cosim.files.write import write_atomically
from cosim.reading.arrays import read_arrays
from cosim.reading.text import open_file

INFERENCES = "inferences"  # the folder that verbs keep them in

_REPAIR = "run it again"

Arrays = dict[str, NDArray[Any]]


def keep_result(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one result. Raises InputError when it cannot be written."""
    write_atomically(folder / f"{name}.npz", seal_npz(arrays, name))


def kept_result(folder: Path, name: str, like: Mapping[str, NDArray[Any]]) -> Arrays | None:
    """The arrays of one result if they have names, types and shapes of those in `like`, and only finite numbers."""
    found = _read(folder / f"{name}.npz")
    if found is None or found.keys() != like.keys():
        return None
    if any(found[key].dtype != wanted.dtype or found[key].shape != wanted.shape for key, wanted in like.items()):
        return None
    return found if all(np.isfinite(array).all() for array in found.values()) else None


def damaged_results(folder: Path) -> tuple[int, list[str]]:
    """How many results a folder holds, and the names of the files that are not whole."""
    files = sorted(folder.glob("*.npz"))
    return len(files), [path.name for path in files if _read(path) is None]


def _read(path: Path) -> Arrays | None:
    try:
        with open_file(path, _REPAIR) as file:
            check_npz(file.read(), path.stem)
        return read_arrays(path, _REPAIR)
    except (OSError, ValueError, InputError):
        return None
