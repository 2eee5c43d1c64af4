"""Several trainings that differ in their seed alone: the best network by validation, and the figures of all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cosim.base.bounds import SEED
from cosim.base.claim import clear_work, own_file
from cosim.base.errors import InputError
from cosim.base.text import shown_path
from cosim.exchange.checkpoint import save_checkpoint
from cosim.network.types import Network
from cosim.training.config import seed_path
from cosim.training.curves import Figures
from cosim.training.finished import find_finished
from cosim.training.history import join_columns
from cosim.training.trainer import TrainingJob, TrainingResult, run_job

Progress = Callable[[int, int, dict[str, float]], None]


@dataclass(frozen=True)
class Seeds:
    """The best network by its validation loss, and the figures of every seed."""

    best: TrainingResult
    figures: dict[int, Figures]

    def spread(self, figure: str) -> tuple[float, float, float]:
        """Return mean, smallest and largest of a figure over the seeds."""
        values = [float(figures[figure]) for figures in self.figures.values()]
        return float(np.mean(values)), min(values), max(values)


def train_seeds(
    job: TrainingJob, seeds: Sequence[int], path: Path, progress: Progress | None = None, *, resume: bool = False
) -> Seeds:
    """Train the job with each seed, one after another, and write the network of smallest validation loss to `path`, of
    those that can be compiled if any can.

    Each seed's network is what `train` gives for it, and stays beside `path` (`seed_path`) until all are done; an
    interrupted run leaves them and the state of the one that it was at, from which `resume` goes on. The network that
    is kept holds the figures and the curves of all seeds in its history. Errors as in `train`.
    """
    SEED.check("the last seed", seeds[-1], "take a smaller --seed or fewer --seeds")
    total = job.config.iterations
    found: dict[int, TrainingResult] = {}
    with own_file(path):
        if not resume:
            clear_work(path)
        elif done := _all_finished(job, seeds, path):
            clear_work(path)
            return done
        kept = {seed: seed_path(path, seed) for seed in seeds}
        for i, seed in enumerate(seeds):
            own = replace(job, config=replace(job.config, seed=seed))

            def tell(done: int, values: dict[str, float], before: int = i * total) -> None:
                if progress is not None:
                    progress(before + done, len(seeds) * total, values)

            if resume and kept[seed].is_file():
                _check_kept(own, kept[seed])
            found[seed] = run_job(own, kept[seed], tell, resume=resume)
        chosen = min(seeds, key=lambda seed: _rank(found[seed].figures, seed))
        network = _with_all(found[chosen].network, found)
        save_checkpoint(path, network)
        clear_work(path)
    figures = {seed: one.figures for seed, one in found.items()}
    return Seeds(TrainingResult(network, found[chosen].figures, path), figures)


def _rank(figures: Figures, seed: int) -> tuple[bool, float, int]:
    """Return a key that is smaller for a better network: any that can be compiled comes before those that cannot."""
    return "refused" in figures, figures["validation_loss"], seed


def _with_all(network: Network, found: dict[int, TrainingResult]) -> Network:
    """Return the network with the figures and curves of all seeds in its history."""
    joined = join_columns(one.network.history["curve"] for one in found.values())
    figures = {str(seed): one.figures for seed, one in found.items()}
    return replace(network, history={**network.history, "seeds": figures, "curve": joined})


def _all_finished(job: TrainingJob, seeds: Sequence[int], path: Path) -> Seeds | None:
    """Return the finished training of these seeds from the file; None where it is of another training, or not there."""
    configs = [replace(job.config, seed=seed) for seed in seeds]
    best = next((one for config in configs if (one := find_finished(config, job.task, path, seeds)) is not None), None)
    if best is None:
        return None
    figures = {seed: best.history["seeds"][str(seed)] for seed in seeds}
    return Seeds(TrainingResult(best, best.history["figures"], path), figures)


def _check_kept(job: TrainingJob, path: Path) -> None:
    """Raises InputError where what is kept of a seed comes from other settings or data."""
    if find_finished(job.config, job.task, path) is None:
        raise InputError(
            f"{shown_path(path)}: belongs to a training with other settings or data; go on with those of the first "
            "run, or begin anew with --fresh"
        )
