"""Labels as data files have them, understood as classes: indices, one-hot rows, names."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.text import listed, shown

_MOST = 2**53  # beyond it not every whole number is a real one


def is_one_hot(y: NDArray) -> bool:
    """Tell whether labels y (n, classes) have a single 1 in every row and 0 elsewhere."""
    if y.ndim != 2 or y.shape[1] < 2 or y.dtype.kind not in "biuf":
        return False
    return bool(((y == 0) | (y == 1)).all() and (np.count_nonzero(y, axis=1) == 1).all())


def whole_classes(y: NDArray) -> NDArray:
    """Return class labels (n,) that are stored as real or truth values as integers; all others as they are."""
    if y.ndim == 1 and y.dtype.kind == "b":
        return y.astype(np.int64)
    if y.ndim != 1 or y.dtype.kind != "f" or not (np.abs(y) < _MOST).all() or not (y == np.floor(y)).all():
        return y
    return y.astype(np.int64)


def label_repair(y: NDArray) -> str:
    """Return advice on how to make labels or targets of y, the end of an error message; empty where nothing simple
    does."""
    if y.ndim == 2 and y.shape[1] == 1 and y.dtype.kind in "iub":
        return "; for classes save y[:, 0]"
    if y.ndim == 1 and y.dtype.kind == "f":
        return "; for classes save whole numbers, y.astype(int), for targets that are real numbers save y[:, None]"
    return "; of objects or bytes make texts: y.astype(str)" if y.dtype.kind in "OS" else ""


def class_indices(y: NDArray, names: Sequence[str], where: str) -> NDArray[np.int64]:
    """Return (n,) class indices from integers (n,), from one-hot rows (n, classes), or from texts (n,) among `names`.

    Raises InputError that says what y is instead.
    """
    y = whole_classes(y)
    if is_one_hot(y):
        return y.argmax(axis=1).astype(np.int64)
    if y.ndim == 1 and y.dtype.kind == "U":
        places = {name: i for i, name in enumerate(names)}
        strange = next((text for text in y.tolist() if text not in places), None)
        if strange is not None:
            raise InputError(
                f"{where} holds the label {shown(strange)}, but the classes are {listed(names)}; rename it"
            )
        return np.array([places[text] for text in y.tolist()], dtype=np.int64)
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise InputError(
            f"{where} must hold class indices (samples,), one-hot rows (samples, classes) or the names of the classes, "
            f"not {y.dtype} {y.shape}{label_repair(y)}"
        )
    return y.astype(np.int64)
