"""The data model of a table: figures, rows and outcomes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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

    def shown(self, value: float) -> str:
        """Return a value of the figure as text, in per cent if it is a share."""
        return f"{100 * value if self.percent else value:.{self.digits}f}"


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
        """Return the seconds of a processor since the beginning, scaled from the iterations heard of to so many."""
        return (time.process_time() - self._began) * (iterations / self._heard if self._heard else 1.0)


@dataclass(frozen=True)
class Experiment:
    """train: (seed, path of the model while it is trained, what hears of the iterations). iterations: at most.

    differs: from what the paper did, in a phrase. seeded: whether the seed changes anything.
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
