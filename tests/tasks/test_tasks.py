"""Tasks: splits that are fixed and disjoint, and complaints that name file, value and repair."""

import gzip
import struct
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import InputError, MissingToolError
from cosim.base.resources import trained_network_path
from cosim.exchange.checkpoint import load_network
from cosim.network.reference import encode_inputs, run_reference
from cosim.tasks.audio import list_folder, read_wav
from cosim.tasks.from_npz import load_npz_task
from cosim.tasks.images import load_digits_task, load_mnist_task
from cosim.tasks.load import WITHOUT_DATA, is_task, load_task
from cosim.tasks.memory import generate_copy_first_task, generate_copy_item_task, generate_parity_task
from cosim.tasks.spoken import (
    NOISE,
    OFFSET,
    check_words,
    in_test_split,
    load_fsdd_task,
    load_speech_commands_task,
    shift_frames,
    speaker_of,
    varied_copies,
)
from cosim.tasks.task import Task, grouped_holdout, percentile_range, stratified_holdout
from cosim.tasks.testset import load_test_set


def write_wav(path: Path, rate: int = 16000, seconds: float = 1.0, pitch: float = 440.0, channels: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = 8000 * np.sin(2 * np.pi * pitch * np.arange(round(rate * seconds)) / rate)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())


def assert_sound(task: Task) -> None:
    for x, y, lengths in ((task.x_train, task.y_train, task.len_train), (task.x_test, task.y_test, task.len_test)):
        assert x.dtype == np.float32
        assert x.ndim == 3
        assert len(x) == len(y) == len(lengths)
        assert lengths.max() <= x.shape[1]
        encoded = encode_inputs(task.encoding(ramp=True, levels=16), x).units
        assert encoded.min() >= 0
        assert encoded.max() <= 1


def test_digits_split_is_stratified_and_fixed() -> None:
    task = load_digits_task()
    assert_sound(task)
    assert task.x_train.shape == (1437, 8, 8)
    assert task.x_test.shape == (360, 8, 8)
    assert np.abs(np.bincount(task.y_test) - 36).max() <= 1
    np.testing.assert_array_equal(load_digits_task().x_test, task.x_test)
    seen = {image.tobytes() for image in task.x_train}
    assert sum(image.tobytes() in seen for image in task.x_test) == 0


def test_digits_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingToolError, match=r"the digits task needs sklearn\S*; pip install scikit-learn"):
        load_digits_task()


def test_copy_first_asks_for_the_first_value() -> None:
    task = generate_copy_first_task(steps=7, n_train=11, n_test=5)
    assert_sound(task)
    assert task.outputs == 1
    np.testing.assert_array_equal(task.y_test, task.x_test[:, 0, :1])
    np.testing.assert_array_equal(task.x_test[:, :, 1], np.eye(1, 7).repeat(5, axis=0))
    assert np.abs(task.x_train[:, 1:, 0]).mean() == pytest.approx(0.5, abs=5 / (12 * 66) ** 0.5)  # noise, not zero
    assert (task.name, generate_copy_first_task(n_train=3, n_test=2).name) == ("copy-first-7", "copy-first")


def test_copy_first_without_noise_is_silent_after_the_first_value() -> None:
    task = generate_copy_first_task(steps=7, n_train=11, n_test=5, noise=False)
    assert_sound(task)
    np.testing.assert_array_equal(task.y_test, task.x_test[:, 0, :1])
    assert np.abs(task.y_test).min() > 0
    assert not task.x_train[:, 1:].any()


def test_copy_item_marks_the_class_once() -> None:
    task = generate_copy_item_task(steps=4, n_train=300, n_test=7)
    assert_sound(task)
    np.testing.assert_array_equal(task.x_train[:, 0].argmax(1), task.y_train)
    assert not task.x_train[:, 1:].any()
    assert task.x_train.sum() == 300
    assert set(task.y_train) == set(range(15))


@pytest.mark.parametrize(
    "name",
    [
        *(*WITHOUT_DATA, "copy-first", "copy-first-300", "copy-first-quiet", "copy-item", "listops-99"),
        *("copy-value", "copy-value-quiet-50-published"),
    ],
)
def test_a_task_without_data_is_called_what_it_is_loaded_by(name) -> None:
    assert load_task(name).name == name


def test_parity_counts_the_valid_ones() -> None:
    task = generate_parity_task(steps=7, n_train=101, n_test=53)
    assert_sound(task)
    assert task.labels == ("even", "odd")
    assert set(task.len_train) == set(range(1, 8))
    assert set(task.len_test) == {7}
    for x, y, length in zip(task.x_train, task.y_train, task.len_train, strict=True):
        assert set(x.ravel()) <= {0.0, 1.0}
        assert x[:length].sum() % 2 == y
        assert not x[length:].any()
    np.testing.assert_array_equal(task.x_test.sum(axis=(1, 2)) % 2, task.y_test)
    assert 0 < task.y_test.sum() < 53
    np.testing.assert_array_equal(generate_parity_task(steps=7, n_train=101, n_test=53).x_test, task.x_test)


def test_the_shipped_toggle_counts_longer_sequences_than_it_was_trained_on() -> None:
    pytest.importorskip("torch")
    network = load_network(trained_network_path("parity_d2.pt"))
    test_set = load_test_set(network, trained_network_path("parity_200.npz"))
    task = generate_parity_task(steps=200, n_test=20, seed=1)
    np.testing.assert_array_equal(test_set.x, task.x_test)
    np.testing.assert_array_equal(run_reference(network, test_set.x).decisions, task.y_test)
    # S = +1 at every update of one unit, -1 at every update of the other: -alpha and 2 alpha, -alpha and 0.
    assert network.state_ranges["layer1"].tolist() == [[-1, -1], [2, 0], [2, 0]]
    assert set(np.unique(run_reference(network, test_set.x).signals["layer1"][..., 0])) == {-1, 2}


def test_stratified_holdout() -> None:
    y = np.repeat([0, 1, 2], [101, 53, 7])
    mask = stratified_holdout(y, 23, seed=5)
    assert mask.sum() == 23
    for label, count in enumerate([101, 53, 7]):
        assert abs(mask[y == label].sum() - 23 * count / 161) <= 1
    assert not np.array_equal(mask, stratified_holdout(y, 23, seed=6))
    assert stratified_holdout(np.zeros((13, 2)), 3, seed=0).sum() == 3
    with pytest.raises(InputError, match="must have more than 4 samples to hold 3 out, not 4"):
        stratified_holdout(np.zeros(4, dtype=int), 3, seed=0)


def test_grouped_holdout_splits_no_group() -> None:
    groups = np.random.default_rng(3).integers(0, 17, 211)
    mask = grouped_holdout(groups, 23, seed=1)
    assert 23 <= mask.sum() <= 23 + np.bincount(groups).max()
    assert not set(groups[mask]) & set(groups[~mask])


def test_percentile_range_ignores_outliers_and_constants() -> None:
    x = np.zeros((1, 1001, 2), dtype=np.float32)
    x[0, :, 0] = np.arange(1001)
    x[0, 0, 0] = -1e6
    offset, scale = percentile_range(x)
    assert offset.tolist() == [10, 0]
    assert scale.tolist() == [980, 1]


# Spoken words


def speech_folder(folder: Path, speakers: int = 12) -> Path:
    for word, pitch in (("yes", 300.0), ("no", 900.0)):
        for k in range(speakers):
            write_wav(folder / word / f"speaker{k}_nohash_0.wav", pitch=pitch + k)
    return folder


def test_speech_commands_split_by_speaker(tmp_path: Path) -> None:
    pytest.importorskip("librosa")
    task = load_speech_commands_task(speech_folder(tmp_path), "yes", ("no",))
    assert_sound(task)
    held = [k for k in range(12) if in_test_split(f"speaker{k}")]
    assert 0 < len(held) < 12
    assert task.x_test.shape == (2 * len(held), 32, 13)
    assert task.y_test.tolist() == [1] * len(held) + [0] * len(held)
    assert len(task.x_train) == 7 * 2 * (12 - len(held))  # seven time shifts
    assert task.groups_train is not None
    assert len(np.unique(task.groups_train)) == 12 - len(held)
    assert task.labels == ("other", "yes")


def test_hash_split_has_its_share_and_never_moves() -> None:
    share = np.mean([in_test_split(f"s{k}") for k in range(4001)])
    assert share == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / 4001) ** 0.5)
    assert [in_test_split(name) for name in ("022cd682", "0bac8a71", "1024")] == [True, False, False]
    assert speaker_of(Path("yes/022cd682_nohash_3.wav")) == "022cd682"
    assert speaker_of(Path("_silence_/1024.wav")) == "1024"


def test_shift_frames_repeats_the_edge() -> None:
    x = np.arange(5.0).reshape(1, 5, 1)
    assert shift_frames(x, 2).ravel().tolist() == [0, 0, 0, 1, 2]
    assert shift_frames(x, -1).ravel().tolist() == [1, 2, 3, 4, 4]


def test_varied_copies_keep_the_original_and_vary_the_rest_by_the_stated_share() -> None:
    x = np.zeros((401, 5, 2), dtype=np.float32)
    varied = varied_copies(x, np.array([1.0, 3.0])).reshape(7, 401, 5, 2)
    assert (varied[3] == 0).all()
    others = np.delete(varied, 3, axis=0)
    offsets = others.mean(axis=2).std(axis=(0, 1))  # of 2406 recordings; the mean of five frames keeps NOISE^2 / 5
    expected = (OFFSET**2 + NOISE**2 / 5) ** 0.5
    assert offsets[0] == pytest.approx(expected, rel=5 / (2 * 2406) ** 0.5)
    assert offsets[1] == pytest.approx(3 * expected, rel=5 / (2 * 2406) ** 0.5)
    np.testing.assert_array_equal(varied_copies(x, np.array([1.0, 3.0])), varied.reshape(-1, 5, 2))


def test_speech_commands_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"nowhere: no such folder; give the folder of <word>/\*\.wav with --data"):
        check_words(tmp_path / "nowhere", ("yes",))
    folder = speech_folder(tmp_path / "words", speakers=1)
    with pytest.raises(InputError, match="no recordings of 'up'; there are: no, yes"):
        load_speech_commands_task(folder, "yes", ("no", "up"))
    (folder / "up").mkdir()
    with pytest.raises(InputError, match=r"up: must hold \*\.wav files, but holds none"):
        load_speech_commands_task(folder, "yes", ("no", "up"))
    pytest.importorskip("librosa")
    with pytest.raises(InputError, match="speakers must say 'yes' and other words; add recordings"):
        load_speech_commands_task(folder, "yes", ("no",))
    monkeypatch.setitem(sys.modules, "librosa", None)
    with pytest.raises(MissingToolError, match=r"a spoken task needs librosa; python -m pip install .*\[audio\]'"):
        load_speech_commands_task(folder, "yes", ("no",))


def test_recordings_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty.wav").touch()
    with pytest.raises(
        InputError, match=r"empty\.wav: must be a wav file, but is cut off or something else \(EOFError\); remove it"
    ):
        read_wav(tmp_path / "empty.wav", 16000, 1.0)
    (tmp_path / "text.wav").write_text("this is no sound")
    with pytest.raises(InputError, match=r"text\.wav: must be a wav file, but is cut off or something else"):
        read_wav(tmp_path / "text.wav", 16000, 1.0)
    write_wav(tmp_path / "slow.wav", rate=8000, channels=2)
    with pytest.raises(InputError, match="must be 16000 Hz, 16 bit, channels 1, not 8000 Hz, 16 bit, channels 2"):
        read_wav(tmp_path / "slow.wav", 16000, 1.0)
    write_wav(tmp_path / "silent.wav", seconds=0.0)
    with pytest.raises(InputError, match=r"silent\.wav: the recording holds no samples; remove it"):
        read_wav(tmp_path / "silent.wav", 16000, 1.0)
    with pytest.raises(InputError, match="no such folder; give the data folder with --data"):
        list_folder(tmp_path / "nowhere", "*.wav")


def test_fsdd_keeps_lengths(tmp_path: Path) -> None:
    pytest.importorskip("librosa")
    for index in (3, 4, 5, 6):
        write_wav(tmp_path / f"7_ann_{index}.wav", rate=8000, seconds=0.1 * index)
    task = load_fsdd_task(tmp_path)
    assert_sound(task)
    assert task.len_test.tolist() == [1 + 2400 // 256, 1 + 3200 // 256]
    assert task.len_train.tolist() == [1 + 4000 // 256, 1 + 4800 // 256]
    assert (task.x_test[0, task.len_test[0] :] == 0).all()
    assert task.y_train.tolist() == [7, 7]


def test_fsdd_refusals(tmp_path: Path) -> None:
    pytest.importorskip("librosa")
    write_wav(tmp_path / "7_ann_0.wav", rate=8000)
    with pytest.raises(InputError, match=r"must hold recordings of index below 5 \(test\) and above"):
        load_fsdd_task(tmp_path)
    write_wav(tmp_path / "seven.wav", rate=8000)
    with pytest.raises(InputError, match=r"seven\.wav: must be named \{digit\}_\{speaker\}_\{index\}\.wav"):
        load_fsdd_task(tmp_path)


# MNIST


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    rng = np.random.default_rng(7)
    for prefix, count in (("train", 5), ("t10k", 3)):
        write_idx(tmp_path / f"{prefix}-images-idx3-ubyte.gz", rng.integers(0, 256, (count, 28, 28)))
        write_idx(tmp_path / f"{prefix}-labels-idx1-ubyte.gz", rng.integers(0, 10, count))
    return tmp_path


def test_mnist_by_rows_and_by_pixels(mnist: Path) -> None:
    rows, pixels = load_mnist_task(mnist), load_mnist_task(mnist, by_pixel=True)
    assert_sound(rows)
    assert_sound(pixels)
    assert rows.x_train.shape == (5, 28, 28)
    assert pixels.x_test.shape == (3, 784, 1)
    assert rows.x_test[1, 2, 3] == pixels.x_test[1, 2 * 28 + 3, 0]
    assert (rows.name, pixels.name) == ("mnist", "mnist-pixels")


def test_mnist_refusals(mnist: Path) -> None:
    images = mnist / "train-images-idx3-ubyte.gz"
    whole = images.read_bytes()
    write_idx(images, np.zeros((4, 28, 28)))
    with pytest.raises(InputError, match="train has 4 images but 5 labels; download it again"):
        load_mnist_task(mnist)
    images.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="must be an idx file of unsigned bytes with 3 axes, but is cut off"):
        load_mnist_task(mnist)
    images.write_bytes(gzip.compress(gzip.decompress(whole)[:-9]))
    with pytest.raises(InputError, match=r"must hold \(5, 28, 28\) bytes, but holds 3911"):
        load_mnist_task(mnist)
    images.write_bytes(gzip.compress(bytes([0, 0, 8, 3]) + b"\xff" * 12 + bytes(99)))
    with pytest.raises(InputError, match="must take at most 8.389 MB of memory, not 6.338e"):
        load_mnist_task(mnist)
    images.write_bytes(gzip.compress(gzip.decompress(whole) + bytes(9)))
    with pytest.raises(InputError, match=r"must hold \(5, 28, 28\) bytes, but holds more"):
        load_mnist_task(mnist)
    write_idx(images, np.zeros(5))
    with pytest.raises(InputError, match="must be an idx file of unsigned bytes with 3 axes"):
        load_mnist_task(mnist)
    images.write_bytes(whole)
    write_idx(mnist / "train-labels-idx1-ubyte.gz", np.array([0, 1, 2, 3, 10]))
    with pytest.raises(InputError, match=r"train must hold images \(5, 28, 28\) of the digits 0 to 9"):
        load_mnist_task(mnist)
    images.unlink()
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz is missing; give the folder"):
        load_mnist_task(mnist)


# Data of one's own


def npz_arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    return {
        "x_train": rng.normal(size=(13, 5, 3)),
        "y_train": np.arange(13) % 2,
        "x_test": rng.normal(size=(7, 4, 3)),
        "y_test": np.arange(7) % 2,
        "len_train": np.full(13, 2),
    }


def test_npz_task(tmp_path: Path) -> None:
    arrays = npz_arrays()
    arrays["x_train"][:, 2:] = 1e6  # beyond the valid steps: must not stretch the encoding
    np.savez(tmp_path / "mine.npz", **arrays)
    task = load_npz_task(tmp_path / "mine.npz")
    assert_sound(task)
    assert task.name == "mine.npz"  # never the name of a task that brings its own data
    assert task.labels == ("0", "1")
    assert task.len_test.tolist() == [4] * 7
    assert task.scale.max() < 10


def test_what_pads_a_sequence_does_not_count(tmp_path: Path) -> None:
    """NaN beyond the lengths, as a file may have it, gives the task of a file with other padding."""
    lengths = {"len_train": np.arange(13) % 5 + 1, "len_test": np.arange(7) % 4 + 1}
    plain = npz_arrays() | lengths
    padded = dict(plain)
    for part in ("train", "test"):
        x = plain[f"x_{part}"].astype(float)
        x[np.arange(x.shape[1])[None, :] >= lengths[f"len_{part}"][:, None]] = np.nan
        padded[f"x_{part}"] = x
    np.savez(tmp_path / "plain.npz", **plain)
    np.savez(tmp_path / "padded.npz", **padded)
    one, other = (load_npz_task(tmp_path / f"{name}.npz") for name in ("plain", "padded"))
    for name in ("x_train", "x_test", "offset", "scale"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("form", ["one-hot floats", "one-hot integers", "names"])
def test_npz_labels_in_other_forms(tmp_path: Path, form: str) -> None:
    """One-hot floats must not become a regression without a word."""
    arrays = npz_arrays()
    table = np.array(["off", "on"]) if form == "names" else np.eye(2, dtype=float if "floats" in form else int)
    np.savez(tmp_path / "mine.npz", **arrays | {key: table[arrays[key]] for key in ("y_train", "y_test")})
    task = load_npz_task(tmp_path / "mine.npz")
    assert_sound(task)
    assert task.labels == (("off", "on") if form == "names" else ("0", "1"))
    for key in ("y_train", "y_test"):
        np.testing.assert_array_equal(getattr(task, key), arrays[key])


def test_npz_regression(tmp_path: Path) -> None:
    arrays = npz_arrays() | {"y_train": np.ones((13, 2)), "y_test": np.ones((7, 2))}
    np.savez(tmp_path / "mine.npz", **arrays)
    task = load_npz_task(tmp_path / "mine.npz")
    assert task.labels == ()
    assert task.outputs == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_test": None}, r"mine\.npz: array 'y_test' is missing; found len_train, x_test, x_train, y_train"),
        ({"x_train": np.ones((13, 5))}, r"x_train must be numbers of shape \(samples, time, features\), not float64"),
        (
            {"x_test": np.full((7, 4, 3), np.nan)},
            "x_test holds 84 values that are not finite in single precision within the lengths of its samples; repair",
        ),
        ({"x_test": np.ones((7, 4, 2))}, "x_test must have 3 features like x_train, not 2"),
        ({"x_train": np.ones((1, 5, 3))}, "x_train must hold at least 2 samples, not 1"),
        (
            {"y_train": np.arange(13) / 13},
            r"y_train must be integers or names of shape \(samples,\) or one-",
        ),
        ({"y_train": np.ones((13, 2), int)}, r"y_train must be integers or names .* not int64 \(13, 2\)"),
        ({"y_train": np.array(["a", "b\n"] * 6 + ["a"])}, r"must name its classes in printable text, not 'b\\n', a"),
        (
            {"y_train": np.array(["a", "b"] * 6 + ["a"]), "y_test": np.array(["c"] * 7)},
            "the label 'c', but .* are a, b",
        ),
        ({"y_train": np.eye(2)[np.arange(13) % 2], "y_test": np.full((7, 2), 0.5)}, "y_test must hold class indices"),
        ({"y_train": np.ones((13, 2))}, r"y_test must be real numbers \(samples, outputs\) like y_train, not int64"),
        ({"x_test": np.ones((0, 4, 3)), "y_test": np.ones(0, int)}, "it is empty, give at least one sample"),
        ({"y_train": np.arange(12) % 2}, "y_train must have one row per sample, 13, not 12"),
        ({"y_train": np.full((13, 2), np.inf)}, "y_train holds 26 values that are not finite"),
        ({"y_test": np.ones((7, 1))}, r"y_test must hold class indices \(samples,\), .*, not float64 \(7, 1\)"),
        (
            {"y_train": np.ones((13, 2)), "y_test": np.ones((7, 1))},
            r"y_test must have the form of y_train, \(2,\), not \(1,\)",
        ),
        ({"y_train": np.arange(13) % 2 + 1}, "y_train must use every class 0, 1, .*, at least two, not 1, 2; renumber"),
        ({"y_test": np.full(7, 2)}, "y_test holds class 2, but y_train ends at 1; renumber"),
        ({"len_train": np.ones(12, dtype=int)}, "len_train must be 13 integers, one per sample, not int64"),
        ({"len_train": np.full(13, 6)}, "len_train must lie between 1 and 5, not 6 to 6"),
    ],
)
def test_npz_refusals(tmp_path: Path, change: dict, message: str) -> None:
    arrays = {name: array for name, array in (npz_arrays() | change).items() if array is not None}
    np.savez(tmp_path / "mine.npz", **arrays)
    with pytest.raises(InputError, match=message):
        load_npz_task(tmp_path / "mine.npz")


def test_npz_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; give an .npz with x_train, y_train, x_test, y_test"):
        load_npz_task(tmp_path / "mine.npz")
    (tmp_path / "mine.npz").write_text("text")
    with pytest.raises(InputError, match="must be an .npz file, but is cut off or something else"):
        load_npz_task(tmp_path / "mine.npz")


def test_load_task_by_name(tmp_path: Path, mnist: Path) -> None:
    assert load_task("digits").name == "digits"
    assert load_task("mnist-pixels", mnist).name == "mnist-pixels"
    assert is_task("speech-commands") and not is_task("cifar")
    with pytest.raises(
        InputError, match=r"TASK must be one of digits, .*, copy-first\[-quiet\]\[-STEPS\], .*, not 'cifar'"
    ):
        load_task("cifar")
    with pytest.raises(InputError, match="task digits brings its own data; leave --data out"):
        load_task("digits", tmp_path)
    with pytest.raises(InputError, match="task fsdd needs its data; give the folder of the data set with --data"):
        load_task("fsdd")
    with pytest.raises(InputError, match="task npz needs its data; give an .npz file with --data"):
        load_task("npz")
