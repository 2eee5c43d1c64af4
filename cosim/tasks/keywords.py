"""Keywords at the seed paper's frame rate: a folder of <word>/<speaker>_nohash_<k>.wav (Google Speech Commands).

One second at 16 kHz becomes 101 frames, 10 ms apart, of 13 coefficients. Every class has as many recordings as the
rarest one, and nobody is heard in training and in test: by a hash of the speaker's name one in ten tests.
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


def load_keywords_task(folder: Path, kind: str) -> Task:
    """x (n, 101, 13). kind: yes (other, yes), digits (other, zero .. nine), all (every word of 100 recordings or more).

    Raises InputError for a folder without the words or without recordings of a class for training or for the test,
    and for files that are no 16 kHz wav; MissingToolError without librosa.
    """
    labels, words = _classes(folder, kind)
    by_class = [
        [path for word in words if _label(word, labels) == label for path in list_folder(folder / word, "*.wav")]
        for label in labels
    ]
    rng = np.random.default_rng(0)
    train, test = (_balanced(folder, labels, by_class, rng, test=test) for test in (False, True))
    paths = [path for path, _ in (*train, *test)]
    clips = [read_wav(path, RATE, 1.0) for path in paths]
    x = np.stack(mfcc([np.pad(clip, (0, RATE - len(clip))) for clip in clips], RATE, HOP))
    y = np.array([label for _, label in (*train, *test)], dtype=np.int64)
    _, speakers = np.unique([speaker_of(path) for path, _ in train], return_inverse=True)
    x_train, x_test = x[: len(train)], x[len(train) :]
    parts = x_train, y[: len(train)], x_test, y[len(train) :], full_lengths(x_train), full_lengths(x_test)
    groups = speakers.astype(np.int64)
    return Task(f"kws-{kind}", *parts, labels, *percentile_range(x_train), groups)


def _classes(folder: Path, kind: str) -> tuple[tuple[str, ...], list[str]]:
    """The labels of a kind and the words whose recordings are read."""
    named = () if kind == "all" else ("yes",) if kind == "yes" else DIGITS
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


def _balanced(
    folder: Path, labels: tuple[str, ...], by_class: list[list[Path]], rng: np.random.Generator, *, test: bool
) -> list[tuple[Path, int]]:
    """As many recordings of each class, with its number, drawn from the speakers of one part."""
    found = [[path for path in paths if (speaker_hash(speaker_of(path)) < TEST_SHARE) == test] for paths in by_class]
    fewest = min(len(paths) for paths in found)
    if fewest == 0:
        rarest = labels[[len(paths) for paths in found].index(0)]
        part = "test" if test else "training"
        raise InputError(f"{folder}: none of the {part} speakers says {rarest!r}; add recordings")
    return [
        (paths[place], label)
        for label, paths in enumerate(found)
        for place in np.sort(rng.permutation(len(paths))[:fewest])
    ]
