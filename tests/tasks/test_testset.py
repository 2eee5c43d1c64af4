"""Test data from files: what is wrong is named with file, key and repair."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.tasks.testset import TestSet, load_test_set

SAMPLES, STEPS, FEATURES = 11, 5, 3


@pytest.fixture
def network(make_network):
    return make_network(3)  # 3 features, 7 outputs


@pytest.fixture
def arrays():
    rng = np.random.default_rng(2)
    return {"x_test": rng.uniform(size=(SAMPLES, STEPS, FEATURES)), "y_test": rng.integers(0, 7, SAMPLES)}


def save(path, arrays):
    np.savez(path, **arrays)
    return path


def test_x_and_y_are_enough(tmp_path, network, arrays):
    found = load_test_set(network, save(tmp_path / "data.npz", arrays))
    np.testing.assert_array_equal(found.x, arrays["x_test"])
    np.testing.assert_array_equal(found.y, arrays["y_test"])
    assert found.lengths.tolist() == [STEPS] * SAMPLES
    assert found.indices.tolist() == list(range(SAMPLES))


def test_lengths_are_read(tmp_path, network, arrays):
    lengths = np.arange(SAMPLES) % STEPS + 1
    found = load_test_set(network, save(tmp_path / "data.npz", {**arrays, "len_test": lengths}))
    np.testing.assert_array_equal(found.lengths, lengths)


def test_padding_may_be_anything(tmp_path, network, arrays):
    lengths = np.arange(SAMPLES) % STEPS + 1
    padded = arrays["x_test"].copy()
    padded[np.arange(STEPS)[None, :] >= lengths[:, None]] = np.nan
    found = load_test_set(network, save(tmp_path / "data.npz", {**arrays, "x_test": padded, "len_test": lengths}))
    for k, length in enumerate(lengths):
        np.testing.assert_array_equal(found.x[k, :length], arrays["x_test"][k, :length])
    assert (found.x[np.arange(STEPS)[None, :] >= lengths[:, None]] == 0).all()


def test_take_is_seeded_and_without_replacement(tmp_path, network, arrays):
    found = load_test_set(network, save(tmp_path / "data.npz", arrays))
    few = found.take(4, seed=1)
    assert len(set(few.indices.tolist())) == 4
    np.testing.assert_array_equal(few.x, found.x[few.indices])
    np.testing.assert_array_equal(few.y, found.y[few.indices])
    assert few.indices.tolist() == found.take(4, seed=1).indices.tolist()
    assert few.indices.tolist() != found.take(4, seed=2).indices.tolist()
    assert found.take(None, 0) is found
    assert found.take(SAMPLES, 0) is found


def test_no_task_and_no_file(network):
    with pytest.raises(
        InputError, match=r"the network names no task and brings no data; give its test data with --data FILE\.npz"
    ):
        load_test_set(replace(network, task=""), None)


def test_targets_of_a_task_without_classes_are_real_numbers(network):
    """A network with labels decides; one of other outputs cannot answer the task's one number."""
    with pytest.raises(InputError, match="copy-first-5: the network has classes, so targets must be classes"):
        load_test_set(replace(network, task="copy-first-5", labels=("a",) * network.readout.width), None)
    with pytest.raises(InputError, match=r"targets must be \d numbers a sample, .* not 1$"):
        load_test_set(replace(network, task="copy-first-5", labels=()), None)


@pytest.mark.parametrize("y", [np.zeros(4, dtype=int), np.eye(7, dtype=int)[[0, 1, 2, 0]], np.zeros(4)])
def test_a_network_of_real_numbers_takes_no_classes(tmp_path, network, y):
    regression, path = replace(network, labels=(), regression=True), tmp_path / "data.npz"
    x = np.full((4, 6, network.encoding.features), 0.5)
    np.savez(path, x_test=x, y_test=y)
    with pytest.raises(
        InputError, match=r"data\.npz: the network was trained for real numbers, so targets must be \d+ of"
    ):
        load_test_set(regression, path)
    with pytest.raises(InputError, match="digits: the network was trained for real numbers, so .* not classes; take"):
        load_test_set(replace(regression, task="digits"), None)
    ones = np.eye(network.readout.width)[:4]  # which may be real numbers, as this network says that its answers are
    np.savez(path, x_test=x[: len(ones)], y_test=ones)
    assert load_test_set(regression, path).tolerance == pytest.approx(0.1, rel=1e-12)


def test_absent_file(tmp_path, network):
    with pytest.raises(InputError, match=r"absent\.npz: no such file; give an \.npz with x_test and y_test"):
        load_test_set(network, tmp_path / "absent.npz")


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 cut off"])
def test_unreadable_file(tmp_path, network, content):
    path = tmp_path / "data.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"data\.npz: must be an \.npz file, but .*write it with numpy\.savez"):
        load_test_set(network, path)


def test_truncated_file(tmp_path, network, arrays):
    path = save(tmp_path / "data.npz", arrays)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"data\.npz: must be an \.npz file"):
        load_test_set(network, path)


def test_pickled_arrays_are_refused(tmp_path, network, arrays):
    """Labels of objects among them, which pandas makes of text, and samples of unequal length."""
    path = save(tmp_path / "data.npz", {**arrays, "y_test": np.array([object()] * SAMPLES)})
    with pytest.raises(
        InputError,
        match=r"data\.npz: 'y_test' must hold plain numbers or text, not dtype\('O'\); save it converted: names with "
        r"y\.astype\(str\), numbers with x\.astype\(float\), unequal lengths padded to one$",
    ):
        load_test_set(network, path)


@pytest.mark.parametrize("drop", [("x_test",), ("y_test",), ("x_test", "y_test")])
def test_missing_keys(tmp_path, network, arrays, drop):
    path = save(tmp_path / "data.npz", {"other": np.ones(2), **{k: v for k, v in arrays.items() if k not in drop}})
    text = rf"data\.npz: {' and '.join(drop)} missing; it must hold x_test and y_test"
    with pytest.raises(InputError, match=text):
        load_test_set(network, path)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"x_test": np.ones((SAMPLES, STEPS))},
            r"x_test must be \(samples, time, features\) .* not \(11, 5\), \(11,\)",
        ),
        ({"y_test": np.zeros(SAMPLES - 1, int)}, r"x_test must be .* y_test \(samples,\), not \(11, 5, 3\), \(10,\)"),
        ({"y_test": np.full(SAMPLES, 0.5)}, r"y_test must hold class indices .*, not float64 .* y\.astype\(int\)"),
        ({"y_test": np.full(SAMPLES, 7)}, r"classes must lie in 0\.\.6 for this network, not 7\.\.7"),
        ({"y_test": np.full(SAMPLES, -1)}, r"classes must lie in 0\.\.6 for this network, not -1\.\.-1"),
        ({"len_test": np.zeros(SAMPLES, int)}, r"lengths must lie in 1\.\.5, not 0\.\.0"),
        ({"len_test": np.full(SAMPLES, 6)}, r"lengths must lie in 1\.\.5, not 6\.\.6"),
        ({"len_test": np.full(SAMPLES - 1, 5)}, r"len_test must hold one length per sample \(11,\), not \(10,\)"),
        (
            {"x_test": np.ones((0, STEPS, FEATURES)), "y_test": np.zeros(0, int)},
            "the test set is empty, .* give at least one sample of one step",
        ),
        ({"x_test": np.ones((SAMPLES, STEPS, 4))}, r"x must have shape \(samples, time, 3\) .* not \(11, 5, 4\)"),
        ({"x_test": np.full((SAMPLES, STEPS, 3), np.nan)}, "x holds 165 values that are not finite; remove them"),
        (
            {"y_test": np.full(SAMPLES, "class 9")},
            "y_test holds the label 'class 9', but the classes are class 0, ",
        ),
        ({"y_test": np.ones((SAMPLES, 7))}, r"y_test must hold class indices \(samples,\), one-hot rows"),
        (
            {"x_test": np.ones((SAMPLES, 0, FEATURES))},
            r"the test set is empty, x_test \(11, 0, 3\); give at least one",
        ),
        ({"x_test": np.full((SAMPLES, STEPS, 3), "a")}, "x_test must hold real numbers, not <U1"),
    ],
)
def test_wrong_content(tmp_path, network, arrays, change, text):
    path = save(tmp_path / "data.npz", {**arrays, **change})
    with pytest.raises(InputError, match=rf"data\.npz: {text}"):
        load_test_set(network, path)


@pytest.mark.parametrize("form", ["one-hot", "names"])
def test_labels_in_other_forms(tmp_path, network, arrays, form):
    y = np.eye(7)[arrays["y_test"]] if form == "one-hot" else np.array(network.labels)[arrays["y_test"]]
    found = load_test_set(network, save(tmp_path / "data.npz", {**arrays, "y_test": y}))
    np.testing.assert_array_equal(found.y, arrays["y_test"])


def test_a_folder_is_no_test_set(tmp_path, network):
    for task, more in (("digits", ", or leave --data out, as the task brings its own"), ("mine.npz", "")):
        text = f"the test data of a network for '{task}' must be an .npz with x_test and y_test{more}$"
        with pytest.raises(InputError, match=text):
            load_test_set(replace(network, task=task), tmp_path)


def test_class_is_not_collected():
    assert TestSet.__test__ is False
