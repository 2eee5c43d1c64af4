"""The keyword `yes` on hardware alone, without software layers: balanced accuracy against power, ten folds of speakers.

    python benchmarks/bench_front.py FOLDER SPEECH_COMMANDS [FOLD ...]

For each fold, a tenth of the speakers, a network learns all words that the others say (task kws-words-all). From there
a network for each price of supply current learns the keyword alone (kws-yes-all). A frame is the mean of three of the
task's, 30 ms. Each network is compiled with each unit current, the last of which is the least that all its cells allow.
The behavioral equations run the fold's test, as many recordings of other words as of `yes`. FOLDER keeps networks and
test recordings: the same command continues, and other verbs take them, such as

    cosim compare FOLDER/yes0_0.0003.pt --data FOLDER/test0.npz --i-unit 0.2n --t-step 30m --engine batch
"""

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from smoke import shrink

import cosim
from cosim.base.errors import MappingError
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.network.types import Network
from cosim.tasks.spoken import load_keywords_task
from cosim.tasks.task import Task, full_lengths
from cosim.training.config import Architecture, TrainingConfig
from cosim.training.trainer import TrainingJob, run_job
from cosim.verbs.python import Compiled

CELLS = Architecture(cells=32)
WORDS, YES = 20_000, 8_000  # iterations; with 5,000 and 3,000 the networks underfit
PRICES = (0.0, 3e-4, 1e-3)  # loss per unit of supply current
CURRENTS = {  # A, of software 1.0; of several the first that all cells allow
    "1 nA": [1e-9],
    "0.2 nA": [0.2e-9],
    "least": [k * 1e-11 for k in range(10, 100)],
}
TECHNOLOGIES = ("generic180", "gf180mcu")
MERGED = 3  # frames of the task in one of the circuit
FRAME = 30e-3  # s


def merged(task: Task) -> Task:
    """Return a task whose frames are means of MERGED frames; the last one is repeated to fill them."""

    def mean(x: NDArray[np.float32]) -> NDArray[np.float32]:
        padded = np.pad(x, ((0, 0), (0, -x.shape[1] % MERGED), (0, 0)), mode="edge")
        frames = padded.reshape(len(x), -1, MERGED, x.shape[2])
        return frames.mean(axis=2).astype(np.float32)

    train, test = mean(task.x_train), mean(task.x_test)
    return replace(task, x_train=train, x_test=test, len_train=full_lengths(train), len_test=full_lengths(test))


class Fold:
    """The networks of one fold, trained where FOLDER has none."""

    def __init__(self, folder: Path, data: Path, number: int) -> None:
        self.folder, self.data, self.number = folder, data, number
        self._tasks: dict[str, Task] = {}

    def task(self, kind: str) -> Task:
        """Return the task of a kind, `words-all` or `yes-all`, with this fold's speakers for the test."""
        if kind not in self._tasks:
            self._tasks[kind] = task = merged(load_keywords_task(self.data, kind, self.number))
            if kind == "yes-all":
                np.savez(self.folder / f"test{self.number}.npz", x_test=task.x_test, y_test=task.y_test)
        return self._tasks[kind]

    def words(self) -> Network:
        """Return the network that knows all words."""
        config = TrainingConfig(CELLS, WORDS, learning_rate=1e-2, weight_cost=1e-5, seed=self.number)
        return self._trained(f"words{self.number}.pt", "words-all", config)

    def yes(self, price: float) -> Network:
        """Return the network that knows the keyword, trained with a price of supply current."""
        config = TrainingConfig(
            CELLS, YES, learning_rate=5e-3, epsilon=0.0, weight_cost=1e-5, power_cost=price, seed=self.number
        )
        return self._trained(f"yes{self.number}_{price:g}.pt", "yes-all", config, self.words())

    def _trained(self, name: str, kind: str, config: TrainingConfig, start: Network | None = None) -> Network:
        return run_job(TrainingJob(config, self.task(kind), start=start), self.folder / name, resume=True)


def compiled(network: Network, technology: str, currents: Iterable[float]) -> Compiled:
    """Compile a network with the first of these unit currents, A, that all its cells allow."""
    refused: MappingError | None = None
    for i_unit in currents:
        try:
            return cosim.load(network).compile(technology, settings=CompilerSettings(i_unit, t_step=FRAME))
        except MappingError as error:
            refused = error
    raise refused or ValueError("no unit current was given")


def measure(chip: Compiled, task: Task) -> tuple[NDArray[np.bool_], float]:
    """Return which recordings of other words and of the keyword a circuit decides right, (2, n), and its power, W."""
    trace = run_behavioral(chip.design, task.x_test)
    right = trace.readout.mean(axis=1).argmax(axis=1) == task.y_test
    power = sum(float(block.mean()) for block in behavioral_power(chip.design, trace, chip.timing).values())
    return np.stack([right[task.y_test == label] for label in (0, 1)]), power


def main() -> None:
    """A line for each fold, technology, price and unit current, and one for all folds."""
    folder, data = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    folds = [int(text) for text in sys.argv[3:]] or list(range(10))
    found: dict[tuple[str, float, str], list[tuple[NDArray[np.bool_], float]]] = {}
    for number in folds:
        fold = Fold(folder, data, number)
        for price in PRICES:
            network = fold.yes(price)
            for technology in TECHNOLOGIES:
                for name, currents in CURRENTS.items():
                    chip = compiled(network, technology, currents)
                    measured = found.setdefault(key := (technology, price, name), [])
                    measured.append(measure(chip, fold.task("yes-all")))
                    print(line(str(number), key, measured[-1:]), f"{1e9 * chip.design.i_unit:g} nA", flush=True)
    for key, measured in found.items():
        print(line("all", key, measured), flush=True)


def line(name: str, key: tuple[str, float, str], found: list[tuple[NDArray[np.bool_], float]]) -> str:
    """Return a row: balanced accuracy with its interval (Clopper and Pearson, 95 %), and the mean power."""
    right = np.concatenate([one for one, _ in found], axis=1)
    low, high = binomtest(int(right.sum()), right.size).proportion_ci(0.95)
    technology, price, current = key
    return (
        f"{name:4} {technology:10} price {price:5g}  {current:6}  {100 * right.mean():5.1f} % "
        f"[{100 * low:.1f}, {100 * high:.1f}] of {right.size}  {1e9 * np.mean([power for _, power in found]):6.1f} nW"
    )


def made_up(folder: Path, kind: str, fold: int) -> Task:
    """Return noise in place of recordings, for --smoke."""
    x = np.random.default_rng(fold).normal(size=(24, 8, 13)).astype(np.float32)
    y, lengths = np.arange(24) % 2, full_lengths(x)
    labels = ("other", "yes") if kind == "yes-all" else ("other", "up", "yes")
    return Task(f"kws-{kind}", x, y, x[:8], y[:8], lengths, lengths[:8], labels, np.full(13, -3.0), np.full(13, 6.0))


if __name__ == "__main__":
    shrink(
        globals(), "front", "clips", "0", CELLS=Architecture(cells=3), WORDS=3, YES=3, PRICES=(1e-3,),
        CURRENTS={"1 nA": [1e-9]}, TECHNOLOGIES=("generic180",), load_keywords_task=made_up,
    )  # fmt: skip
    main()
