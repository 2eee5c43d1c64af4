"""A keyword told from all other words by backbones, over ten folds of speakers: each recording of `yes` is tested once.

    python benchmarks/bench_keywords.py FOLDER SPEECH_COMMANDS [FOLD ...]

For each fold, a tenth of the speakers, a backbone is trained on all words that the others say (task kws-words-all), and
from there two that know the keyword alone (kws-yes-all): one in software with epsilon 1, and one with epsilon annealed
to 0, whose cells are bits that `cosim compile` cuts out. The test has as many recordings of other words as of `yes`.
Trained models are kept in FOLDER: the same command continues.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binomtest
from smoke import shrink

from cosim.papers.file import Model, load_model
from cosim.papers.shape import BackboneShape, Training
from cosim.papers.sources import task_source
from cosim.papers.train import Setup, train_backbone
from cosim.tasks.spoken import load_keywords_task
from cosim.tasks.task import Task, full_lengths

SHAPE = BackboneShape(1, 1, cell="cmru", state=16, width=48, pooling="mean", dropout=0.1, start="low")
WORDS = Training(2000, 32, 2e-3, epsilon=1.0, shift=8)
KINDS = {
    "software": Training(400, 32, 5e-4, epsilon=1.0, shift=8),
    "hardware": Training(1200, 32, 1e-3, shift=8),
}
TINY = Training(2, 4, 1e-3, epsilon=1.0, shift=1)  # of --smoke


def trained(path: Path, task: Task, training: Training, seed: int, start: Model | None = None) -> Model:
    """The model at `path`, which is trained if it is not there."""
    if not path.is_file():
        train_backbone(Setup(SHAPE, training, task_source(task), (seed,), start=start), path)
    return load_model(path)


def right(model: Model, task: Task) -> NDArray[np.bool_]:
    """(2, n): which recordings of other words, and of the keyword, a model decides right."""
    with torch.no_grad():
        scores = model.backbone(torch.from_numpy(task.x_test), torch.from_numpy(task.len_test))
    good = scores.argmax(dim=1).numpy() == task.y_test
    return np.stack([good[task.y_test == label] for label in (0, 1)])


def line(name: str, found: NDArray[np.bool_]) -> str:
    """Accuracy of balanced classes with its interval (Clopper and Pearson, 95 %), and that of each class."""
    ok, count = int(found.sum()), found.size
    low, high = (100 * float(one) for one in binomtest(ok, count).proportion_ci(0.95))
    share, other, yes = (100 * float(one.mean()) for one in (found, *found))
    return f"{name:12} {share:5.1f} % [{low:.1f}, {high:.1f}] of {count:4}  other {other:5.1f} %  yes {yes:5.1f} %"


def made_up(folder: Path, form: str, fold: int) -> Task:
    """Return noise in place of recordings, for --smoke."""
    x = np.random.default_rng(fold).normal(size=(24, 8, 3)).astype(np.float32)
    y, lengths = np.arange(24) % 2, full_lengths(x)
    return Task(form, x, y, x[:8], y[:8], lengths, lengths[:8], ("other", "yes"), np.zeros(3), np.ones(3))


def main() -> None:
    """A line for each fold, and one for all of them."""
    folder, data = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    folds = [int(text) for text in sys.argv[3:]] or list(range(10))
    found: dict[str, list[NDArray[np.bool_]]] = {kind: [] for kind in KINDS}
    for fold in folds:
        words = trained(folder / f"words{fold}.pt", load_keywords_task(data, "words-all", fold), WORDS, fold)
        task = load_keywords_task(data, "yes-all", fold)
        for kind, its in found.items():
            its.append(right(trained(folder / f"{kind}{fold}.pt", task, KINDS[kind], fold, words), task))
            print(line(f"{kind} {fold}", its[-1]), flush=True)
    for kind, its in found.items():
        print(line(kind, np.concatenate(its, axis=1)), flush=True)


if __name__ == "__main__":
    shrink(
        globals(), "keywords", "clips", "0", WORDS=TINY, KINDS=dict.fromkeys(KINDS, TINY), load_keywords_task=made_up
    )
    main()
