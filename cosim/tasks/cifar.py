"""CIFAR-10 pixel by pixel, from the six files of its binary version (A. Krizhevsky, 2009).

A record is one byte for the class, then 32 by 32 bytes each of red, green and blue, row after row.
"""

from pathlib import Path

import numpy as np

from cosim.base.errors import InputError
from cosim.base.text import is_file, read_bytes
from cosim.tasks.task import Task, full_lengths

TRAIN, TEST = tuple(f"data_batch_{k}.bin" for k in range(1, 6)), ("test_batch.bin",)
LABELS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PIXELS, COLOURS, LEVELS = 1024, 3, 255.0
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # of red, green, blue in grey (ITU-R BT.601)
_RECORD = 1 + PIXELS * COLOURS
_LIMIT = 10_000 * _RECORD
_REPAIR = "unpack the binary version of CIFAR-10 again"


def load_cifar_task(folder: Path, *, grey: bool = False) -> Task:
    """Load images x (n, 1024, 3), or (n, 1024, 1) if `grey`, values 0 to 255, row after row.

    The test images are the data set's.

    Raises InputError naming the file that is missing or holds no such records.
    """
    (x_train, y_train), (x_test, y_test) = (_read(folder, names, grey=grey) for names in (TRAIN, TEST))
    parts = x_train, y_train, x_test, y_test, full_lengths(x_train), full_lengths(x_test)
    features = x_train.shape[2]
    return Task("cifar10-grey" if grey else "cifar10", *parts, LABELS, np.zeros(features), np.full(features, LEVELS))


def _read(folder: Path, names: tuple[str, ...], *, grey: bool) -> tuple[np.ndarray, np.ndarray]:
    records = np.concatenate([_records(folder / name) for name in names])
    x = records[:, 1:].reshape(-1, COLOURS, PIXELS).transpose(0, 2, 1)
    values = (x @ LUMA)[:, :, None] if grey else x.astype(np.float32)
    return np.ascontiguousarray(np.minimum(values, LEVELS), np.float32), records[:, 0].astype(np.int64)


def _records(path: Path) -> np.ndarray:
    """Read the records of a file, (n, 3073) uint8: class and pixels."""
    if not is_file(path):
        raise InputError(f"{path.parent}: {path.name} is missing; give the folder of the binary version with --data")
    content = np.frombuffer(read_bytes(path, _LIMIT, _REPAIR), dtype=np.uint8)
    if len(content) == 0 or len(content) % _RECORD:
        raise InputError(f"{path}: must hold records of {_RECORD} bytes, not {len(content)} bytes; {_REPAIR}")
    records = content.reshape(-1, _RECORD)
    if records[:, 0].max() >= len(LABELS):
        raise InputError(f"{path}: classes must be 0 to {len(LABELS) - 1}, not {records[:, 0].max()}; {_REPAIR}")
    return records
