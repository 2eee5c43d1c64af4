"""Pathfinder 32: are two dots in a grey image joined by a dashed path? An .npz of one's own, read pixel by pixel."""

from pathlib import Path

import numpy as np

from cosim.base.arrays import read_arrays
from cosim.base.errors import InputError
from cosim.base.text import listed, shown_path
from cosim.tasks.task import Task, full_lengths

SIDE, LEVELS = 32, 255.0
LABELS = ("apart", "joined")
_KEYS = ("x_train", "y_train", "x_test", "y_test")


def load_pathfinder_task(path: Path) -> Task:
    """Read images x (n, 32, 32) of bytes, y (n,) of 0 and 1, as x (n, 1024, 1), row after row, values 0 to 255.

    Raises InputError naming file, array and repair.
    """
    where = shown_path(path)
    arrays = read_arrays(path, f"write {', '.join(_KEYS)} with numpy.savez", _KEYS)
    for key in _KEYS:
        if key not in arrays:
            raise InputError(f"{where}: array {key!r} is missing; found {listed(arrays)}")
    (x_train, y_train), (x_test, y_test) = (
        (_images(arrays[f"x_{part}"], where, f"x_{part}"), _classes(arrays, where, part)) for part in ("train", "test")
    )
    parts = x_train, y_train, x_test, y_test, full_lengths(x_train), full_lengths(x_test)
    return Task("pathfinder", *parts, LABELS, np.zeros(1), np.full(1, LEVELS))


def _images(images: np.ndarray, where: str, key: str) -> np.ndarray:
    if images.shape[1:] != (SIDE, SIDE) or len(images) == 0 or images.dtype != np.uint8:
        raise InputError(
            f"{where}: {key} must be uint8 images (samples, {SIDE}, {SIDE}), not {images.dtype} {images.shape}"
        )
    return images.reshape(len(images), -1, 1).astype(np.float32)


def _classes(arrays: dict[str, np.ndarray], where: str, part: str) -> np.ndarray:
    y, samples = arrays[f"y_{part}"], len(arrays[f"x_{part}"])
    if y.shape != (samples,) or y.dtype.kind not in "iub" or not np.isin(y, (0, 1)).all():
        raise InputError(
            f"{where}: y_{part} must be {samples} integers 0 or 1 (joined), one per image, not {y.dtype} {y.shape}"
            f"{'' if y.shape != (samples,) else ' with other values'}"
        )
    return y.astype(np.int64)
