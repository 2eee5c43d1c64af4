"""Sequences of tokens: film reviews as bytes, texts as characters, nested lists of digits.

Reviews (IMDb, 2011): is one in favour? A folder train/pos/*.txt, train/neg, test/pos, test/neg.

Characters: predict the next character of a text at each step. The text is a file of one's own, or the help topics of
Python. These topics, 0.46 MB of English, replace a published text; they differ between versions of Python.

ListOps: nested lists of digits under MAX, MIN, MED and SM in prefix notation, whose value is a digit.

    [MAX 2 [MED 3 9 4 ] [SM 7 8 ] ]   is   5

MED is the median, of an even number of values rounded down, and SM the sum modulo 10 (N. Nangia and S. Bowman, 2018).
The expressions are generated here, not read from a published file: a random digit that is not too deep becomes a list,
again and again, until the wanted length is reached.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cosim.base.errors import InputError
from cosim.base.text import read_bytes, shown_path
from cosim.tasks.audio import list_folder
from cosim.tasks.task import StepTargets, StepTask, Task, make_task

REVIEW_BYTES, REVIEW_LIMIT = 4000, 1 << 20  # that are read of a review, and that its file may have
VERDICTS = ("neg", "pos")
BYTES = 256

Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # places of tokens (n, time, 1), classes (n,), lengths (n,)


def _token_task(name: str, train: Part, test: Part, labels: tuple[str, ...], tokens: int) -> Task:
    """Return a task whose samples x are places in a list of so many tokens."""
    return replace(make_task(name, train, test, labels, (np.zeros(1), np.full(1, tokens - 1.0))), tokens=tokens)


def load_reviews_task(folder: Path) -> Task:
    """Load the task of film reviews: x (n, 4000, 1), one byte a step, 0 after the end; labels VERDICTS.

    Training and test set are those of the data set. Raises InputError for a folder that is missing or empty, and for a
    file of more than 1 MB.
    """
    train, test = (_read_reviews(folder / part) for part in ("train", "test"))
    return _token_task("imdb", train, test, VERDICTS, BYTES)


def _read_reviews(folder: Path) -> Part:
    files = [(path, label) for label, name in enumerate(VERDICTS) for path in list_folder(folder / name, "*.txt")]
    x = np.zeros((len(files), REVIEW_BYTES, 1), dtype=np.float32)
    lengths = np.ones(len(files), dtype=np.int64)  # of a file without text, too: one byte 0
    for row, (path, _) in enumerate(files):
        content = np.frombuffer(read_bytes(path, REVIEW_LIMIT, "remove it")[:REVIEW_BYTES], dtype=np.uint8)
        x[row, : len(content), 0], lengths[row] = content, max(1, len(content))
    return x, np.array([label for _, label in files], dtype=np.int64), lengths


WINDOW = 256
SHARES = (90, 95)  # per cent of the text where training and validation end
_TEXT_LIMIT = 64 << 20
_TEXT_REPAIR = "give a text in UTF-8 with --data"


def load_characters_task(path: Path | None = None, window: int = WINDOW) -> StepTask:
    """Load the task of predicting characters of a text file, or for None of Python's help topics, in windows.

    Raises InputError for a file that is not UTF-8 and for a text that is too short.
    """
    if path is None:
        from pydoc_data.topics import topics

        return characters_task("characters", "\n".join(sorted(set(topics.values()))), window)
    try:
        text = read_bytes(path, _TEXT_LIMIT, _TEXT_REPAIR).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{shown_path(path)}: must be text in UTF-8, but byte {error.start} is not; {_TEXT_REPAIR}"
        ) from None
    return characters_task(shown_path(path), text, window)


def characters_task(name: str, text: str, window: int = WINDOW) -> StepTask:
    """Cut a text into windows: the first 90 % for training, the next 5 % for validation, the last 5 % for the test.

    x (n, window, 1): places of the characters in the sorted list of all characters of the text, which are the labels; y
    (n, window): places of the characters that follow. An incomplete window at the end is left out. Raises InputError
    for a text that is too short.
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


OPERATORS = ("[MAX", "[MIN", "[MED", "[SM")
TOKENS = (*(str(digit) for digit in range(10)), *OPERATORS, "]")
LONGEST, MOST_TOKENS = 60, 2000
FEWEST_ARGUMENTS, MOST_ARGUMENTS, DEPTH = 2, 5, 10
_VALUES: tuple[Callable[[list[int]], int], ...] = (
    max,
    min,
    lambda values: (sorted(values)[(len(values) - 1) // 2] + sorted(values)[len(values) // 2]) // 2,
    lambda values: sum(values) % 10,
)
_FIRST_OPERATOR, _CLOSE = 10, len(TOKENS) - 1
_ADDED = FEWEST_ARGUMENTS + 1  # tokens that the smallest list adds to the digit whose place it takes


def generate_listops_task(longest: int = LONGEST, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate the listops task: x (n, time, 1), places in TOKENS, padded with 0; y (n,): values of the expressions.

    longest: largest number of tokens; lengths are nearly uniform from a third of it. Equal seeds give equal tasks.
    Raises InputError for a `longest` beyond 12 .. 2000.
    """
    if not 12 <= longest <= MOST_TOKENS:
        raise InputError(f"listops must have 12 to {MOST_TOKENS} tokens, not {longest}; give another length")
    rng = np.random.default_rng(seed)
    count = n_train + n_test
    wanted = rng.integers(longest // 3 + _ADDED - 1, longest + 1, count)
    x, y = np.zeros((count, longest, 1), dtype=np.float32), np.zeros(count, dtype=np.int64)
    lengths = np.zeros(count, dtype=np.int64)
    for k, length in enumerate(wanted):
        tokens = grow_expression(int(length), rng)
        x[k, : len(tokens), 0], y[k], lengths[k] = tokens, evaluate(tokens), len(tokens)
    train, test = ((x[part], y[part], lengths[part]) for part in (slice(n_train), slice(n_train, None)))
    name = "listops" if longest == LONGEST else f"listops-{longest}"
    return _token_task(name, train, test, TOKENS[:10], len(TOKENS))


def grow_expression(length: int, rng: np.random.Generator) -> list[int]:
    """Return a random expression as places in TOKENS: at most `length` tokens, and at least `length` - 2."""
    draws = iter(rng.random(4 * length).tolist())

    def pick(first: int, last: int) -> int:
        return first + int(next(draws) * (last - first + 1))

    root: list[Any] = [0]
    leaves = [(root, 0, 1)]  # where a digit is: its list, its place there, the depth of a list in its stead
    size = 1
    while size + _ADDED <= length and leaves:
        chosen = pick(0, len(leaves) - 1)
        leaves[chosen], leaves[-1] = leaves[-1], leaves[chosen]
        parent, place, depth = leaves.pop()
        arguments = pick(FEWEST_ARGUMENTS, min(MOST_ARGUMENTS, length - size - 1))
        parent[place] = [_FIRST_OPERATOR + pick(0, len(OPERATORS) - 1), *(pick(0, 9) for _ in range(arguments))]
        size += arguments + 1
        if depth < DEPTH:
            leaves.extend((parent[place], k, depth + 1) for k in range(1, arguments + 1))
    return _flat(root[0])


def _flat(node: Any) -> list[int]:  # noqa: ANN401 - a digit, or a list of an operator and such nodes
    if isinstance(node, int):
        return [node]
    return [node[0], *(token for child in node[1:] for token in _flat(child)), _CLOSE]


def evaluate(tokens: list[int]) -> int:
    """Return the value of a well-formed listops expression, given as places in TOKENS."""
    stack: list[list[int]] = [[]]
    for token in tokens:
        if token == _CLOSE:
            operator, *values = stack.pop()
            stack[-1].append(_VALUES[operator - _FIRST_OPERATOR](values))
        elif token >= _FIRST_OPERATOR:
            stack.append([token])
        else:
            stack[-1].append(token)
    return stack[0][0]
