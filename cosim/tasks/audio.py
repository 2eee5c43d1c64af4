"""Features of recordings: 16-bit mono wav files to mel-frequency cepstral coefficients (MFCC)."""

import wave
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cosim.base.errors import InputError, importing
from cosim.base.resources import install_command
from cosim.base.text import open_file, parsing

COEFFICIENTS = 13
SPEEDS = 0.85, 1.15  # of a varied recording
SHIFT = 0.1  # s, either way
LOUDNESS = -6.0, 6.0  # dB
BACKGROUND = -40.0, 6.0  # dB, of a background as it was recorded


def read_wav(path: Path, rate: int, seconds: float) -> np.ndarray:
    """Read the first `seconds` of a wav file as samples in [-1, 1), float32.

    rate: that the file must have, Hz. Raises InputError naming the file when it is no wav file, holds no samples, or is
    not 16-bit mono at `rate` Hz.
    """
    with open_file(path, "remove it") as raw, parsing(str(path), "a wav file", "remove it"), wave.open(raw) as file:
        form = file.getframerate(), 8 * file.getsampwidth(), file.getnchannels()
        content = file.readframes(round(seconds * rate)) if form == (rate, 16, 1) else b""
    if form != (rate, 16, 1):
        raise InputError(
            f"{path}: must be {rate} Hz, 16 bit, channels 1, not {form[0]} Hz, {form[1]} bit, channels {form[2]}"
        )
    if len(content) < 2:
        raise InputError(f"{path}: the recording holds no samples; remove it")
    return np.frombuffer(content, dtype="<i2", count=len(content) // 2).astype(np.float32) / 32768.0


def varied(clip: np.ndarray, rate: int, noises: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Return a recording (samples,) as another voice might say it in another room, float32.

    It becomes slower or faster, which changes its pitch as well (T. Ko et al., Audio augmentation for speech
    recognition, Interspeech 2015), is shifted in time, becomes louder or softer, and gets one of `noises` (samples,) as
    background.
    """
    steps, speed = np.arange(len(clip)), rng.uniform(*SPEEDS)
    middle, most = (len(clip) - 1) / 2, round(SHIFT * rate)
    place = (steps - middle) * speed + middle - rng.integers(-most, most + 1)
    found = np.interp(place, steps, clip, left=0.0, right=0.0)
    if noises:
        found += noises[int(rng.integers(len(noises)))] * _gain(rng.uniform(*BACKGROUND))
    return (found * _gain(rng.uniform(*LOUDNESS))).astype(np.float32)


def _gain(decibel: float) -> float:
    return 10 ** (decibel / 20)


def mfcc(clips: Iterable[np.ndarray], rate: int, hop: int) -> list[np.ndarray]:
    """Compute the MFCC of each clip (samples,), (frames, 13) float32, from windows of 2 hop samples.

    There are 1 + samples // hop frames. Raises MissingToolError without librosa.
    """
    with importing("a spoken task", install_command("audio")):
        import librosa
    return [
        np.ascontiguousarray(
            librosa.feature.mfcc(y=clip, sr=rate, n_mfcc=COEFFICIENTS, n_fft=2 * hop, hop_length=hop, n_mels=40).T,
            np.float32,
        )
        for clip in clips
    ]


def list_folder(folder: Path, pattern: str) -> list[Path]:
    """Return the files in a data set's folder whose names match the pattern, in order of name.

    Raises InputError when the folder is missing, or when no file matches.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the data folder with --data")
    found = sorted(folder.glob(pattern))
    if not found:
        raise InputError(f"{folder}: must hold {pattern} files, but holds none; unpack the data set again")
    return found
