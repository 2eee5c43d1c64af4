"""Training of backbones: it learns, repeats to the bit, survives interruption, keeps the best and stops when done."""

import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import InputError, MissingToolError  # noqa: E402
from cosim.papers.backbone import Backbone, measure  # noqa: E402
from cosim.papers.file import load_model  # noqa: E402
from cosim.papers.shape import BackboneShape, Training  # noqa: E402
from cosim.papers.sources import ParitySource, load_source, step_source, task_source  # noqa: E402
from cosim.papers.train import BackboneProblem, Setup, figures_of, metric_of, train_backbone  # noqa: E402
from cosim.tasks.load import load_task  # noqa: E402
from cosim.tasks.task import StepTargets, StepTask, Task, full_lengths  # noqa: E402  # noqa: E402
from cosim.training.config import seed_path, state_path  # noqa: E402
from cosim.training.history import spread_over  # noqa: E402
from cosim.training.loop import TrainingLoop  # noqa: E402

SHAPE = BackboneShape(1, 1, width=16, state=4)
TRAINING = Training(iterations=30, batch=16, epsilon=1.0, validate_every=10, validations=2)


def make_task(n: int = 300, *, labels: bool = True) -> Task:
    """Which of three inputs is high at the first of seven steps; or how high the first input is there."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 0.3, (n, 7, 3)).astype(np.float32)
    y = rng.integers(0, 3, n)
    x[np.arange(n), 0, y] = 1.0
    if not labels:
        y = x[:, 0, :1].copy()
    half = n - 50
    parts = x[:half], y[:half], x[half:], y[half:], full_lengths(x[:half]), full_lengths(x[half:])
    return Task("which", *parts, ("a", "b", "c") if labels else (), np.zeros(3), np.ones(3))


SOURCE = task_source(make_task())
SETUP = Setup(SHAPE, TRAINING, SOURCE)


class Stop(Exception):
    pass


def stop_at(iteration, kind=Stop):
    def progress(done, total, values):
        if done == iteration:
            if kind is signal.SIGINT:
                os.kill(os.getpid(), kind)
            else:
                raise kind

    return progress


def score_of(model):
    """The only seed's accuracy on test samples."""
    (figures,) = figures_of(model).values()
    return figures["test_accuracy"]


@pytest.mark.parametrize("cell", ["cmru", "lru"])
def test_it_learns_and_its_file_has_its_figures(tmp_path, cell):
    setup = replace(SETUP, shape=replace(SHAPE, cell=cell), training=replace(TRAINING, iterations=300))
    trained = train_backbone(setup, tmp_path / "model.pt")
    assert score_of(trained) > 0.9  # chance is 0.33
    model = load_model(tmp_path / "model.pt")
    assert model.labels == ("a", "b", "c") and model.task == "which" and model.backbone.shape.inputs == 3
    assert model.history["figures"] == trained.history["figures"]
    again = measure(model.backbone, SOURCE.test(), classes=True)
    assert (
        again["accuracy"] == figures_of(trained)[0]["test_accuracy"]
        and again["loss"] == figures_of(trained)[0]["test_loss"]
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pt"]


def test_regression_is_reported_as_mean_absolute_error(tmp_path):
    source = task_source(make_task(labels=False))
    trained = train_backbone(Setup(SHAPE, TRAINING, source), tmp_path / "model.pt")
    x, y = torch.from_numpy(source.test().x), source.test().y
    with torch.no_grad():
        error = trained.backbone(x).numpy() - y
    assert metric_of(trained) == "test_mae"
    assert figures_of(trained)[0]["test_mae"] == pytest.approx(np.abs(error).mean(), rel=1e-6)
    assert figures_of(trained)[0]["test_loss"] == pytest.approx((error**2).mean(), rel=1e-6)  # what it is trained for


def test_several_seeds_keep_the_best_and_give_their_spread(tmp_path):
    setup = replace(SETUP, seeds=(3, 1, 2))
    trained = train_backbone(setup, tmp_path / "model.pt")
    singly = {seed: train_backbone(replace(SETUP, seeds=(seed,)), tmp_path / f"{seed}.pt") for seed in (1, 3)}
    alone = {seed: figures_of(one)[seed] for seed, one in singly.items()}
    assert (
        figures_of(trained)[1] == alone[1]
        and figures_of(trained)[3] == alone[3]
        and list(figures_of(trained)) == [1, 2, 3]
    )
    values = [figures["test_accuracy"] for figures in figures_of(trained).values()]
    assert spread_over(figures_of(trained).values(), "test_accuracy") == (np.mean(values), min(values), max(values))
    best = max(figures_of(trained).values(), key=lambda one: (one["validation_accuracy"], -one["validation_loss"]))
    assert trained.history["figures"] == best
    assert set(load_model(tmp_path / "model.pt").history["seeds"]) == {"1", "2", "3"}
    assert list(tmp_path.glob("model.*")) == [tmp_path / "model.pt"]


DROPPING = replace(SETUP, shape=replace(SHAPE, dropout=0.1), seeds=(0, 1))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes that a training of two seeds leaves that nobody interrupts."""
    path = tmp_path_factory.mktemp("whole") / "whole.pt"
    train_backbone(DROPPING, path)
    return path.read_bytes()


@pytest.mark.parametrize("iteration", [1, 30, 44])
def test_an_interrupted_run_ends_in_the_same_bytes(tmp_path, whole, iteration):
    """After one iteration, at the end of a seed, and within the second one."""
    with pytest.raises(KeyboardInterrupt):
        train_backbone(DROPPING, tmp_path / "broken.pt", stop_at(iteration, signal.SIGINT))
    assert not (tmp_path / "broken.pt").exists()
    left = [state_path(seed_path(tmp_path / "broken.pt", seed)).exists() for seed in (0, 1)]
    assert left == [iteration < 30, iteration > 30] or iteration == 30
    train_backbone(DROPPING, tmp_path / "broken.pt", resume=True)
    assert (tmp_path / "broken.pt").read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["broken.pt"]


@pytest.mark.parametrize("seeds", [(0,), (2, 0)])
def test_a_run_without_a_state_begins_and_a_whole_one_is_not_trained_again(tmp_path, seeds):
    path, setup, seen = tmp_path / "model.pt", replace(SETUP, seeds=seeds), []
    first = train_backbone(setup, path, resume=True)
    content, made = path.read_bytes(), path.stat().st_mtime_ns
    found = train_backbone(setup, path, lambda *values: seen.append(values), resume=True)
    assert (figures_of(found), path.read_bytes(), path.stat().st_mtime_ns, seen) == (
        figures_of(first),
        content,
        made,
        [],
    )
    assert [one.name for one in tmp_path.iterdir()] == ["model.pt"]
    train_backbone(replace(setup, training=replace(TRAINING, batch=8)), path, resume=True)
    assert path.read_bytes() != content


def test_resume_wants_the_same_settings(tmp_path):
    path = tmp_path / "model.pt"
    with pytest.raises(KeyboardInterrupt):
        train_backbone(replace(SETUP, seeds=(0, 1)), path, stop_at(40, signal.SIGINT))
    with pytest.raises(InputError, match="belongs to a training with other settings"):
        train_backbone(replace(SETUP, training=replace(TRAINING, batch=8), seeds=(0, 1)), path, resume=True)
    seed_path(path, 0).unlink()
    with pytest.raises(InputError, match="other settings: state 4 not 5"):
        train_backbone(replace(SETUP, shape=replace(SHAPE, state=5), seeds=(1,)), path, resume=True)


def test_it_stops_when_every_look_finds_all_right(tmp_path):
    training = replace(TRAINING, iterations=5000, patience=3, validate_every=5)
    trained = train_backbone(replace(SETUP, training=training), tmp_path / "model.pt")
    assert figures_of(trained)[0]["iterations"] < 1000 and figures_of(trained)[0]["validation_accuracy"] == 1.0


def test_annealed_models_are_chosen_at_epsilon_zero_only():
    """Looks before that are for the curve; 75 % of 60 iterations are 45."""
    looks = []
    training = replace(TRAINING, iterations=60, epsilon=None, validate_every=5)
    setup = Setup(replace(SHAPE, inputs=3, outputs=3), training, SOURCE)
    problem = BackboneProblem(setup, 0)
    run, cell = TrainingLoop(problem), problem.model.blocks[0].cell
    problem._measure = lambda samples: looks.append((run.iteration, cell.epsilon)) or {"accuracy": 0.5, "loss": 1.0}
    seen, chosen = [], []
    while not run.done:
        run.step()
        seen.append(cell.epsilon)
        chosen.append(run.best is not None)
    assert {45, 50, 55, 60} <= {i for i, epsilon in looks if epsilon == 0.0}
    assert chosen.index(True) == 44
    assert seen[:3] == [1.0] * 3 and 0.4 < seen[23] < 0.6


def test_a_cell_without_epsilon_is_looked_at_from_the_start():
    setup = Setup(BackboneShape(3, 3, cell="lru", width=8), replace(TRAINING, epsilon=None), SOURCE)
    run = TrainingLoop(BackboneProblem(setup, 0))
    for _ in range(10):
        run.step()
    assert run.best is not None


def test_test_samples_decide_nothing(tmp_path):
    task = make_task()
    other = replace(task, x_test=task.x_test + 1.0, y_test=(task.y_test + 1) % 3)
    one, two = (train_backbone(replace(SETUP, source=task_source(t)), tmp_path / "m.pt") for t in (task, other))
    for name, value in one.backbone.state_dict().items():
        assert torch.equal(value, two.backbone.state_dict()[name]), name
    assert figures_of(one)[0]["test_loss"] != figures_of(two)[0]["test_loss"]


@pytest.mark.parametrize("cell", ["cmru", "lru"])
def test_mixed_precision_on_the_cpu(tmp_path, cell):
    training = replace(TRAINING, mixed=True, iterations=200)
    trained = train_backbone(Setup(replace(SHAPE, cell=cell), training, SOURCE), tmp_path / "model.pt")
    assert {value.dtype for value in trained.backbone.state_dict().values()} == {torch.float32}
    assert score_of(trained) > 0.7  # chance is 0.33


def test_cuda_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(MissingToolError, match="--device cuda needs a CUDA device"):
        train_backbone(replace(SETUP, training=replace(TRAINING, device="cuda")), tmp_path / "model.pt")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("mixed", [False, True])
def test_cuda(tmp_path, mixed):
    training = replace(TRAINING, device="cuda", mixed=mixed, iterations=300)
    assert score_of(train_backbone(replace(SETUP, training=training), tmp_path / "model.pt")) > 0.9


def test_levels_of_a_count_need_its_epsilon():
    setup = Setup(replace(SHAPE, levels=7), replace(TRAINING, epsilon=None), task_source(make_task()))
    with pytest.raises(InputError, match="--levels of a cmru are those of a count, .* with --epsilon 1; give it"):
        setup.checked()


def test_levels_of_values_need_an_epsilon_that_ends_at_0():
    shape = replace(SHAPE, cell="alphacmru", levels=6)
    with pytest.raises(InputError, match="--levels of an alphacmru are those of a register, .* anneal or 0, not 1"):
        Setup(shape, TRAINING, task_source(make_task())).checked()


def test_batches_drawn_on_the_fly(tmp_path):
    source = ParitySource(shortest=1, longest=9, test_longest=20, tests=100)
    trained = train_backbone(Setup(SHAPE, TRAINING, source), tmp_path / "model.pt")
    assert figures_of(trained)[0]["test_samples"] == 100
    one, other = (source.batch(np.random.default_rng([0, i]), 500) for i in (0, 1))
    assert one.lengths.min() == 1 and one.lengths.max() == 9 and source.test().lengths.max() == 20
    assert not np.array_equal(one.x, other.x)
    for x, y, length in zip(one.x, one.y, one.lengths, strict=True):
        assert x[:length].sum() % 2 == y and not x[length:].any()


def parts_of(x, y, mask):
    """Training, validation and test steps."""
    return [StepTargets(x[part], y[part], mask[part]) for part in (slice(240), slice(240, 300), slice(300, None))]


def test_a_class_at_every_step_that_counts(tmp_path):
    """Tokens in, the token before out; steps that do not count have targets of nonsense."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 4, (400, 12))
    mask = rng.random((400, 12)) < 0.7
    mask[:, 0] = False
    y = np.where(mask, np.roll(x, 1, axis=1), 3)
    parts = parts_of(x[:, :, None].astype(np.float32), y, mask)
    source = step_source(StepTask("before", *parts, ("a", "b", "c", "d"), tokens=4))
    assert source.tokens and source.stepwise and source.inputs == 4 and source.test().x.shape == (100, 12)
    shape = replace(SHAPE, cell="alphacmru", pooling="none", state=8)
    training = replace(TRAINING, iterations=300, learning_rate=5e-3)
    trained = train_backbone(Setup(shape, training, source), tmp_path / "model.pt")
    assert score_of(trained) > 0.4  # chance is 0.25; three standard deviations of 770 steps are 0.05
    right = trained.backbone(torch.from_numpy(x[300:])).argmax(dim=2).numpy() == y[300:]
    assert figures_of(trained)[0]["test_accuracy"] == pytest.approx(right[mask[300:]].mean(), abs=1e-9)
    with pytest.raises(InputError, match="--pooling of before must be none, it has a target at each step; it is last"):
        train_backbone(Setup(SHAPE, training, source), tmp_path / "other.pt")


def test_a_value_at_every_step_that_counts(tmp_path):
    """The running sum of two inputs; what does not count is far off, and its error with it."""
    rng = np.random.default_rng(2)
    x = rng.normal(0, 0.5, (400, 9, 2)).astype(np.float32)
    mask = rng.random((400, 9)) < 0.5
    mask[:, -1] = True
    y = np.where(mask[:, :, None], x.sum(axis=2, keepdims=True), 100).astype(np.float32)
    source = step_source(StepTask("sum", *parts_of(x, y, mask), ()))
    setup = Setup(replace(SHAPE, pooling="none"), replace(TRAINING, iterations=200), source)
    trained = train_backbone(setup, tmp_path / "model.pt")
    with torch.no_grad():
        error = (trained.backbone(torch.from_numpy(x[300:])).numpy() - y[300:])[mask[300:]]
    found = figures_of(trained)[0]
    assert metric_of(trained) == "test_mae" and found["test_mae"] == pytest.approx(np.abs(error).mean(), rel=1e-5)
    assert found["test_loss"] == pytest.approx((error**2).mean(), rel=1e-5)
    assert found["test_mae"] < 0.3  # of a sum whose mean absolute value is 0.56


def test_tokens_with_one_target_a_sequence(tmp_path):
    """Which of four tokens stands at the end, behind others."""
    x = np.random.default_rng(3).integers(0, 4, (300, 6))
    y, x_float = x[:, -1], x[:, :, None].astype(np.float32)
    half = slice(200), slice(200, None)
    parts = [part for one in half for part in (x_float[one], y[one])]
    task = Task("last", *parts, *(np.full(n, 6) for n in (200, 100)), tuple("abcd"), np.zeros(1), np.ones(1), tokens=4)
    source = task_source(task)
    assert source.tokens and not source.stepwise and source.batch(np.random.default_rng(0), 5).x.shape == (5, 6)
    trained = train_backbone(Setup(SHAPE, replace(TRAINING, iterations=200), source), tmp_path / "model.pt")
    assert score_of(trained) > 0.9  # chance is 0.25


def test_sources_are_the_tasks_of_their_names():
    value, task = load_source("copy-value-9-published"), load_task("copy-value-9-published")
    assert (value.name, value.inputs, value.labels) == ("copy-value-9-published", 1, ())
    assert (value.offset.tolist(), value.scale.tolist()) == ([0.0], [1.0])  # -1 to 1 as published, signed as it is
    assert len(value.validation(5000, 0).y) == 2000 and len(value.test().y) == 2000 and len(task.y_train) == 12_000
    assert len(load_source("copy-value-9").validation(5000, 0).y) == 410  # a tenth of 4096
    pixels = load_source("pixel-digits")
    assert (pixels.offset.tolist(), pixels.scale.tolist()) == ([0.0], [16.0])
    parity = load_source("parity-published")
    assert isinstance(parity, ParitySource) and parity.test().lengths.max() > 900
    assert load_source("lorenz").stepwise and load_source("listops").tokens


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (replace(SETUP, training=replace(TRAINING, batch=0)), "--batch must lie in 1 to 65536"),
        (replace(SETUP, training=replace(TRAINING, epsilon=2.0)), "--epsilon must lie in -1 to 1, not 2"),
        (replace(SETUP, training=replace(TRAINING, learning_rate=0.0)), "--lr must lie in"),
        (replace(SETUP, seeds=(1, 1)), "seeds must be different"),
        (replace(SETUP, shape=replace(SHAPE, cell="gru")), "--cell must be one of"),
    ],
)
def test_settings_that_cannot_be(tmp_path, setup, words):
    with pytest.raises(InputError, match=words):
        train_backbone(setup, tmp_path / "model.pt")
    assert not list(tmp_path.iterdir())


def test_the_seed_decides_the_network():
    shape = replace(SHAPE, inputs=3, outputs=3)
    one, same, other = (BackboneProblem(Setup(shape, TRAINING, SOURCE), seed).model.state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["encoder.weight"], other["encoder.weight"])
    assert isinstance(Backbone(shape), torch.nn.Module)


# --from


def test_it_starts_from_another_backbone_but_for_the_readout(tmp_path):
    first = train_backbone(SETUP, tmp_path / "first.pt")
    other = task_source(replace(make_task(), labels=("a", "b", "c", "d"), offset=np.full(3, 0.5)))
    run = BackboneProblem(replace(SETUP, source=other, start=first).checked(), 5)
    taken = first.backbone.state_dict()
    alone = BackboneProblem(replace(SETUP, source=other).checked(), 5).model.state_dict()
    for name, value in run.model.state_dict().items():
        torch.testing.assert_close(value, (alone if name.startswith("output.") else taken)[name], rtol=0, atol=0)
    assert run.model.offset.tolist() == [0, 0, 0]  # what its weights are made for


def test_a_start_decides_what_can_be_resumed(tmp_path):
    first = train_backbone(SETUP, tmp_path / "first.pt")
    second = train_backbone(replace(SETUP, seeds=(1,)), tmp_path / "second.pt")
    setup, path = replace(SETUP, start=first), tmp_path / "b.pt"
    train_backbone(setup, tmp_path / "whole.pt")
    whole = (tmp_path / "whole.pt").read_bytes()
    with pytest.raises(Stop):
        train_backbone(setup, path, stop_at(20))
    with pytest.raises(InputError, match="from"):
        train_backbone(replace(setup, start=second), path, resume=True)
    train_backbone(setup, path, resume=True)
    assert path.read_bytes() == whole
    assert whole != (tmp_path / "first.pt").read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"width": 12}, "--from: the backbone there has width 16, and this one 12; give --width as there"),
        ({"cell": "lru"}, "--from: the backbone there has cell cmru, and this one lru; give --cell as there"),
    ],
)
def test_a_start_of_another_shape(tmp_path, change, words):
    first = train_backbone(replace(SETUP, training=replace(TRAINING, iterations=1)), tmp_path / "first.pt")
    with pytest.raises(InputError, match=words):
        train_backbone(replace(SETUP, shape=replace(SHAPE, **change), start=first), tmp_path / "b.pt")
    assert not (tmp_path / "b.pt").exists()


@pytest.mark.parametrize("seed", ["x", "-1", "1.5"])
def test_seeds_of_a_history_that_are_no_numbers_are_refused(seed):
    history = {"settings": {"seed": 0}, "figures": {}, "curve": {}, "seeds": {seed: {}}}
    with pytest.raises(InputError, match=f"seeds must be whole numbers, not '?{seed}'?; train it again"):
        figures_of(SimpleNamespace(history=history))
