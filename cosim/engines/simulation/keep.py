"""Files of finished inferences in a folder: one .npz each, named by the hash of its deck, with a checksum.

Only what is whole and of the kind that was asked for is read back; anything else counts as not there, and runs again.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.arrays import read_arrays
from cosim.base.errors import InputError
from cosim.base.seal import is_whole, seal_npz
from cosim.base.write import write_atomically

INFERENCES = "inferences"  # the folder that verbs keep them in

_REPAIR = "run it again"

Arrays = dict[str, NDArray[Any]]


def keep_result(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one result. Raises InputError when it cannot be written."""
    write_atomically(folder / f"{name}.npz", seal_npz(arrays, name))


def kept_result(
    folder: Path, name: str, like: Mapping[str, NDArray[Any]], beside: Mapping[str, NDArray[Any]] | None = None
) -> Arrays | None:
    """Return the arrays of one kept result, if they have names, types and shapes of those in `like`, and only finite
    numbers; else None.

    Arrays in `beside` may be missing, and may be infinite.
    """
    found, beside = _read(folder / f"{name}.npz"), beside or {}
    if found is None or not like.keys() <= found.keys() <= like.keys() | beside.keys():
        return None
    wanted = {**beside, **like}
    if any(array.dtype != wanted[key].dtype or array.shape != wanted[key].shape for key, array in found.items()):
        return None
    if not all(np.isfinite(found[key]).all() for key in like) or any(np.isnan(array).any() for array in found.values()):
        return None
    return found


def damaged_results(folder: Path) -> tuple[int, list[str]]:
    """Return how many results a folder holds, and the names of the files that are not whole."""
    files = sorted(folder.glob("*.npz"))
    return len(files), [path.name for path in files if not is_whole(path, path.stem)]


def _read(path: Path) -> Arrays | None:
    try:
        return read_arrays(path, _REPAIR) if is_whole(path, path.stem) else None
    except InputError:
        return None
