"""Training: it learns, repeats to the bit, survives interruption, and never looks at the test set."""

import dataclasses
import errno
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.claim import own_file  # noqa: E402
from cosim.base.errors import InputError, OutOfMemoryError  # noqa: E402
from cosim.exchange.checkpoint import load_network  # noqa: E402
from cosim.network.layers import SignedLayer  # noqa: E402
from cosim.network.reference import run_reference  # noqa: E402
from cosim.results.page import format_text  # noqa: E402
from cosim.tasks.memory import generate_copy_first_task, generate_parity_task  # noqa: E402
from cosim.tasks.task import Task, full_lengths  # noqa: E402
from cosim.training.config import Architecture, TrainingConfig, check_config, state_path  # noqa: E402
from cosim.training.loop import write_state  # noqa: E402
from cosim.training.trainer import measure_figures, train  # noqa: E402
from cosim.verbs.inspect.page import network_page  # noqa: E402

CONFIG = TrainingConfig(Architecture(cells=5, layers=1), iterations=60, batch=17, seed=3)


def make_task(n: int = 211, seed: int = 0) -> Task:
    """Three classes: which of three inputs is high at the first of seven steps."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 0.3, (n, 7, 3)).astype(np.float32)
    y = rng.integers(0, 3, n)
    x[np.arange(n), 0, y] = 1.0
    half = n - 50
    parts = x[:half], y[:half], x[half:], y[half:], full_lengths(x[:half]), full_lengths(x[half:])
    return Task("which", *parts, ("a", "b", "c"), np.zeros(3), np.ones(3))


class Stop(Exception):
    pass


def stop_at(iteration: int):
    def progress(now: int, values: dict[str, float]) -> None:
        assert set(values) - {"validation"} == {"loss", "epsilon"}
        if now == iteration:
            raise Stop

    return progress


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a training leaves that nobody stopped."""
    path = tmp_path_factory.mktemp("whole") / "whole.pt"
    train(CONFIG, make_task(), path)
    return path


def test_it_learns_what_can_be_learned(tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, iterations=250)
    result = train(config, make_task(), tmp_path / "model.pt")
    assert result.history["figures"]["test_accuracy"] > 0.9  # chance is 0.33
    network = load_network(tmp_path / "model.pt")
    assert [layer.epsilon for layer in network.recurrent_layers] == [0.0]
    assert network.history["figures"] == result.history["figures"]
    assert network.labels == ("a", "b", "c")
    task = make_task()
    right = (run_reference(network, task.x_test).decisions == task.y_test).mean()
    assert right == result.history["figures"]["test_accuracy"]


def test_equal_seeds_give_equal_bytes_and_others_do_not(tmp_path: Path, whole: Path) -> None:
    same, other = tmp_path / "same.pt", tmp_path / "other.pt"
    for path, seed in ((same, CONFIG.seed), (other, CONFIG.seed + 1)):
        train(dataclasses.replace(CONFIG, seed=seed), make_task(), path)
    assert same.read_bytes() == whole.read_bytes()
    assert other.read_bytes() != whole.read_bytes()


@pytest.mark.parametrize("stopped", [20, 51, 59])
def test_a_resumed_run_ends_in_the_same_bytes(tmp_path: Path, whole: Path, stopped: int) -> None:
    broken = tmp_path / "broken.pt"
    with pytest.raises(Stop):
        train(CONFIG, make_task(), broken, stop_at(stopped))
    assert not broken.exists()
    assert state_path(broken).is_file()
    train(CONFIG, make_task(), broken, resume=True)
    assert whole.read_bytes() == broken.read_bytes()
    assert not state_path(broken).exists()


def test_a_run_with_lines_goes_on_from_its_state(tmp_path: Path) -> None:
    """A line's bias is no parameter that the optimiser moves, so it has no moments either."""
    config = dataclasses.replace(CONFIG, architecture=Architecture(cells=4, layers=1, lines=2))
    whole, broken = tmp_path / "whole.pt", tmp_path / "broken.pt"
    train(config, make_task(), whole)
    with pytest.raises(Stop):
        train(config, make_task(), broken, stop_at(51))
    train(config, make_task(), broken, resume=True)
    assert whole.read_bytes() == broken.read_bytes()


@pytest.mark.parametrize(("number", "after"), [(signal.SIGINT, 2), (signal.SIGTERM, 59), (signal.SIGINT, 60)])
def test_a_signal_waits_for_the_state(tmp_path: Path, whole: Path, number: int, after: int) -> None:
    """Before the first save, between two, and after the last iteration: the run goes on to the bytes of a whole one."""
    broken, seen = tmp_path / "broken.pt", []

    def progress(now: int, _: dict[str, float]) -> None:
        seen.append(now)
        if now == after:
            signal.raise_signal(number)

    def handler(_number: int, _frame: object) -> None:
        assert state_path(broken).is_file()  # written before the signal arrives
        raise Stop

    before = signal.signal(number, handler)
    try:
        with pytest.raises(Stop):
            train(CONFIG, make_task(), broken, progress)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    assert seen[-1] == after
    assert not broken.exists()
    train(CONFIG, make_task(), broken, resume=True)
    assert whole.read_bytes() == broken.read_bytes()


def test_a_handler_that_returns_stops_nothing(tmp_path: Path) -> None:
    heard = []

    def progress(now: int, _: dict[str, float]) -> None:
        if now == 7:
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        train(CONFIG, make_task(), tmp_path / "model.pt", progress)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]
    assert (tmp_path / "model.pt").is_file()


def test_training_outside_the_main_thread_leaves_signals_alone(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(train, dataclasses.replace(CONFIG, iterations=2), make_task(), tmp_path / "model.pt").result()
    assert (tmp_path / "model.pt").is_file()


def test_too_little_memory_is_called_that(tmp_path: Path) -> None:
    """A tensor of 800 TB, beyond any address space, is asked for while it trains."""

    def ask(now: int, values: dict[str, float]) -> None:
        torch.empty(10**14, dtype=torch.float64)

    with pytest.raises(OutOfMemoryError, match="training needs more memory than there is; take a smaller --batch"):
        train(CONFIG, make_task(), tmp_path / "model.pt", ask)


def test_no_checkpoint_comes_from_before_the_final_epsilon(tmp_path: Path) -> None:
    seen = {}

    def progress(now: int, values: dict[str, float]) -> None:
        seen[now] = values

    train(dataclasses.replace(CONFIG, iterations=100), make_task(), tmp_path / "model.pt", progress)
    assert not any("validation" in seen[now] for now in range(1, 75))
    assert all(np.isfinite(seen[now]["validation"]) for now in range(75, 101))
    assert seen[76]["epsilon"] == 0.0
    assert seen[75]["epsilon"] > 0.0


def test_the_test_set_decides_nothing(tmp_path: Path) -> None:
    task = make_task()
    other = dataclasses.replace(task, x_test=task.x_test[::-1].copy(), y_test=(task.y_test + 1) % 3)
    networks = [train(CONFIG, t, tmp_path / f"{i}.pt") for i, t in enumerate((task, other))]
    np.testing.assert_array_equal(networks[0].layers[0].weight, networks[1].layers[0].weight)
    assert networks[0].history["figures"] != networks[1].history["figures"]


def test_training_leaves_threads_and_random_numbers_alone(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    torch.manual_seed(9)
    expected = torch.rand(1)
    torch.manual_seed(9)
    train(dataclasses.replace(CONFIG, iterations=2), make_task(), tmp_path / "model.pt")
    assert torch.rand(1) == expected
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("pooling", ["vote", "last"])
def test_regression_and_other_poolings(tmp_path: Path, pooling) -> None:
    if pooling == "last":
        task = generate_copy_first_task(steps=5, n_train=300, n_test=37)
        config = dataclasses.replace(CONFIG, architecture=Architecture(cells=5, pooling="last"), iterations=300)
        config = dataclasses.replace(config, epsilon=1.0, weight_cost=0.0)
        trained = train(config, task, tmp_path / "model.pt")
        assert trained.history["figures"]["test_mae"] < 0.4  # always answering 0 gives 0.5
        assert trained.regression and load_network(tmp_path / "model.pt").regression
        assert "labels   none, answers are real numbers" in format_text(network_page(trained, "model.pt"))
    else:
        config = dataclasses.replace(CONFIG, architecture=Architecture(cells=5, pooling="vote"), iterations=200)
        assert train(config, make_task(), tmp_path / "model.npz").history["figures"]["test_accuracy"] > 0.6


def test_weight_cost_shrinks_the_circuit(tmp_path: Path) -> None:
    sums = []
    for cost in (0.0, 0.05):
        config = dataclasses.replace(CONFIG, weight_cost=cost, iterations=120)
        sums.append(np.abs(train(config, make_task(), tmp_path / "model.pt").readout.weight).sum())
    assert sums[1] < 0.7 * sums[0]


def test_lengths_are_respected(tmp_path: Path) -> None:
    """What lies beyond the valid steps changes nothing."""
    task = make_task()
    lengths = np.full(len(task.x_train), 4)
    spoiled = task.x_train.copy()
    spoiled[:, 4:] = 1.0
    networks = [
        train(CONFIG, dataclasses.replace(task, x_train=x, len_train=lengths), tmp_path / f"{i}.pt")
        for i, x in enumerate((task.x_train, spoiled))
    ]
    np.testing.assert_array_equal(networks[0].readout.weight, networks[1].readout.weight)


@pytest.mark.parametrize(
    ("unit", "epsilon"), [("signed", 1.0), ("signed", -0.5), ("signed", -1.0), ("first-quadrant", 1.0)]
)
def test_state_ranges_hold_every_state_of_the_training_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit, epsilon
) -> None:
    """Against a loop over samples; the start counts, what lies beyond a sample's length does not."""
    monkeypatch.setattr("cosim.network.reference.BATCH", 23)  # several, the last one smaller
    task = make_task()
    lengths = np.random.default_rng(2).integers(1, 6, len(task.x_train))  # of 7 steps
    task = dataclasses.replace(task, len_train=lengths)
    config = dataclasses.replace(CONFIG, architecture=Architecture(cells=5, layers=2, unit=unit), epsilon=epsilon)
    network = train(config, task, tmp_path / "model.pt")
    assert network.state_ranges.keys() == {"layer1", "layer2"}
    start = 0.0 if unit == "first-quadrant" else -1.0
    for name, ranges in network.state_ranges.items():
        states = run_reference(network, task.x_train).signals[name]
        seen = np.concatenate([[np.full(5, start)], *(h[:length] for h, length in zip(states, lengths, strict=True))])
        expected = [seen.min(axis=0), seen.max(axis=0)]
        if epsilon == -1:
            expected.append(np.array([np.unique(one)[1] if len(np.unique(one)) > 1 else one[0] for one in seen.T]))
        np.testing.assert_array_equal(ranges, expected)
        assert (ranges[0] < ranges[1]).any()


def test_range_max_keeps_the_states_together(tmp_path: Path) -> None:
    highest = []
    for range_max in (0.0, 3.0):
        architecture = Architecture(cells=5, layers=2, unit="signed")
        config = dataclasses.replace(CONFIG, architecture=architecture, epsilon=1.0, range_max=range_max)
        config = dataclasses.replace(config, iterations=200)
        ranges = train(config, make_task(), tmp_path / "model.pt").state_ranges
        highest.append(max((high - low).max() for low, high in ranges.values()))
    assert highest[0] >= 7  # of at most 14 in seven steps
    assert highest[1] <= 4


def test_only_a_negative_epsilon_learns_parity(tmp_path: Path) -> None:
    """Seed paper, table 8, and with it that a toggle counts sequences longer than any of the training."""
    task = generate_parity_task(steps=20, n_train=500, n_test=101)
    longer = generate_parity_task(steps=211, n_train=0, n_test=101, seed=1)
    accuracy = {}
    for epsilon in (-1.0, 1.0):
        architecture = Architecture(cells=4, layers=1, unit="signed", pooling="last", ramp=False)
        config = TrainingConfig(architecture, iterations=400, batch=64, epsilon=epsilon)
        network = train(config, task, tmp_path / "model.pt")
        accuracy[epsilon] = (run_reference(network, longer.x_test).decisions == longer.y_test).mean()
    assert accuracy[-1.0] == 1.0
    assert accuracy[1.0] == pytest.approx(0.5, abs=5 * 0.5 / 101**0.5)


def test_two_levels_need_no_ranges(tmp_path: Path) -> None:
    assert train(CONFIG, make_task(), tmp_path / "model.pt").state_ranges == {}


def test_no_flipped_bit_of_a_state_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with pytest.raises(Stop):
        train(CONFIG, make_task(), path, stop_at(30))
    content = state_path(path).read_bytes()
    for byte in np.random.default_rng(0).integers(0, len(content), 20):
        changed = bytearray(content)
        changed[byte] ^= 1 << byte % 8
        state_path(path).write_bytes(changed)
        with pytest.raises(InputError, match="this training state is damaged"):
            train(CONFIG, make_task(), path, resume=True)


def test_what_cannot_be_written_is_said_before_the_first_iteration(tmp_path: Path, file_size_limit) -> None:
    path, ran = tmp_path / "model.pt", []
    (tmp_path / "model.pt").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*model.pt: Is a directory"):
        train(CONFIG, make_task(), path, lambda *values: ran.append(values))
    (tmp_path / "model.pt").rmdir()
    with (
        file_size_limit(2000),
        pytest.raises(InputError, match=r"cannot write .*\.model\.cosim/state\.pt: File"),
    ):
        train(CONFIG, make_task(), path, lambda *values: ran.append(values))
    assert not ran and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fails_at", "kept"),
    [
        (3, "No space left on device; .*; nothing of the training is kept"),
        (
            30,
            "No space left on device; .*; iteration 27 of 60 is kept in .*/.model.cosim/state.pt: the same com",
        ),
        (
            60,
            "cannot write .*model.pt: No space .*; iteration 57 of 60 is kept in .*/state.pt: the same",
        ),
    ],
)
def test_a_disk_that_fills_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path, fails_at: int, kept: str
) -> None:
    """The message says what is kept, and from there it goes on to the same bytes."""
    path, replace = tmp_path / "model.pt", os.replace

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill(iteration: int, values: dict[str, float]) -> None:
        if iteration == fails_at - 1:
            monkeypatch.setattr(os, "replace", full)

    with pytest.raises(InputError, match=kept):
        train(CONFIG, make_task(), path, fill)
    assert not path.exists()
    monkeypatch.setattr(os, "replace", replace)
    train(CONFIG, make_task(), path, resume=True)
    assert path.read_bytes() == whole.read_bytes()


def test_a_second_training_into_the_same_file(tmp_path: Path) -> None:
    """model.npz has the same state beside it."""
    for name in ("model.pt", "model.npz"):

        def again(iteration: int, values: dict[str, float], name: str = name) -> None:
            with pytest.raises(InputError, match=f"{name}: another process writes it; wait for it, or choose another"):
                train(CONFIG, make_task(), tmp_path / name)
            raise Stop

        with pytest.raises(Stop):
            train(CONFIG, make_task(), tmp_path / "model.pt", again)


def test_a_run_that_died_before_its_first_state_begins(tmp_path: Path, whole: Path) -> None:
    train(CONFIG, make_task(), tmp_path / "model.pt", resume=True)
    assert (tmp_path / "model.pt").read_bytes() == whole.read_bytes()


def test_what_is_whole_is_not_trained_again(tmp_path: Path) -> None:
    """Not even where the state is still there, as after a kill before it is removed; other settings train anew."""
    path, seen = tmp_path / "model.pt", list[int]()
    first = train(CONFIG, make_task(), path)
    content, made = path.read_bytes(), path.stat().st_mtime_ns
    keep_state(path, {})
    found = train(CONFIG, make_task(), path, lambda done, _: seen.append(done), resume=True)
    assert (found.history["figures"], path.read_bytes(), path.stat().st_mtime_ns, seen) == (
        first.history["figures"],
        content,
        made,
        [],
    )
    assert [one.name for one in tmp_path.iterdir()] == ["model.pt"]
    train(dataclasses.replace(CONFIG, seed=9), make_task(), path, resume=True)
    assert path.read_bytes() != content


def test_resume_refusals(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with pytest.raises(Stop):
        train(CONFIG, make_task(), path, stop_at(30))
    other = dataclasses.replace(CONFIG, architecture=Architecture(cells=7, layers=1), batch=16)
    with pytest.raises(InputError, match=r"other settings: batch 17 not 16, cells 5 not 7;"):
        train(other, make_task(), path, resume=True)
    lined = dataclasses.replace(CONFIG, architecture=Architecture(cells=5, layers=1, lines=2))
    with pytest.raises(InputError, match=r"other settings: lines left out not 2;"):
        train(lined, make_task(), path, resume=True)
    beside = tmp_path / "lined.pt"
    with pytest.raises(Stop):
        train(lined, make_task(), beside, stop_at(30))
    with pytest.raises(InputError, match=r"other settings: lines 2 not left out;"):
        train(CONFIG, make_task(), beside, resume=True)
    with pytest.raises(InputError, match=r"the training data has changed"):
        train(CONFIG, make_task(seed=1), path, resume=True)
    state_path(path).write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"training state is damaged or of an earlier cosim; begin anew with --fresh"):
        train(CONFIG, make_task(), path, resume=True)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of a training that stopped half way."""
    path = tmp_path_factory.mktemp("training") / "model.pt"
    with pytest.raises(Stop):
        train(CONFIG, make_task(), path, stop_at(30))
    return state_path(path)


def keep_state(path: Path, state: dict) -> None:
    """Put a state where the training of `path` looks for it."""
    with own_file(path):
        write_state(state_path(path), state)


class Code:
    """Makes a file when a pickle of it is read."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple:
        return Path.touch, (self.target,)


def test_a_state_runs_no_code(tmp_path: Path, interrupted: Path) -> None:
    path = tmp_path / "model.pt"
    state = torch.load(interrupted, weights_only=True)
    keep_state(path, state | {"finished": Code(tmp_path / "ran")})
    with pytest.raises(InputError, match="only tensors and plain values are loaded, .* asks to run code; begin anew"):
        train(CONFIG, make_task(), path, resume=True)
    assert not (tmp_path / "ran").exists()
    torch.load(state_path(path), weights_only=False)  # it does run where pickles are trusted
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("best"), "this training state has other parts than config, data, iteration"),
        (lambda s: s.update(iteration=-1), "iteration must be 0 to 60, not -1"),
        (lambda s: s.update(iteration="3"), "iteration must be 0 to 60, not '3'"),
        (lambda s: s.update(iteration=10**9), "iteration must be 0 to 60, not 1000000000"),
        (lambda s: s.update(rank=None), "rank must be of type list, not 'NoneType'"),
        (lambda s: s.update(model={}), "model must be of type OrderedDict, not 'dict'"),
        (lambda s: s["model"].popitem(), "model must have the keys "),
        (
            lambda s: s["model"].update({key: torch.ones(2) for key in s["model"]}),
            r"model\..* must have shape ",
        ),
        (
            lambda s: s["model"].update(dict.fromkeys(s["model"], 3)),
            r"model\..* must be of type Tensor, not",
        ),
        (lambda s: s["optimiser"]["state"].popitem(), "optimiser.state must have the keys "),
        (
            lambda s: s["optimiser"]["state"][0].update(step=torch.ones(10**6).expand(10, -1)),
            "state.0.step must have sh",
        ),
        (lambda s: s["optimiser"]["param_groups"].append({}), "optimiser.param_groups must have length 1, not 2"),
        (
            lambda s: s["own"].update(rng=torch.zeros(9, dtype=torch.uint8)),
            r"own.rng must have shape \(\d+,\) of torch.uint8, not",
        ),
        (
            lambda s: s["own"].update(rng=torch.zeros_like(s["own"]["rng"])),
            "must be the state of such a training, but is cut off",
        ),
        (lambda s: s.update(config=3), "belongs to other settings: iterations left out not 60"),
        (lambda s: s["config"].update(architecture=None), "belongs to other settings: .*cells left out not 5"),
        (lambda s: s["config"].update(batch=torch.ones(2)), "config: batch: must be text, a number, .* of type Tensor"),
    ],
)
def test_a_state_behind_its_settings_is_refused(tmp_path: Path, interrupted: Path, change, message: str) -> None:
    state = torch.load(interrupted, weights_only=True)
    change(state)
    path = tmp_path / "model.pt"
    keep_state(path, state)
    with pytest.raises(InputError, match=rf"state\.pt: .*{message}"):
        train(CONFIG, make_task(), path, resume=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"iterations": 0}, "--iterations must lie in 1 to 10000000, not 0"),
        ({"batch": -3}, "--batch must lie in 1 to 65536, not -3"),
        ({"learning_rate": 0.0}, r"--lr must lie in \(0, 1\], not 0"),
        ({"epsilon": 1.5}, r"--epsilon must lie in -1 to 1, not 1\.5; leave it out"),
        ({"epsilon": float("nan")}, "--epsilon must lie in .* not nan"),
        ({"noise": -0.1}, r"--noise must lie in \[0, 1\), not -0\.1"),
        ({"margin": 1.0}, r"--margin must lie in \[1e-06, 1\), or 0 for no margin, not 1"),
        ({"range_max": 1.0}, "--range-max must lie in 2 to 1000, or 0 for no limit, not 1"),
        ({"weight_cost": -1.0}, r"--weight-cost must lie in \[0, 1\), not -1"),
        ({"architecture": Architecture(cells=0)}, "--cells must lie in 1 to 16384, not 0"),
        ({"architecture": Architecture(layers=0)}, "--layers must lie in 1 to 32, not 0"),
        ({"architecture": Architecture(hidden=-1)}, "--hidden must lie in 0 to 16384, not -1"),
        ({"architecture": Architecture(grid=2.0)}, r"--grid must lie in 1e-06 to 1, or 0 .* not 2"),
        ({"architecture": Architecture(grid=0.3)}, r"--grid must divide 4, .* not 0\.3"),
        ({"architecture": Architecture(width_min=0.0)}, r"--width-min must lie in \[0\.012, 4\), not 0;"),
        ({"architecture": Architecture(beta="input")}, "--beta input needs --unit signed"),
        ({"architecture": Architecture(cell="alphacmru")}, "--cell alphacmru needs --unit signed"),
        ({"architecture": Architecture(cell="bmru")}, "--cell bmru is the unit with epsilon 0 throughout"),
    ],
)
def test_unusable_settings_are_named(change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_config(dataclasses.replace(CONFIG, **change))


def next_state(layer, unit: int, u: float, before: float) -> float:
    """Eq. 7 for one unit of alpha 1; a first-quadrant unit in its form from -1 to 1."""
    lo, hi = thresholds(layer, unit)
    return 1 + layer.epsilon * before if u >= hi else -1 + layer.epsilon * before if u <= lo else before


def thresholds(layer, unit: int) -> tuple[float, float]:
    if isinstance(layer, SignedLayer):
        return -layer.bias_beta[unit], layer.bias_beta[unit]
    return layer.beta_lo[unit], layer.beta_hi[unit]


@pytest.mark.parametrize("epsilon", [1.0, 0.5, 0.0, -1.0])
@pytest.mark.parametrize("unit", ["first-quadrant", "signed"])
def test_near_fractions_count_candidates(tmp_path: Path, unit, epsilon: float) -> None:
    """Against a loop over every candidate: a threshold decides if eq. 7 gives a state half of alpha away beyond it."""
    task = make_task()
    architecture = Architecture(cells=5, layers=1, unit=unit)
    config = dataclasses.replace(CONFIG, architecture=architecture, iterations=20, epsilon=epsilon)
    network = train(config, task, tmp_path / "model.pt")
    lengths = np.random.default_rng(1).integers(1, 8, len(task.x_test))
    figures = measure_figures(network, dataclasses.replace(task, len_test=lengths))
    trace = run_reference(network, task.x_test)
    (layer,) = network.recurrent_layers
    near, deciding, one_sided, count = 0, 0, 0, 0
    for n, length in enumerate(lengths):
        for i in range(5):
            before = -1.0
            for t in range(length):
                u = trace.candidates["layer1"][n, t, i]
                distances = [abs(u - threshold) for threshold in thresholds(layer, i)]
                sides = [
                    [next_state(layer, i, threshold + side, before) for side in (-1e-9, 1e-9)]
                    for threshold in thresholds(layer, i)
                ]
                decide = [abs(above - below) > 0.5 for below, above in sides]
                near += min(distances) < 0.05
                deciding += any(d < 0.05 for d, decides in zip(distances, decide, strict=True) if decides)
                one_sided += distances[0 if before > 0 else 1] < 0.05
                count += 1
                before = next_state(layer, i, u, before)
    assert figures["near_threshold"]["0.05"] == pytest.approx(near / count)
    assert figures["near_deciding_threshold"]["0.05"] == pytest.approx(deciding / count)
    assert near >= deciding > 0
    assert (near == deciding) == (abs(epsilon) == 1)
    assert (deciding == one_sided) == (epsilon == 0)
