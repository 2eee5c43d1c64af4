"""Several trainings that differ in their seed alone: the best network by validation, and the figures of all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cosim.checkpoint.file import load_network, save_checkpoint
from cosim.errors import InputError
from cosim.files.claim import own_file
from cosim.network.types import Network
from cosim.reading.text import shown_path
from cosim.training.config import describe_config, seed_path, state_path
from cosim.training.curves import Figures
from cosim.training.history import join_columns
from cosim.training.state import data_fingerprint
from cosim.training.trainer import Job, TrainingResult, run_job

Progress = Callable[[int, int, dict[str, float]], None]


@dataclass(frozen=True)
class Seeds:
    """The best network by its validation loss, and the figures of every seed."""

    best: TrainingResult
    figures: dict[int, Figures]

    def spread(self, figure: str) -> tuple[float, float, float]:
        """Mean, smallest and largest of a figure over the seeds."""
        values = [float(figures[figure]) for figures in self.figures.values()]
        return float(np.mean(values)), min(values), max(values)


def train_seeds(
    job: Job, seeds: Sequence[int], path: Path, progress: Progress | None = None, *, resume: bool = False
) -> Seeds:
    """Train the job with each seed, one after another, and write the network of smallest validation loss to `path`, of
    those that can be compiled if any can.

    Each seed's network is what `train` gives for it, and stays beside `path` (`seed_path`) until all are done; an
    interrupted run leaves them and the state of the one that it was at, from which `resume` goes on. The network that
    is kept holds the figures and the curves of all seeds in its history. Errors as in `train`.
    """
    kept = {seed: seed_path(path, seed) for seed in seeds}
    if resume and not any(one.is_file() or state_path(one).is_file() for one in kept.values()):
        raise InputError(
            f"{shown_path(state_path(kept[seeds[0]]))}: no training state to resume; start without --resume"
        )
    total = job.config.iterations
    found: dict[int, TrainingResult] = {}
    with own_file(path):
        for i, seed in enumerate(seeds):
            own = replace(job, config=replace(job.config, seed=seed))

            def tell(done: int, values: dict[str, float], before: int = i * total) -> None:
                if progress is not None:
                    progress(before + done, len(seeds) * total, values)

            done = _finished(own, kept[seed]) if resume and kept[seed].is_file() else None
            found[seed] = done or run_job(own, kept[seed], tell, resume=resume and state_path(kept[seed]).is_file())
        chosen = min(seeds, key=lambda seed: _rank(found[seed].figures, seed))
        network = _with_all(found[chosen].network, found)
        save_checkpoint(path, network)
    for one in kept.values():
        one.unlink(missing_ok=True)
    figures = {seed: one.figures for seed, one in found.items()}
    return Seeds(TrainingResult(network, found[chosen].figures, path), figures)


def _rank(figures: Figures, seed: int) -> tuple[bool, float, int]:
    """What is smaller for a better network: any that can be compiled comes before those that cannot."""
    return "refused" in figures, figures["validation_loss"], seed


def _with_all(network: Network, found: dict[int, TrainingResult]) -> Network:
    """The network with the figures and curves of all seeds in its history."""
    joined = join_columns(one.network.history["curve"] for one in found.values())
    figures = {str(seed): one.figures for seed, one in found.items()}
    return replace(network, history={**network.history, "seeds": figures, "curve": joined})


def _finished(job: Job, path: Path) -> TrainingResult:
    """The result of a seed that is done; raises InputError where it comes from other settings or data."""
    network = load_network(path)
    wanted = {"settings": describe_config(job.config), "data": data_fingerprint(job.task)}
    if any(network.history.get(part) != value for part, value in wanted.items()):
        raise InputError(
            f"{shown_path(path)}: belongs to a training with other settings or data; resume with those of the first "
            "run, or delete it and start anew"
        )
    return TrainingResult(network, network.history["figures"], path)
