"""The test set that a network is held against: its task's own, or a file's."""

import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError
from cosim.network.reference import encode_inputs
from cosim.network.types import Network


@dataclass(frozen=True)
class TestSet:
    """x (n, time, features) raw; y (n,) class indices; lengths (n,) valid steps; indices (n,) in the full test set."""

    __test__ = False  # a name that pytest would otherwise collect

    x: NDArray[np.float64]
    y: NDArray[np.int64]
    lengths: NDArray[np.int64]
    indices: NDArray[np.int64]

    def take(self, count: int | None, seed: int) -> "TestSet":
        """`count` samples drawn without replacement by a seeded permutation; all of them for None."""
        if count is None or count >= len(self.y):
            return self
        return self.select(np.random.default_rng(seed).permutation(len(self.y))[:count])

    def select(self, places: NDArray[np.int64]) -> "TestSet":
        """The samples at these places, in this order."""
        return TestSet(self.x[places], self.y[places], self.lengths[places], self.indices[places])

    def inputs(self, number: int) -> NDArray[np.float64]:
        """x (time, features) of one sample, without what pads it; raises InputError when there is none."""
        if not 0 <= number < len(self.y):
            raise InputError(f"no sample {number}: the test set has samples 0 to {len(self.y) - 1}; choose one of them")
        return self.x[number, : self.lengths[number]]


def load_test_set(network: Network, data: str | Path | None) -> TestSet:
    """`data`: an .npz with x_test y_test (and len_test), a task's folder, or None for a task that needs no files.

    Raises InputError that names the file, the key and the repair.
    """
    data = None if data is None else Path(data)
    if data is not None and data.suffix == ".npz":
        return _check(_load_npz(data), network, str(data))
    from cosim.training.tasks.load import TASKS, load_task

    if network.task not in TASKS:
        raise InputError(
            f"the network's task is {network.task!r}, which brings no data; give its test data with --data FILE.npz "
            "(x_test, y_test)"
        )
    task = load_task(network.task, data)
    if not task.labels:
        raise InputError(f"task {network.task} has no classes; compare and simulate need a classification task")
    return _check(_test_set(task.x_test, task.y_test, task.len_test), network, network.task)


def _load_npz(path: Path) -> TestSet:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            missing = [key for key in ("x_test", "y_test") if key not in arrays]
            if missing:
                raise InputError(f"{path}: {' and '.join(missing)} missing; the file must hold x_test and y_test")
            x, y = arrays["x_test"], arrays["y_test"]
            lengths = arrays.get("len_test")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give an .npz with x_test and y_test") from None
    except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: not a readable .npz file ({error}); write it with numpy.savez") from None
    if x.ndim != 3 or y.shape != x.shape[:1]:
        raise InputError(
            f"{path}: x_test must be (samples, time, features) and y_test (samples,), not {x.shape}, {y.shape}"
        )
    if x.dtype.kind not in "fiub":
        raise InputError(f"{path}: x_test must hold real numbers, not {x.dtype}")
    if not np.issubdtype(y.dtype, np.integer):
        raise InputError(f"{path}: y_test must hold class indices, not {y.dtype}")
    if lengths is not None and (lengths.shape != y.shape or not np.issubdtype(lengths.dtype, np.integer)):
        raise InputError(
            f"{path}: len_test must hold one length per sample {y.shape}, not {lengths.shape} of {lengths.dtype}"
        )
    return _test_set(x, y, lengths)


def _test_set(x: np.ndarray, y: np.ndarray, lengths: np.ndarray | None) -> TestSet:
    if lengths is None:
        lengths = np.full(len(y), x.shape[1])
    return TestSet(x.astype(np.float64), y.astype(np.int64), lengths.astype(np.int64), np.arange(len(y)))


def _check(test_set: TestSet, network: Network, origin: str) -> TestSet:
    outputs = network.readout.width
    if len(test_set.y) == 0:
        raise InputError(f"{origin}: the test set is empty; give at least one sample")
    if test_set.y.min() < 0 or test_set.y.max() >= outputs:
        raise InputError(
            f"{origin}: classes must lie in 0..{outputs - 1} for this network, "
            f"not {test_set.y.min()}..{test_set.y.max()}"
        )
    steps = test_set.x.shape[1]
    if test_set.lengths.min() < 1 or test_set.lengths.max() > steps:
        raise InputError(
            f"{origin}: lengths must lie in 1..{steps}, not {test_set.lengths.min()}..{test_set.lengths.max()}"
        )
    padding = np.arange(steps)[None, :] >= test_set.lengths[:, None]
    test_set = replace(test_set, x=np.where(padding[:, :, None], 0.0, test_set.x))  # may be anything, nan even
    encode_inputs(network.encoding, test_set.x, origin)  # refuses another number of features and what is not finite
    return test_set
