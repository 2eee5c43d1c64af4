"""Tables of the seed paper's backbone (arXiv 2605.11855): copies, pixels, parity, keywords.

Full rows have the paper's settings (F.8): m 256, r 1, batch 64, rate 1e-3. Reduced ones have m 32 and batch 32.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from cosim.papers.shape import BackboneShape, Training, count_parameters, paper_iterations
from cosim.papers.sources import BackboneData, ParitySource, load_source
from cosim.papers.tables.catalog import Experiment, Outcome, PaperFigure, Progress, Size, Stopwatch
from cosim.papers.tables.published import (
    ANNEALED,
    COPIES,
    EPSILONS,
    KEYWORDS,
    KEYWORDS_STATE,
    LENGTHS,
    PARITY,
    PIXELS,
    PIXELS_SMALL,
    PIXELS_STATE,
    SMALL_BMRU,
)
from cosim.papers.train import Setup, train_backbone

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
        """Task, cell, and what tells the row from its neighbours."""
        anneals = self.shape.anneals
        epsilon = "annealed" if self.training.epsilon is None else f"epsilon {self.training.epsilon:g}"
        return ", ".join([self.task, self.shape.cell, *([epsilon] if anneals else []), f"d {self.shape.state}"])

    @property
    def settings(self) -> str:
        """Return the settings that the row's name does not say, in words."""
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
        return Experiment(self.name, self.settings, differs, (figure,), self.training.iterations, partial(_train, self))


def _train(plan: BackbonePlan, seed: int, path: Path, progress: Progress) -> Outcome:
    """Goes on where a stopped training left off."""
    source, watch = plan.load(), Stopwatch(progress)
    trained = train_backbone(Setup(plan.shape, plan.training, source, (seed,)), path, watch, resume=True)
    path.unlink()
    figures = trained.seeds[seed]
    done = int(figures["iterations"])
    return Outcome(figures, count_parameters(trained.model.backbone.shape), done, watch.seconds(done))


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
    """On one thread of a CPU, some 20 s."""
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
