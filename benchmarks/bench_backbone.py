"""The seed paper's orderings at reduced size, with its backbone: m = 32, r = 1, batch 32, rate 1e-3.

    python benchmarks/bench_backbone.py [FIRST LAST] [item] [noisy] [pixels]

item: which of 15 was shown 60 steps ago, d = 4, 1500 iterations. noisy: which value was shown before 59 others, d = 4,
2000 iterations. pixels: the digits of scikit-learn in 64 steps, d = 8, 1500 iterations. A line for each training with
its processor seconds, one thread, then a table: mean and [min, max] over the seeds FIRST to LAST, by default 0 to 2.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cosim.software.settings import Training
from cosim.software.shape import Shape
from cosim.software.sources import Source, TaskSource, copy_value_task, digit_pixels_task, load_source
from cosim.software.train import Setup, train_backbone

STEPS = 60
CELLS: tuple[tuple[str, float], ...] = (("cmru", 1.0), ("alphacmru", 1.0), ("bmru", 0.0), ("lru", 0.0), ("mingru", 0.0))
ROWS: dict[str, tuple[Callable[[], Source], int, int]] = {
    "item": (lambda: load_source("copy-item", steps=STEPS), 4, 1500),
    "noisy": (lambda: TaskSource(copy_value_task(STEPS), 2000), 4, 2000),
    "pixels": (lambda: TaskSource(digit_pixels_task()), 8, 1500),
}


def run(source: Source, cell: str, epsilon: float, state: int, iterations: int, seed: int) -> float:
    """The task's own figure on its test samples."""
    shape = Shape(1, 1, cell=cell, width=32, state=state)
    training = Training(iterations=iterations, batch=32, epsilon=epsilon)
    with tempfile.TemporaryDirectory() as folder:
        trained = train_backbone(Setup(shape, training, source, (seed,)), Path(folder) / "model.pt")
    return trained.spread().mean


def shown(source: Source, values: list[float]) -> str:
    """Mean and range."""
    unit, digits = (100.0, 1) if source.labels else (1.0, 3)
    mean, low, high = (unit * value for value in (float(np.mean(values)), min(values), max(values)))
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def main() -> None:
    """The rows that are named, or all."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()] or [0, 2]
    names = [word for word in sys.argv[1:] if word in ROWS] or list(ROWS)
    sources = {name: ROWS[name][0]() for name in names}
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(numbers[0], numbers[-1] + 1):
        for name in names:
            _, state, iterations = ROWS[name]
            for cell, epsilon in CELLS:
                begin = time.process_time()
                value = run(sources[name], cell, epsilon, state, iterations, seed)
                found.setdefault((name, cell), []).append(value)
                print(f"{name} {cell} seed {seed}: {value:.4f}, {time.process_time() - begin:.0f} s", flush=True)
    print("| task | " + " | ".join(cell for cell, _ in CELLS) + " |\n|---" + "|---" * len(CELLS) + "|")
    for name in names:
        print(f"| {name} | " + " | ".join(shown(sources[name], found[name, cell]) for cell, _ in CELLS) + " |")


if __name__ == "__main__":
    main()
