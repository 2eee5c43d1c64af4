"""Film reviews as bytes: is one in favour? A folder train/pos/*.txt, train/neg, test/pos, test/neg (IMDb, 2011)."""

from pathlib import Path

import numpy as np

from cosim.base.text import read_bytes
from cosim.tasks.audio import list_folder
from cosim.tasks.task import Task

LONGEST = 4000  # bytes that are read of a review
LABELS = ("neg", "pos")
BYTES = 256
_LIMIT = 1 << 20


def load_reviews_task(folder: Path) -> Task:
    """Load x (n, 4000, 1), one byte a step, 0 after the end; the split is the data set's.

    Raises InputError for a folder that is missing or empty and for a file of more than 1 MB.
    """
    (x_train, y_train, len_train), (x_test, y_test, len_test) = (_read(folder / part) for part in ("train", "test"))
    parts = x_train, y_train, x_test, y_test, len_train, len_test
    return Task("imdb", *parts, LABELS, np.zeros(1), np.full(1, BYTES - 1.0), tokens=BYTES)


def _read(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    files = [(path, label) for label, name in enumerate(LABELS) for path in list_folder(folder / name, "*.txt")]
    x = np.zeros((len(files), LONGEST, 1), dtype=np.float32)
    lengths = np.ones(len(files), dtype=np.int64)  # of a file without text, too: one byte 0
    for row, (path, _) in enumerate(files):
        content = np.frombuffer(read_bytes(path, _LIMIT, "remove it")[:LONGEST], dtype=np.uint8)
        x[row, : len(content), 0], lengths[row] = content, max(1, len(content))
    return x, np.array([label for _, label in files], dtype=np.int64), lengths
