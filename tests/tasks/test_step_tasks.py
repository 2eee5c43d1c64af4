"""Tasks with a target at each step: the Lorenz system, the delayed product, reads of a flip-flop, characters."""

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.tasks.load import STEP_TASKS, load_step_task
from cosim.tasks.lorenz import (
    INTERVAL,
    MEAN,
    SPREAD,
    advance,
    generate_lorenz,
    generate_lorenz_task,
    mase,
    neighbour_overlap,
)
from cosim.tasks.memory import (
    SYMBOLS,
    generate_delayed_product,
    generate_delayed_product_task,
    generate_flip_flop_reads_task,
)
from cosim.tasks.tokens import characters_task, load_characters_task


def assert_sound_steps(task):
    """What every StepTask promises."""
    for part in (task.train, task.valid, task.test):
        n, steps, features = part.x.shape
        assert n and part.x.dtype == np.float32 and part.mask.shape == (n, steps) and part.mask.dtype == bool
        assert np.isfinite(part.x).all() and part.mask.any() and features == task.train.x.shape[2]
        if task.labels:
            assert part.y.shape == (n, steps) and part.y.dtype == np.int64
            assert part.y.min() >= 0 and part.y.max() < len(task.labels)
        else:
            assert part.y.shape == (n, steps, task.outputs) and part.y.dtype == np.float32
        assert not part.y[~part.mask].any()
        if task.tokens is not None:
            assert features == 1 and set(np.unique(part.x)) <= set(range(task.tokens))


# the delayed product


def test_the_product_of_two_lags():
    task = generate_delayed_product_task(n_train=31, n_valid=5, n_test=7)
    assert_sound_steps(task)
    x, y, mask = task.train.x, task.train.y, task.train.mask
    assert x.shape == (31, 60, 1) and set(np.unique(x)) == {-1, 1}
    for row, bits, counted in zip(x[:, :, 0], y, mask, strict=True):
        assert counted.tolist() == [t >= 17 for t in range(60)]
        assert all(bits[t] == (row[t - 9] * row[t - 17] > 0) for t in range(17, 60))
    assert task.labels == ("-1", "1") and task.outputs == 2


def test_new_sequences_from_a_generator_and_the_same_from_a_seed():
    rng = np.random.default_rng(3)
    first, second = generate_delayed_product(4, 20, rng), generate_delayed_product(4, 20, rng)
    assert not np.array_equal(first.x, second.x)
    np.testing.assert_array_equal(generate_delayed_product(4, 20, 3).x, first.x)
    with pytest.raises(InputError, match="must have at least 18 steps, not 17; give more"):
        generate_delayed_product(4, 17)


# Lorenz


def test_one_interval_against_small_steps_of_another_method():
    """Euler steps h are off by about h t / 2 times the second derivative, here below 500: 1e-6 * 0.05 / 2 * 500 =
    1.25e-5. One or two Runge-Kutta steps in the interval would be off by more than that."""
    start = np.array([1.0, 2.0, 20.0])
    x, y, z = start
    for _ in range(round(INTERVAL / 1e-6)):
        x, y, z = x + 1e-5 * (y - x), y + 1e-6 * (x * (28 - z) - y), z + 1e-6 * (x * y - 8 / 3 * z)
    np.testing.assert_allclose(advance(start), [x, y, z], atol=1.25e-5)


def test_lorenz_shows_one_coordinate_and_asks_for_its_next_value():
    lorenz = generate_lorenz(50, 40, seed=2)
    assert lorenz.states.shape == (50, 41, 3) and lorenz.steps.x.shape == (50, 40, 1)
    np.testing.assert_array_equal(lorenz.steps.y[:, :, 0], lorenz.states[:, 1:, 0])
    points = lorenz.states.astype(np.float64) * SPREAD + MEAN
    # single precision keeps 6e-8 of at most 50, which an interval spreads by less than 1000
    np.testing.assert_allclose(advance(points[:, :-1]), points[:, 1:], atol=6e-8 * 50 * 1000)
    noise = (lorenz.steps.x[:, :, 0] - lorenz.states[:, :-1, 0]).astype(np.float64)
    # 2000 draws: five standard deviations of their standard deviation and of their mean
    assert abs(noise.std() - 0.05) < 5 * 0.05 / np.sqrt(2 * 2000) and abs(noise.mean()) < 5 * 0.05 / np.sqrt(2000)


def test_lorenz_is_standardised():
    """2000 trajectories of 10 time units; the independent ones alone give a mean within 5 / sqrt(2000) = 0.11."""
    states = generate_lorenz().states.reshape(-1, 3).astype(np.float64)
    np.testing.assert_allclose(states.mean(axis=0), 0, atol=0.11)
    np.testing.assert_allclose(states.std(axis=0), 1, atol=0.11)


def test_lorenz_task_and_its_seed():
    task, other = generate_lorenz_task(50, 20), generate_lorenz_task(50, 20, seed=1)
    assert_sound_steps(task)
    assert [len(part.x) for part in (task.train, task.valid, task.test)] == [40, 5, 5] and task.outputs == 1
    np.testing.assert_array_equal(generate_lorenz_task(50, 20).train.x, task.train.x)
    assert not np.array_equal(other.train.x, task.train.x)
    with pytest.raises(InputError, match="trajectories and steps from 1 and noise from 0, not 0, 200 and 0.05"):
        generate_lorenz(0)


def test_scaled_error():
    x = np.array([[0.0, 1.0, 3.0, 2.0]])
    assert mase(x[:, :-1], x[:, 1:], x[:, :-1]) == 1
    assert mase(x[:, 1:], x[:, 1:], x[:, :-1]) == 0
    assert mase(x[:, 1:] + 1, x[:, 1:], x[:, :-1]) == pytest.approx(3 / 4)  # the steps are 1, 2 and -1
    with pytest.raises(InputError, match=r"must have one shape, not \(1, 4\), \(1, 3\), \(1, 3\)"):
        mase(x, x[:, 1:], x[:, :-1])
    with pytest.raises(InputError, match="the target never differs from the value before it"):
        mase(x, x, x)


def test_overlap_of_neighbours():
    rng = np.random.default_rng(5)
    states = rng.normal(size=(700, 3))
    turned = states @ np.linalg.qr(rng.normal(size=(3, 3)))[0] * 7 + 1
    assert neighbour_overlap(states, np.hstack([turned, np.zeros((700, 4))])) == 1
    # 700 * 20 neighbours of strangers: each shared by chance 20 / 699, five standard deviations of so many draws
    chance = 20 / 699
    assert abs(neighbour_overlap(states, rng.normal(size=(700, 5))) - chance) < 5 * np.sqrt(chance / (700 * 20))
    line = np.arange(5.0)[:, None]
    # nearest of 0..4 on a line, ties to the first: 1 0 1 2 3; with 4 moved beside 0: 4 0 1 2 0
    assert neighbour_overlap(line, np.array([[0.0], [1], [2], [3], [-0.5]]), 1) == pytest.approx(3 / 5)
    with pytest.raises(InputError, match="5 neighbours must be 1 to 4, the other points"):
        neighbour_overlap(line, line, 5)
    with pytest.raises(InputError, match=r"must be \(n, d\) and \(n, h\), not \(5, 1\) and \(4, 1\)"):
        neighbour_overlap(line, line[:4])


# the flip-flop language


def test_every_read_counts():
    task = generate_flip_flop_reads_task(tokens=40, n_train=60, n_valid=3, n_test=40)
    assert_sound_steps(task)
    assert task.train.x.shape == (60, 39, 5)
    for part in (task.train, task.test):
        for x, y, mask in zip(part.x, part.y, part.mask, strict=True):
            string = [SYMBOLS[k] for k in x.argmax(axis=1)]
            assert x.sum() == 39 and string[0] == "w" and mask.tolist() == [symbol == "r" for symbol in string]
            for place in np.flatnonzero(mask):
                written = max(k for k in range(place) if string[k] == "w")
                assert str(y[place]) == string[written + 1] and string[place + 1 : place + 2] in ([], [str(y[place])])
    shares = [(part.x[:, 2:-1:2, 2]).mean() for part in (task.train, task.test)]
    for share, expected, draws in zip(shares, (0.8, 0.98), (60 * 18, 40 * 18), strict=True):
        assert abs(share - expected) < 5 * (expected * (1 - expected) / draws) ** 0.5


# characters


def test_characters_follow_each_other():
    text = "".join(chr(97 + (k * k) % 7) + "é" * (k % 3) for k in range(400))
    task = characters_task("mine", text, window=8)
    assert_sound_steps(task)
    assert task.tokens == task.outputs == len(set(text)) and task.labels == tuple(sorted(set(text)))
    ends = len(text) * 90 // 100, len(text) * 95 // 100
    for part, start, end in ((task.train, 0, ends[0]), (task.valid, *ends), (task.test, ends[1], len(text))):
        count = (end - start - 1) // 8
        assert part.x.shape == (count, 8, 1) and end - start - 8 <= 8 * count
        spelled = "".join(task.labels[int(k)] for k in part.x.ravel())
        assert spelled == text[start : start + 8 * count]
        assert "".join(task.labels[k] for k in part.y.ravel()) == text[start + 1 : start + 1 + 8 * count]


def test_characters_of_the_library_and_of_a_file(tmp_path):
    task = load_characters_task()
    assert_sound_steps(task)
    assert task.train.x.size > 300_000 and task.train.x.shape[1] == 256 and task.name == "characters"
    np.testing.assert_array_equal(load_characters_task().train.x, task.train.x)
    path = tmp_path / "mine.txt"
    path.write_text("to be or not to be, " * 300, encoding="utf-8")
    assert load_step_task("characters", path).labels == tuple(sorted(set("to be or not to be, ")))
    path.write_text("short")
    with pytest.raises(InputError, match=r"mine\.txt: must have at least 5140 characters, of two kinds or more, for"):
        load_characters_task(path)
    path.write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match=r"mine\.txt: must be text in UTF-8, but byte 3 is not; give a text"):
        load_characters_task(path)


def test_step_tasks_by_name(tmp_path):
    assert all(load_step_task(name).name == name for name in STEP_TASKS)
    with pytest.raises(InputError, match="the task must be one of lorenz, .*, characters, not 'digits'"):
        load_step_task("digits")
    with pytest.raises(InputError, match="task lorenz brings its own data; leave --data out"):
        load_step_task("lorenz", tmp_path)
