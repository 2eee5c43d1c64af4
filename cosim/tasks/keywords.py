"""Keywords at the seed paper's frame rate: a folder of <word>/<speaker>_nohash_<k>.wav (Google Speech Commands).

One second at 16 kHz becomes 101 frames, 10 ms apart, of 13 coefficients. Every class has as many recordings as the
rarest one, and nobody is heard in training and in test: by a hash of the speaker's name one in ten tests. `yes-all` and
`words-all` train with every recording there is, those of a rarer class as often as makes it even, and each in FORMS
forms: as it is, and as another voice might say it in another room, see `audio.varied`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from cosim.base.errors import InputError
from cosim.tasks.audio import list_folder, mfcc, read_wav, varied
from cosim.tasks.speech_commands import check_words, speaker_hash, speaker_of
from cosim.tasks.task import Task, full_lengths, percentile_range

RATE, HOP = 16000, 160
TEST_SHARE = 0.1
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
OTHER = "other"
WHOLE = ("yes-all", "words-all")  # kinds that train with every recording
FORMS = 4  # of each recording in these
BACKGROUND = "_silence_"  # recordings without a word, which the varied forms are mixed with
FEWEST = 100  # recordings of a word that is a class of its own in `all`; the published set has 1500 and more


def load_keywords_task(folder: Path, kind: str, fold: int = 0) -> Task:
    """Load the task of spoken keywords, x (n, 101, 13).

    kind: yes and yes-all (other, yes), digits (other, zero .. nine), all (every word of 100 recordings or more),
    words-all (other and these). fold: which tenth of the speakers is for the test, 0 to 9.

    Raises InputError for a folder without the words or without recordings of a class for training or for the test, and
    for files that are no 16 kHz wav; MissingToolError without librosa.
    """
    labels, words = _classes(folder, kind)
    by_class = [
        [path for word in words if _label(word, labels) == label for path in list_folder(folder / word, "*.wav")]
        for label in labels
    ]
    rng = np.random.default_rng(0)
    parts = [_heard(folder, labels, by_class, fold, test=test) for test in (False, True)]
    even, test = (_balanced(part, rng) for part in parts)
    train = _repeated(parts[0]) * FORMS if kind in WHOLE else even
    noises = sorted((folder / BACKGROUND).glob("*.wav")) if kind in WHOLE else []
    x_train, x_test = (_features([path for path, _ in part], noises) for part in (train, test))
    y_train, y_test = (np.array([label for _, label in part], dtype=np.int64) for part in (train, test))
    _, speakers = np.unique([speaker_of(path) for path, _ in train], return_inverse=True)
    arrays = x_train, y_train, x_test, y_test, full_lengths(x_train), full_lengths(x_test)
    return Task(f"kws-{kind}", *arrays, labels, *percentile_range(x_train), speakers.astype(np.int64))


def _features(paths: Sequence[Path], noises: Sequence[Path]) -> np.ndarray:
    """Compute the features of recordings, (paths, 101, 13); a recording that is listed again is varied."""
    return np.stack(mfcc(_forms(paths, [_second(path) for path in noises]), RATE, HOP))


def _forms(paths: Sequence[Path], noises: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    clips = {path: _second(path) for path in dict.fromkeys(paths)}
    rng, heard = np.random.default_rng(0), set[Path]()
    for path in paths:
        yield varied(clips[path], RATE, noises, rng) if path in heard else clips[path]
        heard.add(path)


def _second(path: Path) -> np.ndarray:
    """Read a recording of one second, (RATE,); a shorter one ends in silence."""
    clip = read_wav(path, RATE, 1.0)
    return np.pad(clip, (0, RATE - len(clip)))


def _classes(folder: Path, kind: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the labels of a kind, and the words whose recordings are read."""
    named = {"all": (), "words-all": (), "digits": DIGITS}.get(kind, ("yes",))
    check_words(folder, named)
    words = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("_"))
    if named:
        return (OTHER, *named), words
    frequent = tuple(word for word in words if len(list((folder / word).glob("*.wav"))) >= FEWEST)
    if len(frequent) < 2:
        raise InputError(
            f"{folder}: kws-{kind} must have two words of {FEWEST} recordings or more, not "
            f"{', '.join(frequent) or 'none'}; add recordings"
        )
    return ((OTHER, *frequent), words) if kind in WHOLE else (frequent, list(frequent))


def _label(word: str, labels: tuple[str, ...]) -> str:
    return word if word in labels else OTHER


def _heard(
    folder: Path, labels: tuple[str, ...], by_class: list[list[Path]], fold: int, *, test: bool
) -> list[list[Path]]:
    """Return the recordings of each class by the speakers of one part. Raises InputError for a class without any."""
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
    """Return the number of the tenth of all speakers to which a recording's speaker belongs."""
    return int(speaker_hash(speaker_of(path)) // TEST_SHARE)


def _balanced(found: list[list[Path]], rng: np.random.Generator) -> list[tuple[Path, int]]:
    """Return as many recordings of each class, with its number."""
    fewest = min(map(len, found))
    return [
        (paths[place], label)
        for label, paths in enumerate(found)
        for place in np.sort(rng.permutation(len(paths))[:fewest])
    ]


def _repeated(found: list[list[Path]]) -> list[tuple[Path, int]]:
    """Return all recordings of each class with its number, as often as fits into the size of the largest class."""
    most = max(map(len, found))
    return [(path, label) for label, paths in enumerate(found) for path in paths * (most // len(paths))]
