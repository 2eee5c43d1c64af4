"""MNIST from its four idx files, gzipped or not, read by rows or by pixels, these in raster order or permuted."""

import gzip
import struct
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from cosim.base.arrays import check_memory, memory_limit
from cosim.base.errors import InputError
from cosim.base.text import is_file, open_file, parsing
from cosim.tasks.task import Task, full_lengths

GREY_LEVELS = 255.0
DIGITS = 10
_TYPE_BYTE = 0x08  # unsigned bytes
_REPAIR = "download it again"


def load_permuted_mnist_task(folder: Path, seed: int) -> Task:
    """Load x (n, 784, 1), the pixels of all images in the order `numpy.random.default_rng(seed).permutation(784)`.

    Raises InputError like `load_mnist_task`.
    """
    task = load_mnist_task(folder, by_pixel=True)
    order = np.random.default_rng(seed).permutation(task.x_train.shape[1])
    return replace(task, name=f"mnist-permuted-{seed}", x_train=task.x_train[:, order], x_test=task.x_test[:, order])


def load_mnist_task(folder: Path, *, by_pixel: bool = False) -> Task:
    """Load x (n, 28, 28) by rows, or (n, 784, 1) with `by_pixel`, values 0 to 255; labels 0 to 9.

    Raises InputError naming the file that is missing or is no idx file.
    """
    parts = []
    for prefix in ("train", "t10k"):
        images = read_idx(folder, f"{prefix}-images-idx3-ubyte", 3)
        y = read_idx(folder, f"{prefix}-labels-idx1-ubyte", 1).astype(np.int64)
        if len(images) != len(y):
            raise InputError(f"{folder}: {prefix} has {len(images)} images but {len(y)} labels; download it again")
        if 0 in images.shape or y.max() >= DIGITS:
            raise InputError(f"{folder}: {prefix} must hold images {images.shape} of the digits 0 to 9; {_REPAIR}")
        x = images.astype(np.float32)
        parts.append((x.reshape(len(x), -1, 1) if by_pixel else x, y))
    (x_train, y_train), (x_test, y_test) = parts
    features = x_train.shape[2]
    name = "mnist-pixels" if by_pixel else "mnist"
    labels = tuple(str(digit) for digit in range(DIGITS))
    lengths = full_lengths(x_train), full_lengths(x_test)
    return Task(
        name, x_train, y_train, x_test, y_test, *lengths, labels, np.zeros(features), np.full(features, GREY_LEVELS)
    )


def read_idx(folder: Path, name: str, axes: int) -> np.ndarray:
    """Read the uint8 array in folder/name or folder/name.gz; raises InputError if missing, cut off or another kind."""
    path = next((path for path in (folder / f"{name}.gz", folder / name) if is_file(path)), None)
    if path is None:
        raise InputError(f"{folder}: {name}.gz is missing; give the folder of the four MNIST files with --data")
    wanted, header = f"an idx file of unsigned bytes with {axes} axes", 4 + 4 * axes
    with open_file(path, _REPAIR) as raw, parsing(str(path), wanted, _REPAIR):
        file = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        start = file.read(header)
        if len(start) < header or start[:4] != bytes([0, 0, _TYPE_BYTE, axes]):
            raise InputError(f"{path}: must be {wanted}; {_REPAIR}")
        shape = struct.unpack(f">{axes}I", start[4:])
        check_memory(8 * prod(shape), memory_limit(path.stat().st_size), str(path))
        content = file.read(prod(shape) + 1)
    if len(content) != prod(shape):
        there = "more" if len(content) > prod(shape) else len(content)
        raise InputError(f"{path}: must hold {shape} bytes, but holds {there}; {_REPAIR}")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
