"""The tasks of the seed papers: what each asks for is what its definition says, and wrong files are named."""

import wave
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.tasks.audio import read_wav, varied
from cosim.tasks.images import (
    CIFAR_TEST,
    CIFAR_TRAIN,
    load_cifar_task,
    load_digits_task,
    load_mnist_task,
    load_pathfinder_task,
    load_permuted_mnist_task,
)
from cosim.tasks.load import check_task, is_task, load_task
from cosim.tasks.memory import (
    copy_sets,
    generate_copy_first_task,
    generate_copy_value_task,
    generate_published_parity_task,
)
from cosim.tasks.spoken import DIGITS, FORMS, _forms, load_keywords_task, speaker_hash
from cosim.tasks.tokens import TOKENS, evaluate, generate_listops_task, grow_expression, load_reviews_task


def assert_same(one, other):
    for key in ("x_train", "y_train", "x_test", "y_test", "len_train", "len_test"):
        np.testing.assert_array_equal(getattr(one, key), getattr(other, key))


# copies of any length


def test_copies_have_any_length_by_name():
    task = load_task("copy-first-quiet-2500")
    assert task.name == "copy-first-quiet-2500" and task.x_train.shape == (4096, 2500, 2)
    assert not task.x_train[:, 1:].any()
    assert is_task("copy-item-10000") and is_task("copy-item-published") and not is_task("copy-item-010")
    with pytest.raises(InputError, match="must have 2 to 10000 steps, not 20000; give another length"):
        load_task("copy-first-20000")


def test_copy_value_is_copy_first_without_its_mark():
    first, value = (make(7, 20, 10, seed=3) for make in (generate_copy_first_task, generate_copy_value_task))
    np.testing.assert_array_equal(value.x_train, first.x_train[:, :, :1])
    np.testing.assert_array_equal(value.x_test, first.x_test[:, :, :1])
    np.testing.assert_array_equal(value.y_test[:, 0], value.x_test[:, 0, 0])
    assert (value.name, value.offset.tolist(), value.scale.tolist()) == ("copy-value-7", [-1.0], [2.0])
    quiet = load_task("copy-value-quiet-30-published")
    assert quiet.x_train.shape == (12_000, 30, 1) and not quiet.x_train[:, 1:].any() and quiet.x_train[:, 0].any()
    assert not is_task("copy-item-quiet") and not is_task("copy-value-")


def test_long_copies_come_in_smaller_sets():
    assert copy_sets(100, 15) == (4096, 1024) and copy_sets(1000, 2, published=True) == (12000, 2000)
    train, test = copy_sets(10_000, 15)
    # a GiB of 4-byte inputs, less at most one sequence of each set, whose sizes are rounded down
    assert 0 <= 2**30 - 4 * 15 * 10_000 * (train + test) <= 2 * 4 * 15 * 10_000
    assert train / test == pytest.approx(4, abs=0.02)  # 1431 and 357
    assert copy_sets(10_000, 2, published=True) == (12_000, 2000)
    with pytest.raises(InputError, match="14000 sequences of 10000 steps of 15 inputs would take 8.4 GB of memory"):
        load_task("copy-item-10000-published")


def test_blocks_draw_what_one_draw_would():
    task = generate_copy_first_task(3, 500, 30, seed=4)
    whole = np.random.default_rng(4).uniform(-1, 1, (530, 3)).astype(np.float32)
    np.testing.assert_array_equal(np.concatenate([task.x_train, task.x_test])[:, :, 0], whole)


# parity


def test_published_parity_has_the_published_lengths():
    task = generate_published_parity_task(n_train=2000, n_test=1500)
    assert task.x_train.shape == (2000, 400, 1) and task.x_test.shape == (1500, 1000, 1)
    for x, y, lengths, ends in (
        (task.x_train, task.y_train, task.len_train, (50, 400)),
        (task.x_test, task.y_test, task.len_test, (50, 1000)),
    ):
        assert lengths.min() >= ends[0] and lengths.max() <= ends[1]
        spread = (ends[1] - ends[0]) / 12**0.5  # of a uniform length
        assert abs(lengths.mean() - sum(ends) / 2) < 5 * spread / len(y) ** 0.5
        for row, answer, length in zip(x[:50, :, 0], y, lengths, strict=False):
            assert row[:length].sum() % 2 == answer and not row[length:].any()
        assert abs(y.mean() - 0.5) < 5 * 0.5 / len(y) ** 0.5
    assert_same(generate_published_parity_task(7, 5), generate_published_parity_task(7, 5))


# pixels


def test_pixel_digits_are_the_digits_row_after_row():
    rows, pixels = load_digits_task(), load_digits_task(by_pixel=True)
    assert pixels.x_train.shape == (1437, 64, 1) and pixels.offset.shape == pixels.scale.shape == (1,)
    assert (pixels.x_test[5, 8 * 3 + 2, 0], pixels.name) == (rows.x_test[5, 3, 2], "pixel-digits")
    np.testing.assert_array_equal(pixels.y_train, rows.y_train)


def write_mnist(folder):
    rng = np.random.default_rng(7)
    for prefix, count in (("train", 5), ("t10k", 3)):
        for kind, array in (("images-idx3", rng.integers(0, 256, (count, 28, 28))), ("labels-idx1", np.arange(count))):
            header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
            (folder / f"{prefix}-{kind}-ubyte").write_bytes(header + array.astype(np.uint8).tobytes())


def test_permuted_mnist_has_one_order_for_all(tmp_path):
    write_mnist(tmp_path)
    raster = load_mnist_task(tmp_path, by_pixel=True)
    orders = []
    for seed in (42, 24, 36):
        task = load_task(f"mnist-permuted-{seed}", tmp_path)
        assert task.name == f"mnist-permuted-{seed}"
        order = np.random.default_rng(seed).permutation(784)
        np.testing.assert_array_equal(task.x_train, raster.x_train[:, order])
        np.testing.assert_array_equal(task.x_test, raster.x_test[:, order])
        orders.append(order.tolist())
    assert orders[0] != orders[1] != orders[2]
    assert_same(load_permuted_mnist_task(tmp_path, 42), load_task("mnist-permuted-42", tmp_path))


def write_cifar(folder, count=3):
    rng = np.random.default_rng(5)
    records = {name: rng.integers(0, 256, (count, 3073), dtype=np.uint8) for name in (*CIFAR_TRAIN, *CIFAR_TEST)}
    for name, rows in records.items():
        rows[:, 0] %= 10
        (folder / name).write_bytes(rows.tobytes())
    return records


def test_cifar_pixel_by_pixel(tmp_path):
    records = write_cifar(tmp_path)
    task, grey = load_cifar_task(tmp_path), load_cifar_task(tmp_path, grey=True)
    assert task.x_train.shape == (15, 1024, 3) and task.x_test.shape == (3, 1024, 3) and len(task.labels) == 10
    image = records["data_batch_2.bin"][1]
    assert task.y_train[4] == image[0]
    pixel = 32 * 6 + 9  # row 6, column 9
    assert task.x_train[4, pixel].tolist() == [image[1 + 1024 * colour + pixel] for colour in range(3)]
    luma = float(task.x_train[4, pixel] @ [0.299, 0.587, 0.114])
    assert grey.x_train.shape == (15, 1024, 1)
    assert grey.x_train[4, pixel, 0] == pytest.approx(luma, abs=255 * 3 * 2**-23)  # three roundings of single precision
    assert grey.x_train.max() <= 255


def test_cifar_refusals(tmp_path):
    write_cifar(tmp_path)
    (tmp_path / "data_batch_3.bin").write_bytes(bytes(3072))
    with pytest.raises(InputError, match=r"data_batch_3\.bin: must hold records of 3073 bytes, not 3072 bytes; unpack"):
        load_cifar_task(tmp_path)
    (tmp_path / "data_batch_3.bin").write_bytes(bytes([10]) + bytes(3072))
    with pytest.raises(InputError, match=r"data_batch_3\.bin: classes must be 0 to 9, not 10"):
        load_cifar_task(tmp_path)
    (tmp_path / "data_batch_3.bin").unlink()
    with pytest.raises(InputError, match=r"data_batch_3\.bin is missing; give the folder of the binary version"):
        load_task("cifar10", tmp_path)


def pathfinder_arrays():
    rng = np.random.default_rng(3)
    sets = {"train": 4, "test": 3}
    images = {f"x_{part}": rng.integers(0, 256, (n, 32, 32), dtype=np.uint8) for part, n in sets.items()}
    return images | {f"y_{part}": np.arange(n) % 2 for part, n in sets.items()}


def test_pathfinder(tmp_path):
    arrays = pathfinder_arrays()
    np.savez(tmp_path / "pathfinder.npz", **arrays)
    task = load_task("pathfinder", tmp_path / "pathfinder.npz")
    assert task.x_train.shape == (4, 1024, 1) and task.labels == ("apart", "joined") and task.name == "pathfinder"
    assert task.x_test[2, 32 * 7 + 5, 0] == arrays["x_test"][2, 7, 5]
    np.testing.assert_array_equal(task.y_train, arrays["y_train"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_test": None}, "array 'y_test' is missing; found x_test, x_train, y_train"),
        ({"x_train": np.zeros((4, 31, 32), np.uint8)}, r"x_train must be uint8 images .*, not uint8 \(4, 31, 32\)"),
        ({"x_test": np.zeros((3, 32, 32))}, r"x_test must be uint8 images \(samples, 32, 32\), not float64"),
        ({"y_train": np.zeros(5, int)}, r"y_train must be 4 integers 0 or 1 .*, not int64 \(5,\)$"),
        ({"y_train": np.full(4, 2)}, r"y_train must be 4 integers 0 or 1 .*, not int64 \(4,\) with other values"),
    ],
)
def test_pathfinder_refusals(tmp_path, change, message):
    np.savez(tmp_path / "p.npz", **{key: a for key, a in (pathfinder_arrays() | change).items() if a is not None})
    with pytest.raises(InputError, match=message):
        load_pathfinder_task(tmp_path / "p.npz")


# tokens


def independent_value(words):
    """By Python itself: the expression becomes nested calls."""
    calls = {"[MAX": "max", "[MIN": "min", "[MED": "med", "[SM": "sm"}
    text = " ".join(words)
    for token, call in calls.items():
        text = text.replace(token, f"{call}((")
    text = text.replace("]", ")),").replace("(( ", "((")
    for digit in "0123456789":
        text = text.replace(f"{digit} ", f"{digit}, ")
    names = {
        "max": max, "min": min, "med": lambda v: int(np.median(v)), "sm": lambda v: sum(v) % 10,
    }  # fmt: skip
    return eval(text.rstrip(","), {"__builtins__": {}}, names)


def test_listops_values_and_shapes():
    task = generate_listops_task(n_train=300, n_test=40)
    assert task.tokens == 15 and task.x_train.shape == (300, 60, 1)
    assert task.len_train.min() >= 20 and task.len_train.max() <= 60
    for x, y, length in zip(task.x_train[:, :, 0].astype(int), task.y_train, task.len_train, strict=True):
        words = [TOKENS[token] for token in x[:length]]
        assert independent_value(words) == y and not x[length:].any()
    assert set(task.y_train) == set(range(10))
    assert_same(task, generate_listops_task(n_train=300, n_test=40))
    assert not np.array_equal(task.x_train, generate_listops_task(n_train=300, n_test=40, seed=1).x_train)


def test_listops_arguments_and_depth():
    tokens = grow_expression(2000, np.random.default_rng(1))
    assert 1998 <= len(tokens) <= 2000
    arguments, deepest = [0], 0
    for token in tokens:
        if TOKENS[token] == "]":
            assert 2 <= arguments.pop() <= 5
        else:
            arguments[-1] += 1
            if TOKENS[token].startswith("["):
                arguments.append(0)
        deepest = max(deepest, len(arguments) - 1)
    assert deepest == 10 and arguments == [1]


def test_listops_operators():
    def value(text):
        return evaluate([TOKENS.index(word) for word in text.split()])

    assert value("[MAX 2 [MED 3 9 4 ] [SM 7 8 ] ]") == 5
    assert value("[MED 1 4 ]") == 2 and value("[MED 9 1 4 2 ]") == 3 and value("[MIN 3 [SM 9 9 9 9 9 ] ]") == 3
    with pytest.raises(InputError, match="listops must have 12 to 2000 tokens, not 2001; give another length"):
        load_task("listops-2001")


def test_reviews_are_bytes(tmp_path):
    for part in ("train", "test"):
        for name in ("neg", "pos"):
            (tmp_path / part / name).mkdir(parents=True)
            (tmp_path / part / name / "0_1.txt").write_text(f"{name} é")
    (tmp_path / "train" / "pos" / "1_1.txt").write_text("x" * 5000)
    task = load_reviews_task(tmp_path)
    assert task.tokens == 256 and task.x_train.shape == (3, 4000, 1) and task.y_train.tolist() == [0, 1, 1]
    assert task.len_train.tolist() == [6, 6, 4000]
    assert bytes(task.x_test[1, :6, 0].astype(np.uint8)).decode() == "pos é" and not task.x_test[1, 6:].any()
    (tmp_path / "test" / "neg" / "0_1.txt").unlink()
    with pytest.raises(InputError, match=r"neg: must hold \*\.txt files, but holds none"):
        load_task("imdb", tmp_path)


def test_the_hardware_trainer_refuses_tokens():
    pytest.importorskip("torch")
    from cosim.training.config import TrainingConfig
    from cosim.training.trainer import TrainingJob, initial_network

    with pytest.raises(InputError, match="task listops gives the index of one of 15 tokens at each step, which the"):
        initial_network(TrainingJob(TrainingConfig(), generate_listops_task(n_train=20, n_test=5)))


def test_a_task_with_a_target_at_each_step_is_none_for_the_hardware():
    with pytest.raises(InputError, match="task lorenz has a target at each step, and a hardware network is trained"):
        check_task("lorenz")


# keywords


def write_words(folder, counts):
    """So many recordings of a word, each of a speaker of its own, who is named after a number."""
    for word, count in counts.items():
        (folder / word).mkdir()
        for speaker in range(count):
            with wave.open(str(folder / word / f"s{speaker}_nohash_0.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16000)
                file.writeframes(np.full(8000, 100 + speaker, "<i2").tobytes())


def fake_features(clips, rate, hop):
    """What each recording holds, in place of its coefficients, which test_tasks.py and librosa look after."""
    clips = list(clips)
    assert (rate, hop) == (16000, 160) and all(len(clip) == 16000 for clip in clips)
    return [np.full((101, 13), 32768 * clip[0], np.float32) for clip in clips]


@pytest.mark.parametrize(
    ("kind", "counts", "labels"),
    [
        ("yes", {"yes": 40, "no": 60, "up": 30, "_silence_": 9}, ("other", "yes")),
        ("digits", dict.fromkeys(DIGITS, 25) | {"no": 60}, ("other", *DIGITS)),
        ("all", {"no": 100, "up": 120, "bed": 99}, ("no", "up")),
        ("words-all", {"no": 110, "up": 110, "bed": 60, "cat": 50, "_silence_": 9}, ("other", "no", "up")),
    ],
)
def test_keywords_are_balanced_and_split_by_speaker(tmp_path, monkeypatch, kind, counts, labels):
    monkeypatch.setattr("cosim.tasks.spoken.mfcc", fake_features)
    monkeypatch.setattr("cosim.tasks.spoken.varied", lambda clip, *_: clip)
    write_words(tmp_path, counts)
    task = load_task(f"kws-{kind}", tmp_path)
    assert task.labels == labels and task.name == f"kws-{kind}"
    for y in (task.y_train, task.y_test):
        assert len(set(np.bincount(y, minlength=len(labels)))) == 1 and len(y)
    heard = [{f"s{round(value) - 100}" for value in x[:, 0, 0]} for x in (task.x_train, task.x_test)]
    assert not heard[0] & heard[1]
    assert all(speaker_hash(speaker) >= 0.1 for speaker in heard[0])
    assert all(speaker_hash(speaker) < 0.1 for speaker in heard[1])
    groups = {}  # of one speaker each
    for row, group in zip(task.x_train[:, 0, 0], task.groups_train, strict=True):
        assert groups.setdefault(group, row) == row
    assert_same(task, load_keywords_task(tmp_path, kind))


def test_every_recording_of_the_others_is_trained_with(tmp_path, monkeypatch):
    """Of 40 and 90 recordings: the rarer as often as makes it even, FORMS times; every tenth of the speakers can be the
    test's."""
    monkeypatch.setattr("cosim.tasks.spoken.mfcc", fake_features)
    monkeypatch.setattr("cosim.tasks.spoken.varied", lambda clip, *_: clip)
    write_words(tmp_path, {"yes": 40, "no": 60, "up": 30})
    task, published = load_task("kws-yes-all", tmp_path), load_task("kws-yes", tmp_path)
    assert np.array_equal(task.x_test, published.x_test) and np.array_equal(task.y_test, published.y_test)
    heard = [task.x_train[task.y_train == label, 0, 0] for label in (0, 1)]
    speakers = [{speaker for speaker in range(count) if speaker_hash(f"s{speaker}") >= 0.1} for count in (60, 40)]
    assert {round(value) - 100 for value in heard[0]} == speakers[0]
    assert {round(value) - 100 for value in heard[1]} == speakers[1]
    others = 90 - len(task.y_test) // 2  # at least; the test leaves out what makes its classes uneven
    assert len(heard[0]) % FORMS == 0 and len(heard[0]) <= FORMS * others
    assert len(heard[1]) == FORMS * len(speakers[1]) * (len(heard[0]) // FORMS // len(speakers[1]))
    folds = [load_keywords_task(tmp_path, "yes-all", fold) for fold in range(10)]
    yes = [set(fold.x_test[fold.y_test == 1, 0, 0]) for fold in folds]
    assert sum(map(len, yes)) == len(set().union(*yes)) == 40


def test_a_recording_comes_once_as_it_is_and_then_in_other_forms(tmp_path):
    write_words(tmp_path, {"yes": 2})
    one, two = sorted((tmp_path / "yes").iterdir())
    paths, noises = [one, two, one, one, two], [np.full(16000, 0.5, np.float32)]
    forms = list(_forms(paths, noises))
    for path, form in zip(paths[:2], forms, strict=False):
        clip = read_wav(path, 16000, 1.0)
        np.testing.assert_array_equal(form, np.r_[clip, np.zeros(8000, np.float32)])
    assert len(np.unique(np.stack(forms), axis=0)) == 5 and {form.dtype for form in forms} == {np.dtype(np.float32)}
    for form, again in zip(forms, _forms(paths, noises), strict=True):
        np.testing.assert_array_equal(form, again)


def test_a_varied_recording_is_faster_moved_louder_and_in_front_of_something():
    """A burst of a tone: its pitch and its time say the speed and the move, the ends what is behind it."""
    rate = 16000
    time = np.arange(rate) / rate
    burst = np.where(abs(time - 0.5) < 0.2, np.sin(2 * np.pi * 1000 * time), 0).astype(np.float32)
    behind, rng = [np.full(rate, 0.1, np.float32)], np.random.default_rng(3)
    found = []
    for _ in range(200):
        form = varied(burst, rate, behind, rng)
        floor = float(form[0])
        loud = np.flatnonzero(abs(form - floor) > 1e-4)
        spectrum = abs(np.fft.rfft(form - floor))
        found.append((spectrum.argmax() / 1000, (loud[0] + loud[-1]) / 2 / rate - 0.5, abs(form - floor).max(), floor))
        assert len(loud) / rate == pytest.approx(0.4 / found[-1][0], rel=0.01)  # a period of 400, zero crossings
    speeds, moves, levels, floors = np.array(found).T
    assert 0.85 <= speeds.min() < 0.87 and 1.13 < speeds.max() <= 1.15
    # found / speed: the move is in the recording's own time
    assert 0.09 < abs(moves * speeds).max() < 0.102
    # a step of 23 degrees misses a peak by 2 %
    assert levels.min() / 0.98 >= 10**-0.3 and levels.max() <= 10**0.3 + 1e-6
    assert 0.1 * 10**-2.3 <= floors.min() < 0.002 and 0.2 < floors.max() <= 0.1 * 10**0.6
    assert not varied(burst, rate, [], rng)[0]


def test_keywords_refusals(tmp_path):
    write_words(tmp_path, {"yes": 1, "no": 40})
    with pytest.raises(InputError, match=r"none of the test speakers says 'yes'; add recordings"):
        load_keywords_task(tmp_path, "yes")
    with pytest.raises(InputError, match="no recordings of 'zero'; there are: no, yes"):
        load_keywords_task(tmp_path, "digits")
    with pytest.raises(InputError, match="kws-all must have two words of 100 recordings or more, not none; add"):
        load_keywords_task(tmp_path, "all")
    with pytest.raises(InputError, match="no such folder; give the folder of <word>"):
        load_keywords_task(tmp_path / "absent", "all")


def test_a_recording_of_one_second_has_101_frames(tmp_path: Path) -> None:
    pytest.importorskip("librosa")
    from cosim.tasks.audio import mfcc

    sound = np.sin(2 * np.pi * 440 * np.arange(16000) / 16000).astype(np.float32)
    assert mfcc([sound], 16000, 160)[0].shape == (101, 13)
