"""Spoken digits of different lengths: a folder of {digit}_{speaker}_{index}.wav (Free Spoken Digit Dataset, 8 kHz).

Index 0 to 4 of every digit and speaker is the test set, as the data set prescribes.
"""

import re
from pathlib import Path

import numpy as np

from cosim.base.errors import InputError
from cosim.tasks.audio import list_folder, mfcc, read_wav
from cosim.tasks.task import Task, percentile_range

RATE = 8000
HOP = 256  # 32 ms
SECONDS = 1.0  # longer recordings (few) are cut
TEST_INDICES = 5
_NAME = re.compile(r"^(\d)_(\w+)_(\d+)$")


def load_fsdd_task(folder: Path) -> Task:
    """Load x (n, time, 13), padded with zeros after each sample's valid steps; labels 0 to 9.

    Raises InputError for a folder without recordings, a name of another form, or a split that lacks samples.
    """
    paths = list_folder(folder, "*.wav")
    digits, indices = zip(*(_digit_and_index(path) for path in paths), strict=True)
    features = mfcc([read_wav(path, RATE, SECONDS) for path in paths], RATE, HOP)
    lengths = np.array([len(rows) for rows in features], dtype=np.int64)
    x = np.zeros((len(paths), lengths.max(), features[0].shape[1]), dtype=np.float32)
    for sample, rows in zip(x, features, strict=True):
        sample[: len(rows)] = rows
    y = np.array(digits, dtype=np.int64)
    test = np.array(indices) < TEST_INDICES
    if test.all() or not test.any():
        raise InputError(
            f"{folder}: must hold recordings of index below {TEST_INDICES} (test) and above; unpack it again"
        )
    valid = np.concatenate([rows for rows, held in zip(features, test, strict=True) if not held])
    labels = tuple(str(digit) for digit in range(10))
    parts = x[~test], y[~test], x[test], y[test], lengths[~test], lengths[test]
    return Task("fsdd", *parts, labels, *percentile_range(valid))


def _digit_and_index(path: Path) -> tuple[int, int]:
    match = _NAME.match(path.stem)
    if match is None:
        raise InputError(f"{path}: must be named {{digit}}_{{speaker}}_{{index}}.wav; rename or remove it")
    return int(match.group(1)), int(match.group(3))
