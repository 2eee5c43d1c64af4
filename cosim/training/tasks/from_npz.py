"""A task of one's own: an .npz with x_train y_train x_test y_test, and len_train len_test if lengths differ.

x: (n, time, features) numbers. y: (n,) integers from 0 for classes, or (n, outputs) real numbers for regression. len:
(n,) integers, valid steps. Inputs are mapped to [0, 1] by the 1st and 99th percentile of each training feature.
"""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from cosim.errors import InputError
from cosim.training.tasks.task import Task, full_lengths, percentile_range

REQUIRED = ("x_train", "y_train", "x_test", "y_test")


def load_npz_task(path: Path) -> Task:
    """The task in an .npz file; raises InputError naming file, key, value and repair."""
    arrays = _read(path)
    x_train, x_test = (_samples(arrays[key], path, key) for key in ("x_train", "x_test"))
    if x_train.shape[2] != x_test.shape[2]:
        raise InputError(f"{path}: x_test must have {x_train.shape[2]} features like x_train, not {x_test.shape[2]}")
    if len(x_train) < 2:
        raise InputError(f"{path}: x_train must hold at least 2 samples, not {len(x_train)}")
    y_train, y_test = (
        _targets(arrays[f"y_{part}"], len(arrays[f"x_{part}"]), path, f"y_{part}") for part in ("train", "test")
    )
    labels = _labels(y_train, y_test, path)
    len_train = _lengths(arrays, "len_train", x_train, path)
    len_test = _lengths(arrays, "len_test", x_test, path)
    x_train = _without_padding(x_train, len_train, path, "train")
    x_test = _without_padding(x_test, len_test, path, "test")
    valid = x_train[np.arange(x_train.shape[1])[None, :] < len_train[:, None]]
    offset, scale = percentile_range(valid)
    return Task(f"{path.stem}.npz", x_train, y_train, x_test, y_test, len_train, len_test, labels, offset, scale)


def _read(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give an .npz with {', '.join(REQUIRED)}")
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, TypeError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: an .npz of plain arrays is needed ({error}); write it with numpy.savez") from error
    for key in REQUIRED:
        if key not in arrays:
            raise InputError(f"{path}: array {key!r} is missing; found {', '.join(sorted(arrays)) or 'none'}")
    return arrays


def _samples(x: np.ndarray, path: Path, key: str) -> np.ndarray:
    if x.ndim != 3 or x.dtype.kind not in "fiub" or 0 in x.shape:
        raise InputError(f"{path}: {key} must be numbers of shape (samples, time, features), not {x.dtype} {x.shape}")
    return x.astype(np.float32)


def _without_padding(x: np.ndarray, lengths: np.ndarray, path: Path, part: str) -> np.ndarray:
    """x with 0 beyond each sample's length, where a file may hold anything, nan even."""
    padding = np.arange(x.shape[1])[None, :] >= lengths[:, None]
    x = np.where(padding[:, :, None], np.float32(0), x)
    if not np.isfinite(x).all():
        raise InputError(
            f"{path}: x_{part} holds {np.count_nonzero(~np.isfinite(x))} values that are not finite within the lengths "
            f"of its samples; repair them, or give the lengths in len_{part} if they pad shorter samples"
        )
    return x


def _targets(y: np.ndarray, samples: int, path: Path, key: str) -> np.ndarray:
    classes = y.ndim == 1 and y.dtype.kind in "iu"
    if not classes and not (y.ndim == 2 and y.dtype.kind == "f" and y.shape[1] > 0):
        raise InputError(
            f"{path}: {key} must be integers of shape (samples,) for classes or real numbers (samples, outputs) "
            f"for regression, not {y.dtype} {y.shape}"
        )
    if len(y) != samples:
        raise InputError(f"{path}: {key} must have one row per sample, {samples}, not {len(y)}")
    if not classes and not np.isfinite(y).all():
        raise InputError(
            f"{path}: {key} holds {np.count_nonzero(~np.isfinite(y))} values that are not finite; remove them"
        )
    return y.astype(np.int64 if classes else np.float32)


def _labels(y_train: np.ndarray, y_test: np.ndarray, path: Path) -> tuple[str, ...]:
    if y_train.ndim != y_test.ndim or y_train.shape[1:] != y_test.shape[1:]:
        raise InputError(f"{path}: y_test must have the form of y_train, {y_train.shape[1:]}, not {y_test.shape[1:]}")
    if y_train.ndim == 2:
        return ()
    present = np.unique(y_train)
    if len(present) < 2 or not np.array_equal(present, np.arange(len(present))):
        raise InputError(
            f"{path}: y_train must use every class 0, 1, ..., at least two, not {', '.join(map(str, present[:9]))}"
            "; renumber"
        )
    strange = np.setdiff1d(y_test, present)
    if len(strange):
        raise InputError(f"{path}: y_test holds class {strange[0]}, but y_train ends at {present[-1]}; renumber")
    return tuple(str(label) for label in present)


def _lengths(arrays: dict[str, np.ndarray], key: str, x: np.ndarray, path: Path) -> np.ndarray:
    if key not in arrays:
        return full_lengths(x)
    lengths = arrays[key]
    if lengths.shape != (len(x),) or lengths.dtype.kind not in "iu":
        raise InputError(
            f"{path}: {key} must be {len(x)} integers, one per sample, not {lengths.dtype} {lengths.shape}"
        )
    if lengths.min() < 1 or lengths.max() > x.shape[1]:
        raise InputError(f"{path}: {key} must lie between 1 and {x.shape[1]}, not {lengths.min()} to {lengths.max()}")
    return lengths.astype(np.int64)
