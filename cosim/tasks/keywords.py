"""Keywords at the seed paper's frame rate: a folder of <word>/<speaker>_nohash_<k>.wav (Google Speech Commands).

One second at 16 kHz becomes 101 frames, 10 ms apart, of 13 coefficients. Every class has as many recordings as the
rarest one, and nobody is heard in training and in test: by a hash of the speaker's name one in ten tests. `yes-all`
trains with every recording there is, those of the rarer class as often as makes it even.
"""

from pathlib import Path

import numpy as np

from cosim.errors import InputError
from cosim.tasks.audio import list_folder, mfcc, read_wav
from cosim.tasks.speech_commands import check_words, speaker_hash, speaker_of
from cosim.tasks.task import Task, full_lengths, percentile_range

RATE, HOP = 16000, 160
TEST_SHARE = 0.1
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
OTHER = "other"
FEWEST = 100  # recordings of a word that is a class of its own in `all`; the published set has 1500 and more


def load_keywords_task(folder: Path, kind: str, fold: int = 0) -> Task:
    """x (n, 101, 13). kind: yes and yes-all (other, yes), digits (other, zero .. nine), all (every word of 100
    recordings or more). fold: which tenth of the speakers is for the test, 0 to 9.

    Raises InputError for a folder without the words or without recordings of a class for training or for the test,
    and for files that are no 16 kHz wav; MissingToolError without librosa.
    """
    labels, words = _classes(folder, kind)
    by_class = [
        [path for word in words if _label(word, labels) == label for path in list_folder(folder / word, "*.wav")]
        for label in labels
    ]
    rng = np.random.default_rng(0)
    parts = [_heard(folder, labels, by_class, fold, test=test) for test in (False, True)]
    even, test = (_balanced(part, rng) for part in parts)
    train = _repeated(parts[0]) if kind == "yes-all" else even
    paths = {path: place for place, path in enumerate(dict.fromkeys(path for path, _ in (*train, *test)))}
    clips = [read_wav(path, RATE, 1.0) for path in paths]
    features = np.stack(mfcc([np.pad(clip, (0, RATE - len(clip))) for clip in clips], RATE, HOP))
    x = features[[paths[path] for path, _ in (*train, *test)]]
    y = np.array([label for _, label in (*train, *test)], dtype=np.int64)
    _, speakers = np.unique([speaker_of(path) for path, _ in train], return_inverse=True)
    x_train, x_test = x[: len(train)], x[len(train) :]
    arrays = x_train, y[: len(train)], x_test, y[len(train) :], full_lengths(x_train), full_lengths(x_test)
    groups = speakers.astype(np.int64)
    return Task(f"kws-{kind}", *arrays, labels, *percentile_range(x_train), groups)


def _classes(folder: Path, kind: str) -> tuple[tuple[str, ...], list[str]]:
    """The labels of a kind and the words whose recordings are read."""
    named = {"all": (), "digits": DIGITS}.get(kind, ("yes",))
    check_words(folder, named)
    words = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("_"))
    if named:
        return (OTHER, *named), words
    labels = tuple(word for word in words if len(list((folder / word).glob("*.wav"))) >= FEWEST)
    if len(labels) < 2:
        raise InputError(
            f"{folder}: kws-all must have two words of {FEWEST} recordings or more, not {', '.join(labels) or 'none'}; "
            "add recordings"
        )
    return labels, list(labels)


def _label(word: str, labels: tuple[str, ...]) -> str:
    return word if word in labels else OTHER


def _heard(
    folder: Path, labels: tuple[str, ...], by_class: list[list[Path]], fold: int, *, test: bool
) -> list[list[Path]]:
    """The recordings of each class by the speakers of one part."""
    tested = [[_fold(path) == fold for path in paths] for paths in by_class]
    found = [
        [path for path, its in zip(paths, which, strict=True) if its == test]
        for paths, which in zip(by_class, tested, strict=True)
    ]
    if not all(found):
        rarest = labels[[len(paths) for paths in found].index(0)]
        part = "test" if test else "training"
        raise InputError(f"{folder}: none of the {part} speakers says {rarest!r}; add recordings")
    return found


def _fold(path: Path) -> int:
    """The tenth of the speakers that a recording's is of."""
    return int(speaker_hash(speaker_of(path)) // TEST_SHARE)


def _balanced(found: list[list[Path]], rng: np.random.Generator) -> list[tuple[Path, int]]:
    """As many recordings of each class, with its number."""
    fewest = min(map(len, found))
    return [
        (paths[place], label)
        for label, paths in enumerate(found)
        for place in np.sort(rng.permutation(len(paths))[:fewest])
    ]


def _repeated(found: list[list[Path]]) -> list[tuple[Path, int]]:
    """All recordings of each class, with its number, as often as the largest class has room for."""
    most = max(map(len, found))
    return [(path, label) for label, paths in enumerate(found) for path in paths * (most // len(paths))]
