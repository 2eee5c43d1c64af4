"""What a training asks of the machine is said before it begins, and a loss that is not finite ends it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cosim.base.bounds  # noqa: E402
from cosim.base.errors import InputError, OutOfMemoryError, TrainingError  # noqa: E402
from cosim.papers.mgrade import Fit, MgradeShape, train_mgrade  # noqa: E402
from cosim.papers.shape import BackboneShape, Training  # noqa: E402
from cosim.papers.sources import ParitySource, task_source  # noqa: E402
from cosim.papers.tables.catalog import Experiment  # noqa: E402
from cosim.papers.tables.run import _outcome  # noqa: E402
from cosim.papers.train import Setup, train_backbone  # noqa: E402
from cosim.tasks.from_npz import load_npz_task  # noqa: E402
from cosim.tasks.memory import generate_parity_task  # noqa: E402
from cosim.tasks.task import (  # noqa: E402
    StepTargets,
    Task,
    full_lengths,
)
from cosim.training.backbone import HardwareNetwork  # noqa: E402
from cosim.training.config import Architecture, TrainingConfig  # noqa: E402
from cosim.training.hardware import GridLinear  # noqa: E402
from cosim.training.loop import TrainingLoop  # noqa: E402
from cosim.training.trainer import TrainingJob, check_limits, count_weights, least_memory, train, train_seeds  # noqa: E402

CONFIG = TrainingConfig(Architecture(cells=3, layers=1), iterations=20, batch=8)


def numbers(scale: float) -> Task:
    """Targets are the first input, times a scale; three steps of two features."""
    x = np.random.default_rng(0).uniform(size=(40, 3, 2)).astype(np.float32)
    y = (scale * x[:, 0, :1]).astype(np.float32)
    parts = x[:30], y[:30], x[30:], y[30:], full_lengths(x[:30]), full_lengths(x[30:])
    return Task("numbers", *parts, (), np.zeros(2), np.ones(2))


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture(cells=5, layers=1, hidden=0),
        Architecture(cells=7, layers=3, hidden=11, skip=False),
        Architecture(cells=7, layers=2, taps=3, input_levels=1),
        Architecture(cells=4, layers=2, feedback=True, ramp=False),
        Architecture(cells=4, layers=2, lines=6, hidden=5),
    ],
)
def test_weights_are_counted_as_they_are_built(architecture: Architecture) -> None:
    task = numbers(1.0)
    encoding = task.encoding(ramp=architecture.ramp, levels=architecture.input_levels)
    built = HardwareNetwork(architecture, encoding, 1)
    weights = sum(one.weight.numel() for one in built.modules() if isinstance(one, GridLinear))
    assert count_weights(architecture, encoding.width, 1) == weights


def test_a_training_that_cannot_fit_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: 3 cells on 3 inputs and one output of 3 states are 12 weights, five times; a batch of 8 samples of 3
    steps keeps 3 inputs and 4 x 3 numbers of the cells; 4 byte each."""
    assert least_memory(CONFIG, numbers(1.0)) == 4 * (5 * 12 + 8 * 3 * (3 + 12))
    monkeypatch.setattr(cosim.base.bounds, "available_memory", lambda: 1e6)
    check_limits(CONFIG, numbers(1.0))
    wide = replace(CONFIG, batch=60000)
    with pytest.raises(OutOfMemoryError, match=r"training needs at least 0\.011 GB of memory, and 0\.001 GB are free;"):
        train(wide, numbers(1.0), tmp_path / "model.pt")
    setup = Setup(BackboneShape(1, 1, width=16384), Training(iterations=2), ParitySource())
    with pytest.raises(OutOfMemoryError, match="training needs at least .* take a smaller --batch, --width or --state"):
        train_backbone(setup, tmp_path / "backbone.pt")
    assert not list(tmp_path.glob("*.pt"))


def test_targets_that_no_readout_holds_are_refused_with_the_range(tmp_path: Path) -> None:
    """4 times 3 states of 16 at most, and a bias of 4: 196."""
    train(CONFIG, numbers(190.0), tmp_path / "held.pt")
    with pytest.raises(InputError, match="numbers: y_train must lie in -196 to 196, which a readout of 3 states with"):
        train(CONFIG, numbers(1e30), tmp_path / "model.pt")
    values = np.random.default_rng(0).normal(size=(9, 1))
    x = np.ones((9, 2, 1))
    np.savez(tmp_path / "data.npz", x_train=x, x_test=x, y_train=1e300 * values, y_test=values)
    with pytest.raises(InputError, match=r"y_train must lie within single precision, 3\.4e\+38, not [\d.]+e\+300;"):
        load_npz_task(tmp_path / "data.npz")


def test_a_loss_that_is_not_finite_leaves_no_checkpoint(tmp_path: Path) -> None:
    """Targets that are infinite stand for sums that overflow single precision."""
    task = replace(numbers(1.0), y_train=np.full((30, 1), np.inf, dtype=np.float32))
    setup = Setup(BackboneShape(1, 1, width=8), Training(iterations=9, batch=4), task_source(task))
    with pytest.raises(TrainingError, match=r"seed 0: the loss must be a finite number, not inf, .* in iteration 1;"):
        train_backbone(setup, tmp_path / "backbone.pt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("iteration", [1, 7, 20])
def test_a_training_stops_where_its_loss_is_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, iteration: int
) -> None:
    """The weights become no numbers behind an iteration; the next loss, or that of the validation, says so."""
    step, path = TrainingLoop.step, tmp_path / "model.pt"

    def spoilt(run):
        if run.iteration + 1 == iteration:
            with torch.no_grad():
                run.problem.model.readout.weight[0, 0] = float("nan")
        return step(run)

    monkeypatch.setattr(TrainingLoop, "step", spoilt)
    text = rf"seed 0: the loss must be a finite number, not nan, as it is in iteration {iteration}; .* smaller learning"
    with pytest.raises(TrainingError, match=text):
        train(CONFIG, generate_parity_task(5, 64, 16), path)
    assert not path.exists()


def test_the_last_of_several_seeds_is_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the last seed must lie in 0 to 4294967295, not 4294967296; take a smaller"):
        train_seeds(TrainingJob(CONFIG, numbers(1.0)), (2**32 - 1, 2**32), tmp_path / "model.pt")


def test_a_table_names_the_row_whose_training_failed(tmp_path: Path) -> None:
    def draw(rng: np.random.Generator) -> StepTargets:
        x = rng.uniform(size=(4, 5, 1)).astype(np.float32)
        return StepTargets(x, np.full((4, 5, 1), np.nan, dtype=np.float32), np.ones((4, 5), dtype=bool))

    def fail(seed, path, progress):
        train_mgrade(MgradeShape(1, 1, 4, 1), draw, Fit(3, seed=seed))
        raise AssertionError("trained on targets that are no numbers")

    row = Experiment("unit of four", "", "", (), 3, fail)
    with pytest.raises(
        TrainingError, match="unit of four: seed 0: the loss must be a finite number, not nan, as it is"
    ):
        _outcome(row, 0, tmp_path / "unit.seed0.json", lambda *_: None)
    assert not list(tmp_path.iterdir())
