"""A task of one's own from an .npz file with x_train y_train x_test y_test, and len_train len_test if lengths differ.

x: (n, time, features) numbers. y: for classes (n,) integers from 0, (n,) names or one-hot rows (n, classes); for
regression (n, outputs) real numbers. len: (n,) integers, valid steps. The encoding maps the 1st and 99th percentile of
each training feature to 0 and 1.
"""

from pathlib import Path

import numpy as np

from cosim.base.arrays import read_arrays
from cosim.base.errors import InputError
from cosim.base.text import is_file, listed
from cosim.network.reference import valid_steps
from cosim.tasks.target import class_indices, is_one_hot, label_repair, whole_classes
from cosim.tasks.task import Task, full_lengths, percentile_range

REQUIRED = ("x_train", "y_train", "x_test", "y_test")


def load_npz_task(path: Path) -> Task:
    """Load the task in an .npz file. Raises InputError naming file, key, value and repair."""
    arrays = _read(path)
    x_train, x_test = (_samples(arrays[key], path, key) for key in ("x_train", "x_test"))
    if x_train.shape[2] != x_test.shape[2]:
        raise InputError(f"{path}: x_test must have {x_train.shape[2]} features like x_train, not {x_test.shape[2]}")
    if len(x_train) < 2:
        raise InputError(f"{path}: x_train must hold at least 2 samples, not {len(x_train)}")
    arrays |= {key: whole_classes(arrays[key]) for key in ("y_train", "y_test")}
    names = _class_names(arrays["y_train"], path)
    y_train, y_test = (
        _targets(arrays[f"y_{part}"], len(arrays[f"x_{part}"]), names, path, f"y_{part}") for part in ("train", "test")
    )
    labels = _labels(y_train, y_test, names, path)
    len_train = _lengths(arrays, "len_train", x_train, path)
    len_test = _lengths(arrays, "len_test", x_test, path)
    x_train = _without_padding(x_train, len_train, path, "train")
    x_test = _without_padding(x_test, len_test, path, "test")
    offset, scale = percentile_range(x_train[valid_steps(len_train, x_train.shape[1])])
    return Task(f"{path.stem}.npz", x_train, y_train, x_test, y_test, len_train, len_test, labels, offset, scale)


def _read(path: Path) -> dict[str, np.ndarray]:
    if not is_file(path):
        raise InputError(f"{path}: no such file; give an .npz with {', '.join(REQUIRED)}")
    arrays = read_arrays(path, f"write {', '.join(REQUIRED)} with numpy.savez")
    for key in REQUIRED:
        if key not in arrays:
            raise InputError(
                f"{path}: array {key!r} is missing; found {listed(arrays)}; name them {', '.join(REQUIRED)}"
            )
    return arrays


def _samples(x: np.ndarray, path: Path, key: str) -> np.ndarray:
    if x.ndim != 3 or x.dtype.kind not in "fiub" or 0 in x.shape:
        empty = "; it is empty, give at least one sample of one step" if 0 in x.shape else ""
        empty += "; if there is one feature, give x[:, :, None]" if x.ndim == 2 and x.dtype.kind in "fiub" else ""
        raise InputError(
            f"{path}: {key} must be numbers of shape (samples, time, features), not {x.dtype} {x.shape}{empty}"
        )
    with np.errstate(over="ignore"):  # what is infinite then is refused with the padding removed
        return x.astype(np.float32)


def _without_padding(x: np.ndarray, lengths: np.ndarray, path: Path, part: str) -> np.ndarray:
    """Return x of a task's file with 0 beyond each sample's length, where the file may hold any value, even nan."""
    x = np.where(valid_steps(lengths, x.shape[1])[:, :, None], x, np.float32(0))
    if not np.isfinite(x).all():
        raise InputError(
            f"{path}: x_{part} holds {np.count_nonzero(~np.isfinite(x))} values that are not finite in single "
            f"precision within the lengths of its samples; repair them, or give the lengths in len_{part} if they pad "
            "shorter samples"
        )
    return x


def _class_names(y: np.ndarray, path: Path) -> tuple[str, ...] | None:
    """Return the classes' names in sorted order, empty where y_train has none, and None for regression."""
    if y.ndim == 2 and y.dtype.kind == "f" and y.shape[1] > 0 and not is_one_hot(y):
        return None
    if not (y.ndim == 1 and y.dtype.kind in "iuU") and not is_one_hot(y):
        raise InputError(
            f"{path}: y_train must be integers or names of shape (samples,) or one-hot rows for classes, or real "
            f"numbers (samples, outputs) for regression, not {y.dtype} {y.shape}{label_repair(y)}"
        )
    names = tuple(np.unique(y).tolist()) if y.dtype.kind == "U" else ()
    if not all(name and name.isprintable() for name in names):
        raise InputError(f"{path}: y_train must name its classes in printable text, not {listed(names)}; rename them")
    return names


def _targets(y: np.ndarray, samples: int, names: tuple[str, ...] | None, path: Path, key: str) -> np.ndarray:
    if names is not None:
        y = class_indices(y, names, f"{path}: {key}")
    elif y.ndim != 2 or y.dtype.kind != "f":
        raise InputError(f"{path}: {key} must be real numbers (samples, outputs) like y_train, not {y.dtype} {y.shape}")
    if len(y) != samples:
        raise InputError(f"{path}: {key} must have one row per sample, {samples}, not {len(y)}")
    if not np.isfinite(y).all():
        raise InputError(
            f"{path}: {key} holds {np.count_nonzero(~np.isfinite(y))} values that are not finite; remove them"
        )
    if names is not None:
        return y
    if (most := np.abs(y).max(initial=0.0)) > np.finfo(np.float32).max:
        raise InputError(f"{path}: {key} must lie within single precision, 3.4e+38, not {most:g}; scale the targets")
    return y.astype(np.float32)


def _labels(y_train: np.ndarray, y_test: np.ndarray, names: tuple[str, ...] | None, path: Path) -> tuple[str, ...]:
    if y_train.shape[1:] != y_test.shape[1:]:
        raise InputError(f"{path}: y_test must have the form of y_train, {y_train.shape[1:]}, not {y_test.shape[1:]}")
    if names is None:
        return ()
    present = np.unique(y_train)
    if len(present) < 2 or not np.array_equal(present, np.arange(len(present))):
        raise InputError(
            f"{path}: y_train must use every class 0, 1, ..., at least two, not {', '.join(map(str, present[:9]))}"
            "; renumber them, with numpy.unique(y, return_inverse=True)[1]"
        )
    strange = np.setdiff1d(y_test, present)
    if len(strange):
        raise InputError(f"{path}: y_test holds class {strange[0]}, but y_train ends at {present[-1]}; renumber")
    return names or tuple(str(label) for label in present)


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
