"""The test set on which a network is evaluated, from its task or a file, and which of its inputs are clipped."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cosim.base.arrays import read_arrays
from cosim.base.errors import InputError
from cosim.base.seal import checksum
from cosim.base.text import is_file, shown, shown_path
from cosim.network.reference import check_inputs, check_symbols, valid_steps
from cosim.network.types import InputEncoding, Network
from cosim.tasks.target import (
    Answers,
    check_tolerance,
    class_indices,
    default_tolerance,
    is_one_hot,
    same_answers,
)

if TYPE_CHECKING:
    from cosim.tasks.task import Task

_NAMES = ("x_test", "y_test", "len_test")
TestData = str | PathLike[str] | Mapping[str, object] | None


@dataclass(frozen=True)
class TestSet:
    """Samples on which a network is evaluated, in software and as a circuit.

    x: (n, time, features), raw; y: (n,) class indices, or (n, outputs) real numbers; lengths: valid steps, (n,);
    indices: of the samples in the full test set, (n,); tolerance: largest error of a right answer of real numbers, in
    their unit, None for classes.
    """

    __test__ = False  # a name that pytest would otherwise collect

    x: NDArray[np.float64]
    y: NDArray[np.int64] | NDArray[np.float64]
    lengths: NDArray[np.int64]
    indices: NDArray[np.int64]
    tolerance: float | None = None

    def answers(self, pooled: NDArray[np.float64]) -> Answers:
        """Return the answers that are compared with the targets: the classes of the largest outputs, (n,), or real
        outputs themselves; pooled: outputs, (n, outputs)."""
        return pooled.argmax(axis=1) if self.tolerance is None else pooled

    def same(self, first: Answers, second: Answers) -> NDArray[np.bool_]:
        """Return (n,) booleans: whether two answers, or an answer and its target, are the same within the tolerance."""
        return same_answers(first, second, self.tolerance)

    def tolerating(self, tolerance: float | None) -> "TestSet":
        """Return the test set with this tolerance, or unchanged for None.

        Raises InputError for a test set of classes, and for a tolerance that is not positive and finite.
        """
        if tolerance is None:
            return self
        if self.tolerance is None:
            raise InputError("--tolerance is for real-valued targets; this test set has classes, leave it out")
        return replace(self, tolerance=check_tolerance(tolerance, "--tolerance"))

    def take(self, count: int | None, seed: int) -> "TestSet":
        """Draw `count` samples of the test set without repetition, by a seed; None takes all of them."""
        if count is None or count >= len(self.y):
            return self
        return self.select(np.random.default_rng(seed).permutation(len(self.y))[:count])

    def select(self, places: NDArray[np.int64]) -> "TestSet":
        """Return the test set of the samples at these places, in this order."""
        return replace(
            self, x=self.x[places], y=self.y[places], lengths=self.lengths[places], indices=self.indices[places]
        )

    @property
    def sums(self) -> NDArray[np.str_]:
        """Return a hash of each test sample's valid steps and target, (n,), to recognise samples in two runs."""
        rows = zip(self.x, self.y, self.lengths, strict=True)
        return np.array([checksum(x[:length].tobytes(), str(y).encode()) for x, y, length in rows])

    def inputs(self, number: int) -> NDArray[np.float64]:
        """Return x (time, features) of one test sample without padding; raises InputError for a wrong number."""
        if not 0 <= number < len(self.y):
            raise InputError(f"no sample {number}: the test set has samples 0 to {len(self.y) - 1}; choose one of them")
        return self.x[number, : self.lengths[number]]


def load_test_set(network: Network, data: TestData) -> TestSet:
    """Load the test set of a network. Raises InputError that names the file, the key and the repair.

    data: an .npz with x_test (n, time, features), y_test (n,) or (n, outputs), and len_test (n,) if samples are padded;
    the same arrays by their names; the folder of the network's task; or None for a task without files.
    """
    if isinstance(data, Mapping):
        arrays = {name: _as_array(name, data[name]) for name in _NAMES if name in data}
        return check_test_set(_from_arrays(arrays, network, "data"), network, "data")
    data = None if data is None else Path(data)
    if data is not None and data.suffix == ".npz":
        return check_test_set(_load_npz(data, network), network, shown_path(data))
    from cosim.tasks.load import brings_data, is_task, load_task

    if data is not None and (brings_data(network.task) or not is_task(network.task)):
        brings = ", or leave --data out, as the task brings its own" if brings_data(network.task) else ""
        raise InputError(
            f"{shown_path(data)}: the test data of a network for {shown(network.task)} must be an .npz with x_test and "
            f"y_test{brings}"
        )
    if not is_task(network.task):
        task = (
            f"the network's task is {shown(network.task)}, which" if network.task else "the network names no task and"
        )
        raise InputError(f"{task} brings no data; give its test data with --data FILE.npz (x_test, y_test)")
    return task_test_set(load_task(network.task, data), network)


def task_test_set(task: "Task", network: Network) -> TestSet:
    """Return the test samples of a task, checked for a network. Raises InputError as `load_test_set`."""
    return check_test_set(_test_set(task.x_test, task.y_test, task.len_test), network, network.task)


def _load_npz(path: Path, network: Network) -> TestSet:
    if not is_file(path):
        raise InputError(f"{shown_path(path)}: no such file; give an .npz with x_test and y_test")
    arrays = read_arrays(path, "write it with numpy.savez", _NAMES)
    return _from_arrays(arrays, network, shown_path(path))


def _as_array(name: str, values: object) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"data: {name} must be an array: {error}; pad samples, and give len_test") from None


def _from_arrays(arrays: Mapping[str, np.ndarray], network: Network, where: str) -> TestSet:
    """Return the test set of arrays with the names of an .npz; where: the file, or "data", for messages."""
    names = network.labels
    if missing := [key for key in ("x_test", "y_test") if key not in arrays]:
        raise InputError(f"{where}: {' and '.join(missing)} missing; it must hold x_test and y_test")
    x, y, lengths = arrays["x_test"], arrays["y_test"], arrays.get("len_test")
    if x.ndim != 3 or y.shape[:1] != x.shape[:1]:
        raise InputError(
            f"{where}: x_test must be (samples, time, features) and y_test (samples,), not {x.shape}, {y.shape}"
            + ("; if there is one feature, give x[:, :, None]" if x.ndim == 2 else "")
        )
    if x.dtype.kind not in "fiub":
        raise InputError(f"{where}: x_test must hold real numbers, not {x.dtype}")
    if 0 in x.shape:
        raise InputError(f"{where}: the test set is empty, x_test {x.shape}; give at least one sample of one step")
    if lengths is not None and (lengths.shape != y.shape[:1] or not np.issubdtype(lengths.dtype, np.integer)):
        raise InputError(
            f"{where}: len_test must hold one length per sample {y.shape[:1]}, not {lengths.shape} of {lengths.dtype}"
        )
    real = y.ndim == 2 and y.dtype.kind == "f" and not names and (network.regression or not is_one_hot(y))
    if network.regression and not real:
        raise _wants_numbers(where, network, f"{y.dtype} {y.shape}")
    return _test_set(x, y if real else class_indices(y, names, f"{where}: y_test"), lengths)


def _test_set(x: np.ndarray, y: np.ndarray, lengths: np.ndarray | None) -> TestSet:
    if lengths is None:
        lengths = np.full(len(y), x.shape[1])
    with np.errstate(over="ignore"):  # of numbers longer than 64 bits, which are infinite then, and refused
        x, lengths, indices = x.astype(np.float64), lengths.astype(np.int64), np.arange(len(y))
        if y.ndim == 1:
            return TestSet(x, y.astype(np.int64), lengths, indices)
        values = y.astype(np.float64)
        return TestSet(x, values, lengths, indices, default_tolerance(values) if len(y) else 1.0)


def check_test_set(test_set: TestSet, network: Network, origin: str) -> TestSet:
    """Check a test set for a network, and return it with 0 in the padding of its samples.

    Raises InputError, naming `origin`, where the network cannot read the samples or has other targets.
    """
    outputs = network.readout.width
    if len(test_set.y) == 0:
        raise InputError(f"{origin}: the test set is empty; give at least one sample")
    if test_set.tolerance is not None:
        _check_values(test_set, network, origin)
    elif network.regression:
        raise _wants_numbers(origin, network, "classes")
    elif test_set.y.min() < 0 or test_set.y.max() >= outputs:
        raise InputError(
            f"{origin}: classes must lie in 0..{outputs - 1} for this network, "
            f"not {test_set.y.min()}..{test_set.y.max()}; number them as in training"
        )
    steps = test_set.x.shape[1]
    if test_set.lengths.min() < 1 or test_set.lengths.max() > steps:
        raise InputError(
            f"{origin}: lengths must lie in 1..{steps}, not {test_set.lengths.min()}..{test_set.lengths.max()}"
        )
    valid = valid_steps(test_set.lengths, steps)[:, :, None]
    test_set = replace(test_set, x=np.where(valid, test_set.x, 0.0))  # may be anything, nan even
    check_inputs(network.encoding, test_set.x, origin)
    check_symbols(network, test_set.x, test_set.lengths, origin)
    return test_set


def _wants_numbers(where: str, network: Network, given: str) -> InputError:
    return InputError(
        f"{where}: the network was trained for real numbers, so targets must be {network.readout.width} of them a "
        f"sample, not {given}; take the test set of its own task"
    )


def _check_values(test_set: TestSet, network: Network, origin: str) -> None:
    if network.labels:
        raise InputError(f"{origin}: the network has classes, so targets must be classes, not real numbers")
    if test_set.y.shape[1:] != (network.readout.width,):
        raise InputError(
            f"{origin}: targets must be {network.readout.width} numbers a sample, as many as the network has outputs, "
            f"not {test_set.y.shape[1]}"
        )
    if not np.isfinite(test_set.y).all():
        raise InputError(f"{origin}: targets must be finite numbers")


_ROUNDING = 1e-6  # of the range: what single precision makes of its ends


@dataclass(frozen=True)
class Clipping:
    """The values of a test set that the network's encoding clips.

    values: number of clipped values, of `total` valid ones; samples: number of samples with clipped values, of
    `tested`; features: number of features with clipped values; feature, value, low, high: feature, value and encoded
    range of the value that is farthest beyond it.
    """

    values: int
    total: int
    samples: int
    tested: int
    features: int
    feature: int
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        beyond = max(self.low - self.value, self.value - self.high) / (self.high - self.low)
        return (
            f"{self.values} of {self.total} values, in {self.samples} of {self.tested} samples and {self.features} "
            f"feature{'s' if self.features > 1 else ''}, lie beyond the range of the network's encoding and are "
            f"clipped; the farthest: {self.value:.4g} of feature {self.feature}, {100 * beyond:.3g} % beyond "
            f"{self.low:.4g} to {self.high:.4g}"
        )


def find_clipping(encoding: InputEncoding, test_set: TestSet) -> Clipping | None:
    """Count the valid values of a test set that the encoding clips; return None where it clips none.

    A value beyond the range is not counted if it is so by rounding alone: by half a level, or in single precision.
    """
    x = test_set.x
    slack = _ROUNDING if encoding.levels is None else 0.5 / encoding.levels
    places = (x - encoding.offset) / encoding.scale
    beyond = np.maximum(-places, places - 1)
    valid = valid_steps(test_set.lengths, x.shape[1])[:, :, None]
    clipped = (beyond > slack) & valid
    if not clipped.any():
        return None
    sample, step, feature = np.unravel_index(np.where(clipped, beyond, 0).argmax(), x.shape)
    low = float(encoding.offset[feature])
    return Clipping(
        int(clipped.sum()),
        int(valid.sum()) * x.shape[2],
        int(clipped.any(axis=(1, 2)).sum()),
        len(x),
        int(clipped.any(axis=(0, 1)).sum()),
        int(feature),
        float(x[sample, step, feature]),
        low,
        low + float(encoding.scale[feature]),
    )
