"""Predict the next character of a text at each step. The text is a file of one's own, or the help topics of Python.

These, 0.46 MB of English, are a substitute for a published text; they differ between versions of Python.
"""

from pathlib import Path

import numpy as np

from cosim.base.errors import InputError
from cosim.base.text import read_bytes, shown_path
from cosim.tasks.task import StepTargets, StepTask

WINDOW = 256
SHARES = (90, 95)  # per cent of the text where training and validation end
_LIMIT = 64 << 20
_REPAIR = "give a text in UTF-8 with --data"


def load_characters_task(path: Path | None = None, window: int = WINDOW) -> StepTask:
    """Return the task of a text file, or of Python's help topics. Raises InputError for a file that is not UTF-8."""
    if path is None:
        from pydoc_data.topics import topics

        return characters_task("characters", "\n".join(sorted(set(topics.values()))), window)
    try:
        text = read_bytes(path, _LIMIT, _REPAIR).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{shown_path(path)}: must be text in UTF-8, but byte {error.start} is not; {_REPAIR}"
        ) from None
    return characters_task(shown_path(path), text, window)


def characters_task(name: str, text: str, window: int = WINDOW) -> StepTask:
    """Cut a text into windows: the first 90 % for training, the next 5 % for validation and the last 5 % for the test.

    x (n, window, 1): places of characters in the sorted characters of the whole text, which are the labels; y (n,
    window): the next one's. What fills no window is left out. Raises InputError for a text that is too short.
    """
    if window < 1:
        raise InputError(f"a window must have at least 1 character, not {window}")
    needed = 20 * (window + 1)
    if len(text) < needed or len(set(text)) < 2:
        raise InputError(
            f"{name}: must have at least {needed} characters, of two kinds or more, for windows of {window}, not "
            f"{len(text)} of {len(set(text))} kinds; give a longer text"
        )
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    kinds, places = np.unique(codes, return_inverse=True)
    first, second = (len(text) * share // 100 for share in SHARES)
    train, valid, test = (_windows(part, window) for part in np.split(places, [first, second]))
    labels = tuple(chr(kind) for kind in kinds)
    return StepTask(name, train, valid, test, labels, tokens=len(labels))


def _windows(places: np.ndarray, window: int) -> StepTargets:
    count = (len(places) - 1) // window
    x, y = (places[start : start + count * window].reshape(count, window) for start in (0, 1))
    return StepTargets(x[:, :, None].astype(np.float32), y.astype(np.int64), np.ones((count, window), dtype=bool))
