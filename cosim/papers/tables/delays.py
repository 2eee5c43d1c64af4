"""Tables of mGRADE and of the delayed memory unit: flip-flop strings, the Lorenz system, footprints, two lags.

The papers' iterations are not known here. Full flip-flop strings have their 512 tokens, a full Lorenz set has its 2000
trajectories; the delayed product stands for sets of speech.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from cosim.base.claim import clear_work, own_file
from cosim.papers.dmu import BATCH, RATE, Inner, ProductProblem, prune_gates, train_delayed_product
from cosim.papers.mgrade import (
    Cell,
    ConvolutionSettings,
    Fit,
    Mgrade,
    MgradeShape,
    accuracy_of,
    memory_footprint,
    reconstruct,
    train_mgrade,
)
from cosim.papers.tables.catalog import Experiment, Outcome, PaperFigure, Progress, Size, Stopwatch
from cosim.tasks.lorenz import generate_lorenz
from cosim.tasks.memory import DENSE, SPARSE, generate_delayed_product, generate_flip_flop_steps
from cosim.tasks.task import StepTargets
from cosim.training.config import state_path

Draw = Callable[[np.random.Generator], StepTargets]
Judge = Callable[[Mgrade], dict[str, float]]

STRINGS, BATCH_STRINGS = 512, 32
TEST_TOKENS = 512
TWO_TAPS = ConvolutionSettings("learned", 2, reach=2)
NEARLY, BELOW = "about 100", "98 and below"
FLIP_FLOP = {
    "mGRADE-L, 2 taps": (MgradeShape(5, 2, 16, 1, TWO_TAPS, deep=False), NEARLY),
    "minGRU": (MgradeShape(5, 2, 16, 1, deep=False), ""),
    "taps + BMRU": (MgradeShape(5, 2, 16, 1, TWO_TAPS, "bmru", deep=False), ""),
    "taps + BMRU, weights of 1/8": (MgradeShape(5, 2, 16, 1, TWO_TAPS, "bmru", deep=False, grid=0.125), ""),
    "TCN-EID, 5 layers, 4 taps": (MgradeShape(5, 2, 16, 5, ConvolutionSettings("exponential", 4), "none"), BELOW),
}
SKIP, POINTS = 24, 2000  # steps that all kernels reach over; states whose neighbours are compared
ONE_TAP = ConvolutionSettings("learned", 1, reach=12, start="uniform")
LORENZ = {
    "mGRADE-L, 1 layer": MgradeShape(1, 1, 10, 1, ONE_TAP, deep=False),
    "mGRADE-G, 1 layer, 4 filters": MgradeShape(
        1, 1, 10, 1, ConvolutionSettings("gamma", 1, reach=24, order=4), deep=False
    ),
    "mGRADE-G, 1 layer, 16 filters": MgradeShape(
        1, 1, 10, 1, ConvolutionSettings("gamma", 1, reach=24, order=16), deep=False
    ),
    "minGRU, 2 layers": MgradeShape(1, 1, 10, 2, deep=False),
}
PRODUCT = {
    "mGRADE-L, 2 taps": MgradeShape(1, 2, 16, 1, ConvolutionSettings("learned", 2, reach=24, start="uniform"), "none"),
    "mGRADE-G, 64 filters": MgradeShape(1, 2, 16, 1, ConvolutionSettings("gamma", 2, reach=60, order=64), "none"),
}
FOOTPRINTS: dict[str, tuple[ConvolutionSettings, Cell, int, int]] = {  # parameters and total, in thousands
    "minGRU": (ConvolutionSettings(), "mingru", 39, 39),
    "TCN-CD, 64 taps": (ConvolutionSettings("constant", 64), "none", 39, 51),
    "mGRADE-CD, 8 taps, 32 apart": (ConvolutionSettings("constant", 8, dilation=32), "mingru", 41, 84),
    "TCN-EID, 64 taps": (ConvolutionSettings("exponential", 64, reach=512), "none", 39, 101),
    "mGRADE-EID, 16 taps": (ConvolutionSettings("exponential", 16, reach=512, dilation=2), "mingru", 42, 87),
    "mGRADE-L, 16 taps up to 128": (ConvolutionSettings("learned", 16, reach=128), "mingru", 48, 71),
    "mGRADE-L, 8 taps up to 256": (ConvolutionSettings("learned", 8, reach=256), "mingru", 44, 86),
}
CELLS: tuple[Inner, ...] = ("rnn", "gru", "lstm")
LINE, UNITS, KEPT, PRODUCT_ITERATIONS = 20, 24, (4, 2, 1), 800
SPEECH = {("gru", 0): "SHD 78.87", ("gru", LINE): "SHD 88.43", ("lstm", 0): "SHD 73.28", ("lstm", LINE): "SHD 89.27"}


@dataclass(frozen=True)
class DelayPlan:
    """One mGRADE: a draw of batches for each seed, and what judges a trained network of that seed."""

    shape: MgradeShape
    fit: Fit
    prepare: Callable[[int], tuple[Draw, Judge]]

    def train(self, seed: int, path: Path, progress: Progress) -> Outcome:
        """Train a network for a row of the papers' tables, or go on with one, and judge it."""
        watch, (draw, judge) = Stopwatch(progress), self.prepare(seed)
        fit = replace(self.fit, seed=seed)
        with keeping_state(path) as state:
            model = train_mgrade(self.shape, draw, fit, state, lambda done, values: watch(done, fit.iterations, values))
        figures = judge(model)
        count = sum(value.numel() for value in model.parameters())
        return Outcome(figures, count, fit.iterations, watch.seconds(fit.iterations))

    def row(self, name: str, differs: str, figures: tuple[PaperFigure, ...], batch: int) -> Experiment:
        """Return the table's row of this plan."""
        settings = f"H {self.shape.width}, batch {batch}, rate {self.fit.learning_rate:g}"
        return Experiment(name, settings, differs, figures, self.fit.iterations, self.train)


def flip_flop(size: Size) -> Iterator[Experiment]:
    """Yield mGRADE's flip-flop table: trained on dense strings, tested on dense and sparse ones."""
    tokens = 64 if size.reduced else TEST_TOKENS
    tests = {
        f"{ignored:g} {count}": (ignored, count)
        for ignored in (DENSE, SPARSE)
        for count in dict.fromkeys((tokens, TEST_TOKENS))
    }

    def prepare(_seed: int) -> tuple[Draw, Judge]:
        strings = {key: generate_flip_flop_steps(STRINGS, n, p, seed=99) for key, (p, n) in tests.items()}
        return (
            lambda rng: generate_flip_flop_steps(BATCH_STRINGS, tokens, DENSE, rng),
            lambda model: {key: accuracy_of(model, steps) for key, steps in strings.items()},
        )

    for name, (shape, published) in FLIP_FLOP.items():
        figures = tuple(
            PaperFigure(
                key,
                f"{p:.0%} ignored, {count} tokens, %",
                published if (p, count) == (SPARSE, TEST_TOKENS) else "",
                digits=2,
            )
            for key, (p, count) in tests.items()
        )
        differs = "the values behind reads are judged; its H, rate and iterations are not known here"
        differs = f"trained on 64 tokens for 512; {differs}" if size.reduced else differs
        yield DelayPlan(shape, Fit(600 if size.reduced else 6000), prepare).row(name, differs, figures, BATCH_STRINGS)


def lorenz(size: Size) -> Iterator[Experiment]:
    """Yield mGRADE's table of the Lorenz system.

    There are other trajectories for every seed, and for the test. Taps are narrow from the start.
    """
    count, batch = (200 if size.reduced else 2000), 32

    def prepare(seed: int) -> tuple[Draw, Judge]:
        train, test = generate_lorenz(count, seed=2 * seed), generate_lorenz(100, seed=1000 + seed)

        def draw(rng: np.random.Generator) -> StepTargets:
            chosen = rng.choice(count, batch, replace=False)
            return StepTargets(train.steps.x[chosen], train.steps.y[chosen], train.steps.mask[chosen])

        return draw, lambda model: reconstruct(model, train, test, SKIP, POINTS)

    for name, shape in LORENZ.items():
        alone = name.startswith("minGRU")
        figures = (
            *(PaperFigure(key, f"scaled error of {key}", "", percent=False, digits=2) for key in "x"),
            *(PaperFigure(key, f"scaled error of {key}", "above 1" * alone, percent=False, digits=2) for key in "yz"),
            PaperFigure("overlap", "neighbours shared, %", "5 more than minGRU" * (name == next(iter(LORENZ)))),
        )
        differs = "interval, length and rate are ours, and the iterations"
        differs = f"200 trajectories for 2000; {differs}" if size.reduced else differs
        yield DelayPlan(shape, Fit(600 if size.reduced else 6000, 1e-2, sigma=0.5), prepare).row(
            name, differs, figures, batch
        )


def footprint(_size: Size) -> Iterator[Experiment]:
    """Yield mGRADE's table of memory: grey sCIFAR, H 32, 6 layers; nothing is trained."""
    for name, (convolving, cell, parameters, total) in FOOTPRINTS.items():
        shape = MgradeShape(1, 10, 32, 6, convolving, cell)
        figures = (
            PaperFigure("parameters", "parameters", f"{parameters}k", percent=False, digits=0),
            PaperFigure("total", "with its past signals", f"{total}k", percent=False, digits=0),
        )
        differs = "formulas with the corrections of docs/papers/mgrade.md; the paper rounds to thousands, mostly up"
        yield Experiment(name, "H 32, 6 layers", differs, figures, 0, partial(_count, shape), seeded=False)


def _count(shape: MgradeShape, _seed: int, _path: Path, _progress: Progress) -> Outcome:
    parameters, buffer = memory_footprint(Mgrade(shape), widths=True)
    return Outcome({"parameters": parameters, "total": parameters + buffer}, parameters, 0, 0.0)


def delayed_product(_size: Size) -> Iterator[Experiment]:
    """Yield the DMU's table: units without and with a line, gates cut at inference; convolutions without recurrence."""
    differs = "our task for its speech, 24 units for 512; both forms of it are of this size"
    for cell in CELLS:
        for delays in (0, LINE):
            cuts = {"": "all gates"} | {f" {k}": f"{k} largest gates" for k in KEPT if delays}
            figures = tuple(
                PaperFigure(f"accuracy{key}", f"accuracy, {words}, %", "" if key else SPEECH.get((cell, delays), ""))
                for key, words in cuts.items()
            )
            name = f"{cell.upper()}, {f'line of {delays}' if delays else 'without a line'}"
            settings = f"{UNITS} units, batch {BATCH}, rate {RATE:g}"
            train = partial(_train_unit, cell, delays)
            yield Experiment(name, settings, differs, figures, PRODUCT_ITERATIONS, train)

    def prepare(_seed: int) -> tuple[Draw, Judge]:
        test = generate_delayed_product(1024, seed=99)
        return (
            lambda rng: generate_delayed_product(64, seed=rng),
            lambda model: {"accuracy": accuracy_of(model, test)},
        )

    for name, shape in PRODUCT.items():
        plan = DelayPlan(shape, Fit(PRODUCT_ITERATIONS, 1e-2), prepare)
        yield plan.row(name, "of no paper: delays that are learned", (PaperFigure("accuracy", "accuracy, %"),), 64)


def _train_unit(cell: Inner, delays: int, seed: int, path: Path, progress: Progress) -> Outcome:
    watch, total = Stopwatch(progress), PRODUCT_ITERATIONS
    problem = ProductProblem(cell, delays, seed, total, UNITS)
    with keeping_state(path) as state:
        found = train_delayed_product(problem, state, lambda done, values: watch(done, total, values))
    figures = {"accuracy": found.accuracy()}
    figures |= {f"accuracy {k}": found.accuracy(partial(prune_gates, kept=k)) for k in KEPT if delays}
    return Outcome(figures, found.count_parameters(), total, watch.seconds(total))


@contextmanager
def keeping_state(path: Path) -> Generator[Path, None, None]:
    """Yield the path at which a training for the table of delays keeps its state; remove that file at the end."""
    with own_file(path):
        yield state_path(path)
        clear_work(path)
