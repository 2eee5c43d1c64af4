"""A keyword told from all other words by backbones, over ten folds of speakers: each recording of `yes` is tested once.

    python benchmarks/bench_keywords.py FOLDER SPEECH_COMMANDS [KIND] [FOLD ...]

For each fold, a tenth of the speakers, a backbone is trained on all words that the others say (task kws-words-all), and
from there two that know the keyword alone (kws-yes-all): `native` with epsilon 1, whose cells count, and `annealed`
with epsilon annealed to 0, whose cells are bits. Both run in software and with their cells on transistors of
generic180, counters or 9T cells, in the batched engine. KIND is one of the two. The test has as many recordings of
other words as of `yes`. Trained models and finished inferences are kept in FOLDER: the same command continues.
"""

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from smoke import shrink

from cosim.compiler.settings import CompilerSettings
from cosim.engines.engine import Run
from cosim.papers.cut import cut_backbone, training_samples
from cosim.papers.file import Model, load_model
from cosim.papers.shape import BackboneShape, Training
from cosim.papers.sources import task_source
from cosim.papers.train import Setup, train_backbone
from cosim.tasks.spoken import load_keywords_task
from cosim.tasks.task import Task, full_lengths
from cosim.verbs.loading import TargetTechnology
from cosim.verbs.partitions.run import CutBackbone, run_partitions
from cosim.verbs.partitions.study import CONVERTERS, SOFTWARE, BackboneRuns

SHAPE = BackboneShape(1, 1, cell="cmru", state=16, width=48, pooling="mean", dropout=0.1, start="low")
WORDS = Training(2000, 32, 2e-3, epsilon=1.0, shift=8)
KINDS = {
    "native": Training(400, 32, 5e-4, epsilon=1.0, shift=8),
    "annealed": Training(1200, 32, 1e-3, shift=8),
}
ENGINE = "batch"
TINY = Training(2, 4, 1e-3, epsilon=1.0, shift=1)  # of --smoke


def trained(path: Path, task: Task, training: Training, seed: int, start: Model | None = None) -> Model:
    """The model at `path`, which is trained if it is not there."""
    if not path.is_file():
        train_backbone(Setup(SHAPE, training, task_source(task), (seed,), start=start), path)
    return load_model(path)


def deployed(model: Model, task: Task, folder: Path) -> BackboneRuns:
    """The task's test recordings through a backbone in software, and with its cells on transistors."""
    source = task_source(task)
    seen = training_samples(source)
    backbone = CutBackbone(cut_backbone(model, seen), source, seen, folder.name)
    cell = "counter" if backbone.cut.partitions[0].counts else "auto"
    backbone = backbone.compile(TargetTechnology(), CompilerSettings(cell=cell), print)
    return run_partitions(backbone, source.test(), Run(folder, engine=ENGINE))


def right(runs: BackboneRuns, level: str) -> NDArray[np.bool_]:
    """(2, n): which recordings of other words, and of the keyword, one of a backbone's runs decides right."""
    good = runs.levels[level].decisions == runs.samples.y
    return np.stack([good[runs.samples.y == label] for label in (0, 1)])


def counts(runs: BackboneRuns) -> NDArray[np.int64]:
    """Count states, those that differ on transistors from software's, recordings, decisions that differ, failures."""
    (cell,) = runs.ledgers
    states = int(runs.valid.sum()) * runs.levels[SOFTWARE].states[cell].shape[2]
    wrong = runs.wrong(cell, CONVERTERS, ENGINE)
    failed = int((~runs.good).sum())
    return np.array([states, wrong, len(runs.good), len(runs.good) - failed - runs.same(SOFTWARE, ENGINE), failed])


def line(name: str, found: NDArray[np.bool_]) -> str:
    """Accuracy of balanced classes with its interval (Clopper and Pearson, 95 %), and that of each class."""
    ok, count = int(found.sum()), found.size
    low, high = (100 * float(one) for one in binomtest(ok, count).proportion_ci(0.95))
    share, other, yes = (100 * float(one.mean()) for one in (found, *found))
    return f"{name:20} {share:5.1f} % [{low:.1f}, {high:.1f}] of {count:4}  other {other:5.1f} %  yes {yes:5.1f} %"


def made_up(folder: Path, form: str, fold: int) -> Task:
    """Return noise in place of recordings, for --smoke."""
    x = np.random.default_rng(fold).normal(size=(24, 8, 3)).astype(np.float32)
    y, lengths = np.arange(24) % 2, full_lengths(x)
    return Task(form, x, y, x[:8], y[:8], lengths, lengths[:8], ("other", "yes"), np.zeros(3), np.ones(3))


def main() -> None:
    """Two lines for each fold and kind, and two for all folds."""
    folder, data = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [text for text in sys.argv[3:] if text in KINDS] or list(KINDS)
    folds = [int(text) for text in sys.argv[3:] if text not in KINDS] or list(range(10))
    found = defaultdict[tuple[str, str], list[NDArray[np.bool_]]](list)
    counted = defaultdict[str, list[NDArray[np.int64]]](list)
    for fold in folds:
        words = trained(folder / f"words{fold}.pt", load_keywords_task(data, "words-all", fold), WORDS, fold)
        task = load_keywords_task(data, "yes-all", fold)
        for kind in kinds:
            model = trained(folder / f"{kind}{fold}.pt", task, KINDS[kind], fold, words)
            runs = deployed(model, task, folder / f"{kind}{fold}")
            counted[kind].append(counts(runs))
            for level in (SOFTWARE, ENGINE):
                found[kind, level].append(right(runs, level))
                print(line(f"{kind} {fold} {level}", found[kind, level][-1]), flush=True)
            report(counted[kind][-1])
    for (kind, level), its in found.items():
        print(line(f"{kind} {level}", np.concatenate(its, axis=1)), flush=True)
        if level == ENGINE:
            report(np.sum(counted[kind], axis=0))


def report(counted: NDArray[np.int64]) -> None:
    """Print what `counts` found."""
    states, wrong, count, differ, failed = counted
    low, high = (100 * float(one) for one in binomtest(int(count - differ), int(count)).proportion_ci(0.95))
    shown = f"    {wrong} of {states} states differ, {differ} of {count} decisions"
    print(f"{shown} (equal: [{low:.1f}, {high:.1f}] %), {failed} failed", flush=True)


if __name__ == "__main__":
    shrink(
        globals(), "keywords", "clips", "0", WORDS=TINY, KINDS=dict.fromkeys(KINDS, TINY), load_keywords_task=made_up
    )
    main()
