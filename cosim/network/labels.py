"""Labels as data files have them, understood as classes: indices, one-hot rows, names."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError
from cosim.reading.text import listed, shown


def is_one_hot(y: NDArray) -> bool:
    """Whether y (n, classes) has a single 1 in every row and 0 elsewhere."""
    if y.ndim != 2 or y.shape[1] < 2 or y.dtype.kind not in "biuf":
        return False
    return bool(((y == 0) | (y == 1)).all() and (np.count_nonzero(y, axis=1) == 1).all())


def class_indices(y: NDArray, names: Sequence[str], where: str) -> NDArray[np.int64]:
    """(n,) class indices from integers (n,), from one-hot rows (n, classes), or from texts (n,) among `names`.

    Raises InputError that says what y is instead.
    """
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
            f"not {y.dtype} {y.shape}"
        )
    return y.astype(np.int64)
