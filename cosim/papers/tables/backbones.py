"""Tables of the seed paper's backbone (arXiv 2605.11855): copies, pixels, parity, keywords.

Full rows have the paper's settings (F.8): m 256, r 1, batch 64, rate 1e-3. Reduced ones have m 32 and batch 32.

Figures of the seed paper (arXiv 2605.11855), mean [smallest, largest] of its five seeds where it states them.

Accuracy in %, or the mean absolute error of a copied value.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from cosim.papers.shape import BackboneShape, Training, count_parameters, paper_iterations
from cosim.papers.sources import BackboneData, ParitySource, load_source
from cosim.papers.tables.catalog import Experiment, Outcome, PaperFigure, Progress, Size, Stopwatch
from cosim.papers.train import Setup, figures_of, train_backbone

LENGTHS = (100, 300, 500, 1000, 2000, 5000, 10_000)
_LOST = "0.5038"
COPIES = {
    "copy-item": {  # Table 16, d 4
        "cmru": ("100", "100", "100", "100", "100", "98.74 [93.72, 100]", "100"),
        "alphacmru": ("100",) * 7,
        "lru": (
            *("100", "62.61 [6.41, 100]", "44.04 [6.50, 100]", "25.31 [6.28, 100]", "6.53 [6.12, 7.34]"),
            *("6.81 [6.41, 7.34]", "6.50 [6.28, 6.66]"),
        ),
        "mingru": (
            *("25.48 [6.28, 100]", "6.67 [6.28, 7.34]", "6.71 [6.50, 7.34]", "6.49 [6.28, 6.66]"),
            *("6.99 [6.50, 7.34]", "6.50 [6.28, 6.66]", "6.64 [6.28, 7.34]"),
        ),
    },
    "copy-value-quiet": {  # Table 17, d 4
        "cmru": (
            *("0.0424 [0.0392, 0.0465]", "0.0412 [0.0380, 0.0438]", "0.0443 [0.0322, 0.0539]"),
            *("0.0465 [0.0397, 0.0525]", "0.0432 [0.0361, 0.0499]", "0.0470 [0.0355, 0.0618]"),
            "0.0589 [0.0538, 0.0698]",
        ),
        "alphacmru": ("0.0002",) * 7,
        "lru": (
            *("0.0002", "0.2017 [0.0001, 0.5041]", "0.2016 [0.0002, 0.5038]", "0.4031 [0.0002, 0.5039]"),
            *("0.4032 [0.0006, 0.5038]", _LOST, _LOST),
        ),
        "mingru": ("0.3023 [0.0002, 0.5038]", "0.4031 [0.0002, 0.5038]", *(_LOST,) * 5),
    },
    "copy-value": {  # Table 11, d 4, r 1
        "cmru": (
            *("0.0401 [0.0309, 0.0466]", "0.0404 [0.0342, 0.0457]", "0.0383 [0.0362, 0.0399]"),
            *("0.0402 [0.0362, 0.0432]", "0.1743 [0.0378, 0.5037]", "0.1538 [0.0363, 0.5038]"),
            "0.1357 [0.0352, 0.5037]",
        ),
        "alphacmru": (*("0.0002",) * 5, "0.0005 [0.0002, 0.0014]", "0.1009 [0.0002, 0.5038]"),
        "lru": (
            *("0.1011 [0.0002, 0.5038]", "0.3025 [0.0005, 0.5038]", "0.4031 [0.0004, 0.5040]"),
            *("0.4033 [0.0012, 0.5039]", "0.5039", "0.5039", "0.5038"),
        ),
        "mingru": ("0.4031 [0.0002, 0.5039]", "0.5038", "0.5038", "0.5038", "0.5039", "0.5038", "0.5037"),
    },
}
EPSILONS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
PIXELS = {  # d 32, Tables 9 and 10, and 14
    "mnist-pixels": {
        "cmru": (
            *("30.13 [26.94, 35.09]", "32.59 [25.19, 39.84]", "41.54 [37.69, 43.91]", "70.75 [53.03, 81.81]"),
            *("89.40 [83.47, 93.38]", "95.92 [95.41, 96.19]"),
        ),
        "alphacmru": (
            *("54.22 [47.31, 59.50]", "56.92 [47.94, 70.72]", "76.08 [70.19, 85.09]", "92.59 [89.91, 93.66]"),
            *("96.45 [95.56, 96.91]", "96.76 [96.22, 97.00]"),
        ),
        "lru": ("91.97 [89.84, 93.78]",),
        "mingru": ("92.01 [89.50, 96.16]",),
    },
    "mnist-permuted-42": {
        "cmru": (
            *("52.98 [48.81, 55.31]", "67.49 [64.91, 70.78]", "77.87 [72.12, 83.22]", "84.62 [77.12, 91.62]"),
            *("91.32 [89.81, 93.31]", "95.06 [94.56, 95.94]"),
        ),
        "alphacmru": (
            *("83.58 [82.28, 84.59]", "85.56 [81.38, 89.44]", "91.19 [89.78, 92.22]", "93.99 [93.03, 94.69]"),
            *("95.99 [95.38, 96.53]", "95.39 [92.97, 96.38]"),
        ),
        "lru": ("96.12 [95.75, 96.47]",),
        "mingru": ("95.35 [94.03, 96.00]",),
    },
}
PIXELS_STATE = (4, 8, 16, 32, 64, 128, 256)
PIXELS_SMALL = {  # Table 10, epsilon 1, d 4 and 8
    "cmru": ("83.61 [80.97, 85.09]", "91.49 [90.53, 92.69]"),
    "alphacmru": ("88.34 [87.38, 89.53]", "93.49 [91.56, 94.62]"),
    "lru": ("72.88 [53.87, 83.22]", "78.08 [62.72, 88.34]"),
    "mingru": ("75.88 [66.16, 86.09]", "81.88 [73.28, 88.69]"),
}
SMALL_BMRU = "17.09 [11.69, 21.41]"  # Table 4, d 8
ANNEALED = {  # Table 4
    "cmru": (
        *("30.29 [20.94, 47.72]", "51.68 [32.41, 62.34]", "79.12 [66.75, 85.19]", "87.94 [81.88, 92.53]"),
        *("95.46 [95.00, 96.44]", "96.78 [96.31, 97.22]", "97.03 [96.62, 97.56]"),
    ),
    "alphacmru": (
        *("88.13 [87.28, 89.41]", "93.82 [93.22, 94.59]", "96.12 [95.59, 96.88]", "96.94 [96.22, 97.28]"),
        *("97.73 [97.69, 97.84]", "98.09 [97.88, 98.25]", "98.07 [97.88, 98.25]"),
    ),
}
PARITY = {  # Table 8, d 1; epsilon -1 and EPSILONS
    "cmru": (
        *("100", "50.01 [49.97, 50.06]", "49.97 [49.34, 50.53]", "49.89 [49.62, 50.09]", "49.81 [49.53, 49.97]"),
        *("49.95 [49.50, 50.47]", "50.03 [49.47, 50.53]"),
    ),
    "alphacmru": (
        *("100", "49.82 [49.47, 50.03]", "49.81 [49.31, 50.06]", "50.10 [49.38, 50.81]", "49.76 [49.12, 50.06]"),
        *("49.81 [49.31, 50.00]", "49.82 [49.28, 50.34]"),
    ),
    "lru": ("49.88 [49.31, 50.53]",),
    "mingru": ("49.95 [49.78, 50.03]",),
}
KEYWORDS_STATE = 16
KEYWORDS = {  # Tables 3 and 6, r 1
    "kws-yes": {
        "cmru": "98.30 [97.88, 98.62]",
        "alphacmru": "97.61 [96.97, 98.03]",
        "lru": "98.45 [98.22, 99.06]",
        "mingru": "98.26 [97.56, 99.00]",
    },
    "kws-digits": {
        "cmru": "95.38 [94.91, 95.91]",
        "alphacmru": "95.49 [95.22, 95.75]",
        "lru": "96.34 [95.88, 96.66]",
        "mingru": "95.99 [95.69, 96.25]",
    },
    "kws-all": {
        "cmru": "89.76 [88.97, 90.44]",
        "alphacmru": "89.53 [88.69, 90.28]",
        "lru": "91.82 [90.81, 92.88]",
        "mingru": "91.13 [90.84, 91.53]",
    },
}


REDUCED_CELLS = (("cmru", 1.0), ("alphacmru", 1.0), ("bmru", 0.0), ("lru", 0.0), ("mingru", 0.0))
REDUCED_STEPS = 60
REDUCED = {  # state and iterations, of tasks that begin so
    "copy-item": (4, 1500),
    "copy-value": (4, 2000),
    "pixel-digits": (8, 1500),
    "parity": (1, 1000),
    "fsdd": (KEYWORDS_STATE, 1500),
}
ITEM_STEPS = 2000  # the longest item whose published sets fit in memory
SEEDS = "five seeds; choices where the paper is silent"


@dataclass(frozen=True)
class BackbonePlan:
    """One backbone in a paper's table: what it is trained on, `load` making it, and how."""

    task: str
    load: Callable[[], BackboneData]
    shape: BackboneShape
    training: Training

    @property
    def name(self) -> str:
        """Return the name of a paper's table's row: task, cell, and what tells it from its neighbours."""
        anneals = self.shape.anneals
        epsilon = "annealed" if self.training.epsilon is None else f"epsilon {self.training.epsilon:g}"
        return ", ".join([self.task, self.shape.cell, *([epsilon] if anneals else []), f"d {self.shape.state}"])

    @property
    def settings(self) -> str:
        """Return the settings that the name of a papers' table's row does not say, in words."""
        shape, training = self.shape, self.training
        return (
            f"m {shape.width}, r {shape.blocks}, {shape.pooling} pooling, batch {training.batch}, rate "
            f"{training.learning_rate:g}" + ("" if shape.positions else ", no positions")
        )

    def row(self, published: str, differs: str, *, error: bool = False) -> Experiment:
        """Return the table's row of this plan; error: the figure is a mean absolute error."""
        figure = PaperFigure("test_accuracy", "accuracy, %", published)
        if error:
            figure = PaperFigure("test_mae", "mean absolute error", published, percent=False, digits=4)
        return Experiment(self.name, self.settings, differs, (figure,), self.training.iterations, self.train)

    def train(self, seed: int, path: Path, progress: Progress) -> Outcome:
        """Train the backbone of a row of a paper's table with one seed, or go on with one."""
        source, watch = self.load(), Stopwatch(progress)
        trained = train_backbone(Setup(self.shape, self.training, source, (seed,)), path, watch, resume=True)
        path.unlink()
        figures = figures_of(trained)[seed]
        done = int(figures["iterations"])
        return Outcome(figures, count_parameters(trained.backbone.shape), done, watch.seconds(done))


@lru_cache(maxsize=1)
def _load(task: str, data: Path | None) -> BackboneData:
    return load_source(task, data)


def _full(size: Size, task: str, cell: str, epsilon: float | None, state: int) -> BackbonePlan:
    """Return the plan of a published training; a CMRU of epsilon 0 is a BMRU."""
    words, pixels = task.startswith("kws"), task.startswith("mnist")
    data = size.folder("speech-commands", "keywords") if words else size.folder("mnist", "pixels") if pixels else None
    training = Training(paper_iterations(task), epsilon=epsilon, device=size.device)
    name = "bmru" if cell == "cmru" and epsilon == 0 else cell
    shape = BackboneShape(1, 1, cell=name, state=state, pooling="mean" if words else "last")
    return BackbonePlan(task, partial(_load, task, data), shape, training)


def _reduced(size: Size, task: str, cell: str, epsilon: float) -> BackbonePlan:
    """Return the plan of a training that is smaller than the paper's, some 20 s on one thread of a CPU."""
    state, iterations = next(value for beginning, value in REDUCED.items() if task.startswith(beginning))
    training = Training(iterations, 32, epsilon=epsilon, device=size.device)
    return BackbonePlan(
        task, partial(_load, task, None), BackboneShape(1, 1, cell=cell, width=32, state=state), training
    )


def copies(size: Size) -> Iterator[Experiment]:
    """Yield the paper's copy experiments: an item, a value before zeros, and a value in noise, with d 4."""
    for kind, cells in COPIES.items():
        error = kind != "copy-item"
        if size.reduced:
            for cell, epsilon in REDUCED_CELLS:
                task = f"{kind}-{REDUCED_STEPS}-published"
                published = cells[cell][0] if cell in cells else ""
                differs = f"{REDUCED_STEPS} steps for the paper's 100, m 32 for 256, iterations for 100,000"
                yield _reduced(size, task, cell, epsilon).row(published, differs, error=error)
            continue
        for place, steps in enumerate(LENGTHS):
            if error or steps <= ITEM_STEPS:
                for cell, values in cells.items():
                    plan = _full(size, f"{kind}-{steps}-published", cell, 1.0, 4)
                    yield plan.row(values[place], SEEDS, error=error)


def pixels(size: Size) -> Iterator[Experiment]:
    """Yield the paper's table of images by pixels: width 32 by epsilon, small and annealed states, one permutation."""
    if size.reduced:
        published = {"bmru": SMALL_BMRU} | {cell: values[1] for cell, values in PIXELS_SMALL.items()}
        for cell, epsilon in REDUCED_CELLS:
            differs = "digits of 64 pixels for MNIST of 784, m 32 for 256, iterations for 30,000"
            yield _reduced(size, "pixel-digits", cell, epsilon).row(published[cell], differs)
        return
    for task, cells in PIXELS.items():
        differs = SEEDS if task == "mnist-pixels" else f"the permutation may be another; {SEEDS}"
        for cell, values in cells.items():
            for epsilon, published in zip(EPSILONS if len(values) > 1 else (0.0,), values, strict=True):
                yield _full(size, task, cell, epsilon, 32).row(published, differs)
    for cell, values in PIXELS_SMALL.items():
        for state, published in zip(PIXELS_STATE[:2], values, strict=True):
            yield _full(size, "mnist-pixels", cell, 1.0, state).row(published, SEEDS)
    for cell, values in ANNEALED.items():
        for state, published in zip(PIXELS_STATE, values, strict=True):
            yield _full(size, "mnist-pixels", cell, None, state).row(published, SEEDS)


def parity(size: Size) -> Iterator[Experiment]:
    """Yield the paper's parity table, reduced: lengths of 1 to 20, tested on up to 300, without positions."""
    short = lru_cache(lambda: ParitySource(1, 20, 300, name="parity-20"))
    for cell, values in PARITY.items():
        for epsilon, published in zip((-1.0, *EPSILONS) if len(values) > 1 else (0.0,), values, strict=True):
            if not size.reduced:
                yield _full(size, "parity-published", cell, epsilon, 1).row(published, SEEDS)
            elif epsilon in (-1.0, 1.0) or len(values) == 1:
                plan = _reduced(size, "parity-20", cell, epsilon)
                plan = replace(plan, load=short, shape=replace(plan.shape, positions=False))
                plan = replace(plan, training=replace(plan.training, learning_rate=1e-2))
                differs = "trained on 1 to 20 bits for 50 to 400, tested on up to 300 for 1000, no positions, m 32"
                yield plan.row(published, differs)


def keywords(size: Size) -> Iterator[Experiment]:
    """Yield the paper's table of spoken words, reduced: the digits of another, smaller set."""
    data = size.folder("fsdd", "keywords") if size.reduced else None
    for task, cells in KEYWORDS.items():
        for cell, published in cells.items():
            if not size.reduced:
                plan = _full(size, task, cell, 1.0, KEYWORDS_STATE)
                yield plan.row(published, f"speakers split by a hash of their name; {SEEDS}")
            elif task == "kws-digits":
                plan = _reduced(size, "fsdd", cell, 1.0)
                plan = replace(plan, load=partial(_load, "fsdd", data), shape=replace(plan.shape, pooling="mean"))
                differs = "Free Spoken Digit Dataset for Speech Commands, m 32 for 256, iterations for 35,000"
                yield plan.row(published, differs)
