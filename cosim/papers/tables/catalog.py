"""Catalog of tables. Free of torch."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cosim.base.errors import InputError
from cosim.base.text import shown_name, shown_path

CMRU = "arXiv 2605.11855"
MGRADE = "mGRADE, Minimal Recurrent Gating Meets Delay Convolutions"
DMU = "Delayed Memory Unit: Modelling Temporal Dependency Through Delay Gate"
TABLES = {
    "copies": f"An item and a value kept over many steps, four cells ({CMRU}, Tables 11, 16, 17).",
    "pixels": f"MNIST pixel by pixel, by cell and epsilon ({CMRU}, Tables 4, 9, 10, 14).",
    "parity": f"Parity beyond the lengths of training, by cell and epsilon ({CMRU}, Table 8).",
    "keywords": f"Spoken words, four cells ({CMRU}, Tables 3, 6).",
    "flip-flop": f"The bit last written, with taps and without ({MGRADE}).",
    "lorenz": f"One coordinate one step ahead, and what the states know of the others ({MGRADE}).",
    "footprint": f"Numbers that a network keeps ({MGRADE}).",
    "delayed-product": f"Two lags that must meet, with a line of delays and without ({DMU}).",
}
ONE_SIZE = ("footprint", "delayed-product")  # reduced or not, they are the same
FOLDERS = {"mnist": "mnist", "speech-commands": "speech_commands", "fsdd": "fsdd/recordings"}  # of --data


@dataclass(frozen=True)
class Size:
    """The size of the runs of a paper's table, and the device on which they run.

    reduced: sizes that take minutes of a CPU, in place of the papers'; data: a folder of data sets; device: where
    backbones are trained.
    """

    reduced: bool = False
    data: Path | None = None
    device: Literal["cpu", "cuda"] = "cpu"

    def folder(self, name: str, table: str) -> Path:
        """Return the folder of a data set in FOLDERS; raises InputError where there is none."""
        inside = FOLDERS[name]
        if self.data is None:
            wanted = f"give with --data the folder that holds {inside}"
            raise InputError(f"table {table} needs the data set {name}; {wanted}")
        if not (self.data / inside).is_dir():
            raise InputError(f"{shown_path(self.data)}: holds no folder {inside}, which table {table} needs; unpack it")
        return self.data / inside


def check_tables(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names themselves, each once; raises InputError for one that is no table's."""
    for name in names:
        if name not in TABLES:
            raise InputError(f"TABLE must be one of {', '.join(TABLES)}, not {shown_name(name)!r}")
    return tuple(dict.fromkeys(names))


Progress = Callable[[int, int, dict[str, float]], None]


@dataclass(frozen=True)
class PaperFigure:
    """One figure of a row. key: its name in what is measured; name: its words; published: the paper's, or "".

    percent: a share, shown in per cent; digits: behind the point.
    """

    key: str
    name: str
    published: str = ""
    percent: bool = True
    digits: int = 1


@dataclass(frozen=True)
class Outcome:
    """Outcome of one training; seconds: of a processor, scaled to all iterations where a part was done before."""

    figures: dict[str, float]
    parameters: int
    iterations: int
    seconds: float


class Stopwatch:
    """A progress that says how long a training takes, also where a part of it was done before."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._began, self._heard = progress, time.process_time(), 0

    def __call__(self, done: int, total: int, values: dict[str, float]) -> None:
        self._heard += 1
        self._progress(done, total, values)

    def seconds(self, iterations: int) -> float:
        """Return the processor seconds of a row of a paper's table, scaled from the iterations heard of to so many."""
        return (time.process_time() - self._began) * (iterations / self._heard if self._heard else 1.0)


@dataclass(frozen=True)
class Experiment:
    """A row of a paper's table: what is trained, and which figures come of it.

    train: called with the seed, the path of the model while it is trained, and what hears of the iterations;
    iterations: at most; differs: how it differs from what the paper did, in a phrase; seeded: whether the seed changes
    anything.
    """

    name: str
    settings: str
    differs: str
    figures: tuple[PaperFigure, ...]
    iterations: int
    train: Callable[[int, Path, Progress], Outcome]
    seeded: bool = True


@dataclass(frozen=True)
class PaperTable:
    """Rows of one paper. name: with -reduced where it is."""

    name: str
    title: str
    rows: tuple[Experiment, ...]
