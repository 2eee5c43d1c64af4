"""Japanese Vowels as a task of one's own: which of nine men says /ae/, from 12 cepstra of 7 to 29 frames.

    pip download --no-deps aeon && unzip aeon-*.whl 'aeon/datasets/data/JapaneseVowels/*'
    python benchmarks/vowels.py aeon/datasets/data/JapaneseVowels vowels.npz

270 utterances for training and 370 for testing, LPC cepstra of degree 12; M. Kudo, J. Toyama and M. Shimbo, Pattern
Recognition Letters 20 (1999) 1103; UCI Machine Learning Repository, CC BY 4.0, doi 10.24432/C5NS47.
"""

import sys
from pathlib import Path

import numpy as np
from smoke import shrink

STEPS = 29


def read_series(path):
    """x (n, STEPS, 12) float32, y (n,) from 0, lengths (n,)."""
    lines = [line for line in path.read_text().splitlines() if line and line[0] not in "#@"]
    x, y, lengths = [], [], []
    for line in lines:
        *dimensions, label = line.split(":")
        values = np.array([[float(value) for value in one.split(",")] for one in dimensions]).T
        x.append(np.pad(values, ((0, STEPS - len(values)), (0, 0))))
        y.append(int(label) - 1)
        lengths.append(len(values))
    return np.array(x, dtype=np.float32), np.array(y), np.array(lengths)


def main(folder, path):
    parts = {part: read_series(folder / f"JapaneseVowels_{part.upper()}.ts") for part in ("train", "test")}
    names = "x", "y", "len"
    arrays = {
        f"{name}_{part}": array for part, found in parts.items() for name, array in zip(names, found, strict=True)
    }
    np.savez_compressed(path, **arrays)
    print({name: array.shape for name, array in arrays.items()})


def write_made_up(folder):
    """Write two short series of each part, for --smoke."""
    folder.mkdir()
    for part in ("TRAIN", "TEST"):
        series = ":".join(["0.5,1.5,2.5"] * 12)
        (folder / f"JapaneseVowels_{part}.ts").write_text(f"@data\n{series}:1\n{series}:2\n")


if __name__ == "__main__":
    if "--smoke" in sys.argv:
        write_made_up(Path("made_up"))
    shrink(globals(), "made_up", "vowels.npz")
    main(Path(sys.argv[1]), sys.argv[2])
