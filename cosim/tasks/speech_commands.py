"""One spoken word against others: a folder of <word>/<speaker>_nohash_<k>.wav (Google Speech Commands, 16 kHz, 1 s).

The split is by speaker: nobody is heard in training and in test. Recordings without `_nohash_` (the silence) count as
one speaker each.
"""

import hashlib
from pathlib import Path

import numpy as np

from cosim.base.errors import InputError
from cosim.tasks.audio import list_folder, mfcc, read_wav
from cosim.tasks.task import Task, full_lengths, percentile_range

RATE = 16000
HOP = 512  # 32 ms, which makes 32 frames of one second
TEST_SHARE = 0.25
# Frames by which each training recording is moved, up to 96 ms.
SHIFTS = (-3, -2, -1, 0, 1, 2, 3)
# Moved copies also vary as voices and microphones do: a constant offset and noise on every coefficient, standard
# deviations as a fraction of its range.
OFFSET, NOISE = 0.08, 0.04
NEGATIVES = ("_silence_", "no", "up", "down", "left", "right")


def load_speech_commands_task(folder: Path, positive: str = "yes", negatives: tuple[str, ...] = NEGATIVES) -> Task:
    """Load `positive` against all `negatives`: x (n, 32, 13), labels ("other", positive); short clips end in silence.

    Training recordings come in len(SHIFTS) copies, see `varied_copies`; validation is by speaker as well.

    Raises InputError for a word without folder or recordings, and for files that are no 16 kHz wav.
    """
    words = (positive, *negatives)
    check_words(folder, words)
    paths = [path for word in words for path in list_folder(folder / word, "*.wav")]
    clips = [read_wav(path, RATE, 1.0) for path in paths]
    x = np.stack(mfcc([np.pad(clip, (0, RATE - len(clip))) for clip in clips], RATE, HOP))
    y = np.array([path.parent.name == positive for path in paths], dtype=np.int64)
    test = np.array([in_test_split(speaker_of(path)) for path in paths])
    for part, mask in (("training", ~test), ("test", test)):
        if len(np.unique(y[mask])) < 2:
            raise InputError(f"{folder}: the {part} speakers must say {positive!r} and other words; add recordings")
    offset, scale = percentile_range(x[~test])
    x_train = varied_copies(x[~test], scale)
    y_train = np.tile(y[~test], len(SHIFTS))
    _, speakers = np.unique([speaker_of(path) for path in paths], return_inverse=True)
    groups = np.tile(speakers[~test], len(SHIFTS)).astype(np.int64)
    parts = x_train, y_train, x[test], y[test], full_lengths(x_train), full_lengths(x[test])
    return Task("speech-commands", *parts, ("other", positive), offset, scale, groups)


def shift_frames(x: np.ndarray, frames: int) -> np.ndarray:
    """Return x (n, time, features) later by `frames` (earlier if negative); the frame at the edge is repeated."""
    steps = x.shape[1]
    return x[:, np.clip(np.arange(steps) - frames, 0, steps - 1)]


def varied_copies(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return len(SHIFTS) copies of x (n, time, features), one after the other; the one that is not moved is x itself.

    scale: (features,) range of each coefficient. The same for the same x.
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
    """Check that each word has a folder; raises InputError naming the first without, and those that have one."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder of <word>/*.wav with --data")
    there = sorted(path.name for path in folder.iterdir() if path.is_dir())
    for word in words:
        if word not in there:
            raise InputError(f"{folder}: no recordings of {word!r}; there are: {', '.join(there) or 'none'}")


def speaker_of(path: Path) -> str:
    """Return the text before `_nohash_` in a file's name, or the whole stem."""
    return path.stem.split("_nohash_")[0]


def in_test_split(speaker: str) -> bool:
    """Tell whether a speaker belongs to the test set: by a hash of the name, so that adding clips moves nobody."""
    return speaker_hash(speaker) < TEST_SHARE


def speaker_hash(speaker: str) -> float:
    """Return a number in [0, 1) that depends on nothing but the speaker's name."""
    return int.from_bytes(hashlib.sha256(speaker.encode()).digest()[:8], "big") / 2**64
