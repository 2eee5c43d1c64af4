"""Images read by rows or by pixels: digits of scikit-learn, MNIST, CIFAR-10, Pathfinder.

digits       8 by 8, the UCI optical digits that come with scikit-learn
mnist        28 by 28, four idx files, gzipped or not; by pixels in raster order or permuted
cifar10      32 by 32 in colour, the six files of its binary version (A. Krizhevsky, 2009): a record is one byte for
             the class, then 1024 bytes each of red, green and blue, row after row
pathfinder   32 by 32, an .npz of one's own: are two dots joined by a dashed path?
"""

import gzip
import struct
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cosim.base.arrays import check_memory, memory_limit, read_arrays
from cosim.base.errors import InputError, importing
from cosim.base.text import is_file, listed, open_file, parsing, read_bytes, shown_path
from cosim.tasks.task import Task, make_task, stratified_holdout

DIGITS = tuple(str(digit) for digit in range(10))
DIGITS_TESTED, DIGITS_GREY = 360, 16.0
GREY_LEVELS = 255.0
_TYPE_BYTE = 0x08  # unsigned bytes
_IDX_REPAIR = "download it again"

CIFAR_TRAIN, CIFAR_TEST = tuple(f"data_batch_{k}.bin" for k in range(1, 6)), ("test_batch.bin",)
CIFAR_LABELS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PIXELS, COLOURS = 1024, 3
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # of red, green, blue in grey (ITU-R BT.601)
_RECORD = 1 + PIXELS * COLOURS
_CIFAR_LIMIT = 10_000 * _RECORD
_CIFAR_REPAIR = "unpack the binary version of CIFAR-10 again"

SIDE = 32  # of a Pathfinder image
_PATHFINDER_KEYS = ("x_train", "y_train", "x_test", "y_test")

Part = tuple[np.ndarray, np.ndarray]  # images (n, time, features) and their classes (n,)


def _image_task(name: str, train: Part, test: Part, labels: tuple[str, ...], white: float = GREY_LEVELS) -> Task:
    """Return a task of images whose pixels lie between 0 and `white`."""
    features = train[0].shape[2]
    return make_task(name, train, test, labels, (np.zeros(features), np.full(features, white)))


def load_digits_task(*, by_pixel: bool = False) -> Task:
    """Load scikit-learn's digits: 1437 training and 360 test images, x (n, 8, 8) by rows, values 0 to 16.

    With `by_pixel` x is (n, 64, 1), row after row. The split is fixed and stratified. Raises MissingToolError without
    scikit-learn.
    """
    with importing("the digits task", "pip install scikit-learn"):
        from sklearn.datasets import load_digits
    bunch: Any = load_digits()
    x, y = bunch.images.astype(np.float32), bunch.target.astype(np.int64)
    x = x.reshape(len(x), -1, 1) if by_pixel else x
    test = stratified_holdout(y, DIGITS_TESTED, seed=0)
    name = "pixel-digits" if by_pixel else "digits"
    return _image_task(name, (x[~test], y[~test]), (x[test], y[test]), DIGITS, DIGITS_GREY)


def load_permuted_mnist_task(folder: Path, seed: int) -> Task:
    """Load MNIST by pixels, x (n, 784, 1), in the order `numpy.random.default_rng(seed).permutation(784)`.

    Raises InputError like `load_mnist_task`.
    """
    task = load_mnist_task(folder, by_pixel=True)
    order = np.random.default_rng(seed).permutation(task.x_train.shape[1])
    return replace(task, name=f"mnist-permuted-{seed}", x_train=task.x_train[:, order], x_test=task.x_test[:, order])


def load_mnist_task(folder: Path, *, by_pixel: bool = False) -> Task:
    """Load MNIST, x (n, 28, 28) by rows, or with `by_pixel` x (n, 784, 1), values 0 to 255; labels 0 to 9.

    Raises InputError naming the file that is missing or is no idx file.
    """
    train, test = (_read_mnist(folder, prefix, by_pixel=by_pixel) for prefix in ("train", "t10k"))
    return _image_task("mnist-pixels" if by_pixel else "mnist", train, test, DIGITS)


def _read_mnist(folder: Path, prefix: str, *, by_pixel: bool) -> Part:
    images = read_idx(folder, f"{prefix}-images-idx3-ubyte", 3)
    y = read_idx(folder, f"{prefix}-labels-idx1-ubyte", 1).astype(np.int64)
    if len(images) != len(y):
        raise InputError(f"{folder}: {prefix} has {len(images)} images but {len(y)} labels; {_IDX_REPAIR}")
    if 0 in images.shape or y.max() >= len(DIGITS):
        raise InputError(f"{folder}: {prefix} must hold images {images.shape} of the digits 0 to 9; {_IDX_REPAIR}")
    x = images.astype(np.float32)
    return x.reshape(len(x), -1, 1) if by_pixel else x, y


def read_idx(folder: Path, name: str, axes: int) -> np.ndarray:
    """Read the uint8 array in the idx file folder/name or folder/name.gz; axes: number that it must have.

    Raises InputError where the file is missing, cut off or of another kind.
    """
    path = next((path for path in (folder / f"{name}.gz", folder / name) if is_file(path)), None)
    if path is None:
        raise InputError(f"{folder}: {name}.gz is missing; give the folder of the four MNIST files with --data")
    wanted, header = f"an idx file of unsigned bytes with {axes} axes", 4 + 4 * axes
    with open_file(path, _IDX_REPAIR) as raw, parsing(str(path), wanted, _IDX_REPAIR):
        file = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        start = file.read(header)
        if len(start) < header or start[:4] != bytes([0, 0, _TYPE_BYTE, axes]):
            raise InputError(f"{path}: must be {wanted}; {_IDX_REPAIR}")
        shape = struct.unpack(f">{axes}I", start[4:])
        check_memory(8 * prod(shape), memory_limit(path.stat().st_size), str(path))
        content = file.read(prod(shape) + 1)
    if len(content) != prod(shape):
        there = "more" if len(content) > prod(shape) else len(content)
        raise InputError(f"{path}: must hold {shape} bytes, but holds {there}; {_IDX_REPAIR}")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def load_cifar_task(folder: Path, *, grey: bool = False) -> Task:
    """Load CIFAR-10, x (n, 1024, 3), or with `grey` x (n, 1024, 1), values 0 to 255, row after row of each image.

    Training and test images are those of the data set. Raises InputError naming the file that is missing or holds other
    records.
    """
    train, test = (_read_cifar(folder, names, grey=grey) for names in (CIFAR_TRAIN, CIFAR_TEST))
    return _image_task("cifar10-grey" if grey else "cifar10", train, test, CIFAR_LABELS)


def _read_cifar(folder: Path, names: tuple[str, ...], *, grey: bool) -> Part:
    records = np.concatenate([_records(folder / name) for name in names])
    x = records[:, 1:].reshape(-1, COLOURS, PIXELS).transpose(0, 2, 1)
    values = (x @ LUMA)[:, :, None] if grey else x.astype(np.float32)
    return np.ascontiguousarray(np.minimum(values, GREY_LEVELS), np.float32), records[:, 0].astype(np.int64)


def _records(path: Path) -> np.ndarray:
    """Read the records of a CIFAR-10 file, (n, 3073) uint8: class and pixels."""
    if not is_file(path):
        raise InputError(f"{path.parent}: {path.name} is missing; give the folder of the binary version with --data")
    content = np.frombuffer(read_bytes(path, _CIFAR_LIMIT, _CIFAR_REPAIR), dtype=np.uint8)
    if len(content) == 0 or len(content) % _RECORD:
        raise InputError(f"{path}: must hold records of {_RECORD} bytes, not {len(content)} bytes; {_CIFAR_REPAIR}")
    records = content.reshape(-1, _RECORD)
    if records[:, 0].max() >= len(CIFAR_LABELS):
        last = len(CIFAR_LABELS) - 1
        raise InputError(f"{path}: classes must be 0 to {last}, not {records[:, 0].max()}; {_CIFAR_REPAIR}")
    return records


def load_pathfinder_task(path: Path) -> Task:
    """Load the Pathfinder task from an .npz: x (n, 1024, 1), row after row of each image, values 0 to 255.

    The file holds images x (n, 32, 32) of bytes and y (n,) of 0 and 1, for training and test. Raises InputError naming
    file, array and repair.
    """
    where = shown_path(path)
    arrays = read_arrays(path, f"write {', '.join(_PATHFINDER_KEYS)} with numpy.savez", _PATHFINDER_KEYS)
    for key in _PATHFINDER_KEYS:
        if key not in arrays:
            raise InputError(f"{where}: array {key!r} is missing; found {listed(arrays)}")
    train, test = (_read_pathfinder(arrays, where, part) for part in ("train", "test"))
    return _image_task("pathfinder", train, test, ("apart", "joined"))


def _read_pathfinder(arrays: dict[str, np.ndarray], where: str, part: str) -> Part:
    images, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
    if images.shape[1:] != (SIDE, SIDE) or len(images) == 0 or images.dtype != np.uint8:
        raise InputError(
            f"{where}: x_{part} must be uint8 images (samples, {SIDE}, {SIDE}), not {images.dtype} {images.shape}"
        )
    if y.shape != images.shape[:1] or y.dtype.kind not in "iub" or not np.isin(y, (0, 1)).all():
        raise InputError(
            f"{where}: y_{part} must be {len(images)} integers 0 or 1 (joined), one per image, not {y.dtype} {y.shape}"
            f"{'' if y.shape != images.shape[:1] else ' with other values'}"
        )
    return images.reshape(len(images), -1, 1).astype(np.float32), y.astype(np.int64)
