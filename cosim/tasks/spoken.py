"""Spoken words: digits of different lengths, one word against others, keywords at the seed paper's frame rate.

Free Spoken Digit Dataset, 8 kHz: a folder of {digit}_{speaker}_{index}.wav. Index 0 to 4 of every digit and speaker is
the test set, as the data set prescribes.

Google Speech Commands, 16 kHz, 1 s: a folder of <word>/<speaker>_nohash_<k>.wav. The split is by speaker: nobody is
heard in training and in test. Recordings without `_nohash_` (the silence) count as one speaker each.

The task of one word against others has 32 frames. Keywords have 101 frames, 10 ms apart, of 13 coefficients. Every
class has as many recordings as the rarest one. One in ten speakers is for the test, by a hash of the speaker's name.
`yes-all` and `words-all` train with all recordings. Those of a rarer class are repeated until classes are about even,
and each comes in FORMS forms: unchanged, and as another voice might say it in another room, see `audio.varied`.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cosim.base.errors import InputError
from cosim.tasks.audio import list_folder, mfcc, read_wav, varied
from cosim.tasks.task import Task, make_task, percentile_range

FSDD_RATE, FSDD_HOP = 8000, 256  # 32 ms
FSDD_SECONDS = 1.0  # longer recordings (few) are cut
TEST_INDICES = 5
_NAME = re.compile(r"^(\d)_(\w+)_(\d+)$")


def load_fsdd_task(folder: Path) -> Task:
    """Load the task of spoken digits: x (n, time, 13), 0 after each sample's valid steps; labels 0 to 9.

    Raises InputError for a folder without recordings, a file name of another form, or a split without samples for
    training or test.
    """
    paths = list_folder(folder, "*.wav")
    digits, indices = zip(*(_digit_and_index(path) for path in paths), strict=True)
    features = mfcc([read_wav(path, FSDD_RATE, FSDD_SECONDS) for path in paths], FSDD_RATE, FSDD_HOP)
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
    train, tested = ((x[part], y[part], lengths[part]) for part in (~test, test))
    return make_task("fsdd", train, tested, tuple(map(str, range(10))), percentile_range(valid))


def _digit_and_index(path: Path) -> tuple[int, int]:
    match = _NAME.match(path.stem)
    if match is None:
        raise InputError(f"{path}: must be named {{digit}}_{{speaker}}_{{index}}.wav; rename or remove it")
    return int(match.group(1)), int(match.group(3))


COMMANDS_RATE, COMMANDS_HOP = 16000, 512  # 32 ms, which makes 32 frames of one second
TEST_SHARE = 0.25
# Frames by which each training recording is moved, up to 96 ms.
SHIFTS = (-3, -2, -1, 0, 1, 2, 3)
# Moved copies also vary as voices and microphones do: a constant offset and noise on every coefficient, standard
# deviations as a fraction of its range.
OFFSET, NOISE = 0.08, 0.04
OTHER = "other"
NEGATIVES = ("_silence_", "no", "up", "down", "left", "right")


def load_speech_commands_task(folder: Path, positive: str = "yes", negatives: tuple[str, ...] = NEGATIVES) -> Task:
    """Load the task of one word against others: x (n, 32, 13), labels (OTHER, positive).

    positive: the word; negatives: the others. Short recordings end in silence. Each training recording comes in
    len(SHIFTS) copies, see `varied_copies`. Test and validation samples are from other speakers than the training
    samples. Raises InputError for a word without folder or recordings, and for files that are no 16 kHz wav.
    """
    words = (positive, *negatives)
    check_words(folder, words)
    paths = [path for word in words for path in list_folder(folder / word, "*.wav")]
    x = np.stack(mfcc([_read_second(path) for path in paths], COMMANDS_RATE, COMMANDS_HOP))
    y = np.array([path.parent.name == positive for path in paths], dtype=np.int64)
    test = np.array([in_test_split(speaker_of(path)) for path in paths])
    for part, mask in (("training", ~test), ("test", test)):
        if len(np.unique(y[mask])) < 2:
            raise InputError(f"{folder}: the {part} speakers must say {positive!r} and other words; add recordings")
    offset, scale = percentile_range(x[~test])
    train = varied_copies(x[~test], scale), np.tile(y[~test], len(SHIFTS))
    _, speakers = np.unique([speaker_of(path) for path in paths], return_inverse=True)
    groups = np.tile(speakers[~test], len(SHIFTS)).astype(np.int64)
    task = make_task("speech-commands", train, (x[test], y[test]), (OTHER, positive), (offset, scale))
    return replace(task, groups_train=groups)


def _read_second(path: Path) -> np.ndarray:
    """Read a recording of one second, (COMMANDS_RATE,); a shorter one ends in silence."""
    clip = read_wav(path, COMMANDS_RATE, 1.0)
    return np.pad(clip, (0, COMMANDS_RATE - len(clip)))


def shift_frames(x: np.ndarray, frames: int) -> np.ndarray:
    """Shift x (n, time, features) later by `frames`, or earlier if negative; the frame at the edge is repeated."""
    steps = x.shape[1]
    return x[:, np.clip(np.arange(steps) - frames, 0, steps - 1)]


def varied_copies(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return len(SHIFTS) copies of x (n, time, features), joined along the first axis, each shifted and varied.

    The copy that is not shifted is x itself, without variation. scale: range of each coefficient, (features,). Equal x
    gives equal copies.
    """
    copies = np.concatenate([shift_frames(x, frames) for frames in SHIFTS])
    rng = np.random.default_rng(0)
    offset = rng.normal(0.0, OFFSET, (len(copies), 1, x.shape[2])) * scale
    noise = rng.normal(0.0, NOISE, copies.shape) * scale
    varied = (copies + offset + noise).astype(np.float32)
    unmoved = SHIFTS.index(0) * len(x)
    varied[unmoved : unmoved + len(x)] = x
    return varied


def check_words(folder: Path, words: tuple[str, ...]) -> None:
    """Raise InputError for a word without a folder of recordings; the error names the words that have one."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder of <word>/*.wav with --data")
    there = sorted(path.name for path in folder.iterdir() if path.is_dir())
    for word in words:
        if word not in there:
            raise InputError(f"{folder}: no recordings of {word!r}; there are: {', '.join(there) or 'none'}")


def speaker_of(path: Path) -> str:
    """Return the speaker of a recording: the text before `_nohash_` in the file's name, or the whole stem."""
    return path.stem.split("_nohash_")[0]


def in_test_split(speaker: str) -> bool:
    """Tell whether a speaker belongs to the test set, by a hash of the name, so that new recordings move no speaker."""
    return speaker_hash(speaker) < TEST_SHARE


def speaker_hash(speaker: str) -> float:
    """Return a number in [0, 1) that depends only on the speaker's name."""
    return int.from_bytes(hashlib.sha256(speaker.encode()).digest()[:8], "big") / 2**64


KEYWORDS_HOP = 160  # 10 ms
FOLD_SHARE = 0.1
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
WHOLE = ("yes-all", "words-all")  # kinds that train with every recording
FORMS = 4  # of each recording in these
BACKGROUND = "_silence_"  # recordings without a word, which the varied forms are mixed with
FEWEST = 100  # recordings of a word that is a class of its own in `all`; the published set has 1500 and more


def load_keywords_task(folder: Path, kind: str, fold: int = 0) -> Task:
    """Load the task of spoken keywords: x (n, 101, 13).

    kind: the classes: yes and yes-all (other, yes), digits (other, zero .. nine), all (every word with FEWEST
    recordings or more), words-all (other and the words of all); fold: the tenth of the speakers that is for the test, 0
    to 9.

    Raises InputError for a folder without the words, for a class without recordings for training or test, and for files
    that are no 16 kHz wav; MissingToolError without librosa.
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
    task = make_task(f"kws-{kind}", (x_train, y_train), (x_test, y_test), labels, percentile_range(x_train))
    return replace(task, groups_train=speakers.astype(np.int64))


def _features(paths: Sequence[Path], noises: Sequence[Path]) -> np.ndarray:
    """Compute the coefficients of recordings, (paths, 101, 13); repeated paths are varied from the second on."""
    return np.stack(mfcc(_forms(paths, [_read_second(path) for path in noises]), COMMANDS_RATE, KEYWORDS_HOP))


def _forms(paths: Sequence[Path], noises: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    clips = {path: _read_second(path) for path in dict.fromkeys(paths)}
    rng, heard = np.random.default_rng(0), set[Path]()
    for path in paths:
        yield varied(clips[path], COMMANDS_RATE, noises, rng) if path in heard else clips[path]
        heard.add(path)


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
    """Return the recordings of each class by speakers for training or `test`; raises InputError for an empty class."""
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
    return int(speaker_hash(speaker_of(path)) // FOLD_SHARE)


def _balanced(found: list[list[Path]], rng: np.random.Generator) -> list[tuple[Path, int]]:
    """Return (recording, number of its class): of each class as many, drawn at random, as the rarest class has."""
    fewest = min(map(len, found))
    return [
        (paths[place], label)
        for label, paths in enumerate(found)
        for place in np.sort(rng.permutation(len(paths))[:fewest])
    ]


def _repeated(found: list[list[Path]]) -> list[tuple[Path, int]]:
    """Return (recording, number of its class), all of them, classes repeated up to the size of the largest one."""
    most = max(map(len, found))
    return [(path, label) for label, paths in enumerate(found) for path in paths * (most // len(paths))]
